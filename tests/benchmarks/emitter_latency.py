"""How long `episode.step` takes while Kafka is up, away and dying, with a spool and without: the robot's own thread.

    python -m tests.benchmarks.emitter_latency [--steps 3000] [--rate 500]

The broker is the embedded one. "Dying" kills it in the middle. Times are those of the call alone, in microseconds.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from springback.deploy.broker_process import free_port
from springback.deploy.brokers import EmbeddedBroker
from springback.producers.emitter.kafka_publisher import KafkaPublisher
from springback.producers.emitter.step_emitter import StepEmitter

STATES = ("up", "away", "dying")


def step_times_us(state: str, folder: Path | None, steps: int, rate: float) -> tuple[np.ndarray, str]:
    """How long each step took, µs, and what became of the steps."""
    with contextlib.ExitStack() as stack:
        broker = None if state == "away" else stack.enter_context(EmbeddedBroker())
        address = f"127.0.0.1:{free_port()}" if broker is None else broker.address
        emitter = StepEmitter(KafkaPublisher(address), producer="robot", spool=folder)
        stack.callback(emitter.close, 1.0)
        episode = emitter.begin_episode(family="bench")
        taken = np.empty(steps)
        for number in _paced(steps, rate):
            if broker is not None and state == "dying" and number == steps // 2:
                broker.kill()
            began = time.perf_counter()
            episode.step(progress=0.5, mode="navigate", planning_s=0.01, travel=0.1, risk=0.0)
            taken[number] = time.perf_counter() - began
        report = emitter.report
        return 1e6 * taken, (
            f"{report.steps_sent} sent, {report.steps_spooled} on disk, {report.steps_buffered} in memory, "
            f"{report.steps_dropped} dropped"
        )


def _paced(steps: int, rate: float) -> Iterator[int]:
    began = time.perf_counter()
    for number in range(steps):
        time.sleep(max(0.0, began + number / rate - time.perf_counter()))
        yield number


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--rate", type=float, default=500.0, help="steps a second")
    chosen = parser.parse_args()
    logging.disable(logging.CRITICAL)
    print(f"{'Kafka':8} {'spool':6} {'p50 µs':>8} {'p99 µs':>8} {'most µs':>9}  steps", flush=True)
    for state in STATES:
        for spooled in (False, True):
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place) if spooled else None
                taken, became = step_times_us(state, folder, chosen.steps, chosen.rate)
            p50, p99 = np.percentile(taken, [50, 99])
            shown = f"{p50:8.0f} {p99:8.0f} {taken.max():9.0f}"
            print(f"{state:8} {'yes' if spooled else 'no':6} {shown}  {became}", flush=True)


if __name__ == "__main__":
    main()

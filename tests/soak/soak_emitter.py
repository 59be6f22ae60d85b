"""A producer of a soak: a vector of environments whose steps go together, at a rate that can be changed meanwhile.

Started as a program with a plan. What it plays is drawn once and then played again and again under new ids, so that
the processor's time is the pipeline's and not that of making episodes up.
"""

import os
import struct
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from springback.producers.emitter.kafka_publisher import KafkaPublisher
from springback.producers.emitter.step_emitter import EndTogether, EpisodeHandle, StepEmitter
from tests.faults.fault_workload import FAMILIES

STOP = "stop"
"""The file that tells all producers to end their episodes and close."""
_RATE = struct.Struct("<d")
_POOL = 64
_LENGTH = 200
_MODES = ("navigate", "manipulate", "perceive")
_STRESSES = (0.2, 0.4, 0.6, 0.8)
_MOST_BUFFERED = 10_000
_CLOSE_S = 300.0


class SoakEmitterPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What one producer does.

    Attributes:
        bootstrap: HOST:PORT of the broker.
        topic: of steps.
        producer: its id.
        slots: episodes that take their steps together: so many steps a frame.
        seed: of what is played.
        directory: where the file to stop is.
        rate_file: eight bytes, a float64: the steps per second that are wanted now.
        count_file: written at the end.
    """

    bootstrap: str
    topic: str
    producer: str
    slots: int
    seed: int
    directory: str
    rate_file: str
    count_file: str


class SoakCount(msgspec.Struct, frozen=True, kw_only=True):
    """What a producer has reported, and what its emitter says became of it."""

    steps: int
    refusable: int
    begun: int
    ends: dict[str, int]
    steps_sent: int
    steps_dropped: int
    ends_dropped: int


def write_rate(file: Path, steps_per_s: float) -> None:
    """Says how many steps a second a producer is to report from now on."""
    partial = file.with_suffix(".partial")
    partial.write_bytes(_RATE.pack(steps_per_s))
    partial.replace(file)


class SoakPool:
    """Episodes as columns: the signals of each place and each step. Shape of each: (episodes, steps)."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        shape = _POOL, _LENGTH
        upset = np.zeros(shape, dtype=bool)
        self.clean = np.arange(_POOL) % 2 == 0
        for episode in np.flatnonzero(~self.clean):
            start = int(rng.integers(20, _LENGTH - 40))
            upset[episode, start : start + int(rng.integers(5, 30))] = True
        advance = np.where(upset, rng.normal(-0.002, 0.001, shape), rng.normal(1.1 / _LENGTH, 0.001, shape))
        progress = np.clip(np.cumsum(advance, axis=1), 0, 1)
        self.refusable = rng.random(shape) < 1e-3
        progress[self.refusable] = 1.7
        self.columns: dict[str, Any] = {
            "progress": progress,
            "propositions": np.clip(np.floor(4 * progress) / 4, 0, 1),
            "cycle_time_s": rng.lognormal(-0.7, 0.2, shape) * (1 + upset),
            "planning_s": rng.gamma(2.0, 0.05, shape) * (1 + 5 * upset),
            "perception_s": rng.gamma(2.0, 0.02, shape),
            "travel": rng.choice([0.0, 0.25, 0.25], shape) * (1 + 3 * upset),
            "retries": rng.poisson(np.where(upset, 2.0, 0.02)).astype(float),
        }
        self.modes = rng.integers(0, len(_MODES), shape)


class SoakProducer:
    """The vector: each slot plays one episode after another."""

    def __init__(self, plan: SoakEmitterPlan) -> None:
        self._plan = plan
        self._pool = SoakPool(plan.seed)
        self._rng = np.random.default_rng([plan.seed, 1])
        self._emitter = StepEmitter(KafkaPublisher(plan.bootstrap, plan.topic), producer=plan.producer)
        self._handles: list[EpisodeHandle] = []
        self._episode = np.zeros(plan.slots, dtype=np.int64)
        self._step = np.zeros(plan.slots, dtype=np.int64)
        self._steps = self._refusable = self._begun = 0
        self._ends: Counter[str] = Counter()
        for slot in range(plan.slots):
            self._handles.append(self._begin(slot))
        # Not all at once: the slots are at different places of their episodes.
        self._step += self._rng.integers(0, _LENGTH // 2, plan.slots)

    def _begin(self, slot: int) -> EpisodeHandle:
        episode = self._episode[slot] = int(self._rng.integers(_POOL))
        self._step[slot] = 0
        self._begun += 1
        clean = bool(self._pool.clean[episode])
        family = FAMILIES[episode % len(FAMILIES)]
        traits: dict[str, Any] = {"task": f"task-{episode // 2}", "reference": clean}
        if not clean:
            traits |= {"stress": _STRESSES[episode % len(_STRESSES)], "perturbation": "physical"}
        return self._emitter.begin_episode(f"{self._plan.producer}-{slot}", family=family, **traits)

    def tick(self, *, ending: bool = False) -> None:
        """Reports a step of every slot, and the ends among them; all of them end if that is wanted."""
        place = self._episode, self._step
        signals: dict[str, Any] = {name: column[place] for name, column in self._pool.columns.items()}
        signals["mode"] = [_MODES[code] for code in self._pool.modes[place]]
        done = np.flatnonzero((self._step == _LENGTH - 1) | ending).tolist()
        outcomes = {slot: "success" if self._pool.clean[self._episode[slot]] else "failure" for slot in done}
        ends = [EndTogether(slot, outcome) for slot, outcome in outcomes.items()]
        self._emitter.step_together(self._handles, self._step, signals, ends)
        self._steps += len(self._handles)
        self._refusable += int(self._pool.refusable[place].sum())
        self._ends.update(outcomes.values())
        self._step = self._step + 1
        for slot in [] if ending else done:
            self._handles[slot] = self._begin(slot)

    @property
    def behind(self) -> bool:
        """Whether the broker takes frames more slowly than they come: more of them would only fill the buffer."""
        return self._emitter.report.steps_buffered > _MOST_BUFFERED

    def close(self) -> SoakCount:
        """Ends every episode and closes; what became of it all."""
        self.tick(ending=True)
        self._emitter.close(_CLOSE_S)
        report = self._emitter.report
        return SoakCount(
            steps=self._steps,
            refusable=self._refusable,
            begun=self._begun,
            ends=dict(self._ends),
            steps_sent=report.steps_sent,
            steps_dropped=report.steps_dropped,
            ends_dropped=report.ends_dropped,
        )


def soak(plan: SoakEmitterPlan) -> None:
    """Reports steps at the rate that the file says until told to stop, then writes the counts."""
    producer = SoakProducer(plan)
    stop, rate_file = Path(plan.directory) / STOP, Path(plan.rate_file)
    due = time.monotonic()
    while not stop.exists():
        if not producer.behind:
            producer.tick()
        (rate,) = _RATE.unpack(rate_file.read_bytes())
        # What could not be done in time is not made up for: the rate is a wish.
        due = max(due + plan.slots / rate, time.monotonic() - 0.1)
        time.sleep(max(0.0, due - time.monotonic()))
    count = Path(plan.count_file)
    partial = count.with_suffix(".partial")
    partial.write_bytes(msgspec.json.encode(producer.close()))
    os.replace(partial, count)


if __name__ == "__main__":
    soak(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=SoakEmitterPlan))

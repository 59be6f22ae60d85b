"""`make bench`: how fast it is, as ratios against something else in the same run."""

import os
import platform
import sys
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.benchmarks.core_speed import CorePlan, CoreRun, core_runs
from tests.benchmarks.speed_report import core_figures, core_table, worker_figures, worker_table
from tests.benchmarks.worker_speed import WorkerPlan, WorkerRun, worker_runs
from tests.program import run_program

_LARGEST_FRAME = 4096
_FEW_FRAMES = 10_000


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(int(part) if part.strip().isdigit() else 0 for part in text.split(","))
    if not all(1 <= size <= _LARGEST_FRAME for size in sizes):
        message = f"{text!r}: expected numbers from 1 to {_LARGEST_FRAME} with commas between, such as 1,16,64"
        raise typer.BadParameter(message)
    return sizes


def bench(
    broker: Annotated[
        Literal["embedded", "kafka"], typer.Option(help="The broker to start: the embedded one, or an Apache Kafka.")
    ] = "embedded",
    part: Annotated[Literal["all", "worker", "core"], typer.Option(help="What to measure.")] = "all",
    sizes: Annotated[str, typer.Option(metavar="N,N,…", help="Steps per frame.")] = "1,16,64",
    seconds: Annotated[float, typer.Option(min=0.1, max=60, help="Measure each worker for so long.")] = 5.0,
    repeats: Annotated[int, typer.Option(min=1, max=100, help="Take the median of so many runs of each.")] = 3,
    agents: Annotated[int, typer.Option(min=1, max=1000, help="Agents that the frames come from.")] = 32,
    frames: Annotated[
        int,
        typer.Option(min=_FEW_FRAMES, help="Frames in the topic; a run ends early where a worker has read them all."),
    ] = 80_000,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", dir_okay=False, help="Write figures and runs here too.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="One short run of each: whether it works, not how fast.")] = False,
) -> None:
    """Measure how many steps per second one worker takes.

    The product's own worker reads step frames of a made-up fleet from Kafka. In turn with it, a bare Faust worker with
    the same settings forwards the same frames and does nothing else: the ratio says what our work costs on top of
    Faust's, and means the same on any machine. Speeds themselves are those of this machine and of what else runs on it.
    The "ratio per core" is by processor time, and hardly cares about the latter.

    In memory, without Kafka, decoding and the core are set against copying the same columns.

    Takes about four minutes. Example: make bench ARGS="--broker kafka --part worker --json speed.json"
    """
    chosen = _sizes(sizes)
    if quick:
        chosen, seconds, repeats, frames = chosen[:1], min(seconds, 0.3), 1, min(frames, _FEW_FRAMES)
    worker = WorkerPlan(broker, chosen, seconds, repeats, agents, frames)
    core = CorePlan(chosen, repeats, agents, _FEW_FRAMES)
    worker_found: list[WorkerRun] = []
    core_found: list[CoreRun] = []
    bar = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*bar, console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=core.runs() * (part != "worker") + worker.runs() * (part != "core"))

        def announce(what: str) -> None:
            progress.update(task, description=what)

        for core_run in core_runs(core, announce) if part != "worker" else ():
            core_found.append(core_run)
            progress.advance(task)
        for worker_run in worker_runs(worker, announce) if part != "core" else ():
            worker_found.append(worker_run)
            progress.advance(task)
    console = Console(width=None if sys.stdout.isatty() else 120)
    if core_found:
        console.print(core_table(core_figures(core_found)))
    if worker_found:
        console.print(worker_table(worker_figures(worker_found)))
    if json_file is not None:
        found = {
            "machine": {"system": platform.platform(), "python": platform.python_version(), "cores": os.cpu_count()},
            "plan": worker,
            "core": core_figures(core_found),
            "worker": worker_figures(worker_found),
            "runs": [*core_found, *worker_found],
        }
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")


if __name__ == "__main__":
    sys.exit(run_program(bench, "make bench"))

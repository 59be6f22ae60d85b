"""`make faults`: a fleet on a real Kafka, faults at random instants, and every output against the offline reducers."""

import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from springback.deploy.child_process import ChildProcess
from tests.faults.fault_kinds import FAULT_KINDS, KIND_NAMES
from tests.faults.fault_report import KindFigures, kind_figures, kind_table, run_table
from tests.faults.fault_run import BaselineMode, RunLine, RunPlan, RunProgress, RunReport, run_command
from tests.house import ROOT
from tests.program import run_program

_RUN_S = 3600.0
_LOOK_S = 0.5


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` writes: the first run's plan, the figures of each kind, and the runs that are done."""

    plan: RunPlan
    kinds: list[KindFigures]
    runs: list[RunReport]


def run_plans(plans: Sequence[RunPlan], parallel: int, tell: Callable[[RunLine], None]) -> list[RunReport]:
    """Does the runs, so many side by side, each in a process of its own. A run without mismatches leaves no folder."""
    with ThreadPoolExecutor(parallel) as threads:
        return list(threads.map(lambda plan: run_plan(plan, tell), plans))


def run_plan(plan: RunPlan, tell: Callable[[RunLine], None]) -> RunReport:
    """Does one run in a process of its own."""
    directory = Path(plan.directory)
    directory.mkdir(parents=True)
    file, lines = directory / "plan.json", directory / "run.log"
    file.write_bytes(msgspec.json.encode(plan))
    report: RunReport | None = None
    read = 0
    with ChildProcess(f"The run of seed {plan.seed}", run_command(file), lines, directory=ROOT) as child:
        ended = threading.Event()
        for _ in range(int(_RUN_S / _LOOK_S)):
            over = child.exit_code is not None
            told = lines.read_bytes()
            whole = told.rfind(b"\n") + 1
            for line in told[read:whole].splitlines():
                if (found := _run_line(line)) is not None:
                    tell(found)
                    report = found if isinstance(found, RunReport) else report
            read = whole
            if over:
                break
            ended.wait(_LOOK_S)
        if report is None:
            why = str(child.log_tail())
            report = RunReport(seed=plan.seed, mode=plan.mode, mismatches=[f"the run ended without a report: {why}"])
            tell(report)
    if not report.mismatches:
        shutil.rmtree(directory)
    return report


def _run_line(line: bytes) -> RunLine | None:
    try:
        return msgspec.json.decode(line, type=RunProgress | RunReport)
    except msgspec.DecodeError:
        return None  # the log of a part


def _names(text: str, known: Sequence[str], what: str) -> tuple[str, ...]:
    if text == "all":
        return tuple(known)
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    unknown = sorted(set(names) - set(known))
    if unknown or not names:
        message = f"{text!r}: expected `all`, or some of {', '.join(known)} with commas between ({what})"
        raise typer.BadParameter(message)
    return names


def faults(
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Runs of each baseline mode, of as many seeds.")] = 1,
    first_seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 1,
    kinds: Annotated[
        str, typer.Option(metavar="KIND,KIND,…", help=f"Which faults, of {', '.join(KIND_NAMES)}; or `all`.")
    ] = "all",
    times: Annotated[int, typer.Option(min=1, max=1000, help="How often a run does each of them.")] = 1,
    modes: Annotated[
        str,
        typer.Option(metavar="MODE,MODE", help="Baselines: `frozen` (a file), `live` (learned meanwhile), or `all`."),
    ] = "all",
    parallel: Annotated[int, typer.Option(min=1, max=64, help="Runs side by side.")] = 1,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes of a run, at least.")] = 300,
    broker: Annotated[
        Literal["kafka", "embedded"],
        typer.Option(help="A real Kafka, or the embedded one, which loses all when it ends: without its faults."),
    ] = "kafka",
    json_file: Annotated[
        Path | None,
        typer.Option(
            "--json", metavar="FILE", dir_okay=False, help="Write figures and runs here, after each run anew."
        ),
    ] = None,
    show: Annotated[
        Path | None,
        typer.Option(metavar="FILE", exists=True, dir_okay=False, help="Show what such a file holds; run nothing."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="Where the folders of runs are; a temporary place if not given."),
    ] = None,
) -> None:
    """Have faults happen to a working fleet, and compare all that it says with the offline reducers.

    Emitters, one to three workers and an exporter work on a broker of their own, each as a process, while the faults of
    `--kinds` happen, in an order and at instants that the seed says. Then every window, summary, contribution, family
    reading, baseline, dead letter and counter is compared with what the recorded steps come to without faults; what was
    sent more than once must be the same, byte for byte; and what the emitters sent must all be there, in order.

    A run of all kinds takes about eight minutes, most of it waiting for a broker that is away. It ends with 1 if
    anything was wrong; the folders of such runs stay, with all logs and topics.

    Example: make faults ARGS="--seeds 20 --parallel 4 --json faults.json"
    """
    if show is not None:
        _print_found(msgspec.json.decode(show.read_bytes(), type=Found).runs)
        return
    chosen = _names(kinds, KIND_NAMES, "--kinds")
    if broker == "embedded":
        chosen = tuple(kind.name for kind in FAULT_KINDS if kind.name in chosen and not kind.broker)
    chosen_modes = [mode for mode in get_args(BaselineMode) if mode in _names(modes, get_args(BaselineMode), "--modes")]
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    base = Path(tempfile.mkdtemp(prefix="springback-faults-", dir=folder))
    plans = [
        RunPlan(
            seed=seed,
            mode=mode,
            kinds=chosen,
            times=times,
            broker=broker,
            episodes=episodes,
            directory=str(base / f"{mode}-{seed}"),
        )
        for seed in range(first_seed, first_seed + seeds)
        for mode in chosen_modes
    ]
    reports = _with_progress(plans, parallel, json_file)
    _print_found(reports)
    if any(report.mismatches for report in reports):
        print(f"Logs and topics of the runs with mismatches: {base}")
        raise typer.Exit(1)
    shutil.rmtree(base)


def _print_found(reports: Sequence[RunReport]) -> None:
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(run_table(reports))
    console.print(kind_table(kind_figures(reports)))
    for kind in sorted({kind for report in reports for kind in report.left_out}):
        console.print(f"Left out, since it needs root and a mount of its own: {kind}")
    for report in reports:
        for text in report.mismatches:
            console.print(f"seed {report.seed}, {report.mode}: {text}", markup=False, highlight=False)


def _with_progress(plans: Sequence[RunPlan], parallel: int, json_file: Path | None) -> list[RunReport]:
    done: list[RunReport] = []
    lock = threading.Lock()

    def keep(report: RunReport) -> None:
        with lock:
            done.append(report)
            if json_file is not None:
                found = Found(plan=plans[0], kinds=kind_figures(done), runs=done)
                json_file.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")

    bar = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*bar, console=Console(stderr=True)) as progress:
        runs = progress.add_task("runs", total=len(plans))
        tasks = {
            (plan.seed, plan.mode): progress.add_task("", total=plan.times * len(plan.kinds), visible=False)
            for plan in plans
        }

        def tell(line: RunLine) -> None:
            task = tasks[line.seed, line.mode]
            if isinstance(line, RunReport):
                keep(line)
                progress.update(task, visible=False)
                progress.advance(runs)
                told = f"{len(line.mismatches)} mismatches" if line.mismatches else "nothing wrong"
                progress.console.print(f"seed {line.seed}, {line.mode}: {told} after {line.seconds:.0f} s")
            else:
                doing = f"seed {line.seed}, {line.mode}: {line.doing}"
                progress.update(task, visible=True, description=doing, completed=line.done)

        return run_plans(plans, parallel, tell)


if __name__ == "__main__":
    sys.exit(run_program(faults, "make faults"))

"""What the runs come to: medians, and ratios against what ran beside them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from rich import box
from rich.table import Table

from tests.benchmarks.core_speed import COPY, PARTS, CoreRun
from tests.benchmarks.worker_speed import WorkerRun


@dataclass(frozen=True, slots=True)
class WorkerFigures:
    """Our worker at one frame size. Speeds are medians over the repeats, ratios medians of those of each pair of runs.

    Attributes:
        size: steps per frame.
        steps_per_s: of ours.
        slowest, fastest: repeats of ours, in steps per second.
        frames_per_s: of ours.
        bare_frames_per_s: of the bare Faust worker.
        ratio: ours over bare, in frames per second.
        core_share: processor time of ours per second.
        core_ratio: ours over bare, in frames per second of processor time.
    """

    size: int
    steps_per_s: float
    slowest: float
    fastest: float
    frames_per_s: float
    bare_frames_per_s: float
    ratio: float
    core_share: float | None
    core_ratio: float | None


@dataclass(frozen=True, slots=True)
class CoreFigures:
    """One part of the core at one frame size, and its speed over that of a plain copy: medians over the repeats."""

    part: str
    size: int
    rows_per_s: float
    ratio: float


def worker_figures(runs: Sequence[WorkerRun]) -> list[WorkerFigures]:
    """The figures of each frame size, in the order in which they ran."""
    return [_of_size(size, [run for run in runs if run.size == size]) for size in dict.fromkeys(r.size for r in runs)]


def core_figures(runs: Sequence[CoreRun]) -> list[CoreFigures]:
    """The figures of each part at each frame size, in the order in which they ran."""
    figures = []
    for size in dict.fromkeys(run.size for run in runs):
        speeds = {part: [run.rows_per_s for run in runs if (run.size, run.part) == (size, part)] for part in PARTS}
        figures += [
            CoreFigures(part, size, median(speeds[part]), _paired(speeds[part], speeds[COPY])) for part in PARTS
        ]
    return figures


def worker_table(figures: Iterable[WorkerFigures]) -> Table:
    """The workers as a table."""
    table = _table("One worker, through Kafka", "steps/frame", "steps/s", "range", "frames/s", "bare Faust", "ratio")
    table.add_column("of a core", justify="right")
    table.add_column("ratio per core", justify="right")
    for f in figures:
        spread = f"{_short(f.slowest)} to {_short(f.fastest)}"
        speeds = _short(f.frames_per_s), _short(f.bare_frames_per_s), f"{f.ratio:.2f}"
        share, core_ratio = ("" if value is None else f"{value:.2f}" for value in (f.core_share, f.core_ratio))
        table.add_row(str(f.size), _short(f.steps_per_s), spread, *speeds, share, core_ratio)
    return table


def core_table(figures: Iterable[CoreFigures]) -> Table:
    """The core as a table."""
    table = _table("The core, in memory", "steps/frame", "rows/s", "of a copy's speed")
    table.columns[0].header = "steps/frame"
    table.add_column("part", justify="left")
    for f in figures:
        table.add_row(str(f.size), _short(f.rows_per_s), f"1/{1 / f.ratio:,.0f}", f.part)
    return table


def _of_size(size: int, runs: Sequence[WorkerRun]) -> WorkerFigures:
    ours = [run for run in runs if run.worker == "springback"]
    bare = [run for run in runs if run.worker == "bare"]
    steps = [run.steps_per_s for run in ours]
    shares = [run.core_share for run in ours if run.core_share]
    per_core = [[run.frames_per_s / run.core_share for run in some if run.core_share] for some in (ours, bare)]
    told = len(per_core[0]) == len(per_core[1]) == len(ours)
    return WorkerFigures(
        size=size,
        steps_per_s=median(steps),
        slowest=min(steps),
        fastest=max(steps),
        frames_per_s=median(run.frames_per_s for run in ours),
        bare_frames_per_s=median(run.frames_per_s for run in bare),
        ratio=_paired([run.frames_per_s for run in ours], [run.frames_per_s for run in bare]),
        core_share=median(shares) if told else None,
        core_ratio=_paired(*per_core) if told else None,
    )


def _paired(these: Sequence[float], those: Sequence[float]) -> float:
    """The median ratio of runs that followed one another."""
    return median(this / that for this, that in zip(these, those, strict=True))


def _short(value: float) -> str:
    """Three figures are all that such a measurement has.

    >>> _short(7985.2), _short(203551.0), _short(52380772.0)
    ('7,990', '204,000', '52.4 M')
    """
    rounded = float(f"{value:.3g}")
    return f"{rounded / 1e6:g} M" if rounded >= 1e6 else f"{rounded:,.0f}"


def _table(title: str, *numbers: str) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for header in numbers:
        table.add_column(header, justify="right")
    return table

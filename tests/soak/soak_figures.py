"""What a soak showed: the table, the bounds that were to hold, and the plot."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from tests.soak.soak_run import SoakSample

GROWTH_SHARE = 0.10
GROWTH_MB = 20.0
MORE_DESCRIPTORS = 8
MORE_THREADS = 4
JUDGED_FROM_S = 300.0
"""A shorter soak is not judged by growth: everything is still warming up."""
_UNBOUND = ("broker",)
"""Java takes the heap that it was given, and the embedded broker keeps all in memory."""


class ProcessGrowth(NamedTuple):
    """A process in the second quarter of a soak and in its last: medians of memory, most descriptors and threads."""

    name: str
    memory_mb: tuple[float, float]
    descriptors: tuple[int, int]
    threads: tuple[int, int]
    core_share: float


def growths(samples: Sequence[SoakSample]) -> list[ProcessGrowth]:
    """How each process has grown."""
    quarter = max(1, len(samples) // 4)
    early, late = samples[quarter : 2 * quarter] or samples[:1], samples[-quarter:]
    found = []
    for name in samples[0].processes:
        parts = [[sample.processes[name] for sample in part] for part in (early, late)]
        memory = [statistics.median(sample.memory_mb for sample in part) for part in parts]
        descriptors = [max(sample.descriptors for sample in part) for part in parts]
        threads = [max(sample.threads for sample in part) for part in parts]
        shares = [sample.processes[name].core_share for sample in samples[1:]] or [0.0]
        found.append(
            ProcessGrowth(
                name,
                (memory[0], memory[1]),
                (descriptors[0], descriptors[1]),
                (threads[0], threads[1]),
                statistics.mean(shares),
            )
        )
    return found


def broken_bounds(samples: Sequence[SoakSample]) -> list[str]:
    """Which processes have grown by more than they may, in words."""
    if samples[-1].at_s < JUDGED_FROM_S:
        return []
    broken = []
    for growth in growths(samples):
        before, after = growth.memory_mb
        if growth.name not in _UNBOUND and after > before * (1 + GROWTH_SHARE) + GROWTH_MB:
            broken.append(f"{growth.name}: memory grew from {before:.0f} to {after:.0f} MB")
        if growth.descriptors[1] > growth.descriptors[0] + MORE_DESCRIPTORS:
            broken.append(f"{growth.name}: descriptors grew from {growth.descriptors[0]} to {growth.descriptors[1]}")
        if growth.threads[1] > growth.threads[0] + MORE_THREADS:
            broken.append(f"{growth.name}: threads grew from {growth.threads[0]} to {growth.threads[1]}")
    return broken


def growth_table(samples: Sequence[SoakSample]) -> Table:
    """How each process has grown, as a table."""
    table = Table(title="Processes: second quarter → last quarter")
    table.add_column("process")
    for heading in ("memory", "descriptors", "threads", "share of a core"):
        table.add_column(heading, justify="right")
    for growth in growths(samples):
        before, after = growth.memory_mb
        table.add_row(
            growth.name,
            f"{before:.0f} → {after:.0f} MB",
            f"{growth.descriptors[0]} → {growth.descriptors[1]}",
            f"{growth.threads[0]} → {growth.threads[1]}",
            f"{growth.core_share:.2f}",
        )
    return table


def write_plot(samples: Sequence[SoakSample], file: Path) -> None:
    """Draws memory, descriptors and threads, the share of a core, and rate and lag over the minutes (PNG)."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    minutes = [sample.at_s / 60 for sample in samples]
    figure, axes = pyplot.subplots(5, 1, figsize=(10, 14), sharex=True, layout="constrained")
    for name in samples[0].processes:
        own = [sample.processes[name] for sample in samples]
        axes[0].plot(minutes, [sample.memory_mb for sample in own], label=name)
        axes[1].plot(minutes, [sample.descriptors for sample in own], label=name)
        axes[2].plot(minutes, [sample.threads for sample in own], label=name)
        axes[3].plot(minutes, [sample.core_share for sample in own], label=name)
    axes[4].plot(
        minutes, [sample.steps_per_s for sample in samples], color="tab:blue", label="steps taken in per second"
    )
    behind = axes[4].twinx()
    behind.plot(minutes, [sample.frames_behind for sample in samples], color="tab:red", label="frames behind")
    behind.set_ylabel("frames behind", color="tab:red")
    behind.set_ylim(bottom=0)
    for place, label in zip(axes, ("memory [MB]", "descriptors", "threads", "share of a core", "steps/s"), strict=True):
        place.set_ylabel(label)
        place.set_ylim(bottom=0)
        place.grid(alpha=0.3)
    axes[0].legend(loc="upper left", ncols=3)
    axes[4].set_xlabel("minutes")
    figure.savefig(file, dpi=110)
    pyplot.close(figure)

"""What many episodes show together: of an agent in a family, and of all agents of the family.

A rule speaks of the family where the family as a whole shows it, else of the single agents that do.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from springback.producers.contract.suspicions import KINDS, Sign
from springback.stream_processors.intake.step_table import Integers, StepTable
from springback.stream_processors.resilience.readings import EpisodeSummary
from springback.stream_processors.suspicions.batch_signs import STILL_STEPS
from springback.stream_processors.suspicions.episode_watch import LOADS, EpisodeWatch

ALONE_STEPS = 50
"""So many steps without progress say something, even of the only episode of a group (ours)."""
CONSTANT_STEPS = 200
CONSTANT_EPISODES = 3
MOST_MODES = 256
_FEW_MODES, _STEPS_A_MODE = 30, 10
_MISSING_STEPS, _MISSING_SHARE = 20, 0.02
_PATH_RATIO = 30.0
_LOW = 0.2
_MOST = 0.8
MAY_BE_FIXED = ("planning_s", "perception_s", "travel")
"""Simulators fix what a step takes and covers; that it is constant is only noted."""
_CONSTANTS = (*LOADS, "propositions", "judge_goal", "judge_rationality", "judge_efficiency")


@dataclass(slots=True)
class _Bounds:
    """The lowest and the highest value of a column, and how many of its rows had one."""

    lowest: float = np.inf
    highest: float = -np.inf
    rows: int = 0


@dataclass
class Group:
    """What is known of the episodes of a group.

    Attributes:
        name: what reports call it.
        episodes: that have ended, or were left.
        moved_successes: successes of `STILL_STEPS` or more in which progress was not the same throughout.
        still_successes: those in which it was.
        stride: how far apart the step numbers are of the first that skips; 0 if none does.
        counts: of them by what they show; an example of each in `examples`.
    """

    name: str
    episodes: int = 0
    moving: int = 0
    successes: int = 0
    moved_successes: int = 0
    still_successes: int = 0
    steps: int = 0
    missing: int = 0
    gapped: int = 0
    stride: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    first_steps: dict[int, int] = field(default_factory=dict)
    begun: int = 0
    bounds: dict[str, _Bounds] = field(default_factory=lambda: {name: _Bounds() for name in _CONSTANTS})
    progress: _Bounds = field(default_factory=_Bounds)
    mode_steps: dict[str, int] = field(default_factory=dict)
    rows: int = 0

    def follow(self, table: StepTable, rows: Integers) -> None:
        """Takes in rows: the bounds of their columns, and their modes."""
        self.rows += len(rows)
        for name, bounds in (*self.bounds.items(), ("progress", self.progress)):
            values = getattr(table, name)[rows]
            values = values[~np.isnan(values)]
            if len(values):
                bounds.lowest = min(bounds.lowest, float(values.min()))
                bounds.highest = max(bounds.highest, float(values.max()))
                bounds.rows += len(values)
        codes, counts = np.unique(table.mode[rows], return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            mode = table.mode_names[code]
            if mode in self.mode_steps or len(self.mode_steps) < MOST_MODES:
                self.mode_steps[mode] = self.mode_steps.get(mode, 0) + count

    def end(self, summary: EpisodeSummary, watch: EpisodeWatch, example: str, *, whole: bool) -> None:
        """Takes in an episode that is over, or that was left.

        Args:
            summary: what the tracker says of it.
            watch: what was kept of it.
            example: what a report calls it.
            whole: whether it can have been seen from start to end; of a stretch of one it is not said that progress
                stands still, nor that travel is not what its path is.
        """
        self.episodes += 1
        self.steps += watch.steps
        self.missing += watch.missing
        self.gapped += watch.missing > 0
        success = summary.outcome == "success"
        if watch.seen_whole:
            self.begun += 1
            if len(self.first_steps) < MOST_MODES:
                self.first_steps[watch.first_step] = self.first_steps.get(watch.first_step, 0) + 1
        begun_done = success and watch.lowest >= 1.0 and watch.steps < ALONE_STEPS
        if watch.steps >= STILL_STEPS:
            self.moving += 1
            self.successes += success
            still = watch.still and not begun_done
            self.still_successes += success and still
            self.moved_successes += success and not watch.still
            self._count("progress_still", still and whole, example)
            self._count("progress_falls", success and watch.last <= watch.first - 0.5, example)
            self._count("progress_jumps", success and watch.jumped, example)
            self._count("progress_low", success and not watch.still and watch.highest < _LOW, example)
        self._count("step_numbers_skip", watch.skips, example)
        if watch.skips and not self.stride:
            self.stride = watch.stride
        for name in watch.counts_up():
            self._count(f"counted_up {name}", True, f"from {watch.loads[name].first:g} to {watch.loads[name].last:g}")
        path = None if summary.navigation is None else summary.navigation.path
        if path and watch.travel > 0.0 and whole:
            ratio = watch.travel / path
            off = not 1 / _PATH_RATIO < ratio < _PATH_RATIO
            self._count("travel_path", off, f"travel comes to {watch.travel:.4g}, the path to {path:.4g} m")

    def _count(self, what: str, shown: bool, example: str) -> None:
        if shown:
            self.counts[what] = self.counts.get(what, 0) + 1
            self.examples.setdefault(what, example)

    def signs(self, family: "Group | None" = None) -> Iterator[tuple[Sign, str, int]]:
        """The mistakes that the group shows, with an example of each and how many episodes show it.

        Args:
            family: the family that this is an agent of; None for a family.
        """
        yield from self._progress(family or self)
        yield from self._step_numbers()
        yield from self._loads()
        yield from self._columns()

    def _progress(self, family: "Group") -> Iterator[tuple[Sign, str, int]]:
        # Where progress rises in successes, what stands still is the agent, and not the field that is read.
        stuck = family.moved_successes > 0 and not self.still_successes
        told = {
            "progress_still": (
                self.moving,
                0.5,
                "the same after each step, in {} of {} episodes",
                "a share that rises",
            ),
            "progress_falls": (self.successes, 0.5, "it falls in {} of {} successes", "from 0 to 1"),
            "progress_jumps": (self.successes, _MOST, "it jumps, in {} of {} successes", "a share that rises"),
            "progress_low": (self.successes, _MOST, "below 0.2 at the end of {} of {} successes", "1 at the end"),
        }
        for kind, (of, share, arrived, expected) in told.items():
            count = 0 if stuck and kind == "progress_still" else self.counts.get(kind, 0)
            alone = kind == "progress_still" and count == self.episodes and self.steps >= ALONE_STEPS
            if (count >= KINDS[kind].least and count > share * of) or (alone and count):
                words = f"progress: {arrived.format(count, of)}"
                # Alone, it is enough: what the ledger asks for is met by the steps.
                yield Sign(kind, self.name, words, expected), self.examples[kind], max(count, KINDS[kind].least)

    def _step_numbers(self) -> Iterator[tuple[Sign, str, int]]:
        if self.stride:
            sign = Sign(
                "step_numbers_skip",
                self.name,
                f"numbers that rise by {self.stride} or a multiple of it",
                "each one more than the last",
            )
            yield sign, self.examples["step_numbers_skip"], self.counts["step_numbers_skip"]
        elif (
            self.missing >= _MISSING_STEPS
            and self.missing >= _MISSING_SHARE * (self.steps + self.missing)
            and self.gapped >= KINDS["step_gaps"].least
        ):
            arrived = f"{self.missing} of {self.steps + self.missing} steps are missing, in {self.gapped} episodes"
            yield Sign("step_gaps", self.name, arrived, "steps without gaps"), "", self.gapped
        for first, count in self.first_steps.items():
            if first > 0 and count >= KINDS["first_step_not_0"].least and count > _MOST * self.begun:
                arrived = f"{count} of {self.begun} episodes begin with step {first}"
                yield Sign("first_step_not_0", self.name, arrived, "step 0"), "", count

    def _loads(self) -> Iterator[tuple[Sign, str, int]]:
        for name in LOADS:
            count = self.counts.get(f"counted_up {name}", 0)
            if count >= KINDS["counted_up"].least and count > 0.5 * self.moving:
                arrived = f"{name} never falls in {count} episodes: {self.examples[f'counted_up {name}']}"
                yield Sign("counted_up", f"{name}, {self.name}", arrived, "what each step adds"), "", count
        count = self.counts.get("travel_path", 0)
        if count >= 3 and count > 0.5 * self.episodes:
            yield Sign("travel_unit", self.name, self.examples["travel_path"], "metres covered by each step"), "", count

    def _columns(self) -> Iterator[tuple[Sign, str, int]]:
        if self.episodes >= CONSTANT_EPISODES:
            for name, bounds in self.bounds.items():
                constant = bounds.lowest == bounds.highest != 0.0 and bounds.rows >= CONSTANT_STEPS
                if constant and name == "propositions" and self.progress.lowest == self.progress.highest:
                    continue  # it is progress that stands still
                if constant and name not in MAY_BE_FIXED:
                    arrived = f"{name} is {bounds.lowest:g} in all {bounds.rows} steps"
                    yield (
                        Sign("constant_column", f"column {name!r}, {self.name}", arrived, "a signal that varies"),
                        "",
                        1,
                    )
        modes = len(self.mode_steps)
        if modes >= _FEW_MODES and sum(self.mode_steps.values()) < _STEPS_A_MODE * modes:
            first = ", ".join(repr(mode[:40]) for mode in list(self.mode_steps)[:3])
            arrived = f"{modes} modes in {self.rows} steps: {first}, …"
            yield Sign("too_many_modes", self.name, arrived, "a few words that come again"), "", 1

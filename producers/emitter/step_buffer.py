"""Reported steps and ends: how they become a frame, and the emitter's bounded memory of them.

The memory has no lock: the emitter holds its own around every call.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from springback.producers.contract.columns import ABSENT, STEP_COLUMNS
from springback.producers.contract.frame import (
    EpisodeEnd,
    EpisodeHeader,
    NavigationOutcome,
    Outcome,
    StepColumn,
    StepFrame,
    TextColumn,
)


class ReportedStep(NamedTuple):
    """A step as an agent reported it; `signals` holds what was given, `time_s` and `progress` among it."""

    header: EpisodeHeader
    step: int
    signals: dict[str, Any]


class ReportedEnd(NamedTuple):
    """An episode's end as it was reported."""

    header: EpisodeHeader
    outcome: Outcome
    time_s: float
    navigation: NavigationOutcome | None


class ReportedBatch(NamedTuple):
    """Steps that several episodes took together, and the ends among them: a frame of its own, in columns already.

    `steps["episode"]` and the ends index `headers`.
    """

    headers: tuple[EpisodeHeader, ...]
    steps: dict[str, StepColumn]
    ends: tuple[EpisodeEnd, ...]


Report = ReportedStep | ReportedEnd | ReportedBatch


def steps_and_ends(report: Report) -> tuple[int, int]:
    """How many steps and how many ends a report holds."""
    if isinstance(report, ReportedBatch):
        return len(report.steps["episode"]) if report.steps else 0, len(report.ends)
    return (0, 1) if isinstance(report, ReportedEnd) else (1, 0)


def build_frame(producer: str, session: str, reports: Sequence[Report]) -> StepFrame:
    """The frame of these reports, in their order; a batch comes alone. A signal that no step has makes no column."""
    if isinstance(reports[0], ReportedBatch):
        batch = reports[0]
        return StepFrame(producer=producer, session=session, episodes=batch.headers, steps=batch.steps, ends=batch.ends)
    return _gathered(producer, session, [report for report in reports if not isinstance(report, ReportedBatch)])


def _gathered(producer: str, session: str, reports: Sequence[ReportedStep | ReportedEnd]) -> StepFrame:
    places: dict[int, int] = {}
    headers: list[EpisodeHeader] = []
    for report in reports:
        if id(report.header) not in places:
            places[id(report.header)] = len(headers)
            headers.append(report.header)
    steps = [report for report in reports if isinstance(report, ReportedStep)]
    ends = [report for report in reports if isinstance(report, ReportedEnd)]
    return StepFrame(
        producer=producer,
        session=session,
        episodes=tuple(headers),
        steps=_columns(steps, [places[id(step.header)] for step in steps]) if steps else {},
        ends=tuple(
            EpisodeEnd(
                episode=places[id(end.header)], outcome=end.outcome, time_s=end.time_s, navigation=end.navigation
            )
            for end in ends
        ),
    )


def _columns(steps: list[ReportedStep], episodes: list[int]) -> dict[str, StepColumn]:
    columns: dict[str, StepColumn] = {
        "episode": np.array(episodes, dtype=np.int64),
        "step": np.array([step.step for step in steps], dtype=np.int64),
    }
    given = set().union(*[step.signals for step in steps])
    for spec in STEP_COLUMNS:
        if spec.name not in given:
            continue
        if spec.kind == "text":
            columns[spec.name] = TextColumn.of([step.signals.get(spec.name, str(spec.default)) for step in steps])
        else:
            cells = [step.signals.get(spec.name, ABSENT) for step in steps]
            columns[spec.name] = np.array(cells, dtype=np.float64)
    return columns


class StepBuffer:
    """What an emitter holds, bounded: when it is full the newest steps are refused.

    A report is held until the frame that it went into is done with. Ends have a reserve of their own, as each of them
    closes an episode that would otherwise stay open for long.

    Args:
        max_steps: how many steps are held at most, those in frames on their way among them.
        max_ends: the same for ends.
    """

    def __init__(self, max_steps: int, max_ends: int) -> None:
        self._max_steps = max_steps
        self._max_ends = max_ends
        self._waiting: deque[Report] = deque()
        self.waiting_steps = 0
        self.steps = 0
        self.ends = 0

    @property
    def waiting(self) -> bool:
        """Whether anything waits for a frame."""
        return bool(self._waiting)

    @property
    def empty(self) -> bool:
        """Whether everything that was taken in is done with."""
        return not (self.steps or self.ends)

    def add_step(self, report: ReportedStep) -> bool:
        """Takes a step in, if there is room."""
        if self.steps >= self._max_steps:
            return False
        self._waiting.append(report)
        self.waiting_steps += 1
        self.steps += 1
        return True

    def add_end(self, report: ReportedEnd) -> bool:
        """Takes an end in, if there is room."""
        if self.ends >= self._max_ends:
            return False
        self._waiting.append(report)
        self.ends += 1
        return True

    def add_batch(self, batch: ReportedBatch) -> tuple[int, int]:
        """Takes a batch in, its steps and its ends each as a whole if there is room; how many of them found none."""
        steps, ends = steps_and_ends(batch)
        refused_steps = steps if self.steps + steps > self._max_steps else 0
        refused_ends = ends if self.ends + ends > self._max_ends else 0
        kept = ReportedBatch(batch.headers, {} if refused_steps else batch.steps, () if refused_ends else batch.ends)
        if kept.steps or kept.ends:
            self._waiting.append(kept)
            self.waiting_steps += steps - refused_steps
            self.steps += steps - refused_steps
            self.ends += ends - refused_ends
        return refused_steps, refused_ends

    def take(self, most_steps: int) -> list[Report]:
        """The oldest reports for a frame of so many steps, with the ends that follow them at once; or one batch."""
        taken: list[Report] = []
        room = most_steps
        while self._waiting and not isinstance(self._waiting[0], ReportedBatch):
            if not room and isinstance(self._waiting[0], ReportedStep):
                break
            report = self._waiting.popleft()
            room -= isinstance(report, ReportedStep)
            taken.append(report)
        self.waiting_steps -= most_steps - room
        if self._waiting and not taken:
            batch = self._waiting.popleft()
            self.waiting_steps -= steps_and_ends(batch)[0]
            taken.append(batch)
        return taken

    def release(self, steps: int, ends: int) -> None:
        """Makes room again: what was taken is done with."""
        self.steps -= steps
        self.ends -= ends

    def clear(self) -> tuple[int, int]:
        """Gives up all that is held; how many steps and ends that is."""
        given_up = self.steps, self.ends
        self._waiting.clear()
        self.waiting_steps = self.steps = self.ends = 0
        return given_up

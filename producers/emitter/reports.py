"""Reported steps and ends, one by one or in batches, the step frame that they become, and what a spool holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Union

import msgspec
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
    navigation: NavigationOutcome | None = None
    realised_magnitude: float | None = None
    extended: bool = False


class ReportedBatch(NamedTuple):
    """Steps that several episodes took together, and the ends among them: a frame of its own, in columns already.

    `steps["episode"]` and the ends index `headers`.
    """

    headers: tuple[EpisodeHeader, ...]
    steps: dict[str, StepColumn]
    ends: tuple[EpisodeEnd, ...]


class SpoolReport(msgspec.Struct, frozen=True, kw_only=True):
    """What is in a spool.

    Attributes:
        frames, steps, ends: what this process has put there, and Kafka has not acknowledged yet.
        left_frames, left_steps, left_ends: the same of earlier processes.
        size_bytes: what it takes on disk.
        refused_steps, refused_ends: what Kafka has refused for good after it had been put there.
        lost_steps, lost_ends: what could not be read back of this process's.
        left_gone_steps, left_gone_ends: what was refused, or could not be read back, of earlier processes'.
        damaged_bytes: what could not be read at all, at the end of files that a crash has torn.
        problem: why nothing can be written now; None where nothing stands against it.
        errors: how often Kafka did not take a frame, and `last_error` why, the last time.
    """

    frames: int = 0
    steps: int = 0
    ends: int = 0
    left_frames: int = 0
    left_steps: int = 0
    left_ends: int = 0
    size_bytes: int = 0
    refused_steps: int = 0
    refused_ends: int = 0
    lost_steps: int = 0
    lost_ends: int = 0
    left_gone_steps: int = 0
    left_gone_ends: int = 0
    damaged_bytes: int = 0
    problem: str | None = None
    errors: int = 0
    last_error: str | None = None


NO_SPOOL = SpoolReport()

Report = Union[ReportedStep, ReportedEnd, ReportedBatch]


def error_text(error: Exception | None) -> str | None:
    """How a report says an error; None without one."""
    return None if error is None else f"{type(error).__name__}: {error}"


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
                episode=places[id(end.header)],
                outcome=end.outcome,
                time_s=end.time_s,
                navigation=end.navigation,
                realised_magnitude=end.realised_magnitude,
                extended=end.extended,
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

"""Which steps of a frame are judged, and what the judge is shown: the steps themselves and those before them.

The judge is blind to what must not influence it: agent, method, version, stress and kind of perturbation stay here.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from springback.producers.contract.columns import is_absent
from springback.producers.contract.frame import EpisodeHeader, StepFrame, TextColumn
from springback.stream_processors.judging.counts import JudgeCounts
from springback.stream_processors.judging.limits import BoundedCache
from springback.stream_processors.judging.settings import JudgeSettings

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
ShownStep = dict[str, Any]

JUDGE_COLUMNS = ("judge_goal", "judge_rationality", "judge_efficiency")
_SHOWN_TEXTS = ("mode", "action", "feedback")
_SHOWN_NUMBERS = ("progress", "propositions", "retries", "violation", "risk", "planning_s", "perception_s", "travel")
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """One call's worth: steps of one episode in order, some of them to be judged.

    Attributes:
        family: the kind of task.
        instruction: what the agent was told.
        steps: what is shown of each step, oldest first.
        judged: the positions in `steps` of those to be judged.
        rows: the frame's row of each of those.
    """

    family: str
    instruction: str
    steps: list[ShownStep]
    judged: list[int]
    rows: list[int]


@dataclass(slots=True)
class EpisodeTrail:
    """What is remembered of an episode between frames."""

    steps: deque[ShownStep]
    last_step: int = -1
    progress: float = 0.0
    feedback: str = ""


@dataclass(slots=True)
class _EpisodeRows:
    """The rows of one episode in a frame, by step; all arrays have the same length."""

    rows: Rows
    judged: Mask
    trail: EpisodeTrail
    header: EpisodeHeader
    requests: list[JudgeRequest] = field(default_factory=list)


class StepSelection:
    """Chooses the steps, and keeps the trails of the episodes that were seen last.

    Args:
        settings: the judge's settings.
        counts: counts the steps that are not judged.
    """

    def __init__(self, settings: JudgeSettings, counts: JudgeCounts) -> None:
        self._settings = settings
        self._counts = counts
        self._trails = BoundedCache[tuple[str, str, str], EpisodeTrail](settings.remembered_episodes)

    def forget(self) -> None:
        """Forgets all episodes, as when their steps are read again."""
        self._trails.clear()

    def requests(self, frame: StepFrame) -> list[JudgeRequest]:
        """What to ask about a frame; each of its steps is in one request or counted as not judged."""
        found: list[JudgeRequest] = []
        chosen = 0
        given = _given(frame)
        for episode in self._episodes(frame):
            self._choose(frame, episode, given)
            found += self._windows(frame, episode)
            chosen += int(episode.judged.sum())
            self._remember(frame, episode)
        for end in frame.ends:
            if 0 <= end.episode < len(frame.episodes):
                self._trails.drop(_name(frame, frame.episodes[end.episode]))
        self._counts.add_steps("given", int(given.sum()))
        self._counts.add_steps("skipped", frame.n_steps - int(given.sum()) - chosen)
        most = self._settings.calls_per_frame
        self._counts.add_steps("crowded_out", sum(len(request.rows) for request in found[most:]))
        return found[:most]

    def _episodes(self, frame: StepFrame) -> Iterator[_EpisodeRows]:
        """The rows that can be judged: valid, of a known episode, and not seen before."""
        if not frame.n_steps:
            return
        episode, step, progress = (np.asarray(frame.steps[name]) for name in ("episode", "step", "progress"))
        order = np.lexsort((step, episode))
        usable = (episode >= 0) & (episode < len(frame.episodes)) & (step >= 0) & (progress >= 0) & (progress <= 1)
        order = order[usable[order]]
        for rows in np.split(order, np.flatnonzero(np.diff(episode[order])) + 1):
            if not len(rows):
                continue
            header = frame.episodes[int(episode[rows[0]])]
            trail = self._trails.get(_name(frame, header))
            if trail is None:
                trail = EpisodeTrail(deque(maxlen=self._settings.trajectory_steps))
            new = np.concatenate([step[rows[:1]] > trail.last_step, np.diff(step[rows]) > 0])
            rows = rows[new & (step[rows] > trail.last_step)]
            if len(rows):
                yield _EpisodeRows(rows, np.zeros(len(rows), dtype=np.bool_), trail, header)

    def _choose(self, frame: StepFrame, episode: _EpisodeRows, given: Mask) -> None:
        rows = episode.rows
        match self._settings.which:
            case "every":
                wanted = np.ones(len(rows), dtype=np.bool_)
            case "nth":
                wanted = np.asarray(frame.steps["step"])[rows] % self._settings.every_nth == 0
            case "events":
                wanted = _eventful(frame, rows, episode.trail)
        episode.judged = wanted & ~given[rows]

    def _windows(self, frame: StepFrame, episode: _EpisodeRows) -> Iterator[JudgeRequest]:
        """Requests for steps that are near each other, so that what lies between can be shown too."""
        before = list(episode.trail.steps)
        chosen = np.flatnonzero(episode.judged)
        apart = np.flatnonzero(np.diff(chosen) > self._settings.trajectory_steps + 1) + 1
        for near in np.split(chosen, apart):
            for start in range(0, len(near), self._settings.steps_per_call):
                some = near[start : start + self._settings.steps_per_call]
                first = int(some[0]) - self._settings.trajectory_steps
                shown = before[first:] if first < 0 else []
                offset = len(shown)
                first = max(first, 0)
                shown = shown + [shown_step(frame, int(row)) for row in episode.rows[first : int(some[-1]) + 1]]
                yield JudgeRequest(
                    family=episode.header.family,
                    instruction=episode.header.instruction,
                    steps=shown,
                    judged=[offset + int(at) - first for at in some],
                    rows=[int(row) for row in episode.rows[some]],
                )

    def _remember(self, frame: StepFrame, episode: _EpisodeRows) -> None:
        trail, last = episode.trail, int(episode.rows[-1])
        kept = self._settings.trajectory_steps
        trail.steps.extend(shown_step(frame, int(row)) for row in (episode.rows[-kept:] if kept else ()))
        trail.last_step = int(frame.steps["step"][last])  # type: ignore[index]
        trail.progress = float(frame.steps["progress"][last])  # type: ignore[index]
        trail.feedback = _text(frame, "feedback", last)
        self._trails.put(_name(frame, episode.header), trail)


def shown_step(frame: StepFrame, row: int) -> ShownStep:
    """What is shown of a step: its texts and numbers, without those that are absent, not finite or zero."""
    shown: ShownStep = {name: text for name in _SHOWN_TEXTS if (text := _text(frame, name, row))}
    for name in _SHOWN_NUMBERS:
        column = frame.numbers(name)
        if column is not None:
            value = float(column[row])
            if np.isfinite(value) and (value or name == "progress"):
                shown[name] = round(value, _DIGITS)
    return shown


def _given(frame: StepFrame) -> Mask:
    """The rows that the producer has scored itself, even if only in part or wrongly."""
    given = np.zeros(frame.n_steps, dtype=np.bool_)
    for name in JUDGE_COLUMNS:
        column = frame.numbers(name)
        if column is not None:
            given |= ~is_absent(np.asarray(column, dtype=np.float64))
    return given


def _eventful(frame: StepFrame, rows: Rows, trail: EpisodeTrail) -> Mask:
    """The rows with a retry or a violation, with less progress than before, or with new feedback."""
    progress = np.asarray(frame.steps["progress"])[rows]
    found: Mask = np.diff(progress, prepend=trail.progress) < 0
    for name in ("retries", "violation"):
        column = frame.numbers(name)
        if column is not None:
            found |= column[rows] > 0
    feedback = frame.steps.get("feedback")
    if isinstance(feedback, TextColumn):
        codes = feedback.codes[rows]
        told = np.array([bool(text) for text in feedback.values], dtype=np.bool_)[codes]
        fresh = np.concatenate(
            [[feedback.values[int(codes[0])] != trail.feedback], np.diff(codes.astype(np.int64)) != 0]
        )
        found |= told & fresh
    return found


def _name(frame: StepFrame, header: EpisodeHeader) -> tuple[str, str, str]:
    return header.agent, frame.session, header.episode


def _text(frame: StepFrame, name: str, row: int) -> str:
    column = frame.steps.get(name)
    return column.values[int(column.codes[row])] if isinstance(column, TextColumn) else ""

"""The signs that a batch of frames shows once it is tabulated and tracked: what worker and check have in common.

All of it comes of what the tracker has found out already, so that a batch without any costs next to nothing.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from springback.producers.contract.suspicions import (
    KINDS,
    Sign,
    contradictions,
    quoted,
    units_of_frame,
    unknown_names,
    wrong_time,
)
from springback.stream_processors.intake.step_table import StepTable
from springback.stream_processors.resilience.readings import EpisodeKey, EpisodeSummary, UnusedReason
from springback.stream_processors.resilience.tracking.batch import UnusedSteps
from springback.stream_processors.resilience.tracking.episode_tracker import TrackerOutputs

_KIND_OF_UNUSED: dict[UnusedReason, str] = {
    "old_session": "agent_shared",
    "session_again": "session_reused",
    "after_end": "episode_id_reused",
    "overtaken": "steps_overtaken",
}
WORKER_KINDS = tuple(
    kind
    for kind in KINDS
    if kind
    in {
        "unreadable_part",
        "wrong_key",
        "rejected_part",
        *_KIND_OF_UNUSED.values(),
        *("time_unit", "clock_unset", "clock_ahead"),
        *("unknown_column", "unknown_field", "stressed_reference", "cycle_unit", "duration_unit", "travel_unit"),
        *("progress_still", "first_step_not_0", "other_rate", "step_gaps"),
    }
)
"""What a worker can tell without keeping anything besides its state, the most damaging first."""
STILL_STEPS = 10
"""Fewer steps without progress say nothing (ours)."""
MOST_SESSIONS = 4096
"""Of so many sessions a worker remembers that it has looked at a frame of theirs."""


class FrameSign(NamedTuple):
    """A sign, the frame of the batch that shows it, and how many times it does."""

    frame: int
    sign: Sign
    times: int


def signs_of_batch(table: StepTable, found: TrackerOutputs) -> Iterator[FrameSign]:
    """What the frames of a batch show: parts left out, times that cannot be, steps that are not taken in.

    Args:
        table: the batch's rows, checked.
        found: what the tracker made of them.
    """
    if table.rejected:
        yield from _rejected(table)
    for frame in np.flatnonzero(table.replaced_times).tolist():
        sign = _replaced(table, frame)
        if sign is not None:
            yield FrameSign(frame, sign, int(table.replaced_times[frame]))
    contested = {status.agent for status in found.statuses if status.contested_s is not None} if found.unused else ()
    for steps in found.unused:
        kind = _KIND_OF_UNUSED.get(steps.reason)
        # Late steps of a program that has ended are no mistake; those of one that goes on are.
        if kind is not None and (kind != "agent_shared" or steps.key.agent in contested):
            yield FrameSign(steps.frame, _unused(kind, steps), steps.steps)


@dataclass
class SuspicionCounts:
    """How many signs of each kind a worker has met, in frames whose state is written.

    What one message shows by itself is looked for in the first frame of each family that a session begins an episode
    of, and nowhere else: to read the bytes of every frame a second time would cost too much, and a producer that is
    set up wrongly is so from the start.

    Attributes:
        counts: by kind.
    """

    counts: Counter[str] = field(default_factory=Counter)
    _new: Counter[str] = field(default_factory=Counter)
    _looked_at: dict[tuple[str, str, str], None] = field(default_factory=dict)
    _newly_looked_at: dict[tuple[str, str, str], None] = field(default_factory=dict)

    def note(self, kind: str) -> None:
        """Notes a sign of a message that holds no frame that can be used."""
        self._new[kind] += 1

    def follow(self, table: StepTable, found: TrackerOutputs, data: Sequence[bytes]) -> None:
        """Notes what a batch shows.

        Args:
            table: the batch's rows, checked.
            found: what the tracker made of them.
            data: the message of each of the table's frames.
        """
        for each in signs_of_batch(table, found):
            self._new[each.sign.kind] += each.times
        begun = {begun.key for begun in found.begun if not begun.revision}
        for entry in table.episodes if begun else []:
            frame, header = table.frames[entry.frame].frame, entry.header
            key = EpisodeKey(header.agent, frame.session, header.episode)
            if key not in begun:
                continue
            begun.remove(key)
            self._new.update(sign.kind for sign in contradictions((header,)))
            looked = frame.producer, frame.session, header.family
            if looked not in self._looked_at and looked not in self._newly_looked_at:
                self._newly_looked_at[looked] = None
                self._new.update({sign.kind for sign in (*unknown_names(data[entry.frame]), *units_of_frame(frame))})
        for summary in found.summaries:
            self._new.update({sign.kind for sign in signs_of_episode(summary)})

    def settle(self, written: bool) -> None:
        """Notes that what came since the last call is in a written state, or that it will come again."""
        if written:
            self.counts.update(self._new)
            self._looked_at |= self._newly_looked_at
            while len(self._looked_at) > MOST_SESSIONS:
                del self._looked_at[next(iter(self._looked_at))]
        self._new.clear()
        self._newly_looked_at.clear()


def signs_of_episode(summary: EpisodeSummary) -> list[Sign]:
    """What an episode shows at its end by itself."""
    family = f"family {quoted(summary.traits.family)}"
    found = []
    if summary.outcome == "success" and summary.unmoved and summary.steps >= STILL_STEPS:
        arrived = f"progress {summary.final_progress:g} after each of the {summary.steps} steps of a success"
        found.append(Sign("progress_still", family, arrived, "a share that rises"))
    if summary.joined and summary.traits.reference:
        found.append(Sign("first_step_not_0", family, "a reference that begins after step 0", "steps from 0"))
    if summary.off_rate and summary.cycle_s is not None:
        agent = f"agent {quoted(summary.key.agent)}, {family}"
        arrived = f"a cycle of {summary.cycle_s:.3g} s, far from that of the family's baseline"
        found.append(Sign("other_rate", agent, arrived, "the rate of the references"))
    if summary.gap:
        found.append(Sign("step_gaps", family, f"{summary.missing_steps} steps are missing", "steps without gaps"))
    return found


def _rejected(table: StepTable) -> Iterator[FrameSign]:
    counts = Counter[tuple[int, str, str]]()
    details: dict[tuple[int, str, str], str] = {}
    for rejected in table.rejected:
        cause = rejected.frame, rejected.field or rejected.part, rejected.reason
        counts[cause] += 1
        details.setdefault(cause, rejected.detail)
    for (frame, what, reason), count in counts.items():
        detail = details[frame, what, reason][:200]
        yield FrameSign(
            frame, Sign("rejected_part", f"{quoted(what)} ({reason})", detail, "a value that can be"), count
        )


def _replaced(table: StepTable, frame: int) -> Sign | None:
    arrived = table.frames[frame]
    times = arrived.frame.numbers("time_s")
    if times is None:
        return None
    found = (wrong_time(cell, arrived.broker_time_s) for cell in times.tolist())
    first = next(filter(None, found), None)
    return None if first is None else Sign(first[0], "time_s", first[1], "seconds since 1970, UTC")


def _unused(kind: str, steps: UnusedSteps) -> Sign:
    return Sign(kind, f"agent {quoted(steps.key.agent)}", steps.detail[:300], "steps that are new")

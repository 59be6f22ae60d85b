"""Which steps of an episode have been seen, so that a step that is not taken in can be told to be what it is.

Steps come in rising order, and one at or below the last is never taken in. It may be a copy; it may be late, a later
step having overtaken it; or a program may have been started again under ids that were used before, so that its steps
are others under old numbers. All of it is ours.
"""

import itertools
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from springback.stream_processors.intake.step_table import StepTable
from springback.stream_processors.resilience.anchor import Bools, Ints
from springback.stream_processors.resilience.readings import UnusedReason

MOST_SKIPPED = 32
"""Stretches of missing steps that are remembered of an episode; steps of older ones that come late pass for copies."""

_CONTENT = ("progress", "propositions", "planning_s", "perception_s", "travel", "retries", "risk", "violation")
_PACKED = struct.Struct(f"<{len(_CONTENT)}d")


class SeenSteps(msgspec.Struct, array_like=True):
    """What is remembered of the steps that an episode has had.

    Attributes:
        first_step, last_step: the first and the last that were taken in, -1 before any; an older state knows no first.
        first_content, last_content: a checksum of what each said.
        last_time_s: the largest time among them by the producer's own clock, in seconds UTC epoch; 0 without one.
        skipped: the stretches that never came, each with both ends.
        again: whether the first step has come again, with other content or after all others.
    """

    first_step: int = -1
    first_content: int = 0
    last_step: int = -1
    last_content: int = 0
    last_time_s: float = 0.0
    skipped: list[tuple[int, int]] = msgspec.field(default_factory=list)
    again: bool = False

    def take(self, first: int, last: int, jumps: Iterable[tuple[int, int]], last_time_s: float) -> None:
        """Takes in steps that rise, all above the last one.

        Args:
            first: the first of them.
            last: the last of them.
            jumps: the steps between which some are missing.
            last_time_s: the largest of their times by the producer's own clock; 0 without one.
        """
        if first > self.last_step + 1:
            self.skipped.append((self.last_step + 1, first - 1))
        self.skipped += [(before + 1, after - 1) for before, after in jumps]
        del self.skipped[:-MOST_SKIPPED]
        self.first_step = first if self.first_step < 0 else self.first_step
        self.last_step, self.last_time_s = last, max(self.last_time_s, last_time_s)

    def verdict(self, step: int, content: int, time_s: float | None) -> UnusedReason:
        """What a step at or below the last one is.

        Args:
            step: its number.
            content: the checksum of what it says.
            time_s: its time by the producer's own clock, None without one.
        """
        for place, (low, high) in enumerate(self.skipped):
            if low <= step <= high:
                parts = ((low, step - 1), (step + 1, high))
                self.skipped[place : place + 1] = [part for part in parts if part[0] <= part[1]]
                return "overtaken"
        fresh = time_s is None or time_s > self.last_time_s
        if step == self.first_step:
            # The time of the first step alone tells a run from its repetition; one step may be a frozen link's.
            timed_anew = time_s is not None and fresh and step < self.last_step
            self.again = content != self.first_content or timed_anew
            return "session_again" if self.again else "duplicate"
        if step == self.last_step and self.first_step >= 0 and content != self.last_content:
            # A link that repeats its last frame may stamp it anew: what it says is what counts.
            return "session_again"
        return "session_again" if self.again and fresh else "duplicate"


@dataclass(frozen=True, slots=True)
class EpisodeRows:
    """The rows of one of the table's episodes, and what stands for them where none is taken in.

    Attributes:
        start, stop: the rows.
        seen: what has been seen of the episode; None where nothing is known of it.
        beyond: why a step above the last one seen is not taken in, if it is not.
        rival_began_s: when the session began that holds the agent now, where these rows are of an older one.
    """

    start: int
    stop: int
    seen: SeenSteps | None
    beyond: UnusedReason
    rival_began_s: float = 0.0


def sort_out(
    table: StepTable, taken: Ints, places: Ints, seen: Sequence[SeenSteps], episodes: Sequence[EpisodeRows]
) -> list[dict[UnusedReason, list[int]]]:
    """Notes the steps taken in, and says of each of the others why it is not. Mutates what has been seen.

    Rows go in the order of arrival, so that the outcome does not depend on how frames came in batches.

    Args:
        table: the rows.
        taken: which of them are taken in, episode by episode (n,).
        places: the position of each one's episode in `seen`, rising (n,).
        seen: what has been seen of each episode that takes rows in.
        episodes: one for each of the table's episodes.

    Returns:
        for each of the table's episodes its rows that are not taken in, by reason.
    """
    unused: list[dict[UnusedReason, list[int]]] = [{} for _ in episodes]
    fresh = np.zeros(len(table), dtype=bool)
    fresh[taken] = True
    left_out = set(table.episode[~fresh].tolist())
    mixed = {id(episodes[number].seen) for number in left_out}
    whole = [number for number in range(len(seen)) if id(seen[number]) not in mixed]
    _take_whole(table, taken, places, seen, whole)
    for number, rows in enumerate(episodes):
        if id(rows.seen) not in mixed:
            continue
        for start, stop, taken_in in _stretches(rows, fresh[rows.start : rows.stop]):
            if taken_in and rows.seen is not None:
                _take(rows.seen, table, np.arange(start, stop))
                continue
            for row in range(start, stop):
                unused[number].setdefault(_reason(table, row, rows), []).append(row)
    return unused


def content_of(table: StepTable, row: int) -> int:
    """A checksum of what a step says: all but its times, which a link may stamp anew, and the scores of a judge."""
    values = _PACKED.pack(*(getattr(table, name)[row] for name in _CONTENT))
    return zlib.crc32(table.mode_names[table.mode[row]].encode("utf-8", "replace"), zlib.crc32(values))


def _reason(table: StepTable, row: int, rows: EpisodeRows) -> UnusedReason:
    step = int(table.step[row])
    if rows.seen is None or step > rows.seen.last_step:
        return rows.beyond
    return rows.seen.verdict(step, content_of(table, row), float(table.time_s[row]) if table.clocked[row] else None)


def _stretches(rows: EpisodeRows, fresh: Bools) -> Iterator[tuple[int, int, bool]]:
    """Runs of an episode's rows that are taken in, or that are not."""
    edges = [0, *(np.flatnonzero(fresh[1:] != fresh[:-1]) + 1).tolist(), len(fresh)]
    for start, stop in itertools.pairwise(edges):
        if start < stop:
            yield rows.start + start, rows.start + stop, bool(fresh[start])


def _take_whole(table: StepTable, taken: Ints, places: Ints, seen: Sequence[SeenSteps], whole: list[int]) -> None:
    """Takes in the rows of episodes all of whose rows are taken in."""
    for place in whole:
        start, stop = np.searchsorted(places, place, "left"), np.searchsorted(places, place, "right")
        if start < stop:
            _take(seen[place], table, taken[start:stop])


def _take(seen: SeenSteps, table: StepTable, rows: Ints) -> None:
    step, clocked = table.step[rows], table.clocked[rows]
    wide = np.flatnonzero(step[1:] - step[:-1] > 1)
    if seen.first_step < 0:
        seen.first_content = content_of(table, int(rows[0]))
    seen.last_content = content_of(table, int(rows[-1]))
    last_time_s = float(table.time_s[rows][clocked].max()) if clocked.any() else 0.0
    jumps = zip(step[wide].tolist(), step[wide + 1].tolist(), strict=True)
    seen.take(int(step[0]), int(step[-1]), jumps, last_time_s)

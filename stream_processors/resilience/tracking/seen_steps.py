"""Which steps of an episode have been seen, so that a step that is not taken in can be told to be what it is.

Steps come in rising order, and one at or below the last is never taken in. It may be a copy; it may be late, a later
step having overtaken it; or a program may have been started again under ids that were used before, so that its steps
are others under old numbers. All of it is ours.
"""

import itertools
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from springback.stream_processors.intake.step_table import StepTable
from springback.stream_processors.resilience.anchor import Bools, Ints
from springback.stream_processors.resilience.columns import run_begins
from springback.stream_processors.resilience.readings import UnusedReason

MOST_SKIPPED = 32
"""Stretches of missing steps that are remembered of an episode; steps of older ones that come late pass for copies."""

_CONTENT = ("progress", "propositions", "planning_s", "perception_s", "travel", "retries", "risk", "violation")


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
class ArrivedRows:
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
    table: StepTable, taken: Ints, places: Ints, seen: Sequence[SeenSteps], episodes: Sequence[ArrivedRows]
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
    left_out = np.flatnonzero(~fresh)
    content_of = dict(zip(left_out.tolist(), contents_of(table, left_out), strict=True))
    mixed = {id(episodes[number].seen) for number in set(table.episode[left_out].tolist())}
    whole = [number for number in range(len(seen)) if id(seen[number]) not in mixed]
    alone = np.isin(places, whole)
    begins = np.flatnonzero(run_begins(places[alone]))
    _take(table, taken[alone], begins, [seen[place] for place in places[alone][begins].tolist()])
    for number, rows in enumerate(episodes):
        if id(rows.seen) not in mixed:
            continue
        for start, stop, taken_in in _stretches(rows, fresh[rows.start : rows.stop]):
            if taken_in and rows.seen is not None:
                _take(table, np.arange(start, stop), np.zeros(1, dtype=np.int64), [rows.seen])
                continue
            for row in range(start, stop):
                unused[number].setdefault(_reason(table, row, content_of[row], rows), []).append(row)
    return unused


def contents_of(table: StepTable, rows: Ints) -> list[int]:
    """A checksum of what each row says: all but its times, which a link may stamp anew, and the scores of a judge."""
    values = np.column_stack([getattr(table, name)[rows] for name in _CONTENT]).astype("<f8", copy=False)
    modes = [table.mode_names[code].encode("utf-8", "replace") for code in table.mode[rows].tolist()]
    return [zlib.crc32(mode, zlib.crc32(row)) for mode, row in zip(modes, values, strict=True)]


def _reason(table: StepTable, row: int, content: int, rows: ArrivedRows) -> UnusedReason:
    step = int(table.step[row])
    if rows.seen is None or step > rows.seen.last_step:
        return rows.beyond
    return rows.seen.verdict(step, content, float(table.time_s[row]) if table.clocked[row] else None)


def _stretches(rows: ArrivedRows, fresh: Bools) -> Iterator[tuple[int, int, bool]]:
    """Runs of an episode's rows that are taken in, or that are not."""
    edges = [0, *(np.flatnonzero(fresh[1:] != fresh[:-1]) + 1).tolist(), len(fresh)]
    for start, stop in itertools.pairwise(edges):
        if start < stop:
            yield rows.start + start, rows.start + stop, bool(fresh[start])


def _take(table: StepTable, rows: Ints, begins: Ints, seen: Sequence[SeenSteps]) -> None:
    """Takes in rows, each run of them by what has been seen of its episode.

    Args:
        table: the rows.
        rows: which of them, run by run (n,).
        begins: where in `rows` each run begins, rising (k,).
        seen: what has been seen of the episode of each run; k.
    """
    if not len(rows):
        return
    step, ends = table.step[rows], np.append(begins[1:], len(rows)) - 1
    jumps: list[list[tuple[int, int]]] = [[] for _ in seen]
    wide = np.setdiff1d(np.flatnonzero(step[1:] - step[:-1] > 1), ends)
    for run, at in zip((np.searchsorted(begins, wide, "right") - 1).tolist(), wide.tolist(), strict=True):
        jumps[run].append((int(step[at]), int(step[at + 1])))
    times_s = np.maximum.reduceat(np.where(table.clocked[rows], table.time_s[rows], 0.0), begins).tolist()
    new = [run for run, known in enumerate(seen) if known.first_step < 0]
    for run, content in zip(new, contents_of(table, rows[begins[new]]), strict=True):
        seen[run].first_content = content
    for run, content in enumerate(contents_of(table, rows[ends])):
        seen[run].last_content = content
    edges = zip(step[begins].tolist(), step[ends].tolist(), strict=True)
    for known, (first, last), over, last_time_s in zip(seen, edges, jumps, times_s, strict=True):
        known.take(first, last, over, last_time_s)

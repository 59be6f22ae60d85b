"""Validation at the edge: a batch of frames becomes one table of valid rows, and a list of what was taken out and why.

The rules are those of the wire contract: its columns' limits and its structs' own. Besides, all of them ours:

- A time that is given but lies before the year 2001, or more than a day ahead of the broker's, is replaced by the
  broker's and counted.
- A row without any usable time in a frame of several, and without a cycle time, counts as one second: a producer that
  has no clock counts in cycles.
- A faulty header takes its own rows and ends with it; navigation fields that are faulty leave their end in place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np

from springback.producers.contract.columns import EARLIEST_TIME_S, LARGEST_LEAD_S, NUMBER_COLUMNS, YEAR_2100_S
from springback.producers.contract.frame import EpisodeEnd, EpisodeHeader, PartFault, StepFrame
from springback.producers.contract.salvage import read_end, read_header
from springback.stream_processors.intake.row_checks import LINE, JoinedColumns, join_columns, row_fault, row_values
from springback.stream_processors.intake.step_table import (
    ArrivedFrame,
    Flags,
    Integers,
    Numbers,
    RejectedRow,
    StepTable,
    TableEnd,
    TableEpisode,
)

NO_EPISODE = -1

CYCLE_OF_THE_CLOCKLESS_S = 1.0
"""The cycle time of a producer without a clock: it counts in cycles (ours)."""


@dataclass(frozen=True, slots=True)
class EpisodeIndex:
    """Where a frame's own episode indices lead in the batch.

    Attributes:
        episodes: the usable headers of all frames, in frame order.
        place_of: for every header of every frame its place in `episodes`, or `NO_EPISODE`.
        first_header: (frames,) where each frame's headers begin in `place_of`.
        headers: (frames,) how many headers each frame has.
        faults: what is wrong with a header that is not usable, by its frame and its place there.
    """

    episodes: list[TableEpisode]
    place_of: Integers
    first_header: Integers
    headers: Integers
    faults: dict[tuple[int, int], PartFault]

    def places(self, frame_of: Integers, own: Integers) -> Integers:
        """The place in `episodes` of each row, `NO_EPISODE` where its own index leads to no usable header."""
        known = (own >= 0) & (own < self.headers[frame_of])
        places: Integers
        if known.all():
            places = self.place_of[self.first_header[frame_of] + own]
            return places
        places = np.full(len(own), NO_EPISODE, dtype=np.int64)
        places[known] = self.place_of[self.first_header[frame_of[known]] + own[known]]
        return places

    def why_not(self, frame: int, own: int) -> tuple[str, str, str]:
        """The reason, the detail and the field for a row or end whose own index leads to no usable header."""
        headers = int(self.headers[frame])
        if 0 <= own < headers:
            fault = self.faults[frame, own]
            return fault.reason, f"the header of its episode was rejected: {fault.detail}", fault.field
        return "unknown_episode", f"episode {own} of a frame that has {headers}", ""


def tabulate(frames: Sequence[ArrivedFrame], most_rejected: int | None = None) -> StepTable:
    """The table of all valid rows of a batch of frames, checked column by column over the whole batch at once.

    Args:
        frames: the batch.
        most_rejected: of how many rows, and of how many other parts, that are taken out of a frame it is said what is
            wrong with them, which is slow; None says it of all.
    """
    counts = [arrived.frame.n_steps for arrived in frames]
    rejected: list[RejectedRow] = []
    index = index_episodes(frames, rejected)
    joined = join_columns([arrived.frame for arrived in frames], counts)
    frame_of = np.repeat(np.arange(len(frames)), counts)
    frame_row = np.arange(len(frame_of)) - np.repeat(np.cumsum(counts) - counts, counts)
    episode = index.places(frame_of, joined.episode)
    suspect = joined.suspect | (episode == NO_EPISODE)
    unread = _unread_rows(frames, counts, rejected)
    suspect[list(unread)] = True
    order: Any = slice(None)
    bad = np.flatnonzero(suspect)
    rejected_rows = np.bincount(frame_of[bad], minlength=len(frames)).astype(np.int64, copy=False)
    starts: frozenset[tuple[int, int]] = frozenset()
    if len(bad):
        starts = _rejected_starts(bad, joined, frame_of, unread)
        told = bad
        if most_rejected is not None:
            nth = np.arange(len(bad)) - np.repeat(np.cumsum(rejected_rows) - rejected_rows, rejected_rows)
            told = bad[nth < most_rejected]
        rejected.extend(_rejected_rows(frames, told, frame_of, counts, unread, index))
        order = np.flatnonzero(~suspect)
    episode, step = episode[order], joined.step[order]
    if not _in_order(episode, step):
        by_step = np.lexsort((step, episode))
        order = np.arange(len(frame_of))[order][by_step]
        episode, step = episode[by_step], step[by_step]
    numbers, frame_of = joined.numbers[:, order], frame_of[order]
    time_s, clocked, replaced_times = _settle_times(frames, counts, numbers, frame_of)
    ends = collect_ends(frames, index, rejected)
    other_parts = np.array([each.frame for each in rejected if each.part != "steps"], dtype=np.int64)
    return StepTable(
        frames=list(frames),
        episodes=index.episodes,
        episode=episode,
        frame_row=frame_row[order],
        step=step,
        time_s=time_s,
        clocked=clocked,
        **{spec.name: numbers[LINE[spec.name]] for spec in NUMBER_COLUMNS if spec.name != "time_s"},
        mode=joined.mode[order],
        mode_names=joined.mode_names,
        ends=ends,
        replaced_times=replaced_times,
        rejected=rejected,
        rejected_rows=rejected_rows,
        rejected_parts=np.bincount(other_parts, minlength=len(frames)).astype(np.int64, copy=False),
        rejected_starts=starts,
    )


def _unread_rows(
    frames: Sequence[ArrivedFrame], counts: list[int], rejected: list[RejectedRow]
) -> dict[int, PartFault]:
    """The faults that decoding found in rows, by row of the batch; those in other parts go to `rejected` at once."""
    unread: dict[int, PartFault] = {}
    start = 0
    for number, (arrived, count) in enumerate(zip(frames, counts, strict=True)):
        for fault in arrived.frame.faults:
            if fault.part == "steps":
                unread.setdefault(start + fault.index, fault)
            else:
                rejected.append(rejection(number, fault))
        start += count
    return unread


def _rejected_rows(
    frames: Sequence[ArrivedFrame],
    rows: Integers,
    frame_of: Integers,
    counts: list[int],
    unread: dict[int, PartFault],
    index: EpisodeIndex,
) -> Iterator[RejectedRow]:
    starts = np.cumsum([0, *counts])
    for row in rows.tolist():
        number = int(frame_of[row])
        frame = frames[number].frame
        own_row = row - int(starts[number])
        values = row_values(frame, own_row)
        if row in unread:
            fault = unread[row]
            yield RejectedRow(number, values | fault.values, fault.reason, fault.detail, field=fault.field)
            continue
        reason, detail, column = row_fault(frame, own_row) or index.why_not(number, values["episode"])
        yield RejectedRow(number, values, reason, detail, field=column)


def _rejected_starts(
    bad: Integers, joined: JoinedColumns, frame_of: Integers, unread: dict[int, PartFault]
) -> frozenset[tuple[int, int]]:
    first = bad[joined.step[bad] == 0]
    # Where the number itself could not be read, a 0 stands for anything.
    known = [row for row in first.tolist() if row not in unread or unread[row].field not in ("episode", "step")]
    return frozenset(zip(frame_of[known].tolist(), joined.episode[known].tolist(), strict=True))


def _in_order(episode: Integers, step: Integers) -> bool:
    ahead = np.diff(episode)
    return bool(((ahead > 0) | ((ahead == 0) & (np.diff(step) >= 0))).all())


def _settle_times(
    frames: Sequence[ArrivedFrame], counts: list[int], numbers: Numbers, frame_of: Integers
) -> tuple[Numbers, Flags, Integers]:
    """Fills in the broker's time where a row's own cannot be believed, and the cycle time of clockless producers."""
    broker_time_s = np.array([arrived.broker_time_s for arrived in frames], dtype=np.float64)[frame_of]
    time_s, cycle_time_s = numbers[LINE["time_s"]], numbers[LINE["cycle_time_s"]]
    clocked = plausible_times(time_s, broker_time_s)
    replaced = ~clocked & ~np.isnan(time_s)
    replaced_times = np.bincount(frame_of[replaced], minlength=len(frames)).astype(np.int64, copy=False)
    among_others = np.array(counts, dtype=np.int64)[frame_of] > 1
    cycle_time_s[~clocked & among_others & np.isnan(cycle_time_s)] = CYCLE_OF_THE_CLOCKLESS_S
    return np.where(clocked, time_s, broker_time_s), clocked, replaced_times


def index_episodes(frames: Sequence[ArrivedFrame], rejected: list[RejectedRow]) -> EpisodeIndex:
    """Numbers the usable headers; the others are added to `rejected`."""
    episodes: list[TableEpisode] = []
    place_of: list[int] = []
    first_header: list[int] = []
    known: dict[tuple[int, int], PartFault] = {}
    for number, arrived in enumerate(frames):
        first_header.append(len(place_of))
        already = {fault.index: fault for fault in arrived.frame.faults if fault.part == "episodes"}
        for place, header in enumerate(arrived.frame.episodes):
            checked, faults = _checked_header(header)
            if checked is not None:
                place_of.append(len(episodes))
                episodes.append(TableEpisode(number, checked))
            else:
                place_of.append(NO_EPISODE)
                known[number, place] = already.get(place, faults[0])
                if place not in already:
                    rejected.extend(rejection(number, msgspec.structs.replace(fault, index=place)) for fault in faults)
    headers = [len(arrived.frame.episodes) for arrived in frames]
    of_places, of_frames, of_headers = (np.array(each, dtype=np.int64) for each in (place_of, first_header, headers))
    return EpisodeIndex(episodes, of_places, of_frames, of_headers, known)


def collect_ends(frames: Sequence[ArrivedFrame], index: EpisodeIndex, rejected: list[RejectedRow]) -> list[TableEnd]:
    """The usable ends in frame order; the others are added to `rejected`."""
    ends: list[TableEnd] = []
    for number, arrived in enumerate(frames):
        for place, given in enumerate(arrived.frame.ends):
            faults: list[PartFault] = []
            end = read_end(place, msgspec.to_builtins(given), faults)
            rejected.extend(rejection(number, fault) for fault in faults)
            if end is None:
                continue
            episode = NO_EPISODE
            if end.episode < index.headers[number]:
                episode = int(index.place_of[index.first_header[number] + end.episode])
            if episode == NO_EPISODE:
                row = {"ends": place, **msgspec.to_builtins(end)}
                reason, detail, field = index.why_not(number, end.episode)
                rejected.append(RejectedRow(number, row, reason, detail, "ends", field))
            else:
                ends.append(TableEnd(episode, end, _end_time(end, arrived.broker_time_s)))
    return ends


def plausible_times(time_s: Numbers, broker_time_s: Numbers) -> Flags:
    """Which instants are there and can be believed."""
    return (time_s >= EARLIEST_TIME_S) & (time_s <= broker_time_s + LARGEST_LEAD_S)


def recorded_arrival_s(frame: StepFrame, before_s: float) -> float:
    """When a recorded frame came, as if at the time of its last step: that of the frame before where it can be no time.

    Args:
        frame: the frame.
        before_s: when the one before came, seconds UTC epoch.
    """
    times = frame.numbers("time_s")
    if times is not None and len(times) and EARLIEST_TIME_S <= times[-1] <= YEAR_2100_S:
        return float(times[-1])
    return before_s


def rejection(frame: int, fault: PartFault) -> RejectedRow:
    """The record of a part that could not be read."""
    row = {fault.part: fault.index, **fault.values}
    return RejectedRow(frame, row, fault.reason, fault.detail, fault.part, fault.field)


def _end_time(end: EpisodeEnd, broker_time_s: float) -> float:
    if end.time_s is not None and EARLIEST_TIME_S <= end.time_s <= broker_time_s + LARGEST_LEAD_S:
        return end.time_s
    return broker_time_s


@lru_cache(maxsize=4096)
def _checked_header(header: EpisodeHeader) -> tuple[EpisodeHeader | None, list[PartFault]]:
    # An episode's header comes again with each of its frames, so that the check is mostly a look-up.
    faults: list[PartFault] = []
    checked = read_header(0, msgspec.to_builtins(header), faults)
    if faults:
        return None, faults
    return checked, faults

"""The episodes and the ends of a batch of frames: checked, numbered through the batch, the faulty ones taken out."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import numpy as np
from springback.producers.frame_parts import EpisodeEnd, EpisodeHeader, PartFault
from springback.producers.frame_salvage import read_end, read_header
from springback.producers.step_table import ArrivedFrame, Flags, Integers, Numbers, RejectedRow, TableEnd, TableEpisode

NO_EPISODE = -1

EARLIEST_TIME_S = 946_684_800.0
"""2000-01-01T00:00:00Z: a clock that says less was never set (ours)."""
LARGEST_LEAD_S = 86_400.0
"""How far ahead of the broker's clock a producer's may be (ours)."""


@dataclass(frozen=True, slots=True)
class EpisodeIndex:
    """Where a frame's own episode indices lead in the batch.

    Attributes:
        episodes: the usable headers of all frames, in frame order.
        slots: for every header of every frame its place in `episodes`, or `NO_EPISODE`.
        first_slot: (frames,) where each frame's headers begin in `slots`.
        headers: (frames,) how many headers each frame has.
    """

    episodes: list[TableEpisode]
    slots: Integers
    first_slot: Integers
    headers: Integers

    def places(self, frame_of: Integers, own: Integers) -> Integers:
        """The place in `episodes` of each row, `NO_EPISODE` where its own index leads to no usable header."""
        known = (own >= 0) & (own < self.headers[frame_of])
        places: Integers
        if known.all():
            places = self.slots[self.first_slot[frame_of] + own]
            return places
        places = np.full(len(own), NO_EPISODE, dtype=np.int64)
        places[known] = self.slots[self.first_slot[frame_of[known]] + own[known]]
        return places

    def why_not(self, frame: int, own: int) -> tuple[str, str]:
        """The reason and the detail for a row or end whose own index leads to no usable header."""
        headers = int(self.headers[frame])
        if 0 <= own < headers:
            return "invalid_episode", f"episode {own}: its header was rejected"
        return "unknown_episode", f"episode {own} of a frame that has {headers}"


def index_episodes(frames: Sequence[ArrivedFrame], rejected: list[RejectedRow]) -> EpisodeIndex:
    """Numbers the usable headers; the others are added to `rejected`."""
    episodes: list[TableEpisode] = []
    slots: list[int] = []
    first_slot: list[int] = []
    for number, arrived in enumerate(frames):
        first_slot.append(len(slots))
        already = {fault.index for fault in arrived.frame.faults if fault.part == "episodes"}
        for place, header in enumerate(arrived.frame.episodes):
            checked, faults = _checked_header(header)
            if checked is not None:
                slots.append(len(episodes))
                episodes.append(TableEpisode(number, checked))
            else:
                slots.append(NO_EPISODE)
                if place not in already:
                    rejected.extend(rejection(number, msgspec.structs.replace(fault, index=place)) for fault in faults)
    headers = [len(arrived.frame.episodes) for arrived in frames]
    as_integers = [np.array(values, dtype=np.int64) for values in (slots, first_slot, headers)]
    return EpisodeIndex(episodes, *as_integers)


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
                episode = int(index.slots[index.first_slot[number] + end.episode])
            if episode == NO_EPISODE:
                reason, detail = index.why_not(number, end.episode)
                rejected.append(RejectedRow(number, {"ends": place, **msgspec.to_builtins(end)}, reason, detail))
            else:
                ends.append(TableEnd(episode, end, _end_time(end, arrived.broker_time_s)))
    return ends


def plausible_times(time_s: Numbers, broker_time_s: Numbers) -> Flags:
    """Which instants are there and can be believed."""
    return (time_s >= EARLIEST_TIME_S) & (time_s <= broker_time_s + LARGEST_LEAD_S)


def rejection(frame: int, fault: PartFault) -> RejectedRow:
    """The record of a part that could not be read."""
    return RejectedRow(frame, {fault.part: fault.index, **fault.values}, fault.reason, fault.detail)


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
    return msgspec.structs.replace(checked, task=checked.task or checked.episode), faults

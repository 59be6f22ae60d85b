"""Validation at the edge: a batch of frames becomes one table of valid rows, and a list of what was taken out and why.

The rules are the columns' own (`step_columns`) and the structs' own (`frame_parts`). Besides, all of them ours:

- A time that is given but lies before the year 2000, or more than a day ahead of the broker's, is replaced by the
  broker's and counted.
- A row without any usable time in a frame of several, and without a cycle time, counts as one second: a producer that
  has no clock counts in cycles.
- A faulty header takes its own rows and ends with it; navigation fields that are faulty leave their end in place.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from springback.producers.column_checks import LINE, join_columns
from springback.producers.episode_index import (
    NO_EPISODE,
    EpisodeIndex,
    collect_ends,
    index_episodes,
    plausible_times,
    rejection,
)
from springback.producers.frame_parts import PartFault
from springback.producers.row_faults import row_fault, row_values
from springback.producers.step_columns import NUMBER_COLUMNS
from springback.producers.step_table import (
    ArrivedFrame,
    Flags,
    Integers,
    Numbers,
    RejectedRow,
    StepTable,
    TableEnd,
    TableEpisode,
)

__all__ = ["ArrivedFrame", "RejectedRow", "StepTable", "TableEnd", "TableEpisode", "tabulate"]

CYCLE_OF_THE_CLOCKLESS_S = 1.0


def tabulate(frames: Sequence[ArrivedFrame]) -> StepTable:
    """The table of all valid rows of a batch of frames, checked column by column over the whole batch at once."""
    counts = [arrived.frame.n_steps for arrived in frames]
    rejected: list[RejectedRow] = []
    index = index_episodes(frames, rejected)
    joined = join_columns([arrived.frame for arrived in frames], counts)
    frame_of = np.repeat(np.arange(len(frames)), counts)
    episode = index.places(frame_of, joined.episode)
    suspect = joined.suspect | (episode == NO_EPISODE)
    unread = _unread_rows(frames, counts, rejected)
    suspect[list(unread)] = True
    order: Any = slice(None)
    if suspect.any():
        rejected.extend(_rejected_rows(frames, np.flatnonzero(suspect), frame_of, counts, unread, index))
        order = np.flatnonzero(~suspect)
    episode, step = episode[order], joined.step[order]
    if not _in_order(episode, step):
        by_step = np.lexsort((step, episode))
        order = np.arange(len(frame_of))[order][by_step]
        episode, step = episode[by_step], step[by_step]
    numbers, frame_of = joined.numbers[:, order], frame_of[order]
    time_s, clocked, replaced_times = _settle_times(frames, counts, numbers, frame_of)
    return StepTable(
        frames=list(frames),
        episodes=index.episodes,
        episode=episode,
        step=step,
        time_s=time_s,
        clocked=clocked,
        **{spec.name: numbers[LINE[spec.name]] for spec in NUMBER_COLUMNS if spec.name != "time_s"},
        mode=joined.mode[order],
        mode_names=joined.mode_names,
        ends=collect_ends(frames, index, rejected),
        replaced_times=replaced_times,
        rejected=rejected,
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
            yield RejectedRow(number, values | fault.values, fault.reason, fault.detail)
            continue
        reason, detail = row_fault(frame, own_row) or index.why_not(number, values["episode"])
        yield RejectedRow(number, values, reason, detail)


def _in_order(episode: Integers, step: Integers) -> bool:
    ahead = np.diff(episode)
    return bool(((ahead > 0) | ((ahead == 0) & (np.diff(step) >= 0))).all())


def _settle_times(
    frames: Sequence[ArrivedFrame], counts: list[int], numbers: Numbers, frame_of: Integers
) -> tuple[Numbers, Flags, Integers]:
    """Fills in the broker's time where there is none to believe, and the cycle time of those without a clock."""
    broker_time_s = np.array([arrived.broker_time_s for arrived in frames], dtype=np.float64)[frame_of]
    time_s, cycle_time_s = numbers[LINE["time_s"]], numbers[LINE["cycle_time_s"]]
    clocked = plausible_times(time_s, broker_time_s)
    replaced = ~clocked & ~np.isnan(time_s)
    replaced_times = np.bincount(frame_of[replaced], minlength=len(frames)).astype(np.int64, copy=False)
    among_others = np.array(counts, dtype=np.int64)[frame_of] > 1
    cycle_time_s[~clocked & among_others & np.isnan(cycle_time_s)] = CYCLE_OF_THE_CLOCKLESS_S
    return np.where(clocked, time_s, broker_time_s), clocked, replaced_times

"""Steps that several episodes take together, of a vector environment say, as batches that are frames of their own."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from springback.producers.errors import SignalError
from springback.producers.frame_building import ReportedBatch
from springback.producers.frame_parts import EpisodeEnd, EpisodeHeader, StepColumn
from springback.producers.signal_checks import checked_navigation, checked_outcome
from springback.producers.signal_columns import checked_columns, rows_of

MOST_TOGETHER = 1024
"""Steps in one frame: with a header for each of them it stays well within what the topic of steps takes."""


class EndTogether(NamedTuple):
    """An end among steps that were taken together: `place` is the episode's among them."""

    place: int
    outcome: str
    navigation: Any = None


def batches_together(
    headers: Sequence[EpisodeHeader],
    steps: npt.NDArray[np.int64],
    signals: Mapping[str, Any],
    ends: Sequence[EndTogether],
    time_s: float,
) -> list[ReportedBatch]:
    """The batches of these steps, one for each episode, and of these ends: one up to `MOST_TOGETHER` episodes.

    Raises:
        SignalError: a signal or an outcome is not known, or has the wrong type or shape.
    """
    columns = checked_columns(signals, len(headers))
    if "progress" not in columns or np.shape(steps) != (len(headers),):
        message = (
            f"{len(headers)} episodes need a progress and a step number each; "
            f"got {', '.join(columns) or 'no signal'} and steps of shape {np.shape(steps)}"
        )
        raise SignalError(message)
    lost = [end.place for end in ends if not 0 <= end.place < len(headers)]
    if lost:
        message = f"the ends at {lost} are of none of {len(headers)} episodes; a place counts from 0"
        raise SignalError(message)
    columns["step"] = np.asarray(steps, dtype=np.int64)
    columns["time_s"] = np.full(len(headers), time_s)
    checked_ends = [
        EpisodeEnd(
            episode=end.place,
            outcome=checked_outcome(end.outcome),
            time_s=time_s,
            navigation=checked_navigation(end.navigation),
        )
        for end in ends
    ]
    return [
        _batch(headers[first : first + MOST_TOGETHER], columns, checked_ends, first)
        for first in range(0, len(headers), MOST_TOGETHER)
    ]


def _batch(
    headers: Sequence[EpisodeHeader], columns: Mapping[str, StepColumn], ends: Sequence[EpisodeEnd], first: int
) -> ReportedBatch:
    places = np.arange(len(headers))
    steps: dict[str, StepColumn] = {name: rows_of(column, places + first) for name, column in columns.items()}
    moved = [msgspec.structs.replace(end, episode=end.episode - first) for end in ends]
    own_ends = tuple(end for end in moved if 0 <= end.episode < len(headers))
    return ReportedBatch(tuple(headers), {"episode": places, **steps}, own_ends)

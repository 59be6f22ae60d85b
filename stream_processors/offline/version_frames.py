"""A recording of several versions of the agents, told apart: the frames with the episodes of one version alone."""

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from springback.producers.contract.frame import PartFault, StepFrame, TextColumn
from springback.stream_processors.resilience.anchor import Bools, Ints


def versions_in(frames: Iterable[StepFrame]) -> list[str]:
    """The versions that episodes of these frames are of, sorted."""
    return sorted({header.version for frame in frames for header in frame.episodes})


def frames_of_version(frames: Iterable[StepFrame], version: str) -> list[StepFrame]:
    """The frames with the episodes of one version alone, in their order; frames without one are left out."""
    return [part for frame in frames if (part := _part_of(frame, version)) is not None]


def _part_of(frame: StepFrame, version: str) -> StepFrame | None:
    wanted = np.array([header.version == version for header in frame.episodes], dtype=bool)
    if wanted.all() or not wanted.any():
        return frame if len(wanted) and wanted.all() else None
    episode: Ints = np.asarray(frame.steps.get("episode", ()), dtype=np.int64)
    known = (episode >= 0) & (episode < len(wanted))
    kept = known & wanted[np.where(known, episode, 0)]
    place, row = _places(wanted), _places(kept)
    steps = {
        name: TextColumn(column.values, column.codes[kept]) if isinstance(column, TextColumn) else column[kept]
        for name, column in frame.steps.items()
    }
    if frame.n_steps:
        steps["episode"] = place[episode[kept]]
    return StepFrame(
        producer=frame.producer,
        session=frame.session,
        episodes=tuple(header for header in frame.episodes if header.version == version),
        steps=steps,
        ends=tuple(
            msgspec.structs.replace(end, episode=int(place[end.episode]))
            for end in frame.ends
            if end.episode < len(wanted) and wanted[end.episode]
        ),
        faults=tuple(_moved_faults(frame.faults, {"steps": row, "episodes": place})),
        schema_version=frame.schema_version,
    )


def _moved_faults(faults: Iterable[PartFault], places: dict[str, Ints]) -> Iterator[PartFault]:
    """The faults of what was kept, at its new place. Those of ends stay: their ends are gone from the frame already."""
    for fault in faults:
        place = places.get(fault.part)
        if place is None:
            yield fault
        elif place[fault.index] >= 0:
            yield msgspec.structs.replace(fault, index=int(place[fault.index]))


def _places(kept: Bools) -> Ints:
    """Where each of the kept ones stands among them; -1 for the others."""
    return np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int64)

"""The demo on recorded Habitat episodes: the clean twins teach the baseline, then all twins are replayed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from springback.deploy.demo.pipeline import DemoRun
from springback.producers.recordings import habitat_twins
from springback.producers.recordings.replay import ReplaySummary, replay
from springback.producers.recordings.step_frames import RecordedFrame, read_frames

LEARNING_S = 15.0
TWINS_S = 45.0
"""How long each part is to take: slow enough to watch."""


def run_habitat(demo: DemoRun, seconds: float = TWINS_S) -> None:
    """Replays the bundled recording, and waits until the pipeline has found every episode's end.

    Args:
        demo: the pipeline.
        seconds: how long the twins are to take.

    Raises:
        DemoError: readings are missing at the end.
    """
    with habitat_twins() as file:
        _replay(demo, lambda: _clean(file), LEARNING_S * seconds / TWINS_S, "Learning", "clean twins")
        demo.sessions = _replay(demo, lambda: read_frames([file]), seconds, "Twins", "clean and disturbed")


def _clean(file: Path) -> Iterator[RecordedFrame]:
    for recorded in read_frames([file]):
        if all(episode.reference for episode in recorded.frame.episodes):
            yield recorded


def _replay(
    demo: DemoRun, frames: Callable[[], Iterator[RecordedFrame]], seconds: float, name: str, detail: str
) -> set[str]:
    """Replays frames as a session of their own, and returns the sessions that they were sent as."""
    recorded = sorted(frames(), key=_time_s)  # one house after the other in the file, side by side here
    recorded_s = _time_s(recorded[-1]) - _time_s(recorded[0])
    ends = sum(len(r.frame.ends) for r in recorded)
    part = demo.part(name, ends, detail)
    sessions: set[str] = set()

    def arrived() -> int:
        return len(demo.summaries(sessions))

    def sent(summary: ReplaySummary) -> None:
        sessions.update(summary.sessions.values())
        if summary.frames % 20 == 0:
            demo.check()
            part.update(arrived())

    publisher = demo.step_publisher()
    try:
        replay(recorded, publisher, speed=recorded_s / seconds, on_sent=sent)
    finally:
        publisher.close()
    demo.wait_for(arrived, ends, "episodes")
    part.update(arrived())
    return sessions


def _time_s(recorded: RecordedFrame) -> float:
    """When the frame's last step was taken."""
    return float(np.asarray(recorded.frame.steps["time_s"], dtype=np.float64)[-1])

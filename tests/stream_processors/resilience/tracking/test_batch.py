"""The batch of admitted rows: episode by episode, with codes, ranges and what stood before each step."""

from typing import Any

import numpy as np

from springback.stream_processors.intake.step_table import ArrivedFrame
from springback.stream_processors.intake.validation import tabulate
from springback.stream_processors.resilience.anchor import AnchorGrid
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.tracking.admission import admit_rows
from springback.stream_processors.resilience.tracking.batch import Batch
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState
from tests.stream_processors.frame_builders import START_S, Part, frame_of_parts, header_of, nominal_rows


def batch_of(*frames: list[Part], state: TrackerState | None = None) -> Batch:
    state = TrackerState() if state is None else state
    table = tabulate([ArrivedFrame(frame_of_parts(parts), START_S + i) for i, parts in enumerate(frames)])
    return admit_rows(table, [state] * len(frames), ResilienceConfig(), AnchorGrid())


def part(episode: str, family: str, first: int, stop: int, **changes: Any) -> Part:
    return header_of(episode=episode, family=family), nominal_rows(first, stop, **changes), None


def test_rows_of_an_episode_lie_side_by_side_whatever_the_frames() -> None:
    batch = batch_of(
        [part("1", "cook", 0, 2), part("2", "clean", 0, 1, mode="manipulate")],
        [part("3", "cook", 0, 0), part("1", "cook", 2, 3)],
    )
    assert [episode.state.key.episode for episode in batch.episodes] == ["1", "2", "3"]
    assert (batch.families, batch.family_of.tolist()) == (["cook", "clean"], [0, 1, 0])
    assert (batch.episode.tolist(), batch.family.tolist()) == ([0, 0, 0, 1], [0, 0, 0, 1])
    assert (batch.starts.tolist(), batch.stops.tolist(), batch.present.tolist()) == ([0, 3, 4], [3, 4, 4], [0, 1])
    assert batch.step.tolist() == [0, 1, 2, 0]
    assert [batch.mode_names[code] for code in batch.mode] == ["navigate"] * 3 + ["manipulate"]
    assert (batch.arrived_s - START_S).tolist() == [0, 0, 1, 0]
    np.testing.assert_allclose(batch.progress_before, [0.0, 0.05, 0.1, 0.0])


def test_what_stood_before_a_first_row_comes_from_the_state() -> None:
    state = TrackerState()
    (known,) = batch_of([part("1", "cook", 0, 1)], state=state).episodes
    known.state.progress, known.state.propositions, known.state.last_step = 0.35, 0.5, 6
    batch = batch_of([part("1", "cook", 8, 9)], state=state)
    assert batch.progress_before.tolist() == [0.35]
    assert (batch.progress_bin.tolist(), batch.residual_bin.tolist()) == ([3], [2])
    assert batch.missing.tolist() == [1]


def test_taking_rows_keeps_the_episodes_and_moves_their_ranges() -> None:
    batch = batch_of([part("1", "cook", 0, 3), part("2", "clean", 0, 2)])
    assert batch.take(np.arange(5)) is batch
    taken = batch.take(np.array([1, 2]))
    assert taken.episodes is batch.episodes
    assert (taken.starts.tolist(), taken.stops.tolist(), taken.step.tolist()) == ([0, 2], [2, 2], [1, 2])
    assert (len(taken), taken.signals.shape, taken.judge.shape) == (2, (2, 8), (2, 3))

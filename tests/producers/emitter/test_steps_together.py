import time
from typing import Any

import numpy as np
import pytest

from springback.producers.contract.columns import ABSENT_BITS, is_absent
from springback.producers.contract.frame import EpisodeHeader, TextColumn
from springback.producers.emitter.publishers import MemoryPublisher, OnDone
from springback.producers.emitter.signal_checks import checked_columns
from springback.producers.emitter.step_emitter import MOST_TOGETHER, EndTogether, EpisodeHandle, StepEmitter
from springback.producers.errors import EmitterStateError, PublishError, SignalError
from tests.producers.emitter.emitter_waiting import until

LONG_S = 3600.0


@pytest.fixture
def publisher() -> MemoryPublisher:
    return MemoryPublisher()


def begun(emitter: StepEmitter, count: int) -> list[EpisodeHandle]:
    return [emitter.begin_episode(f"a{slot}", episode="0", family="f") for slot in range(count)]


def test_they_are_one_frame_that_goes_at_once_between_the_others(publisher: MemoryPublisher) -> None:
    with StepEmitter(publisher, producer="p", linger_s=LONG_S, max_steps=2) as emitter:
        episodes = begun(emitter, 5)
        episodes[0].step(progress=0.1, step=0)
        ends = [EndTogether(4, "success", {"path": 2.0})]
        emitter.step_together(episodes, np.arange(5), {"progress": np.linspace(0, 1, 5), "mode": "go"}, ends)
        until(lambda: emitter.report.frames_sent == 2)
        with pytest.raises(EmitterStateError, match="has ended"):
            emitter.step_together(episodes, np.arange(5), {"progress": 0.5})
        emitter.step_together(episodes[:2], np.array([1, 2]), {"progress": 0.5})
    first, batch, second, last = publisher.frames
    assert (first.n_steps, batch.n_steps, second.n_steps, last.n_steps) == (1, 5, 2, 0)
    assert np.asarray(batch.steps["step"]).tolist() == [0, 1, 2, 3, 4]
    assert [(batch.episodes[end.episode].agent, end.outcome) for end in batch.ends] == [("a4", "success")]
    assert sorted(last.episodes[end.episode].agent for end in last.ends) == ["a0", "a1", "a2", "a3"]
    assert {end.outcome for end in last.ends} == {"aborted"}


def test_a_batch_waits_for_nothing_and_makes_no_other_step_go_early(publisher: MemoryPublisher) -> None:
    with StepEmitter(publisher, producer="p", linger_s=LONG_S, max_steps=10) as emitter:
        episodes = begun(emitter, 9)
        for frames in (1, 2):
            emitter.step_together(episodes, np.arange(9), {"progress": 0.5})
            until(lambda wanted=frames: emitter.report.frames_sent == wanted)  # type: ignore[misc]
        episodes[0].step(progress=0.5)
        episodes[1].step(progress=0.5)
        pause_s = emitter._sender._pause()
        assert pause_s is not None
        assert pause_s > 1.0


def test_very_many_are_several_frames(publisher: MemoryPublisher) -> None:
    count = MOST_TOGETHER + 3
    with StepEmitter(publisher, producer="p") as emitter:
        episodes = begun(emitter, count)
        ends = [EndTogether(place, "success" if place < MOST_TOGETHER else "failure") for place in range(0, count, 2)]
        emitter.step_together(episodes, np.arange(count), {"progress": np.arange(count) / count}, ends)
    one, two = publisher.frames[:2]
    assert (one.n_steps, two.n_steps) == (MOST_TOGETHER, 3)
    assert [(two.episodes[end.episode].agent, end.outcome) for end in two.ends] == [
        (f"a{count - 3}", "failure"), (f"a{count - 1}", "failure"),
    ]  # fmt: skip
    assert len(one.ends) == MOST_TOGETHER // 2
    assert np.asarray(two.steps["step"]).tolist() == [count - 3, count - 2, count - 1]
    assert two.steps["episode"].tolist() == [0, 1, 2]  # type: ignore[union-attr]


def test_a_full_buffer_drops_whole_batches_and_keeps_ends(publisher: MemoryPublisher) -> None:
    problem = "away"
    publisher.failure = PublishError(problem)
    emitter = StepEmitter(publisher, producer="p", buffer_steps=7)
    episodes = begun(emitter, 5)
    emitter.step_together(episodes, np.arange(5), {"progress": 0.1})
    emitter.step_together(episodes, np.arange(1, 6), {"progress": 0.2}, [EndTogether(1, "failure")])
    emitter.step_together(episodes[:1], np.array([2]), {"progress": 0.3})
    assert (emitter.report.steps_dropped, emitter.report.steps_buffered) == (5, 6)
    publisher.failure = None
    emitter.close()
    frames = publisher.frames
    assert [frame.n_steps for frame in frames[:3]] == [5, 0, 1]
    assert [(frames[1].episodes[end.episode].agent, end.outcome) for end in frames[1].ends] == [("a1", "failure")]
    assert emitter.report.steps_sent == 6
    assert emitter.report.ends_dropped == 0


class DeadPublisher(MemoryPublisher):
    """Raises whatever it is asked, as a client does whose connection has gone for good."""

    def publish(self, key: bytes, frame_bytes: bytes, on_done: OnDone) -> None:
        message = "no client any more"
        raise RuntimeError(message)


def test_behind_a_dead_publisher_memory_is_bounded_and_nobody_waits() -> None:
    emitter = StepEmitter(DeadPublisher(), producer="p", buffer_steps=50)
    episodes = begun(emitter, 5)
    began = time.monotonic()
    for step in range(1000):
        emitter.step_together(episodes, np.full(5, step), {"progress": 0.5})
    assert time.monotonic() - began < 30.0
    assert (emitter.report.steps_buffered, emitter.report.steps_dropped) == (50, 4950)
    emitter.close(0.2)
    report = emitter.report
    assert (report.steps_buffered, report.steps_dropped, report.ends_dropped) == (0, 5000, 5)
    assert report.last_error == "RuntimeError: no client any more"


def test_what_cannot_be_encoded_costs_its_own_frame(publisher: MemoryPublisher) -> None:
    with StepEmitter(publisher, producer="p") as emitter:
        episodes = begun(emitter, 2)
        nothing: Any = object()
        broken = TextColumn([nothing], np.zeros(2, dtype=np.uint16))
        emitter.step_together(episodes, np.arange(2), {"progress": 0.5, "mode": broken})
        emitter.step_together(episodes, np.arange(1, 3), {"progress": 0.5})
        assert emitter.flush()
        assert (emitter.report.steps_dropped, emitter.report.steps_sent) == (2, 2)
        assert "AttributeError" in str(emitter.report.last_error)


def test_what_the_caller_changes_later_is_not_sent(publisher: MemoryPublisher) -> None:
    with StepEmitter(publisher, producer="p") as emitter:
        steps, progress = np.zeros(2, dtype=np.int64), np.zeros(2)
        emitter.step_together(begun(emitter, 2), steps, {"progress": progress})
        steps += 7
        progress += 0.5
    assert np.asarray(publisher.frames[0].steps["progress"]).tolist() == [0.0, 0.0]
    assert np.asarray(publisher.frames[0].steps["step"]).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("signals", "steps", "message"),
    [
        ({}, [0, 1], "need a progress"),
        ({"progress": 0.5}, [0], "need a progress and a step number"),
        ({"progress": [0.5, "x"]}, [0, 1], "progress must be numbers"),
        ({"progress": [0.1, 0.2, 0.3]}, [0, 1], "one for each of 2 episodes"),
        ({"progress": 0.5, "speed": 1.0}, [0, 1], "no signal 'speed'"),
        ({"progress": 0.5, "mode": [0.1, 0.2]}, [0, 1], "mode must be texts"),
        ({"progress": 0.5, "mode": ["go", 3]}, [0, 1], "mode must be a text|mode"),
        ({"progress": np.array([0.5, b"x"], dtype=object)}, [0, 1], "progress must be a number"),
    ],
)
def test_mistakes_are_told_at_once_and_nothing_is_sent(
    publisher: MemoryPublisher, signals: dict[str, Any], steps: list[int], message: str
) -> None:
    with StepEmitter(publisher, producer="p") as emitter:
        episodes = begun(emitter, 2)
        if message == "mode must be a text|mode":
            signals["mode"] = np.array(signals["mode"], dtype=object)
        with pytest.raises(SignalError, match=message):
            emitter.step_together(episodes, np.array(steps), signals)
        with pytest.raises(SignalError, match="outcome"):
            emitter.step_together(episodes, np.arange(2), {"progress": 0.5}, [EndTogether(0, "won")])
        for place in (-1, 2):
            with pytest.raises(SignalError, match="are of none of 2 episodes"):
                emitter.step_together(episodes, np.arange(2), {"progress": 0.5}, [EndTogether(place, "success")])
        assert emitter.report.steps_buffered == 0


def test_absent_cells_are_told_from_nan() -> None:
    masked = np.ma.MaskedArray([0.5, 0.25, np.nan], mask=[False, True, False])
    columns = checked_columns(
        {"progress": masked, "risk": [None, 1, np.float32(2)], "violation": np.array([[True], [False], [True]])}, 3
    )
    progress, risk = columns["progress"], columns["risk"]
    assert isinstance(progress, np.ndarray)
    assert isinstance(risk, np.ndarray)
    assert is_absent(progress).tolist() == [False, True, False]
    assert progress.view(np.int64)[2] != ABSENT_BITS
    assert is_absent(risk).tolist() == [True, False, False]
    assert np.asarray(columns["violation"]).tolist() == [1.0, 0.0, 1.0]


def test_texts_of_any_kind() -> None:
    many = np.arange(70_000)
    columns = checked_columns({"action": many}, len(many))
    action = columns["action"]
    assert isinstance(action, TextColumn)
    assert action.texts()[-1] == "69999"
    masked = np.ma.MaskedArray(np.array([4, 5, 4]), mask=[False, True, False])
    texts = checked_columns({"action": masked, "mode": np.array(["a", "b", "a"]), "feedback": "x" * 300}, 3)
    assert [texts[name].texts() for name in ("action", "mode")] == [["4", "", "4"], ["a", "b", "a"]]  # type: ignore[union-attr]
    assert texts["feedback"].texts() == ["x" * 256] * 3  # type: ignore[union-attr]


def test_headers_stay_the_handles_own(publisher: MemoryPublisher) -> None:
    with StepEmitter(publisher, producer="p") as emitter:
        episodes = begun(emitter, 2)
        emitter.step_together(episodes, np.arange(2), {"progress": 0.5})
    assert publisher.frames[0].episodes == tuple(
        EpisodeHeader(agent=f"a{slot}", episode="0", family="f") for slot in range(2)
    )

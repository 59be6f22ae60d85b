import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from springback.producers.contract.codec import decode_frame
from springback.producers.contract.frame import StepFrame, TextColumn
from springback.producers.emitter.publishers import MemoryPublisher, OnDone
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.errors import EmitterStateError, FrameRefusedError, PublishError, SignalError
from tests.producers.emitter.emitter_waiting import until

LONG_S = 3600.0


class HoldingPublisher(MemoryPublisher):
    """Keeps frames unanswered until it is told how each one went."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[OnDone] = []

    def publish(self, key: bytes, frame_bytes: bytes, on_done: OnDone) -> None:
        self.published.append((key, frame_bytes))
        self.held.append(on_done)


def steps_of(frame: StepFrame) -> list[int]:
    column = frame.steps.get("step", np.zeros(0, int))
    assert isinstance(column, np.ndarray)
    return [int(step) for step in column]


@pytest.fixture
def publisher() -> MemoryPublisher:
    return MemoryPublisher()


@pytest.fixture
def emitter(publisher: MemoryPublisher) -> Iterator[StepEmitter]:
    with StepEmitter(publisher, producer="robot", linger_s=LONG_S, max_steps=4) as emitter:
        yield emitter


def test_a_flush_of_nothing_cuts_no_frame_off_later(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    episode = emitter.begin_episode(episode="1", family="f")
    for number in range(20):
        assert emitter.flush()
        episode.step(progress=0.1, step=2 * number)
        threading.Event().wait(0.01)  # time enough for the sending thread to do what it must not
        episode.step(progress=0.2, step=2 * number + 1)
        assert emitter.flush()
    assert [steps_of(frame) for frame in publisher.frames] == [[2 * n, 2 * n + 1] for n in range(20)]


def test_frame_carries_what_was_reported(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    episode = emitter.begin_episode("arm", episode="1", family="f", stress=np.float32(0.5), reference=False)
    episode.step(progress=0.5, time_s=10.0, mode="go", travel=np.int64(2), judge_goal=None, feedback="x" * 300)
    episode.step(progress=np.float64(1.0), step=7, time_s=11.0, risk=float("nan"))
    episode.end("success", {"path": np.float32(2.5), "actions": 3.0, "final_distance": float("inf")}, time_s=12.0)
    assert emitter.flush()
    (frame,) = publisher.frames
    assert publisher.published[0][0] == b"robot"
    assert (frame.producer, frame.session) == ("robot", emitter.session)
    assert (frame.episodes[0].agent, frame.episodes[0].stress) == ("arm", 0.5)
    assert steps_of(frame) == [0, 7]
    assert "judge_goal" not in frame.steps
    assert isinstance(frame.steps["mode"], TextColumn)
    assert frame.steps["mode"].texts() == ["go", "run"]
    assert isinstance(frame.steps["feedback"], TextColumn)
    assert [len(text) for text in frame.steps["feedback"].texts()] == [256, 0]
    assert (frame.ends[0].outcome, frame.ends[0].time_s) == ("success", 12.0)


def test_an_end_says_the_magnitude_that_was_realised(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    for name, told in (("1", np.float64(0.5)), ("2", None)):
        emitter.begin_episode(episode=name, family="f").end("success", realised_magnitude=told)
    with pytest.raises(SignalError, match="realised_magnitude must be a number"):
        emitter.begin_episode(episode="3", family="f").end("success", realised_magnitude="much")  # type: ignore[arg-type]
    assert emitter.flush()
    assert [end.realised_magnitude for frame in publisher.frames for end in frame.ends][:2] == [0.5, None]


def test_the_clock_is_an_argument(publisher: MemoryPublisher) -> None:
    with StepEmitter(publisher, producer="robot", clock=lambda: 123.0) as emitter:
        emitter.begin_episode(episode="1", family="f").step(progress=0.0)
    assert isinstance(publisher.frames[0].steps["time_s"], np.ndarray)
    assert publisher.frames[0].steps["time_s"].tolist() == [123.0]


def test_frame_goes_when_it_is_full(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    episode = emitter.begin_episode(episode="1", family="f")
    for _ in range(9):
        episode.step(progress=0.0)
    until(lambda: emitter.report.frames_sent == 2)
    assert [steps_of(frame) for frame in publisher.frames] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert emitter.report.steps_buffered == 1


def test_frame_goes_when_it_has_waited(publisher: MemoryPublisher) -> None:
    with StepEmitter(publisher, producer="robot", linger_s=0.01) as emitter:
        emitter.begin_episode(episode="1", family="f").step(progress=0.0)
        until(lambda: emitter.report.steps_sent == 1)


def test_an_end_has_everything_sent_at_once(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    one, two = (emitter.begin_episode(agent, episode="1", family="f") for agent in ("a", "b"))
    for episode in (one, two, one, two):
        episode.step(progress=0.0)
    one.end("failure")
    two.step(progress=0.1)
    two.end("timeout")
    until(lambda: emitter.report.steps_sent == 5)
    frames = publisher.frames
    assert sum(frame.n_steps for frame in frames) == 5
    assert [frame.episodes[end.episode].agent for frame in frames for end in frame.ends] == ["a", "b"]


def test_full_buffer_drops_the_newest_steps_and_no_ends() -> None:
    publisher = HoldingPublisher()
    emitter = StepEmitter(publisher, producer="robot", max_steps=2, linger_s=LONG_S, buffer_steps=5)
    episode = emitter.begin_episode(episode="1", family="f")
    for _ in range(8):
        episode.step(progress=0.0)
    episode.end("success")
    assert (emitter.report.steps_dropped, emitter.report.steps_buffered) == (3, 5)
    until(lambda: len(publisher.held) == 3)
    for on_done in publisher.held:
        on_done(None)
    assert emitter.flush()
    assert [steps_of(frame) for frame in publisher.frames] == [[0, 1], [2, 3], [4]]
    assert len(publisher.frames[-1].ends) == 1
    report = emitter.report
    assert (report.steps_sent, report.steps_dropped, report.ends_dropped, report.steps_buffered) == (5, 3, 0, 0)
    emitter.close(timeout_s=0.05)


def test_failed_frames_are_published_again_in_order() -> None:
    publisher = HoldingPublisher()
    emitter = StepEmitter(publisher, producer="robot", max_steps=1, linger_s=LONG_S)
    episode = emitter.begin_episode(episode="1", family="f")
    for _ in range(3):
        episode.step(progress=0.0)
    until(lambda: len(publisher.held) == 3)
    problem = "broker away"
    for on_done in reversed(publisher.held[:2]):
        on_done(PublishError(problem))
        on_done(None)  # a second answer counts for nothing
    episode.step(progress=0.0)
    publisher.held[2](None)
    until(lambda: len(publisher.held) >= 5)
    for on_done in publisher.held[3:5]:
        on_done(None)
    until(lambda: len(publisher.held) == 6)
    publisher.held[5](None)
    assert [steps_of(frame) for frame in publisher.frames] == [[0], [1], [2], [0], [1], [3]]
    assert emitter.flush()
    report = emitter.report
    assert (report.steps_sent, report.publish_errors, report.last_error) == (4, 2, "PublishError: broker away")
    emitter.close(timeout_s=0.05)


def test_refused_frame_is_dropped_and_the_next_one_goes(publisher: MemoryPublisher, emitter: StepEmitter) -> None:
    problem = "too large"
    publisher.failure = FrameRefusedError(problem)
    episode = emitter.begin_episode(episode="1", family="f")
    episode.step(progress=0.0)
    assert emitter.flush()
    publisher.failure = None
    episode.step(progress=0.0)
    assert emitter.flush()
    assert (emitter.report.steps_sent, emitter.report.steps_dropped) == (1, 1)


def test_publishers_own_mistake_does_not_end_the_sender(publisher: MemoryPublisher, emitter: StepEmitter) -> None:
    kept = publisher.publish

    def broken(key: bytes, frame_bytes: bytes, on_done: OnDone) -> None:
        publisher.publish = kept  # type: ignore[method-assign]
        problem = "a bug"
        raise RuntimeError(problem)

    publisher.publish = broken  # type: ignore[method-assign]
    emitter.begin_episode(episode="1", family="f").step(progress=0.0)
    assert emitter.flush()
    assert emitter.report.last_error == "RuntimeError: a bug"


def test_exception_inside_ends_open_episodes_as_aborted(publisher: MemoryPublisher) -> None:
    def fall() -> None:
        with StepEmitter(publisher, producer="robot", linger_s=LONG_S) as emitter:
            emitter.begin_episode(episode="1", family="f").step(progress=0.0)
            problem = "the robot fell"
            raise RuntimeError(problem)

    with pytest.raises(RuntimeError, match="the robot fell"):
        fall()
    assert [end.outcome for frame in publisher.frames for end in frame.ends] == ["aborted"]
    assert publisher.closed


def test_close_is_bounded_and_counts_what_it_gives_up(publisher: MemoryPublisher) -> None:
    problem = "broker away"
    publisher.failure = PublishError(problem)
    emitter = StepEmitter(publisher, producer="robot", linger_s=LONG_S)
    emitter.begin_episode(episode="1", family="f").step(progress=0.0)
    emitter.close(timeout_s=0.05)
    emitter.close(timeout_s=0.05)
    report = emitter.report
    assert (report.steps_dropped, report.ends_dropped, report.steps_buffered) == (1, 1, 0)


def test_nothing_is_reported_after_the_end(emitter: StepEmitter) -> None:
    episode = emitter.begin_episode(episode="1", family="f")
    episode.end("success")
    with pytest.raises(EmitterStateError, match="has ended"):
        episode.step(progress=0.0)
    with pytest.raises(EmitterStateError, match="has ended"):
        episode.end("success")
    emitter.close(timeout_s=0.05)
    with pytest.raises(EmitterStateError, match="closed"):
        emitter.begin_episode(episode="2", family="f")


def test_forked_child_is_told_to_make_its_own(emitter: StepEmitter, monkeypatch: pytest.MonkeyPatch) -> None:
    episode = emitter.begin_episode(episode="1", family="f")
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        with pytest.raises(EmitterStateError, match="make one of its own"):
            episode.step(progress=0.0)
        emitter.close()
    episode.step(progress=0.0)


@pytest.mark.parametrize(
    ("signals", "message"),
    [
        ({"progress": "0.5"}, "progress must be a number"),
        ({"progress": None}, "progress must be a number"),
        ({"progress": True}, "progress must be a number"),
        ({"progress": 0.5, "traval": 1.0}, "no signal 'traval'"),
        ({"progress": 0.5, "travel": [1.0]}, "travel must be a number"),
        ({"progress": 0.5, "mode": 3}, "mode must be a text"),
        ({"progress": 0.5, "step": 1.5}, "step must be an integer"),
        ({"progress": 0.5, "step": -1}, "step must be an integer"),
        ({"progress": 0.5, "time_s": "now"}, "time_s must be a number"),
        ({"progress": 0.5, "episode": 0}, "no signal 'episode'"),
    ],
)
def test_wrong_signals_are_told_at_once(emitter: StepEmitter, signals: dict[str, Any], message: str) -> None:
    episode = emitter.begin_episode(episode="1", family="f")
    with pytest.raises(SignalError, match=message):
        episode.step(**signals)


@pytest.mark.parametrize(
    "traits",
    [{"episode": ""}, {"episode": 7}, {"stress": 1.5}, {"stress": "high"}, {"colour": "red"}, {"family": None}],
)
def test_wrong_traits_are_told_at_once(emitter: StepEmitter, traits: dict[str, Any]) -> None:
    with pytest.raises(SignalError):
        emitter.begin_episode(**({"episode": "1", "family": "f"} | traits))


def test_wrong_ends_are_told_at_once_and_leave_the_episode_open(emitter: StepEmitter) -> None:
    episode = emitter.begin_episode(episode="1", family="f")
    for arguments in (("won",), ("success", {"way": 1.0}), ("success", {"path": "long"}), ("success", 3)):
        with pytest.raises(SignalError):
            episode.end(*arguments)
    episode.end("success")


def test_wrong_producer_is_told_at_once(publisher: MemoryPublisher) -> None:
    for producer in ("", "p" * 257, None):
        with pytest.raises(SignalError):
            StepEmitter(publisher, producer=producer)  # type: ignore[arg-type]


def test_many_threads_lose_nothing(publisher: MemoryPublisher) -> None:
    with StepEmitter(publisher, producer="fleet", linger_s=0.001, max_steps=7) as emitter:

        def run(name: str) -> None:
            episode = emitter.begin_episode(name, episode="1", family="f")
            for _ in range(200):
                episode.step(progress=0.0)
            episode.end("success")

        threads = [threading.Thread(target=run, args=(str(i),)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    seen: dict[str, list[int]] = {}
    for frame in (decode_frame(frame_bytes) for _, frame_bytes in publisher.published):
        episodes = frame.steps.get("episode", np.zeros(0, int))  # a frame may hold an end alone
        assert isinstance(episodes, np.ndarray)
        for place, step in zip(episodes.tolist(), steps_of(frame)):
            seen.setdefault(frame.episodes[place].agent, []).append(step)
    assert seen == {str(i): list(range(200)) for i in range(4)}

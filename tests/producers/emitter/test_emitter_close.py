import os
import threading

import pytest

from springback.producers.contract.salvage import MAX_FRAME_EPISODES
from springback.producers.emitter.publishers import MemoryPublisher, OnDone
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.errors import EmitterStateError


@pytest.fixture
def publisher() -> MemoryPublisher:
    return MemoryPublisher()


def test_an_abort_after_the_end_does_nothing(publisher: MemoryPublisher) -> None:
    with StepEmitter(publisher, producer="p", clock=lambda: 7.0) as emitter:
        one, other, left = (emitter.begin_episode(episode=name, family="f") for name in ("1", "2", "3"))
        one.end("success")
        one.abort()
        other.abort(time_s=9.0)
        other.abort()
    left.abort()
    with pytest.raises(EmitterStateError, match="is closed"):
        left.end("aborted")
    ends = [(frame.episodes[end.episode].episode, end.outcome, end.time_s) for frame in publisher.frames
            for end in frame.ends]  # fmt: skip
    assert ends == [("1", "success", 7.0), ("2", "aborted", 9.0), ("3", "aborted", 7.0)]


def test_an_abort_in_a_forked_child_does_nothing(publisher: MemoryPublisher, monkeypatch: pytest.MonkeyPatch) -> None:
    with StepEmitter(publisher, producer="p") as emitter:
        episode = emitter.begin_episode(episode="1", family="f")
        with monkeypatch.context() as child:
            child.setattr(os, "getpid", lambda: -1)
            episode.abort()
        episode.step(progress=0.5)


def test_a_clock_that_has_gone_loses_no_step(publisher: MemoryPublisher) -> None:
    running = True

    def clock() -> float:
        if not running:
            message = "the simulator is closed"
            raise RuntimeError(message)
        return 7.0

    emitter = StepEmitter(publisher, producer="p", clock=clock)
    emitter.begin_episode(episode="1", family="f").step(progress=0.5)
    running = False
    with pytest.raises(RuntimeError, match="the simulator is closed"):
        emitter.close()
    assert emitter.report.steps_sent == 1
    emitter.close()  # and is closed all the same


def test_the_ends_of_very_many_episodes_are_several_frames(publisher: MemoryPublisher) -> None:
    count = MAX_FRAME_EPISODES + 5
    with StepEmitter(publisher, producer="p", max_steps=3 * count, linger_s=3600.0) as emitter:
        for number in range(count):
            emitter.begin_episode(f"a{number}", family="f").step(progress=0.5)
    assert max(len(frame.episodes) for frame in publisher.frames) <= MAX_FRAME_EPISODES
    assert emitter.report.steps_sent == sum(len(frame.ends) for frame in publisher.frames) == count


def test_a_close_takes_no_longer_than_it_is_given() -> None:
    class Endless(MemoryPublisher):
        """Neither acknowledges anything, nor comes to the end of its close, before the test is over."""

        def __init__(self) -> None:
            super().__init__()
            self.over = threading.Event()

        def publish(self, key: bytes, frame_bytes: bytes, on_done: OnDone) -> None:
            """It is lost."""

        def flush(self, timeout_s: float) -> None:
            self.over.wait(timeout_s)

        def close(self) -> None:
            self.over.wait()

    publisher = Endless()
    emitter = StepEmitter(publisher, producer="endless")
    emitter.begin_episode(family="f").step(progress=0.5)
    closing = threading.Thread(target=emitter.close, args=(0.5,))
    closing.start()
    closing.join(60.0)  # it would wait for ever
    try:
        assert not closing.is_alive()
        assert (emitter.report.steps_dropped, emitter.report.ends_dropped) == (1, 1)
    finally:
        publisher.over.set()


def test_a_close_at_the_end_of_the_interpreter_needs_no_thread(
    publisher: MemoryPublisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    emitter = StepEmitter(publisher, producer="p")
    emitter.begin_episode(episode="1", family="f").step(progress=0.5)

    def starts_none(_: threading.Thread) -> None:
        message = "can't create new thread at interpreter shutdown"
        raise RuntimeError(message)

    monkeypatch.setattr(threading.Thread, "start", starts_none)
    emitter.close()
    assert (publisher.closed, emitter.report.steps_sent) == (True, 1)

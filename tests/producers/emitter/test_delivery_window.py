"""Back pressure towards Kafka: what waits, what is lost, and when it gives up."""

from __future__ import annotations

import threading
from collections import deque

import pytest

from springback.producers.emitter.delivery import DeliveryWindow
from springback.producers.emitter.publishers import OnDone
from springback.producers.errors import FrameRefusedError, PublishError


class SlowKafka:
    """Takes frames, and answers each when told to."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.unanswered: deque[OnDone] = deque()
        self.flushed = False

    def publish(self, key: bytes, frame_bytes: bytes, on_done: OnDone) -> None:
        self.taken.append(frame_bytes)
        self.unanswered.append(on_done)

    def flush(self, timeout_s: float) -> None:
        self.flushed = True

    def close(self) -> None:
        raise AssertionError

    def answer(self, error: Exception | None = None) -> None:
        self.unanswered.popleft()(error)


class Settled:
    """What was told of the frames."""

    def __init__(self) -> None:
        self.arrived = 0
        self.refusals: list[FrameRefusedError] = []

    def __call__(self, error: FrameRefusedError | None) -> None:
        if error is None:
            self.arrived += 1
        else:
            self.refusals.append(error)


@pytest.mark.parametrize("bound", [{"frames": 2}, {"size_bytes": 2}])
def test_a_full_window_waits_for_an_acknowledgement(bound: dict[str, int]) -> None:
    kafka = SlowKafka()
    window = DeliveryWindow(kafka, **bound, longest_silence_s=30.0)
    for data in (b"0", b"1"):
        window.publish(b"key", data, Settled())
    waiting = threading.Thread(target=window.publish, args=(b"key", b"2", Settled()))
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    assert kafka.taken == [b"0", b"1"]
    kafka.answer()
    waiting.join(30.0)
    assert kafka.taken == [b"0", b"1", b"2"]


def test_a_frame_larger_than_the_window_goes_alone() -> None:
    kafka = SlowKafka()
    window = DeliveryWindow(kafka, size_bytes=2, longest_silence_s=0.01)
    window.publish(b"key", b"larger", Settled())
    with pytest.raises(PublishError, match="acknowledged none of 1 frames"):
        window.publish(b"key", b"1", Settled())
    kafka.answer()
    window.publish(b"key", b"1", Settled())
    assert kafka.taken == [b"larger", b"1"]


def test_draining_waits_for_all() -> None:
    kafka, settled = SlowKafka(), Settled()
    window = DeliveryWindow(kafka, longest_silence_s=30.0)
    for data in (b"0", b"1"):
        window.publish(b"key", data, settled)
    draining = threading.Thread(target=window.drain)
    draining.start()
    kafka.answer()
    draining.join(0.05)
    assert draining.is_alive()
    kafka.answer()
    draining.join(30.0)
    assert not draining.is_alive()
    assert kafka.flushed
    assert settled.arrived == 2


def test_silence_is_given_up_on() -> None:
    window = DeliveryWindow(SlowKafka(), frames=1, longest_silence_s=0.01)
    window.publish(b"key", b"0", Settled())
    with pytest.raises(PublishError, match=r"acknowledged none of 1 frames in 0\.01 s"):
        window.publish(b"key", b"1", Settled())
    with pytest.raises(PublishError, match="acknowledged none"):
        window.drain()


def test_a_failure_ends_it() -> None:
    kafka = SlowKafka()
    window = DeliveryWindow(kafka, longest_silence_s=30.0)
    window.publish(b"key", b"0", Settled())
    kafka.answer(ConnectionError("broker away"))
    with pytest.raises(PublishError, match=r"did not take a frame \(broker away\); 0 frames had arrived"):
        window.publish(b"key", b"1", Settled())
    assert kafka.taken == [b"0"]
    with pytest.raises(PublishError, match="broker away"):
        window.drain()


def test_a_refusal_is_told_and_passed_over() -> None:
    kafka, settled = SlowKafka(), Settled()
    window = DeliveryWindow(kafka, longest_silence_s=30.0)
    window.publish(b"key", b"0", settled)
    kafka.answer(FrameRefusedError("too large"))
    window.drain()
    assert [str(refusal) for refusal in settled.refusals] == ["too large"]
    assert settled.arrived == 0

"""Frames on their way while Kafka comes and goes: in order, bounded, settled once."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from springback.producers.emitter.forwarding import MOST_FRAMES, FramePassage
from springback.producers.emitter.publishers import OnDone
from springback.producers.errors import FrameRefusedError, PublishError


class Kafka:
    """Holds what is published until the test says what becomes of it."""

    def __init__(self) -> None:
        self.waiting: list[tuple[bytes, OnDone]] = []
        self.arrived: list[bytes] = []

    def publish(self, key: bytes, frame_bytes: bytes, on_done: OnDone) -> None:
        self.waiting.append((frame_bytes, on_done))

    def answer(self, error: Exception | None) -> None:
        data, on_done = self.waiting.pop(0)
        if error is None:
            self.arrived.append(data)
        on_done(error)

    def flush(self, timeout_s: float) -> None:
        while self.waiting:
            self.answer(None)

    def close(self) -> None:
        """Nothing is held."""


def offered(passage: FramePassage, count: int, settled: list[int]) -> None:
    def settling(number: int) -> Callable[[], None]:
        return lambda: settled.append(number)

    for number in range(count):
        passage.offer(b"r7", b"%d" % number, settling(number))


@given(st.lists(st.sampled_from(["arrives", "fails", "is refused"]), max_size=60))
def test_whatever_fails_arrives_later_in_the_first_order(fates: list[str]) -> None:
    kafka, settled, now_s = Kafka(), list[int](), [0.0]
    passage = FramePassage(kafka, clock=lambda: now_s[0])
    offered(passage, 8, settled)
    refused = 0
    for fate in fates:
        if kafka.waiting:
            error = {"arrives": None, "fails": PublishError("away"), "is refused": FrameRefusedError("too large")}[fate]
            refused += fate == "is refused"
            kafka.answer(error)
        now_s[0] += 10.0
        passage.push()
    while kafka.waiting:
        kafka.flush(1.0)
        now_s[0] += 10.0
        passage.push()
    assert sorted(settled) == list(range(8))
    assert passage.arrived == 8 - refused
    assert passage.refused == refused
    assert len(kafka.arrived) == len(set(kafka.arrived))


def test_nothing_passes_by_what_failed() -> None:
    kafka, settled, now_s = Kafka(), list[int](), [0.0]
    passage = FramePassage(kafka, clock=lambda: now_s[0])
    offered(passage, 2, settled)
    kafka.answer(PublishError("away"))
    passage.offer(b"r7", b"later", lambda: settled.append(2))
    assert len(kafka.waiting) == 1  # the second, which was on its way already
    kafka.answer(PublishError("away"))
    passage.push()
    assert kafka.waiting == []  # not before the pause is over
    now_s[0] += 10.0
    passage.push()
    kafka.flush(1.0)
    assert kafka.arrived == [b"0", b"1", b"later"]
    assert settled == [0, 1, 2]


def test_there_is_room_for_so_many() -> None:
    kafka, settled = Kafka(), list[int]()
    passage = FramePassage(kafka)
    offered(passage, MOST_FRAMES, settled)
    assert not passage.has_room
    kafka.answer(None)
    assert passage.has_room
    assert passage.drain(5.0)
    assert len(settled) == MOST_FRAMES


def test_a_drain_gives_up_in_time() -> None:
    kafka, now_s = Kafka(), [0.0]

    def clock() -> float:
        now_s[0] += 0.5
        return now_s[0]

    passage = FramePassage(kafka, clock=clock)
    kafka.flush = lambda timeout_s: None  # type: ignore[method-assign]
    passage.offer(b"r7", b"0", lambda: None)
    assert not passage.drain(1.0)

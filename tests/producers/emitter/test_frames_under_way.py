"""Frames on their way while Kafka comes and goes: in order, bounded, settled once."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from springback.producers.backoff import Backoff
from springback.producers.emitter.delivery import MOST_FRAMES, FramesUnderWay
from springback.producers.emitter.publishers import OnDone
from springback.producers.errors import FrameRefusedError, PublishError


class Kafka:
    """Holds what is published until the test says what becomes of it."""

    def __init__(self) -> None:
        self.waiting: list[tuple[bytes, OnDone]] = []
        self.arrived: list[bytes] = []
        self.failed: set[bytes] = set()
        self.out_of_order: list[bytes] = []  # on its way beside one that came earlier, or passed by after a failure

    def publish(self, key: bytes, frame_bytes: bytes, on_done: OnDone) -> None:
        self.failed.discard(frame_bytes)
        later = [data for data, _ in self.waiting if data >= frame_bytes]
        earlier = [data for data in self.failed if data <= frame_bytes]
        self.out_of_order += [*later, *earlier]
        self.waiting.append((frame_bytes, on_done))

    def answer(self, error: Exception | None, place: int = 0) -> None:
        data, on_done = self.waiting.pop(place % len(self.waiting))
        if error is None:
            self.arrived.append(data)
        elif not isinstance(error, FrameRefusedError):
            self.failed.add(data)
        on_done(error)

    def flush(self, timeout_s: float) -> None:
        while self.waiting:
            self.answer(None)

    def close(self) -> None:
        """Nothing is held."""


def offered(passing: FramesUnderWay, count: int, settled: list[int]) -> None:
    def settling(number: int) -> Callable[[object], None]:
        return lambda _: settled.append(number)

    for number in range(count):
        passing.offer(b"r7", b"%03d" % number, settling(number))


FATES = st.lists(st.tuples(st.sampled_from(["arrives", "fails", "is refused"]), st.integers(0, 7)), max_size=60)


@given(FATES)
def test_whatever_fails_arrives_later_in_the_first_order(fates: list[tuple[str, int]]) -> None:
    kafka, settled, now_s = Kafka(), list[int](), [0.0]
    passing = FramesUnderWay(kafka, clock=lambda: now_s[0])
    offered(passing, 8, settled)
    refused = 0
    for fate, place in fates:
        if kafka.waiting:
            error = {"arrives": None, "fails": PublishError("away"), "is refused": FrameRefusedError("too large")}[fate]
            refused += fate == "is refused"
            kafka.answer(error, place)
        now_s[0] += 10.0
        passing.push()
    while kafka.waiting:
        kafka.flush(1.0)
        now_s[0] += 10.0
        passing.push()
    assert sorted(settled) == list(range(8))
    assert passing.arrived == 8 - refused
    assert passing.refused == refused
    assert len(kafka.arrived) == len(set(kafka.arrived))
    assert not kafka.out_of_order


def test_nothing_passes_by_what_failed() -> None:
    kafka, settled, now_s = Kafka(), list[int](), [0.0]
    passing = FramesUnderWay(kafka, clock=lambda: now_s[0])
    offered(passing, 2, settled)
    kafka.answer(PublishError("away"))
    passing.offer(b"r7", b"later", lambda _: settled.append(2))
    assert len(kafka.waiting) == 1  # the second, which was on its way already
    kafka.answer(PublishError("away"))
    passing.push()
    assert kafka.waiting == []  # not before the pause is over
    now_s[0] += 10.0
    passing.push()
    kafka.flush(1.0)
    assert kafka.arrived == [b"000", b"001", b"later"]
    assert settled == [0, 1, 2]


def test_there_is_room_for_so_many() -> None:
    kafka, settled = Kafka(), list[int]()
    passing = FramesUnderWay(kafka)
    offered(passing, MOST_FRAMES, settled)
    assert not passing.has_room()
    kafka.answer(None)
    assert passing.has_room()
    assert passing.drain(5.0)
    assert len(settled) == MOST_FRAMES


def test_a_drain_gives_up_in_time() -> None:
    kafka, now_s = Kafka(), [0.0]

    def clock() -> float:
        now_s[0] += 0.5
        return now_s[0]

    passing = FramesUnderWay(kafka, clock=clock)
    kafka.flush = lambda timeout_s: None  # type: ignore[method-assign]
    passing.offer(b"r7", b"0", lambda _: None)
    assert not passing.drain(1.0)


def test_the_pause_grows_with_each_failure_in_a_row_and_not_with_each_frame() -> None:
    kafka, settled, now_s = Kafka(), list[int](), [0.0]
    passing = FramesUnderWay(kafka, backoff=Backoff(1.0, 4.0), clock=lambda: now_s[0])
    offered(passing, 3, settled)
    for pause_s in (1.0, 2.0, 4.0, 4.0):
        assert passing.due_in_s() is None
        for _ in range(3):
            kafka.answer(PublishError("away"))
        assert passing.due_in_s() == pause_s
        now_s[0] += pause_s
        passing.push()
    kafka.answer(None)
    kafka.answer(PublishError("away"))
    kafka.answer(PublishError("away"))
    assert passing.due_in_s() == 1.0
    assert (passing.pending, passing.errors, settled) == (2, 14, [0])


def test_what_was_given_up_or_settled_counts_once() -> None:
    kafka, settled = Kafka(), list[int]()
    passing = FramesUnderWay(kafka)
    offered(passing, 2, settled)
    (_, first), (_, second) = kafka.waiting
    first(None)
    first(None)
    first(PublishError("away"))
    passing.give_up()
    second(None)
    assert (passing.pending, passing.arrived, settled) == (0, 1, [0])


def test_a_publishers_own_mistake_is_a_failure() -> None:
    class Broken(Kafka):
        def publish(self, key: bytes, frame_bytes: bytes, on_done: OnDone) -> None:
            message = "a bug"
            raise RuntimeError(message)

    passing = FramesUnderWay(Broken())
    passing.offer(b"r7", b"0", lambda _: None)
    assert (passing.pending, str(passing.failure)) == (1, "a bug")

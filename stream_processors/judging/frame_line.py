"""The order in which the frames of one partition go on, and how far its input is done with.

Order is kept per key, that is per producer, and only there: a frame that waits for its scores holds back the later
ones of its producer, never another producer's. So frames of a partition may go on in another order than they came;
the offset that is committed is therefore that of the first one that the broker does not have yet. After a crash the
frames behind it are sent again, in their order, and the tracker drops the steps that it knows.

Why that loses nothing: of each producer an unbroken run of frames is sent, from at or before the committed offset on,
and a repetition is such a run too. However two of them mingle, no step comes first after a later one.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from springback.stream_processors.judging.frame_judging import FrameJudging


@dataclass(slots=True, eq=False)
class Passage:
    """A message between its arrival and the broker's word that it has its judged form.

    Attributes:
        offset: of the message in its partition.
        timestamp: of the message, ms.
        key: of the message.
        headers: of the message.
        size: of the message, bytes.
        judging: what it waits for; None once it has been sent.
    """

    offset: int
    timestamp: int
    key: bytes | None
    headers: Sequence[tuple[str, bytes]]
    size: int
    judging: FrameJudging | None = None


class FrameLine:
    """The messages of one partition that are under way."""

    def __init__(self) -> None:
        self._of_key: dict[bytes | None, deque[Passage]] = {}
        self._under_way: deque[Passage] = deque()
        self._sent: set[int] = set()
        self._sendable: deque[Passage] = deque()
        self.done_to: int | None = None
        """Offset of the first message that is not done with; None before any is."""

    def join(self, passage: Passage) -> None:
        """A message has come; offsets rise."""
        self._of_key.setdefault(passage.key, deque()).append(passage)
        self._under_way.append(passage)

    def settled(self, passage: Passage) -> bool:
        """A message need not wait any more. Returns whether there is something to send."""
        line = self._of_key.get(passage.key)
        while line and line[0].judging is not None and line[0].judging.settled:
            self._sendable.append(line.popleft())
        if not line:
            self._of_key.pop(passage.key, None)
        return bool(self._sendable)

    def next_to_send(self) -> Passage | None:
        """The message to send next; it stays so until `taken`."""
        return self._sendable[0] if self._sendable else None

    def taken(self) -> Passage:
        """Take that message."""
        return self._sendable.popleft()

    def acknowledged(self, passages: Sequence[Passage]) -> None:
        """The broker has these."""
        self._sent.update(passage.offset for passage in passages)
        while self._under_way and self._under_way[0].offset in self._sent:
            offset = self._under_way.popleft().offset
            self._sent.remove(offset)
            self.done_to = offset + 1

"""Whether we can see what agents do, and when last we could not: our own blindness is nobody's silence."""

import math
from typing import NamedTuple

import msgspec

_BACKLOG_S = 10.0
"""How long frames must lie unread before we blame the workers: a busy fleet always has some on their way."""


class UnseenTime(NamedTuple):
    """The last stretch of time of which nothing is known, in seconds since 1970. Empty by default."""

    from_s: float = math.inf
    to_s: float = math.inf

    def elapsed(self, since_s: float, now_s: float) -> float:
        """Seconds from one time to another, without those in the stretch.

        >>> UnseenTime(100.0, 130.0).elapsed(90.0, 140.0), UnseenTime().elapsed(90.0, 140.0)
        (20.0, 50.0)
        """
        return now_s - since_s - max(0.0, min(now_s, self.to_s) - max(since_s, self.from_s))


class BrokerSight(msgspec.Struct, kw_only=True):
    """What we know of our own sight. Blind: the broker does not answer, or workers leave old input unread.

    Attributes:
        late_s: age of the newest processed event above which unread frames mean that the workers are away or behind.
        blind: whether we are blind just now.
        unseen: when last we were; to the present while it lasts.
    """

    late_s: float = 60.0
    blind: bool = False
    unseen: UnseenTime = UnseenTime()
    answered_s: float = -math.inf
    waiting_since_s: float = math.inf

    def answer(self, now_s: float, frames_behind: float, newest_s: float) -> None:
        """The broker has answered.

        Args:
            now_s: the present.
            frames_behind: frames that the workers have not read.
            newest_s: when the newest event that they have processed reached the broker.
        """
        self.waiting_since_s = min(self.waiting_since_s, now_s) if frames_behind > 0 else math.inf
        late = now_s - self.waiting_since_s >= _BACKLOG_S and now_s - newest_s > self.late_s
        self._see(now_s, not late, newest_s)
        self.answered_s = now_s

    def silence(self, now_s: float) -> None:
        """The broker has not answered."""
        self._see(now_s, False, self.answered_s)

    def _see(self, now_s: float, sighted: bool, last_sight_s: float) -> None:
        if not sighted and not self.blind:
            self.unseen = UnseenTime(last_sight_s if math.isfinite(last_sight_s) else now_s, now_s)
        if self.blind or not sighted:
            self.unseen = self.unseen._replace(to_s=now_s)
        self.blind = not sighted

"""Whether we see what agents do just now, and when last we did not: our own blindness is nobody's silence."""

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec

_BACKLOG_S = 10.0
"""How long frames must lie unread before we blame the workers: a busy fleet always has some on their way."""

Blindness = Literal["no broker", "catching up", "no worker"]


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


class FleetSight:
    """The broker, the workers, and whether all is read that the topics hold. Times are seconds since 1970.

    Args:
        late_s: as `BrokerSight` has it.

    Attributes:
        broker: whether broker and workers let us see.
        broker_reachable: whether the broker answers; None until that is known.
        caught_up: whether all has been read that was there at the start.
        frames_behind: frames that no worker has read yet, by partition; empty where the broker does not answer.
        newest_s: when an agent last reported; None before that.
    """

    def __init__(self, late_s: float) -> None:
        self.broker = BrokerSight(late_s=late_s)
        self.broker_reachable: bool | None = None
        self.caught_up = False
        self.frames_behind: Mapping[int, int] = {}
        self.newest_s: float | None = None

    def heard(self, seen_s: float) -> None:
        """An agent was seen by a worker."""
        self.newest_s = max(self.newest_s or seen_s, seen_s)

    def show_frames_behind(self, behind: Mapping[int, int], now_s: float) -> None:
        """The broker has answered: so many frames are unread, by partition."""
        self.broker_reachable = True
        self.frames_behind = dict(behind)
        self.broker.answer(now_s, sum(behind.values()), -math.inf if self.newest_s is None else self.newest_s)

    def show_broker_away(self, now_s: float) -> None:
        """The broker does not answer."""
        self.broker_reachable = False
        self.frames_behind = {}
        self.broker.silence(now_s)

    @property
    def blindness(self) -> Blindness | None:
        """Why nothing can be said of agents; None where it can."""
        if self.broker_reachable is False:
            return "no broker"
        if not self.caught_up or self.broker_reachable is None:
            return "catching up"
        return "no worker" if self.broker.blind else None

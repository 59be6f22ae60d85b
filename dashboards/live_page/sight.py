"""Whether the page sees what agents do just now. Where it does not, no agent may be called silent, or calm."""

import math
from collections.abc import Mapping
from typing import Literal

from springback.sinks.agent_state import DEFAULT_TIMES, AgentActivity, StateTimes
from springback.sinks.broker_sight import BrokerSight
from springback.stream_processors.resilience.metric_spec import AgentStateName

Blindness = Literal["no broker", "catching up", "no worker"]


class Sight:
    """The broker, the workers, and whether all is read that the topics hold. Times are seconds since 1970.

    Attributes:
        broker_reachable: whether the broker answers; None until that is known.
        caught_up: whether all has been read that was there at the start.
        frames_behind: frames that no worker has read yet, by partition; empty where the broker does not answer.
        newest_s: when an agent was last heard of; None before that.
    """

    def __init__(self, times: StateTimes = DEFAULT_TIMES) -> None:
        self.broker_reachable: bool | None = None
        self.caught_up = False
        self.frames_behind: Mapping[int, int] = {}
        self.newest_s: float | None = None
        self._times = times
        self._broker = BrokerSight(late_s=times.silent_s)

    def heard(self, seen_s: float) -> None:
        """An agent was seen by a worker."""
        self.newest_s = max(self.newest_s or seen_s, seen_s)

    def show_frames_behind(self, behind: Mapping[int, int], now_s: float) -> None:
        """The broker has answered: so many frames are unread, by partition."""
        self.broker_reachable = True
        self.frames_behind = dict(behind)
        self._broker.answer(now_s, sum(behind.values()), -math.inf if self.newest_s is None else self.newest_s)

    def show_broker_away(self, now_s: float) -> None:
        """The broker does not answer."""
        self.broker_reachable = False
        self.frames_behind = {}
        self._broker.silence(now_s)

    @property
    def blindness(self) -> Blindness | None:
        """Why nothing can be said of agents; None where it can."""
        if self.broker_reachable is False:
            return "no broker"
        if not self.caught_up or self.broker_reachable is None:
            return "catching up"
        return "no worker" if self._broker.blind else None

    def state_of(self, activity: AgentActivity, now_s: float) -> AgentStateName:
        """In which state an agent is."""
        blind = self.blindness is not None
        return activity.state(now_s, blind, unseen=self._broker.unseen, times=self._times)

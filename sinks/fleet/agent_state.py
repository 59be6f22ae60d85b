"""In which state an agent is, by its latest status and the time: the one rule for metrics, alerts and the live page.

A robot that has died must not be shown as calm, nor one as silent while it is we who see nothing. The states are ours.
"""

import math
from typing import Self

import msgspec

from springback.sinks.fleet.sight import UnseenTime
from springback.stream_processors.metrics.spec import AgentStateName
from springback.stream_processors.resilience.readings import AgentStatus


class StateTimes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """After how long an agent is in which state.

    Attributes:
        silent_s: silence after which an agent with an open episode is silent, or stale where it only repeats itself;
            for as long it stays contested after two programs have reported under its name.
        stalled_s: time without any progress after which it is stalled.
    """

    silent_s: float = 60.0
    stalled_s: float = 300.0

    def __post_init__(self) -> None:
        """Checks the ranges."""
        for name in self.__struct_fields__:
            if not 0 < getattr(self, name) < math.inf:
                message = f"{name} is {getattr(self, name)}, expected seconds above 0"
                raise ValueError(message)


DEFAULT_TIMES = StateTimes()
_NEVER_UNSEEN = UnseenTime()


class AgentActivity(msgspec.Struct, kw_only=True):
    """What an agent's latest status says of when it did what. Times are the broker's, in seconds since 1970.

    Attributes:
        seen_s: its last message.
        step_s: its last step that was new, not a copy.
        progress_s: when its progress last rose, or an episode of it last began or ended.
        running: whether it has an open episode, or had one until its silence closed it.
        in_rebound: whether a rebound window of it is open.
        scored: whether a step of its open episodes could be scored; True without any.
        contested_s: when last two sessions, or two producers, sent new steps under its name in turn.
    """

    seen_s: float = -math.inf
    step_s: float = -math.inf
    progress_s: float = -math.inf
    running: bool = False
    in_rebound: bool = False
    scored: bool = True
    contested_s: float = -math.inf

    @classmethod
    def of(cls, status: AgentStatus) -> Self:
        """What one status says."""
        activity = cls()
        activity.fold(status)
        return activity

    def fold(self, status: AgentStatus) -> None:
        """Takes a status in; one older than what is known changes nothing."""
        if not status.seen_s >= self.seen_s:
            return
        self.seen_s = status.seen_s
        self.step_s = _no_later(status.step_s, status.seen_s)
        self.progress_s = _no_later(status.progress_s, status.seen_s)
        self.running = bool(status.episodes) or status.abandoned
        self.in_rebound = any(episode.window is not None for episode in status.episodes)
        self.contested_s = -math.inf if status.contested_s is None else _no_later(status.contested_s, status.seen_s)
        self.scored = not status.episodes or any(episode.unscored_steps < episode.steps for episode in status.episodes)

    def state(
        self,
        now_s: float,
        blind: bool = False,
        *,
        unseen: UnseenTime = _NEVER_UNSEEN,
        times: StateTimes = DEFAULT_TIMES,
    ) -> AgentStateName:
        """The state at a time.

        Args:
            now_s: the present, in seconds since 1970.
            blind: whether we cannot see what agents do just now, as the broker or the workers are away.
            unseen: when last we were blind; silence then was not the agent's.
            times: after how long an agent is in which state.

        >>> robot = AgentActivity(seen_s=1000.0, step_s=1000.0, progress_s=1000.0, running=True)
        >>> robot.state(1010.0), robot.state(1061.0), robot.state(1061.0, blind=True)
        ('calm', 'silent', 'unknown')
        """
        if blind:
            return "unknown"
        if not self.running:
            return "ended"
        if unseen.elapsed(self.seen_s, now_s) > times.silent_s:
            return "silent"
        if unseen.elapsed(self.step_s, now_s) > times.silent_s:
            return "stale"
        if unseen.elapsed(self.contested_s, now_s) <= times.silent_s:
            return "contested"
        if self.in_rebound:
            return "rebound"
        if unseen.elapsed(self.progress_s, now_s) > times.stalled_s:
            return "stalled"
        return "calm" if self.scored else "unknown"


def _no_later(time_s: float | None, latest_s: float) -> float:
    """The time, or the latest one if it is not given or impossible."""
    return time_s if time_s is not None and -math.inf < time_s <= latest_s else latest_s

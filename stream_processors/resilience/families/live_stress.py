"""Whether what a group runs under just now is more than it is known to withstand, and whether it keeps its contract.

The states, by the live stress and the levels of the group (its method and version) alone:

- `breach`: a level at or below the live stress is broken. It comes first, whatever higher levels have shown.
- `within`: the level of the live stress, or a higher one, is kept.
- `untested`: neither; nothing has shown that such a stress is withstood, nor that it is not.

A state counts once it has held for `hold_s`, and a breach, or a violated contract, is over after `breach_end_s` of
something else. Time in the other state is taken off again, so that the moment between two episodes of a busy fleet does
not start the clock anew; while nothing runs the clock stands, until `breach_end_s` of that end it all. Time is the
events' own, and each state holds from the event that brought it to the one that changes it: so it makes no difference
how often one looks, and a long episode that brings no events is found out by a tick. Source: ours.

An example: a breach is seen from second 100 on and counts from 130 on. From 200 on it is seen no more, and ends at 260:

>>> config, watch = AggregateConfig(), LiveWatch()
>>> watch.look("breach", False, 100.0, config)
False
>>> watch.pass_time(129.0, config), watch.pass_time(130.0, config), watch.state
(False, True, 'breach')
>>> watch.look("within", False, 200.0, config), watch.pass_time(259.0, config), watch.state
(False, False, 'breach')
>>> watch.pass_time(260.0, config), watch.state
(True, 'within')
"""

import math
from collections.abc import Iterable, Sequence

import msgspec

from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.families.stress_capacity import nearest_point
from springback.stream_processors.resilience.quantiles import quantile
from springback.stream_processors.resilience.readings import LevelFigures, StressMargin, StressState


def live_stress(stresses: Sequence[float], config: AggregateConfig) -> float | None:
    """lambda_now: the quantile of declared stress over the active episodes, on the grid; None without one."""
    return nearest_point(quantile(stresses, config.live_rank), config.grid) if stresses else None


def stress_state(live: float, curve: Iterable[StressMargin]) -> StressState:
    """What the levels say of the live stress, which is a point of their grid."""
    levels = list(curve)
    if any(level.state == "broken" and level.stress <= live for level in levels):
        return "breach"
    if any(level.state == "kept" and level.stress >= live for level in levels):
        return "within"
    return "untested"


def contract_violated(levels: Iterable[LevelFigures], config: AggregateConfig) -> bool:
    """Whether at some level with enough episodes more of them break the contract than alpha, at 95 % (Wilson)."""
    return any(
        level.judged >= config.min_episodes and level.violation_low is not None and level.violation_low > config.alpha
        for level in levels
    )


class HeldCondition(msgspec.Struct, kw_only=True):
    """A condition that counts once it has held for a while.

    Attributes:
        counts: whether it does; None before anything has held.
        against_s: for how long it has been seen otherwise than it counts, less the time seen as it counts.
        beginnings: how often it has begun to count.
    """

    counts: bool | None = False
    against_s: float = 0.0
    beginnings: int = 0

    def change_in_s(self, seen: bool, begin_s: float, end_s: float) -> float:
        """How long it must yet be seen so to count otherwise; infinite if it counts as it is seen."""
        return math.inf if seen == self.counts else (begin_s if seen else end_s) - self.against_s

    def pass_time(self, seen: bool, elapsed_s: float, begin_s: float, end_s: float) -> None:
        """It has been seen so for this long."""
        if seen == self.counts:
            self.against_s = max(0.0, self.against_s - elapsed_s)
        elif elapsed_s < self.change_in_s(seen, begin_s, end_s):
            self.against_s += elapsed_s
        else:
            self.counts, self.against_s = seen, 0.0
            self.beginnings += seen


class LiveWatch(msgspec.Struct, kw_only=True):
    """The live state of one group.

    Attributes:
        breach, untested, violated: what counts. `untested` is told from `within` while there is no breach.
        seen: the state since `at_s`, None while nothing with a declared stress runs; `seen_violated` likewise.
        at_s: up to when time has been taken in.
        idle_s: for how long nothing with a declared stress has run.
    """

    breach: HeldCondition = msgspec.field(default_factory=HeldCondition)
    untested: HeldCondition = msgspec.field(default_factory=lambda: HeldCondition(counts=None))
    violated: HeldCondition = msgspec.field(default_factory=HeldCondition)
    seen: StressState | None = None
    seen_violated: bool = False
    at_s: float = -math.inf
    idle_s: float = 0.0

    @property
    def state(self) -> StressState | None:
        """What counts: None, but for a breach, while no declared stress runs and before what is seen has held.

        A live stress that has just risen is told beside the state, and must not be called within for what was there
        before it.
        """
        if self.breach.counts:
            return "breach"
        counted: StressState | None = {True: "untested", False: "within", None: None}[self.untested.counts]
        return counted if counted == self.seen else None

    def look(self, seen: StressState | None, violated: bool, now_s: float, config: AggregateConfig) -> bool:
        """From now on this is seen; says whether what counts has changed by what was seen until now."""
        changed = self.pass_time(now_s, config)
        self.seen, self.seen_violated = seen, violated
        if seen is not None:
            self.idle_s = 0.0
        return self.pass_time(now_s, config) or changed

    def is_due(self, now_s: float, config: AggregateConfig) -> bool:
        """Whether what counts changes by now if nothing else is seen. Looking changes nothing."""
        return math.isfinite(self.at_s) and now_s - self.at_s >= self._change_in_s(config)

    def pass_time(self, now_s: float, config: AggregateConfig) -> bool:
        """Takes in the time since it was last taken in; says whether what counts has changed."""
        before = self.state, self.violated.counts
        # A clock that was put back takes nothing in.
        elapsed_s = max(0.0, now_s - self.at_s) if math.isfinite(self.at_s) else 0.0
        self.at_s = now_s
        hold_s, end_s = config.hold_s, config.breach_end_s
        self.violated.pass_time(self.seen_violated, elapsed_s, hold_s, end_s)
        if self.seen is None:
            self.idle_s += elapsed_s
            if self.idle_s >= end_s:
                self._end_stress()
        else:
            self.breach.pass_time(self.seen == "breach", elapsed_s, hold_s, end_s)
            if self.seen != "breach":
                self.untested.pass_time(self.seen == "untested", elapsed_s, hold_s, hold_s)
        return (self.state, self.violated.counts) != before

    def end(self) -> bool:
        """Ends what counts, since the group is let go, and says whether there was an alert."""
        alarmed = bool(self.breach.counts or self.violated.counts)
        self._end_stress()
        self.violated.counts = False
        return alarmed

    def _change_in_s(self, config: AggregateConfig) -> float:
        hold_s, end_s = config.hold_s, config.breach_end_s
        first_s = self.violated.change_in_s(self.seen_violated, hold_s, end_s)
        if self.seen is None:
            alive = self.breach.counts or self.untested.counts is not None
            return min(first_s, end_s - self.idle_s if alive else math.inf)
        first_s = min(first_s, self.breach.change_in_s(self.seen == "breach", hold_s, end_s))
        if self.seen != "breach":
            first_s = min(first_s, self.untested.change_in_s(self.seen == "untested", hold_s, hold_s))
        return first_s

    def _end_stress(self) -> None:
        """Nothing has run for long enough: no state counts, and none is on its way."""
        self.breach.counts, self.breach.against_s = False, 0.0
        self.untested.counts, self.untested.against_s = None, 0.0

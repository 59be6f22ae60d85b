"""The reducer of families: episodes' beginnings and ends in, readings of each family, method and version out.

One family is one state, for what holds of a family (its contract, its live stress) comes from all its episodes. What is
kept of it: its groups (method and version), its active episodes, and what its references cost.

The order in which episodes come changes live stress and breaches, and the thresholds that an episode's own monitor is
held to; nothing else. Time is an argument: the broker's, in seconds since the epoch.
"""

from collections.abc import Iterable
from itertools import islice

import msgspec

from springback.stream_processors.resilience.families.contract_config import AggregateConfig, FamilyContract
from springback.stream_processors.resilience.families.navigation_safety import NavigationSums, ScoreSum, add_navigation
from springback.stream_processors.resilience.families.operational_margin import (
    ReferenceCosts,
    StressBin,
    monitor,
    stress_margin,
)
from springback.stream_processors.resilience.families.stability_beta import PerturbedLoss, StabilityPairs
from springback.stream_processors.resilience.families.stress_capacity import (
    BreachState,
    StressPlace,
    beyond_capacity,
    live_stress,
    nearest_point,
    stress_capacity,
    stress_place,
)
from springback.stream_processors.resilience.readings import (
    ContractThresholds,
    EpisodeBegun,
    EpisodeKey,
    EpisodeSummary,
    FamilyReading,
    StressMargin,
)

GroupKey = tuple[str, str]
"""Method and version."""

NEVER_S = float("-inf")


class ActiveEpisode(msgspec.Struct, frozen=True, array_like=True):
    """An episode between its beginning and its summary; its stress is None where undeclared."""

    stress: float | None
    group: GroupKey
    begun_s: float


class GroupState(msgspec.Struct, kw_only=True):
    """One method and version within a family.

    Attributes:
        bins: its episodes by the point of the stress grid.
        episodes: episodes seen to end; `censored` ones are counted apart and enter nothing else.
        violations: episodes whose monitor was below 0 by the thresholds at their end.
        success, completion, steps, costs, losses: the means of the outcome.
        pairs: for policy stability.
        navigation: sums by attack kind.
        breach: whether the live stress is beyond it.
        judged_s: when that was last checked.
        curve: the stress-response curve by the thresholds `curve_by`; out of date if these have changed or are None.
        updated_s: when it last changed, and with which of the family's changes (`sequence`).
        sent_s: when its last reading was sent; `pending` says that it has changed since.
    """

    bins: dict[float, StressBin] = msgspec.field(default_factory=dict)
    episodes: int = 0
    censored: int = 0
    violations: int = 0
    success: ScoreSum = msgspec.field(default_factory=ScoreSum)
    completion: ScoreSum = msgspec.field(default_factory=ScoreSum)
    steps: ScoreSum = msgspec.field(default_factory=ScoreSum)
    costs: ScoreSum = msgspec.field(default_factory=ScoreSum)
    losses: ScoreSum = msgspec.field(default_factory=ScoreSum)
    pairs: StabilityPairs = msgspec.field(default_factory=StabilityPairs)
    navigation: dict[str, NavigationSums] = msgspec.field(default_factory=dict)
    breach: BreachState = msgspec.field(default_factory=BreachState)
    judged_s: float = NEVER_S
    curve: tuple[StressMargin, ...] = ()
    curve_by: ContractThresholds | None = None
    updated_s: float = 0.0
    sequence: int = 0
    sent_s: float = NEVER_S
    pending: bool = False

    def add(
        self, summary: EpisodeSummary, place: StressPlace, thresholds: ContractThresholds, config: AggregateConfig
    ) -> None:
        """Takes in an episode's end."""
        if summary.censored:
            self.censored += 1
            return
        self.episodes += 1
        self.violations += monitor(summary, thresholds) < 0
        self.success.add(float(summary.outcome == "success"))
        self.completion.add(summary.final_propositions)
        self.steps.add(summary.steps)
        self.costs.add(summary.recovery_cost)
        self.losses.add(summary.stability_loss)
        if place.stress is not None:
            self.bins.setdefault(nearest_point(place.stress, config.grid), StressBin()).add(summary)
        self.curve_by = None
        if summary.navigation is not None:
            add_navigation(self.navigation, summary.traits.attack, summary.navigation, config.kind_memory)
        if summary.stability_loss is not None:
            self._pair(summary.traits.task, summary.stability_loss, place, config)

    def response(self, thresholds: ContractThresholds, config: AggregateConfig) -> tuple[StressMargin, ...]:
        """The stress-response curve, one point for each of the grid's."""
        if self.curve_by != thresholds:
            empty = StressBin()
            self.curve = tuple(
                stress_margin(point, self.bins.get(point, empty), thresholds, config) for point in config.grid
            )
            self.curve_by = thresholds
        return self.curve

    def _pair(self, task: str, loss: float, place: StressPlace, config: AggregateConfig) -> None:
        if place.role == "reference":
            self.pairs.add_reference(task, loss, config.pair_memory)
        elif place.role == "perturbed":
            perturbed = PerturbedLoss(loss, place.magnitude, place.kind)
            self.pairs.add_perturbed(task, perturbed, config.pair_memory, config.kind_memory)


class FamilyState(msgspec.Struct, kw_only=True):
    """Everything kept of one task family.

    Attributes:
        references: what its reference episodes cost.
        groups: by method and version, the one silent for longest first.
        active: active episodes by a mark of 64 bits, oldest first.
        ended: the marks of the latest ended episodes, oldest first.
        live: the live stress.
        sequence: rises with every change; it does not depend on how events came in batches.
        groups_let_go: groups dropped because there was no room for them.
    """

    references: ReferenceCosts = msgspec.field(default_factory=ReferenceCosts)
    groups: dict[GroupKey, GroupState] = msgspec.field(default_factory=dict)
    active: dict[int, ActiveEpisode] = msgspec.field(default_factory=dict)
    ended: dict[int, None] = msgspec.field(default_factory=dict)
    live: float | None = None
    sequence: int = 0
    groups_let_go: int = 0

    def changed(self, groups: Iterable[GroupState], now_s: float) -> None:
        """Notes that these groups have changed and want a new reading."""
        for group in groups:
            group.pending, group.updated_s, group.sequence = True, now_s, self.sequence

    def thresholds(self, contract: FamilyContract, config: AggregateConfig) -> ContractThresholds:
        """What the family is held to just now."""
        return self.references.thresholds(contract, config.auto)

    def reading(self, family: str, group: GroupKey, config: AggregateConfig) -> FamilyReading:
        """What is known of one of its groups."""
        known = self.groups[group]
        thresholds = self.thresholds(config.contract(family), config)
        curve = known.response(thresholds, config)
        capacity = stress_capacity(curve)
        method, version = group
        return FamilyReading(
            family=family,
            method=method,
            version=version,
            sequence=known.sequence,
            updated_s=known.updated_s,
            episodes=known.episodes,
            censored=known.censored,
            violations=known.violations,
            success_rate=known.success.mean(),
            completion=known.completion.mean(),
            mean_steps=known.steps.mean(),
            recovery_cost_mean=known.costs.mean(),
            stability_loss_mean=known.losses.mean(),
            **known.pairs.figures()._asdict(),
            capacity=capacity.capacity,
            capacity_flag=capacity.flag,
            first_breach=capacity.first_breach,
            margins=curve,
            thresholds=thresholds,
            live_stress=self.live,
            stress_state=None if self.live is None else "breach" if known.breach.active else "within",
            breaches=known.breach.beginnings,
            navigation={kind: sums.scores() for kind, sums in sorted(known.navigation.items())},
        )


FamilyEvent = EpisodeBegun | EpisodeSummary


class FamilyAggregator:
    """The reducer of one family at a time. It holds settings only; all state is in the `FamilyState`s it is given.

    Args:
        config: settings.
    """

    def __init__(self, config: AggregateConfig) -> None:
        self.config = config

    def take(self, state: FamilyState, event: FamilyEvent, now_s: float) -> list[FamilyReading]:
        """Takes in a beginning or an end; one that was seen before changes nothing.

        Returns:
            the readings that must go out at once: those of the groups whose breach begins or ends here.
        """
        mark = event.key.mark()
        if mark in state.ended or (isinstance(event, EpisodeBegun) and mark in state.active):
            return []
        state.sequence += 1
        family = event.traits.family
        urgent: list[FamilyReading] = []
        if isinstance(event, EpisodeBegun):
            place = stress_place(event.traits, self.config.contract(family))
            state.active[mark] = ActiveEpisode(place.stress, place.group, now_s)
            _forget_oldest(state.active, self.config.active_memory)
        else:
            state.active.pop(mark, None)
            state.ended[mark] = None
            _forget_oldest(state.ended, self.config.ended_memory)
            urgent += self._add(state, event, now_s)
        return urgent + self._judge(state, family, now_s)

    def due(self, state: FamilyState, family: str, now_s: float) -> list[FamilyReading]:
        """The readings of groups that have changed, where the last reading is at least the set interval old."""
        found = []
        for key, group in state.groups.items():
            # A clock that was put back must not silence a group.
            if group.pending and not 0 <= now_s - group.sent_s < self.config.reading_interval_s:
                found.append(self._told(state, family, key, now_s))
        return found

    def tick(self, state: FamilyState, family: str, now_s: float) -> list[FamilyReading] | None:
        """What time alone brings: forgotten episodes, ends of breaches, readings that waited; None if nothing."""
        stale = [mark for mark, e in state.active.items() if now_s - e.begun_s > self.config.active_timeout_s]
        for mark in stale:
            del state.active[mark]
        found = []
        if stale:
            state.sequence += 1
            self._look_at_live_stress(state, now_s)
        running = {episode.group for episode in state.active.values()}
        for key, group in state.groups.items():
            quiet = key not in running and now_s - group.judged_s > self.config.breach_quiet_s
            if quiet and group.breach.end():
                state.sequence += 1
                state.changed([group], now_s)
                found.append(self._told(state, family, key, now_s))
        return found + self.due(state, family, now_s) or ([] if stale else None)

    def _add(self, state: FamilyState, summary: EpisodeSummary, now_s: float) -> list[FamilyReading]:
        family, contract = summary.traits.family, self.config.contract(summary.traits.family)
        before = state.thresholds(contract, self.config)
        if summary.traits.reference and not summary.censored:
            state.references.add(summary)
        thresholds = state.thresholds(contract, self.config)
        place = stress_place(summary.traits, contract, summary.realised_magnitude)
        urgent = self._make_room(state, family, place.group, now_s)
        group = state.groups.pop(place.group, GroupState())
        state.groups[place.group] = group
        group.add(summary, place, thresholds, self.config)
        state.changed([group] if thresholds == before else state.groups.values(), now_s)
        return urgent

    def _make_room(self, state: FamilyState, family: str, wanted: GroupKey, now_s: float) -> list[FamilyReading]:
        if wanted in state.groups or len(state.groups) < self.config.group_memory:
            return []
        oldest = next(iter(state.groups))
        told = []
        if state.groups[oldest].breach.end():
            # A page that shows the group must not show it in a breach forever.
            state.changed([state.groups[oldest]], now_s)
            told = [self._told(state, family, oldest, now_s)]
        del state.groups[oldest]
        state.groups_let_go += 1
        return told

    def _judge(self, state: FamilyState, family: str, now_s: float) -> list[FamilyReading]:
        """Compares the live stress with what each group that has active episodes withstands."""
        self._look_at_live_stress(state, now_s)
        if state.live is None:
            return []
        found = []
        thresholds = state.thresholds(self.config.contract(family), self.config)
        for key in {episode.group: None for episode in state.active.values()}:
            group = state.groups.get(key)
            if group is None:
                continue
            group.judged_s = now_s
            curve = group.response(thresholds, self.config)
            beyond = beyond_capacity(state.live, curve, stress_capacity(curve))
            if beyond is not None and group.breach.advance(beyond, self.config.breach_evaluations):
                state.changed([group], now_s)
                found.append(self._told(state, family, key, now_s))
        return found

    def _look_at_live_stress(self, state: FamilyState, now_s: float) -> None:
        live = live_stress(
            [episode.stress for episode in state.active.values() if episode.stress is not None], self.config.live_rank
        )
        if live != state.live:
            state.live = live
            state.changed(state.groups.values(), now_s)

    def _told(self, state: FamilyState, family: str, key: GroupKey, now_s: float) -> FamilyReading:
        group = state.groups[key]
        group.pending, group.sent_s = False, now_s
        return state.reading(family, key, self.config)


def aggregate(events: Iterable[FamilyEvent], config: AggregateConfig) -> list[FamilyReading]:
    """The readings of a whole recording, through the same reducer: one per family, method and version, sorted.

    Args:
        events: beginnings and ends in the order in which they happened. Without the beginnings only live stress and
            breaches are missing.
        config: settings.
    """
    aggregator, states = FamilyAggregator(config), _states(events, config)
    end_s = config.active_timeout_s + config.breach_quiet_s + 1
    for family, (state, last_s) in states.items():
        aggregator.tick(state, family, last_s + end_s)
    return [
        state.reading(family, key, config)
        for family, (state, _) in sorted(states.items())
        for key in sorted(state.groups)
    ]


def monitors(summaries: Iterable[EpisodeSummary], config: AggregateConfig) -> dict[EpisodeKey, float]:
    """m_i of each episode that was seen to end, by the thresholds that all reference episodes together give."""
    kept = [summary for summary in summaries if not summary.censored]
    contracts = {
        family: state.thresholds(config.contract(family), config)
        for family, (state, _) in _states(kept, config).items()
    }
    return {summary.key: monitor(summary, contracts[summary.traits.family]) for summary in kept}


def in_order(begun: Iterable[EpisodeBegun], summaries: Iterable[EpisodeSummary]) -> list[FamilyEvent]:
    """Beginnings and ends by time, as `aggregate` takes them; at one instant ends come first."""
    events: list[FamilyEvent] = [*summaries, *begun]
    return sorted(events, key=_time_of)


def _states(events: Iterable[FamilyEvent], config: AggregateConfig) -> dict[str, tuple[FamilyState, float]]:
    """The states of all families after the events, and the time of the last event of each."""
    aggregator = FamilyAggregator(config)
    states: dict[str, tuple[FamilyState, float]] = {}
    for event in events:
        family, now_s = event.traits.family, _time_of(event)
        state, last_s = states.get(family, (FamilyState(), NEVER_S))
        aggregator.take(state, event, now_s)
        states[family] = state, max(now_s, last_s)
    return states


def _time_of(event: FamilyEvent) -> float:
    return event.time_s if isinstance(event, EpisodeBegun) else event.ended_s


def _forget_oldest(memory: "dict[int, ActiveEpisode] | dict[int, None]", most: int) -> None:
    for mark in list(islice(memory, max(len(memory) - most, 0))):
        del memory[mark]

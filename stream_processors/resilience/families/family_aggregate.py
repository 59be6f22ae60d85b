"""The reducer of families: episodes' beginnings and ends in, readings of each family, method and version out.

The order in which episodes come changes live stress, breaches and violated contracts, the thresholds that an episode's
own monitor is held to, and which episodes a level of more than its memory keeps; nothing else. Time is an argument:
the broker's, in seconds since the epoch.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TypeVar

import msgspec

from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.families.family_state import (
    NEVER_S,
    ActiveEpisode,
    FamilyState,
    GroupKey,
    GroupState,
)
from springback.stream_processors.resilience.families.live_stress import contract_violated, live_stress, stress_state
from springback.stream_processors.resilience.families.operational_margin import (
    ReferenceEpisodes,
    StressLevel,
    monitor,
)
from springback.stream_processors.resilience.families.stress_capacity import StressPlace, stress_place
from springback.stream_processors.resilience.readings import (
    ContractThresholds,
    EpisodeBegun,
    EpisodeKey,
    EpisodeSummary,
    FamilyReading,
    StressState,
)

FamilyEvent = EpisodeBegun | EpisodeSummary
T = TypeVar("T")


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
            the readings that must go out at once: those of the groups where what counts live has changed.
        """
        mark = event.key.mark()
        over = mark in state.ended
        if over and event.revision <= (state.ended[mark] or 0):
            return []
        if isinstance(event, EpisodeBegun) and mark in state.active:
            return []
        state.sequence += 1
        family = event.traits.family
        realised = event.realised_magnitude if isinstance(event, EpisodeSummary) else None
        place = stress_place(event.traits, self.config.contract(family), realised)
        farewell = self._make_room(state, family, place.group, now_s)
        urgent = self._pass_time(state, now_s)
        state.changed([state.groups[key] for key in urgent], now_s)
        state.groups[place.group] = state.groups.pop(place.group, GroupState())
        if over:
            # Silence had ended it, so that it counted as censored alone; now it has gone on.
            del state.ended[mark]
            state.groups[place.group].censored = max(state.groups[place.group].censored - 1, 0)
        held_to = self._held_to(state, family)
        moved = self._take_in(state, event, mark, place, now_s)
        if self._held_to(state, family) != held_to:
            touched = list(state.groups)
        elif isinstance(event, EpisodeSummary) and place.role == "reference":
            # Others that wait for a twin of the task are told that this version has one.
            waiting = (key for key, group in state.groups.items() if group.pairs.waits_for(event.traits.task))
            touched = list(dict.fromkeys([*moved, *waiting]))
        else:
            touched = moved
        urgent += self._look(state, family, moved, touched, now_s)
        return farewell + [self._told(state, family, key, now_s) for key in dict.fromkeys(urgent)]

    def due(self, state: FamilyState, family: str, now_s: float) -> list[FamilyReading]:
        """The readings of groups that have changed, where the last reading is at least the set interval old."""
        found = []
        for key, group in state.groups.items():
            # A clock that was put back must not silence a group.
            if group.pending and not 0 <= now_s - group.sent_s < self.config.reading_interval_s:
                found.append(self._told(state, family, key, now_s))
        return found

    def tick(self, state: FamilyState, family: str, now_s: float) -> list[FamilyReading] | None:
        """What time alone brings: states that have held long enough, forgotten episodes, readings that waited.

        Returns:
            the readings that are due, or None if nothing has changed.
        """
        urgent = self._pass_time(state, now_s)
        stale = [mark for mark, e in state.active.items() if now_s - e.begun_s > self.config.active_timeout_s]
        if urgent or stale:
            state.sequence += 1
            state.changed([state.groups[key] for key in urgent], now_s)
        if stale:
            gone = list(dict.fromkeys(state.active.pop(mark).group for mark in stale))
            urgent += self._look(state, family, gone, gone, now_s)
        found = [self._told(state, family, key, now_s) for key in dict.fromkeys(urgent)]
        return found + self.due(state, family, now_s) or ([] if stale else None)

    def conclude(self, state: FamilyState, family: str, summaries: Sequence[EpisodeSummary], last_s: float) -> None:
        """Ends a recording: its levels hold all its episodes, nothing runs any more, and all states have held."""
        for group in state.groups.values():
            group.levels, group.undeclared, group.drawn_by = {}, StressLevel(), None
        for summary in summaries:
            place = stress_place(summary.traits, self.config.contract(family))
            if place.group in state.groups and not summary.censored:
                state.groups[place.group].keep(summary, place.stress, None, self.config)
        state.active.clear()
        self.count_active(state, state.groups)
        thresholds = state.thresholds(self.config.contract(family), self.config)
        for group in state.groups.values():
            group.watch.look(*self._view(group, thresholds), last_s, self.config)
            group.watch.pass_time(last_s + self.config.hold_s + self.config.breach_end_s, self.config)

    def _take_in(
        self, state: FamilyState, event: FamilyEvent, mark: int, place: StressPlace, now_s: float
    ) -> list[GroupKey]:
        """Takes in the event itself, and says of which groups active episodes have come or gone."""
        if isinstance(event, EpisodeSummary):
            state.active.pop(mark, None)
            state.ended[mark] = event.revision
            _forget_oldest(state.ended, self.config.ended_memory)
            state.add(event, place, self.config)
            return [place.group]
        state.active[mark] = ActiveEpisode(place.stress, place.group, now_s)
        gone = _forget_oldest(state.active, self.config.active_memory)
        return list(dict.fromkeys([place.group, *(episode.group for episode in gone)]))

    def _held_to(self, state: FamilyState, family: str) -> tuple[object, ...]:
        """What every group of the family tells of the family as a whole."""
        contract = self.config.contract(family)
        return state.thresholds(contract, self.config), state.bound_references, state.bound_references_needed

    def _pass_time(self, state: FamilyState, now_s: float) -> list[GroupKey]:
        """The groups where what counts live has changed by time alone."""
        return [
            key
            for key, group in state.groups.items()
            if group.watch.is_due(now_s, self.config) and group.watch.pass_time(now_s, self.config)
        ]

    def _look(
        self, state: FamilyState, family: str, moved: Iterable[GroupKey], touched: Iterable[GroupKey], now_s: float
    ) -> list[GroupKey]:
        """Looks at the touched groups; active episodes of the moved ones have come or gone.

        Returns:
            the groups where what counts live has changed.
        """
        self.count_active(state, moved)
        thresholds = state.thresholds(self.config.contract(family), self.config)
        found = []
        for key in touched:
            group = state.groups.get(key)
            if group is None:
                continue
            if group.watch.look(*self._view(group, thresholds), now_s, self.config):
                found.append(key)
            state.changed([group], now_s)
        return found

    def _view(self, group: GroupState, thresholds: ContractThresholds) -> tuple[StressState | None, bool]:
        """What the group's levels say of its live stress and of its contract."""
        curve = group.draw(thresholds, self.config)
        levels = [*curve, *([group.apart] if group.apart is not None else [])]
        seen = None if group.live is None else stress_state(group.live, curve)
        return seen, contract_violated(levels, self.config)

    def count_active(self, state: FamilyState, groups: Iterable[GroupKey]) -> None:
        """Takes the live stress of groups from the active episodes."""
        for key in groups:
            group = state.groups.get(key)
            if group is None:
                continue
            stresses = [episode.stress for episode in state.active.values() if episode.group == key]
            declared = [stress for stress in stresses if stress is not None]
            group.live = live_stress(declared, self.config)
            group.active, group.active_undeclared = len(stresses), len(stresses) - len(declared)

    def _make_room(self, state: FamilyState, family: str, wanted: GroupKey, now_s: float) -> list[FamilyReading]:
        if wanted in state.groups or len(state.groups) < self.config.group_memory:
            return []
        oldest = next(iter(state.groups))
        told = []
        if state.groups[oldest].watch.end():
            # A page that shows the group must not show its alert forever.
            state.changed([state.groups[oldest]], now_s)
            told = [self._told(state, family, oldest, now_s)]
        del state.groups[oldest]
        state.groups_let_go += 1
        return told

    def _told(self, state: FamilyState, family: str, key: GroupKey, now_s: float) -> FamilyReading:
        group = state.groups[key]
        group.pending, group.sent_s = False, now_s
        return state.reading(family, key, self.config)


def aggregate(events: Iterable[FamilyEvent], config: AggregateConfig) -> list[FamilyReading]:
    """The readings of a whole recording, through the same reducer: one per family, method and version, sorted.

    What counts live is found as on the stream; in the levels of the readings every episode counts, not the latest only.

    Args:
        events: beginnings and ends in the order in which they happened. Without the beginnings only live stress and
            breaches are missing.
        config: settings.
    """
    aggregator = FamilyAggregator(config)
    states: dict[str, tuple[FamilyState, float]] = {}
    summaries: dict[EpisodeKey, EpisodeSummary] = {}
    for event in events:
        family, now_s = event.traits.family, _time_of(event)
        state, last_s = states.get(family, (FamilyState(), NEVER_S))
        aggregator.take(state, event, now_s)
        states[family] = state, max(now_s, last_s)
        if isinstance(event, EpisodeSummary):
            summaries.setdefault(event.key, event)
    found = []
    for family, (state, last_s) in sorted(states.items()):
        own = [summary for summary in summaries.values() if summary.traits.family == family]
        aggregator.conclude(state, family, own, last_s)
        found += [state.reading(family, key, config) for key in sorted(state.groups)]
    return found


def monitors(summaries: Iterable[EpisodeSummary], config: AggregateConfig) -> dict[EpisodeKey, float]:
    """m_i of each episode that was seen to end, by the thresholds that all reference episodes together give.

    What ended while its family was learning is left out: its cost is provisional.
    """
    kept = {summary.key: summary for summary in summaries if not summary.censored and not summary.provisional}
    references: dict[str, ReferenceEpisodes] = defaultdict(ReferenceEpisodes)
    for summary in kept.values():
        if summary.traits.reference:
            references[summary.traits.family].add(summary)
    held_to = {
        family: references[family].thresholds(config.contract(family), config.auto)
        for family in {summary.traits.family for summary in kept.values()}
    }
    return {key: monitor(summary, held_to[summary.traits.family]) for key, summary in kept.items()}


def in_order(begun: Iterable[EpisodeBegun], summaries: Iterable[EpisodeSummary]) -> list[FamilyEvent]:
    """Beginnings and ends by time, as `aggregate` takes them; at one instant ends come first.

    A beginning is told when a frame arrives, which in a recording may be as late as the end: it is where the summary
    says that the episode started.
    """
    ends = list(summaries)
    started = {summary.key: summary.started_s for summary in ends}
    beginnings = [
        msgspec.structs.replace(event, time_s=min(event.time_s, started.get(event.key, event.time_s)))
        for event in begun
    ]
    events: list[FamilyEvent] = [*ends, *beginnings]
    return sorted(events, key=_time_of)


def _time_of(event: FamilyEvent) -> float:
    return event.time_s if isinstance(event, EpisodeBegun) else event.ended_s


def _forget_oldest(memory: dict[int, T], most: int) -> list[T]:
    """Drops the oldest beyond so many, and gives them back."""
    return [memory.pop(mark) for mark in list(islice(memory, max(len(memory) - most, 0)))]

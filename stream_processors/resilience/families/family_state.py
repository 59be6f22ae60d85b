"""What is kept of a task family: its groups (method and version), its active episodes, and what its references came to.

Every group has its own levels, pairs and live state; the thresholds of the contract come from the references of all,
so that a worse version does not loosen its own contract. Episodes that ended while the family was learning
(*provisional*) count in the outcome (success, completion, steps, navigation) and, by their progress, propositions and
violations, in the share of episodes that break the contract: a family may fail from its first day on. They count in
nothing that costs, windows or stability losses go into: not in margins, thresholds or pairs.
"""

from collections.abc import Iterable

import msgspec

from springback.stream_processors.resilience.families.contract_config import AggregateConfig, FamilyContract
from springback.stream_processors.resilience.families.live_stress import LiveWatch
from springback.stream_processors.resilience.families.navigation_safety import NavigationSums, ScoreSum, add_navigation
from springback.stream_processors.resilience.families.operational_margin import (
    Quantities,
    ReferenceEpisodes,
    StressLevel,
    level_figures,
    monitor,
)
from springback.stream_processors.resilience.families.stability_beta import (
    PerturbedLoss,
    StabilityFigures,
    StabilityPairs,
)
from springback.stream_processors.resilience.families.stress_capacity import StressPlace, nearest_point, stress_capacity
from springback.stream_processors.resilience.readings import (
    ContractThresholds,
    EpisodeSummary,
    FamilyReading,
    LevelFigures,
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
        levels: its latest episodes by the point of the stress grid; `undeclared` those that declared no stress.
        episodes: episodes seen to end; `censored` ones are counted apart and enter nothing else.
        provisional: how many of the episodes ended while the family was learning.
        violations: episodes whose monitor was below 0 by the thresholds at their end.
        success, completion, steps, costs, losses: the means of the outcome.
        pairs: for policy stability.
        navigation: sums by attack kind.
        live: the live stress, a point of the grid; of `active` episodes, `active_undeclared` without a declared stress.
        watch: what the live stress and the levels come to, over time.
        curve, apart: the figures of `levels` and `undeclared` by the thresholds `drawn_by`, out of date if these have
            changed or are None; what is missing is to be drawn.
        updated_s: when it last changed, and with which of the family's changes (`sequence`).
        sent_s: when its last reading was sent; `pending` says that it has changed since.
    """

    levels: dict[float, StressLevel] = msgspec.field(default_factory=dict)
    undeclared: StressLevel = msgspec.field(default_factory=StressLevel)
    episodes: int = 0
    censored: int = 0
    provisional: int = 0
    violations: int = 0
    success: ScoreSum = msgspec.field(default_factory=ScoreSum)
    completion: ScoreSum = msgspec.field(default_factory=ScoreSum)
    steps: ScoreSum = msgspec.field(default_factory=ScoreSum)
    costs: ScoreSum = msgspec.field(default_factory=ScoreSum)
    losses: ScoreSum = msgspec.field(default_factory=ScoreSum)
    pairs: StabilityPairs = msgspec.field(default_factory=StabilityPairs)
    navigation: dict[str, NavigationSums] = msgspec.field(default_factory=dict)
    live: float | None = None
    active: int = 0
    active_undeclared: int = 0
    watch: LiveWatch = msgspec.field(default_factory=LiveWatch)
    curve: dict[float, StressMargin] = msgspec.field(default_factory=dict)
    apart: LevelFigures | None = None
    drawn_by: ContractThresholds | None = None
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
        self.success.add(float(summary.outcome == "success"))
        self.completion.add(summary.final_propositions)
        self.steps.add(summary.steps)
        if summary.navigation is not None:
            add_navigation(self.navigation, summary.traits.attack, summary.navigation, config.kind_memory)
        self.violations += monitor(summary, thresholds) < 0
        self.keep(summary, place.stress, config.level_generation, config)
        if summary.provisional:
            self._add_provisional(summary, place, config)
            return
        self.costs.add(summary.recovery_cost)
        self.losses.add(summary.stability_loss)
        self._pair(summary.traits.task, summary.stability_loss, place, config)

    def keep(
        self, summary: EpisodeSummary, stress: float | None, generation: int | None, config: AggregateConfig
    ) -> None:
        """Takes an episode that was seen to end into the level of its stress, None being undeclared."""
        episode = Quantities.of(summary)
        if stress is None:
            self.undeclared.add(episode, generation, provisional=summary.provisional)
            self.apart = None
            return
        point = nearest_point(stress, config.grid)
        self.levels.setdefault(point, StressLevel()).add(episode, generation, provisional=summary.provisional)
        self.curve.pop(point, None)

    def draw(self, thresholds: ContractThresholds, config: AggregateConfig) -> tuple[StressMargin, ...]:
        """The stress-response curve, one point for each of the grid's; and the undeclared level (`apart`)."""
        if self.drawn_by != thresholds:
            self.curve, self.apart, self.drawn_by = {}, None, thresholds
        empty = StressLevel()
        for point in config.grid:
            if point not in self.curve:
                figures = level_figures(self.levels.get(point, empty), thresholds, config)
                self.curve[point] = StressMargin(stress=point, **msgspec.structs.asdict(figures))
        if self.apart is None and len(self.undeclared):
            self.apart = level_figures(self.undeclared, thresholds, config)
        return tuple(self.curve[point] for point in config.grid)

    def _add_provisional(self, summary: EpisodeSummary, place: StressPlace, config: AggregateConfig) -> None:
        self.provisional += 1
        if place.role == "reference":
            # A twin that could not be measured: what waits for it is told so.
            self.pairs.add_reference(summary.traits.task, None, config.pair_memory)

    def _pair(self, task: str, loss: float | None, place: StressPlace, config: AggregateConfig) -> None:
        if place.role == "reference":
            self.pairs.add_reference(task, loss, config.pair_memory)
        elif place.role == "perturbed" and loss is None:
            self.pairs.count_unpaired("unmeasured")
        elif place.role == "perturbed" and loss is not None:
            perturbed = PerturbedLoss(loss, place.magnitude, place.kind)
            self.pairs.add_perturbed(task, perturbed, config.pair_memory, config.kind_memory)


class FamilyState(msgspec.Struct, kw_only=True):
    """Everything kept of one task family.

    Attributes:
        references: what its reference episodes came to.
        groups: by method and version, the one silent for longest first.
        active: active episodes by a mark of 64 bits, oldest first.
        ended: the marks of the latest ended episodes, oldest first, and how often each had gone on after a silence;
            None, in older state, is never.
        bound_references: the references behind the family's alarm bounds, of `bound_references_needed`, as told by the
            episode that ended last of those that said so (at `bound_references_s`); None where none did.
        sequence: rises with every change; it does not depend on how events came in batches.
        groups_let_go: groups dropped because there was no room for them.
    """

    references: ReferenceEpisodes = msgspec.field(default_factory=ReferenceEpisodes)
    groups: dict[GroupKey, GroupState] = msgspec.field(default_factory=dict)
    active: dict[int, ActiveEpisode] = msgspec.field(default_factory=dict)
    ended: dict[int, int | None] = msgspec.field(default_factory=dict)
    bound_references: int | None = None
    bound_references_needed: int | None = None
    bound_references_s: float = NEVER_S
    sequence: int = 0
    groups_let_go: int = 0

    def changed(self, groups: Iterable[GroupState], now_s: float) -> None:
        """Notes that these groups have changed and want a new reading."""
        for group in groups:
            group.pending, group.updated_s, group.sequence = True, now_s, self.sequence

    def add(self, summary: EpisodeSummary, place: StressPlace, config: AggregateConfig) -> None:
        """Takes in an episode's end, of a group that there is."""
        if summary.bound_references is not None:
            # The last, not the most ever: a family that was given a new baseline is learning again. Of several that
            # ended at one time the most, so that their order does not matter.
            told = summary.ended_s, summary.bound_references, summary.bound_references_needed or 0
            before = self.bound_references_s, self.bound_references or 0, self.bound_references_needed or 0
            if told >= before:
                self.bound_references_s = summary.ended_s
                self.bound_references = summary.bound_references
                self.bound_references_needed = summary.bound_references_needed
        if summary.traits.reference and not summary.censored and not summary.provisional:
            self.references.add(summary)
        thresholds = self.thresholds(config.contract(summary.traits.family), config)
        self.groups[place.group].add(summary, place, thresholds, config)

    def thresholds(self, contract: FamilyContract, config: AggregateConfig) -> ContractThresholds:
        """What the family is held to just now."""
        return self.references.thresholds(contract, config.auto)

    def reading(self, family: str, key: GroupKey, config: AggregateConfig) -> FamilyReading:
        """What is known of one of its groups."""
        known = self.groups[key]
        thresholds = self.thresholds(config.contract(family), config)
        curve = known.draw(thresholds, config)
        capacity = stress_capacity(curve)
        method, version = key
        return FamilyReading(
            family=family,
            method=method,
            version=version,
            sequence=known.sequence,
            updated_s=known.updated_s,
            episodes=known.episodes,
            censored=known.censored,
            provisional_episodes=known.provisional,
            violations=known.violations,
            success_rate=known.success.mean(),
            completion=known.completion.mean(),
            mean_steps=known.steps.mean(),
            recovery_cost_mean=known.costs.mean(),
            stability_loss_mean=known.losses.mean(),
            **self._stability(key)._asdict(),
            capacity=capacity.capacity,
            capacity_flag=capacity.flag,
            dependable=capacity.dependable,
            tested_up_to=capacity.tested_up_to,
            first_breach=capacity.first_breach,
            margins=curve,
            undeclared=known.apart,
            thresholds=thresholds,
            live_stress=known.live,
            active_episodes=known.active,
            active_undeclared=known.active_undeclared,
            stress_state=known.watch.state,
            breaches=known.watch.breach.beginnings,
            contract_violated=bool(known.watch.violated.counts),
            contract_violations=known.watch.violated.beginnings,
            bound_references=self.bound_references,
            bound_references_needed=self.bound_references_needed,
            navigation={kind: sums.scores() for kind, sums in sorted(known.navigation.items())},
        )

    def _stability(self, key: GroupKey) -> StabilityFigures:
        pairs = self.groups[key].pairs
        others = [group.pairs.tasks for other, group in self.groups.items() if other != key]
        elsewhere = {mark for mark in pairs.lonely() if any(mark in tasks and tasks[mark].has_twin for tasks in others)}
        return pairs.figures(elsewhere)

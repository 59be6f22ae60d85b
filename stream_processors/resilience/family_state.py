"""What is kept of a family: its groups (method and version), its active episodes, and what its references cost."""

from collections.abc import Iterable

import msgspec
from springback.stream_processors.resilience.aggregate_config import AggregateConfig, FamilyContract
from springback.stream_processors.resilience.family_readings import ContractThresholds, FamilyReading, StressMargin
from springback.stream_processors.resilience.navigation_safety import NavigationSums, ScoreSum, add_navigation
from springback.stream_processors.resilience.operational_margin import ReferenceCosts, StressBin, monitor, stress_margin
from springback.stream_processors.resilience.readings import EpisodeSummary
from springback.stream_processors.resilience.stability_pairs import PerturbedLoss, StabilityPairs
from springback.stream_processors.resilience.stress_capacity import BreachState, nearest_point, stress_capacity
from springback.stream_processors.resilience.stress_operator import StressPlace

GroupKey = tuple[str, str]
"""Method and version."""

NEVER_S = float("-inf")


class ActiveEpisode(msgspec.Struct, frozen=True, array_like=True):
    """An episode between its beginning and its summary."""

    stress: float
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
        judged_s: when that was last looked at.
        curve: the stress-response curve by the thresholds `curve_by`; out of date where they are others, or None.
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
        """Take in an episode's end."""
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
        groups_let_go: groups that there was no room for.
    """

    references: ReferenceCosts = msgspec.field(default_factory=ReferenceCosts)
    groups: dict[GroupKey, GroupState] = msgspec.field(default_factory=dict)
    active: dict[int, ActiveEpisode] = msgspec.field(default_factory=dict)
    ended: dict[int, None] = msgspec.field(default_factory=dict)
    live: float | None = None
    sequence: int = 0
    groups_let_go: int = 0

    def changed(self, groups: Iterable[GroupState], now_s: float) -> None:
        """Note that what there is to say of these groups has changed."""
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
            in_breach=known.breach.active,
            breaches=known.breach.beginnings,
            navigation={kind: sums.scores() for kind, sums in sorted(known.navigation.items())},
        )

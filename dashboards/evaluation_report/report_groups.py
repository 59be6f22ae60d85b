"""What a report compares: the episodes of one family, method and version, and which of them are clean."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from springback.stream_processors.resilience.families.contract_config import AggregateConfig, FamilyContract
from springback.stream_processors.resilience.families.stress_capacity import (
    EVOLUTION,
    StressPlace,
    nearest_point,
    stress_place,
)
from springback.stream_processors.resilience.readings import (
    EpisodeKey,
    EpisodeSummary,
    EpisodeTraits,
    FamilyReading,
    WindowReading,
)

Identity = tuple[str, str, str]
"""Family, method and version; the version is `evolution` where versions are the stress."""

Run = Literal["clean", "disturbed", "undeclared"]
"""How an episode ran: undisturbed, as a reference or by its word; under stress or a perturbation; or nobody said."""
RUNS: Sequence[Run] = ("clean", "disturbed", "undeclared")

_Placed = TypeVar("_Placed", EpisodeSummary, WindowReading)


@dataclass(slots=True)
class ReportGroup:
    """The episodes of one family, method and version, in an order that does not depend on how they arrived.

    `reading` is what the aggregation of the families knows of the group, None where it was not asked. `config` is what
    it was made with.
    """

    identity: Identity
    config: AggregateConfig
    summaries: list[EpisodeSummary] = field(default_factory=list)
    windows: list[WindowReading] = field(default_factory=list)
    reading: FamilyReading | None = None

    @property
    def scored(self) -> list[EpisodeSummary]:
        """The episodes that were seen to end and that a baseline could score: all that cost figures are taken of."""
        return [summary for summary in self.summaries if not summary.censored and summary.recovery_cost is not None]

    @property
    def ended(self) -> list[EpisodeSummary]:
        """The episodes that were seen to end."""
        return [summary for summary in self.summaries if not summary.censored]

    @property
    def whole_windows(self) -> list[WindowReading]:
        """The windows that were not censored."""
        return [window for window in self.windows if window.state != "censored"]

    @property
    def contract(self) -> FamilyContract:
        """The contract of the group's family."""
        return self.config.contract(self.identity[0])

    @property
    def grid(self) -> Sequence[float]:
        """The points that stress goes to."""
        return self.config.grid

    @property
    def levels(self) -> Sequence[float | None]:
        """The stress levels that an episode can belong to: the points of the grid and, as the last, undeclared."""
        return [*self.grid, None]

    def stress(self, traits: EpisodeTraits) -> float | None:
        """The stress that an episode ran under; None is undeclared."""
        return _place(traits, self.config).stress

    def point(self, traits: EpisodeTraits) -> float | None:
        """The point of the stress grid that an episode belongs to; None is the level of undeclared stress."""
        stress = self.stress(traits)
        return None if stress is None else nearest_point(stress, self.grid)

    def run(self, traits: EpisodeTraits) -> Run:
        """Whether an episode ran undisturbed: a reference, or one of stress 0. That nobody said is not the same."""
        place = _place(traits, self.config)
        if place.role == "reference":
            return "clean"
        if place.role == "perturbed" or place.kind == EVOLUTION:  # a version that is perturbed besides is neither
            return "disturbed"
        return "undeclared" if place.stress is None else "clean"

    def placed(self, readings: Iterable[_Placed]) -> dict[tuple[float | None, Run], list[_Placed]]:
        """Readings by the level of stress of their episodes and by how these ran, in the order in which they come."""
        found: dict[tuple[float | None, Run], list[_Placed]] = defaultdict(list)
        for reading in readings:
            found[self.point(reading.traits), self.run(reading.traits)].append(reading)
        return dict(found)


def groups_of(
    summaries: Iterable[EpisodeSummary],
    windows: Iterable[WindowReading],
    readings: Iterable[FamilyReading],
    config: AggregateConfig,
) -> list[ReportGroup]:
    """The groups, by family, method and version. Open windows are passed over; so is a reading without an episode."""
    found: dict[Identity, ReportGroup] = {}
    windows_of: dict[Identity, list[WindowReading]] = defaultdict(list)
    for summary in sorted(summaries, key=lambda summary: _order(summary.key)):
        identity = _identity(summary.traits, config)
        found.setdefault(identity, ReportGroup(identity, config)).summaries.append(summary)
    for window in sorted(windows, key=lambda window: (_order(window.key), window.number)):
        if window.state != "open":
            windows_of[_identity(window.traits, config)].append(window)
    reading_of = {reading.identity: reading for reading in readings}
    for identity, group in found.items():
        group.windows = windows_of[identity]
        group.reading = reading_of.get(identity)
    return [found[identity] for identity in sorted(found)]


def _place(traits: EpisodeTraits, config: AggregateConfig) -> StressPlace:
    return stress_place(traits, config.contract(traits.family))


def _identity(traits: EpisodeTraits, config: AggregateConfig) -> Identity:
    return traits.family, *_place(traits, config).group


def _order(key: EpisodeKey) -> tuple[str, str, str]:
    return key.agent, key.session, key.episode

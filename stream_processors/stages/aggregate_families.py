"""The third stage: beginnings and ends of episodes in, readings of each family, method and version out."""

import math
from collections.abc import Iterator, Sequence

import msgspec

from springback.stream_processors.exact.port import Output, StageEvent
from springback.stream_processors.exact.state import decode_versioned
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.families.family_aggregate import FamilyAggregator, FamilyEvent
from springback.stream_processors.resilience.families.family_state import (
    ActiveEpisode,
    FamilyState,
    GroupKey,
    GroupState,
)
from springback.stream_processors.resilience.families.navigation_safety import NavigationSums, ScoreSum
from springback.stream_processors.resilience.quantiles import decode_sketch, encode_sketch
from springback.stream_processors.resilience.readings import (
    READING_SCHEMA_VERSION,
    EpisodeBegun,
    EpisodeSummary,
    FamilyReading,
    decode_reading,
    encode_reading,
)
from springback.stream_processors.stages.dead_letters import WRONG_KEY, dead_message, refused_message
from springback.stream_processors.topics import FAMILIES

AGGREGATE_SCHEMA_VERSION = 3
"""3: ended episodes by how often they had gone on. Version 2 is read as knowing of none."""


class AggregateState(msgspec.Struct, kw_only=True):
    """What is known of the families of one bucket (one family, or several of equal hashes)."""

    families: dict[str, FamilyState] = msgspec.field(default_factory=dict)
    schema_version: int = AGGREGATE_SCHEMA_VERSION


class AggregateFamilies:
    """The reducer of `aggregate_families`.

    Args:
        config: settings of what is known per family.

    Attributes:
        groups_let_go: methods and versions dropped for want of room, since the worker began.
    """

    def __init__(self, config: AggregateConfig) -> None:
        self._aggregator = FamilyAggregator(config)
        self.groups_let_go = 0

    def blank(self) -> AggregateState:
        """Nothing known."""
        return AggregateState()

    def encode(self, state: AggregateState) -> bytes:
        """The state as MessagePack."""
        return msgspec.msgpack.encode(state, enc_hook=encode_sketch)

    def decode(self, data: bytes) -> AggregateState:
        """The state in the bytes; one of version 1 is brought over.

        Raises:
            StateFormatError: this version cannot read it.
        """
        state = decode_versioned(
            data, AggregateState, AGGREGATE_SCHEMA_VERSION, decode_sketch, oldest=2, older={1: _state_of_version_1}
        )
        for family in state.families.values():
            # The settings may have changed since.
            self._aggregator.count_active(family, family.groups)
            for group in family.groups.values():
                group.drawn_by = None
        return state

    def apply(self, events: Sequence[StageEvent], states: Sequence[AggregateState]) -> list[Output]:
        """Takes in beginnings and ends; what is due of the families that they touch goes out once, at the end."""
        outputs: list[Output] = []
        touched: dict[str, tuple[FamilyState, float]] = {}
        for event, state in zip(events, states, strict=True):
            try:
                found = _family_event(event)
            except ValueError as error:
                outputs.append(dead_message(event, "unreadable_episode", str(error)))
                continue
            family = found.traits.family
            if family.encode("utf-8", "replace") != event.key:
                outputs.append(dead_message(event, WRONG_KEY, f"family {family!r} came under key {event.key!r}"))
                continue
            known = state.families.setdefault(family, FamilyState())
            gone = known.groups_let_go
            outputs += _messages(self._aggregator.take(known, found, event.time_s))
            self.groups_let_go += known.groups_let_go - gone
            touched[family] = known, event.time_s
        for family, (known, now_s) in touched.items():
            outputs += _messages(self._aggregator.due(known, family, now_s))
        return outputs

    def tick(self, state: AggregateState, now_s: float) -> list[Output] | None:
        """Sends the readings that have waited, forgets what never ended, ends breaches of what no longer runs."""
        outputs: list[Output] | None = None
        for family, known in state.families.items():
            found = self._aggregator.tick(known, family, now_s)
            if found is not None:
                outputs = [*(outputs or []), *_messages(found)]
        return outputs

    def reject(self, event: StageEvent, error: Exception) -> list[Output]:
        """An episode that the core fails on goes to the dead letters."""
        return [refused_message(event, error)]


class _GroupOfVersion1(msgspec.Struct, kw_only=True):
    """What a group of the first version of the state hands on."""

    episodes: int
    censored: int
    violations: int
    success: ScoreSum
    completion: ScoreSum
    steps: ScoreSum
    navigation: dict[str, NavigationSums]
    updated_s: float


class _FamilyOfVersion1(msgspec.Struct, kw_only=True):
    groups: dict[GroupKey, _GroupOfVersion1]
    active: dict[int, ActiveEpisode]
    ended: dict[int, int | None]
    sequence: int
    groups_let_go: int


class _StateOfVersion1(msgspec.Struct, kw_only=True):
    families: dict[str, _FamilyOfVersion1]


def _state_of_version_1(data: bytes) -> AggregateState:
    """The state of the first version, without what it took of costs and losses.

    Its levels were sketches, which are no episodes, and its costs came from other definitions: levels, thresholds, cost
    means and pairs begin anew. Counts, outcome, navigation, active episodes and what has ended are kept.
    """
    families = {}
    for name, before in msgspec.msgpack.decode(data, type=_StateOfVersion1).families.items():
        groups = {
            key: GroupState(
                **{field: getattr(group, field) for field in _GroupOfVersion1.__struct_fields__},
                sequence=before.sequence,
                pending=True,
            )
            for key, group in before.groups.items()
        }
        families[name] = FamilyState(
            groups=groups,
            active=before.active,
            ended=before.ended,
            sequence=before.sequence,
            groups_let_go=before.groups_let_go,
        )
    return AggregateState(families=families)


def reading_key(reading: FamilyReading) -> bytes:
    r"""The key of a family's reading: family|method|version, with `|` and `%` of the names percent-encoded."""
    return "|".join(name.replace("%", "%25").replace("|", "%7C") for name in reading.identity).encode(
        "utf-8", "replace"
    )


def _messages(readings: Sequence[FamilyReading]) -> Iterator[Output]:
    for reading in readings:
        yield Output(FAMILIES, reading_key(reading), encode_reading(reading))


def _family_event(event: StageEvent) -> FamilyEvent:
    """The beginning or end in a message.

    Raises:
        ValueError: it is none, of a newer version, or has numbers that are not finite.
    """
    found = decode_reading(event.value)
    if not isinstance(found, EpisodeBegun | EpisodeSummary):
        message = f"expected the beginning or the end of an episode, got {type(found).__name__}"
        raise ValueError(message)
    if found.schema_version > READING_SCHEMA_VERSION:
        message = f"schema_version is {found.schema_version}, this worker reads up to {READING_SCHEMA_VERSION}"
        raise ValueError(message)
    numbers = [found.traits.stress or 0.0, found.traits.magnitude]
    if isinstance(found, EpisodeSummary):
        measures = (found.final_progress, found.final_propositions, found.violation)
        numbers += [*measures, found.recovery_cost or 0.0, found.stability_loss or 0.0]
        numbers.append(found.realised_magnitude or 0.0)
        if found.navigation is not None:
            numbers += [value for value in msgspec.structs.astuple(found.navigation) if value is not None]
    if not all(math.isfinite(number) for number in numbers):
        message = f"expected finite numbers, got {numbers}"
        raise ValueError(message)
    return found

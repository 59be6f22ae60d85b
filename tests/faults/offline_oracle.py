"""What a faulted run must have come to: the reducers over what is in the topics, without Faust, workers or faults.

Steps are taken one message at a time, in the order of each partition, and scored by the baseline that holds there. What
comes out is compared with what the workers sent, byte for byte.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

import msgspec

from springback.producers.contract.codec import decode_frame
from springback.stream_processors.exact.port import Output, StageEvent
from springback.stream_processors.resilience.baseline.codec import (
    apply_record,
    decode_contribution,
    dump_baseline,
)
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline
from springback.stream_processors.resilience.baseline.stage_baseline import (
    EpisodeContribution,
    StageBaseline,
)
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import (
    AgentStatus,
    EpisodeBegun,
    EpisodeSummary,
    FamilyReading,
    Reading,
    UnusedReason,
    WindowReading,
    decode_reading,
)
from springback.stream_processors.resilience.tracking.episode_tracker import agent_status
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState
from springback.stream_processors.stages.aggregate_families import AggregateFamilies, AggregateState
from springback.stream_processors.stages.learn_baselines import LearnBaselines, LearnerState
from springback.stream_processors.stages.track_steps import TrackSteps
from springback.stream_processors.topics import (
    BASELINES,
    CONTRIBUTIONS,
    DEAD_LETTER,
    FAMILIES,
    STATUS,
    STEPS,
    SUMMARIES,
    SWITCHES,
    WINDOWS,
)

READ_TOPICS = (STEPS, WINDOWS, SUMMARIES, CONTRIBUTIONS, DEAD_LETTER, STATUS, FAMILIES, BASELINES, SWITCHES)
_QUIET_S = 150
_OUTPUTS = (WINDOWS, SUMMARIES, CONTRIBUTIONS, DEAD_LETTER)

ScoredBy = Callable[[int, int], MaterialisedBaseline]
"""The baseline that scores a message of `steps`, by its partition and offset."""


class TopicRecord(NamedTuple):
    """A record of a topic; `time_s` is its timestamp, in seconds."""

    partition: int
    offset: int
    time_s: float
    key: bytes
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


Topics = Mapping[str, Sequence[TopicRecord]]
"""All records of the topics, each topic by partition and offset."""


@dataclass
class Account:
    """What became of the steps in the topic: `sent` is the sum of all the others.

    Attributes:
        sent: rows of all messages.
        taken_in: rows that became steps of an episode.
        rejected: rows that are not what they must be.
        unused: rows that were not taken in, by why: copies, overtaken ones and so on.
    """

    sent: int = 0
    taken_in: int = 0
    rejected: int = 0
    unused: int = 0

    @property
    def adds_up(self) -> bool:
        """Whether every row became something, exactly once."""
        return self.sent == self.taken_in + self.rejected + self.unused


@dataclass
class Expected:
    """What the steps come to.

    Attributes:
        outputs: by topic, the value of each identity.
        statuses: the last status of each agent.
        account: what became of the rows.
    """

    outputs: dict[str, dict[Any, bytes]] = field(default_factory=lambda: {topic: {} for topic in _OUTPUTS})
    statuses: dict[str, AgentStatus] = field(default_factory=dict)
    account: Account = field(default_factory=Account)

    def readings(self) -> list[Reading]:
        """The windows, beginnings and ends."""
        return [decode_reading(value) for topic in (SUMMARIES, WINDOWS) for value in self.outputs[topic].values()]


def expected_of(steps: Sequence[TopicRecord], config: ResilienceConfig, scored_by: ScoredBy) -> Expected:
    """What the messages of `steps` come to.

    Args:
        steps: by partition and offset.
        config: settings of the workers.
        scored_by: the baseline that holds at each of them.
    """
    expected = Expected()
    states: dict[int, TrackerState] = {}
    reducer = TrackSteps(config)
    for record in steps:
        state = states.setdefault(record.partition, TrackerState())
        expected.account.sent += decode_frame(record.value or b"").n_steps
        baseline = scored_by(record.partition, record.offset)
        for output in reducer.apply_by([_event(STEPS, record)], [state], baseline):
            if output.topic in expected.outputs and output.value is not None:
                identity = identity_of(output.topic, output.value, output.headers)
                expected.outputs[output.topic].setdefault(identity, output.value)
    for state in states.values():
        expected.statuses |= {agent.agent: agent_status(agent) for agent in state.agents.values()}
    _count(expected)
    return expected


def _count(expected: Expected) -> None:
    account = expected.account
    for status in expected.statuses.values():
        counts = status.counts
        account.taken_in += counts.steps
        account.unused += counts.duplicate_steps + counts.overtaken_steps + counts.after_end_steps
        account.unused += counts.old_session_steps + counts.session_again_steps
    reasons = [identity[0] for identity in expected.outputs[DEAD_LETTER]]
    account.rejected = sum(reason not in get_args(UnusedReason) for reason in reasons)


def identity_of(topic: str, value: bytes, headers: Iterable[tuple[str, bytes]]) -> Any:
    """What tells a message from all others of its topic; a repetition has the same."""
    if topic == DEAD_LETTER:
        told = {name: text.decode("utf-8", "replace") for name, text in headers}
        digest = hashlib.blake2b(value, digest_size=12).hexdigest()
        return told["reason"], told["topic"], told["partition"], told["offset"], digest
    if topic == CONTRIBUTIONS:
        contribution = decode_contribution(value)
        assert isinstance(contribution, EpisodeContribution)
        return contribution.key
    reading = decode_reading(value)
    assert isinstance(reading, EpisodeBegun | EpisodeSummary | WindowReading)
    return reading.identity


def differences(found: Topics, expected: Expected) -> list[str]:
    """Where what the workers sent is not what the steps come to, or one identity has two contents."""
    wrong: list[str] = []
    for topic in _OUTPUTS:
        contents: dict[Any, set[bytes]] = {}
        for record in found[topic]:
            identity = identity_of(topic, record.value or b"", record.headers)
            contents.setdefault(identity, set()).add(record.value or b"")
        known = expected.outputs[topic]
        wrong += [f"{topic}: missing {identity}" for identity in known.keys() - contents.keys()]
        wrong += [f"{topic}: not expected {identity}" for identity in contents.keys() - known.keys()]
        wrong += [
            f"{topic}: repeated with another content: {identity}: {_unlike(topic, values)}"
            for identity, values in contents.items()
            if len(values) > 1
        ]
        for identity in known.keys() & contents.keys():
            if known[identity] not in contents[identity]:
                wrong.append(f"{topic}: {identity}: {_unlike(topic, {known[identity], *contents[identity]})}")
    wrong += _status_differences(found[STATUS], expected)
    if not expected.account.adds_up:
        wrong.append(f"{STEPS}: the rows do not add up: {expected.account}")
    return wrong


def _unlike(topic: str, values: set[bytes]) -> str:
    """The fields in which messages of one identity differ."""
    if topic == DEAD_LETTER:
        return " | ".join(repr(value[:200]) for value in values)
    decoded = [msgspec.msgpack.decode(value) for value in values]
    if not all(isinstance(one, dict) for one in decoded):
        return " | ".join(repr(one)[:300] for one in decoded)
    names = sorted({name for one in decoded for name in one if len({repr(other.get(name)) for other in decoded}) > 1})
    return "; ".join(f"{name}: {' | '.join(repr(one.get(name))[:120] for one in decoded)}" for name in names)


def _status_differences(found: Sequence[TopicRecord], expected: Expected) -> list[str]:
    latest = {status.agent: status for status in statuses_of(found)}
    wrong = [f"{STATUS}: missing {agent}" for agent in expected.statuses.keys() - latest.keys()]
    wrong += [f"{STATUS}: not expected {agent}" for agent in latest.keys() - expected.statuses.keys()]
    for agent in expected.statuses.keys() & latest.keys():
        known, told = expected.statuses[agent], latest[agent]
        if (known.counts, known.session, known.episodes) != (told.counts, told.session, told.episodes):
            wrong.append(f"{STATUS}: {agent}: expected {known.counts}, found {told.counts}")
    return wrong


def statuses_of(found: Sequence[TopicRecord]) -> list[AgentStatus]:
    """The statuses of the topic, the newest last."""
    readings = [decode_reading(record.value or b"") for record in found]
    return sorted((r for r in readings if isinstance(r, AgentStatus)), key=lambda status: status.seen_s)


def family_differences(found: Topics, config: ResilienceConfig) -> list[str]:
    """Where the families' last readings are not what the beginnings and ends in the topic come to."""
    reducer = AggregateFamilies(config.aggregate)
    states: dict[int, AggregateState] = {}
    for record in found[SUMMARIES]:
        reducer.apply([_event(SUMMARIES, record)], [states.setdefault(record.partition, AggregateState())])
    known = _readings_of(states, config)
    # What has to hold for a while is noticed by the next event, or while all is quiet by a tick, whose time is nobody's
    # to know: at the end a reading is as of any second until then.
    later = [known]
    last_s = max((record.time_s for record in found[SUMMARIES]), default=0.0)
    for second in range(_QUIET_S):
        for state in states.values():
            reducer.tick(state, last_s + second)
        later.append(_readings_of(states, config))
    latest = {reading.identity: reading for reading in family_readings(found[FAMILIES])}
    wrong = [f"{FAMILIES}: missing {identity}" for identity in known.keys() - latest.keys()]
    wrong += [f"{FAMILIES}: not expected {identity}" for identity in latest.keys() - known.keys()]
    for identity in known.keys() & latest.keys():
        other = _of_events(latest[identity])
        possible = [_of_events(readings[identity]) for readings in later]
        if other not in possible:
            wrong.append(f"{FAMILIES}: {identity}: {'; '.join(_leaves_unlike('', possible[0], other))}")
    return wrong


def _leaves_unlike(place: str, expected: Any, found: Any) -> Iterator[str]:
    """Where two nested values differ, by the path of each place."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in expected.keys() | found.keys():
            yield from _leaves_unlike(f"{place}.{name}", expected.get(name), found.get(name))
    elif isinstance(expected, list | tuple) and isinstance(found, list | tuple) and len(expected) == len(found):
        for number, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from _leaves_unlike(f"{place}[{number}]", one, other)
    elif expected != found:
        yield f"{place.removeprefix('.')}: expected {expected!r}, found {found!r}"


def _readings_of(states: Mapping[int, AggregateState], config: ResilienceConfig) -> dict[Any, FamilyReading]:
    return {
        reading.identity: reading
        for state in states.values()
        for name, family in state.families.items()
        for reading in (family.reading(name, key, config.aggregate) for key in family.groups)
    }


def family_readings(found: Sequence[TopicRecord]) -> list[FamilyReading]:
    """The readings of the families' topic, the last of each family, method and version behind those before it."""
    readings = [decode_reading(record.value or b"") for record in found]
    return [reading for reading in readings if isinstance(reading, FamilyReading)]


def _of_events(reading: FamilyReading) -> dict[str, Any]:
    """What of a reading comes from events alone: not how often, and when, it was looked at."""
    content: dict[str, Any] = msgspec.to_builtins(reading)
    for name in ("sequence", "updated_s"):
        del content[name]
    return content


def baseline_differences(found: Topics, config: ResilienceConfig) -> list[str]:
    """Where the learned baselines are not what the contributions in the topic come to."""
    reducer = LearnBaselines(config.baseline)
    states: dict[int, LearnerState] = {}
    known, told = StageBaseline(grid=config.grid), StageBaseline(grid=config.grid)
    for record in found[CONTRIBUTIONS]:
        state = states.setdefault(record.partition, LearnerState())
        for output in reducer.apply([_event(CONTRIBUTIONS, record)], [state]):
            _put(known, output)
    for record in found[BASELINES]:
        apply_record(told, record.key, record.value)
    if dump_baseline(known) == dump_baseline(told):
        return []
    names = sorted({*known.families, *told.families})
    encoded = [[msgspec.msgpack.encode(one.families.get(name)) for name in names] for one in (known, told)]
    unlike = [name for name, one, other in zip(names, *encoded, strict=True) if one != other]
    return [f"{BASELINES}: what was learned is not what the contributions teach: {unlike}"]


def _put(baseline: StageBaseline, output: Output) -> None:
    if output.topic == BASELINES:
        apply_record(baseline, output.key, output.value)


def _event(topic: str, record: TopicRecord) -> StageEvent:
    return StageEvent(topic, record.partition, record.offset, record.key, record.value or b"", record.time_s)

"""The family stage as a reducer of messages: keys, dead letters, batches, workers."""

import gzip
import math
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given

from springback.stream_processors.errors import StateFormatError
from springback.stream_processors.exact.port import Output, StageEvent
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.readings import (
    AgentCounts,
    AgentStatus,
    EpisodeBegun,
    FamilyReading,
    decode_reading,
    encode_reading,
)
from springback.stream_processors.stages.aggregate_families import AggregateFamilies, AggregateState, reading_key
from springback.stream_processors.topics import DEAD_LETTER, FAMILIES, SUMMARIES
from tests.house import DATA
from tests.stream_processors.random_episodes import by_seed, seeds
from tests.stream_processors.resilience.families.summary_builders import START_S, begun_of, random_events, summary_of

CONFIG = AggregateConfig(min_episodes=2)


def event_of(found: Any, offset: int = 0, key: bytes | None = None) -> StageEvent:
    time_s = found.time_s if isinstance(found, EpisodeBegun) else getattr(found, "ended_s", START_S)
    family = b"" if isinstance(found, AgentStatus) else found.traits.family.encode()
    return StageEvent(SUMMARIES, 0, offset, family if key is None else key, encode_reading(found), time_s)


def run(
    events: Sequence[StageEvent], reducer: AggregateFamilies, state: AggregateState, batch: int = 1000
) -> list[Output]:
    outputs: list[Output] = []
    for start in range(0, len(events), batch):
        some = events[start : start + batch]
        outputs += reducer.apply(some, [state] * len(some))
    return outputs


def readings_in(outputs: Sequence[Output]) -> dict[bytes, FamilyReading]:
    """What a sink has in the end: the latest reading of each key."""
    latest: dict[bytes, FamilyReading] = {}
    for output in outputs:
        assert output.topic == FAMILIES
        assert output.value is not None
        reading = decode_reading(output.value)
        assert isinstance(reading, FamilyReading)
        assert output.key not in latest or reading.sequence >= latest[output.key].sequence
        latest[output.key] = reading
    return latest


@by_seed(15)
@given(seeds)
def test_batches_and_restarts_change_no_final_reading(seed: int) -> None:
    events = [event_of(found, i) for i, found in enumerate(random_events(seed))]
    reducer = AggregateFamilies(CONFIG)
    whole, pieces = AggregateState(), AggregateState()
    at_once = run(events, reducer, whole)
    bit_by_bit: list[Output] = []
    for i, event in enumerate(events):
        bit_by_bit += reducer.apply([event], [pieces])
        if i % 7 == 0:
            pieces = reducer.decode(reducer.encode(pieces))
    end_s = START_S + 10_000
    at_once += reducer.tick(whole, end_s) or []
    bit_by_bit += reducer.tick(pieces, end_s) or []
    assert readings_in(bit_by_bit) == readings_in(at_once)


@by_seed(15)
@given(seeds)
def test_families_split_over_workers_change_nothing(seed: int) -> None:
    events = [event_of(found, i) for i, found in enumerate(random_events(seed, families=3))]
    one, shared = AggregateFamilies(CONFIG), AggregateState()
    together = readings_in([*run(events, one, shared, 5), *(one.tick(shared, START_S + 10_000) or [])])
    apart: dict[bytes, FamilyReading] = {}
    for family in {event.key for event in events}:
        worker, own = AggregateFamilies(CONFIG), AggregateState()
        outputs = run([event for event in events if event.key == family], worker, own, 3)
        apart |= readings_in([*outputs, *(worker.tick(own, START_S + 10_000) or [])])
    assert apart == together


def test_after_a_crash_the_same_events_give_readings_that_replace_the_ones_sent() -> None:
    events = [event_of(found, i) for i, found in enumerate(random_events(7, families=1))]
    reducer, state = AggregateFamilies(CONFIG), AggregateState()
    run(events[:20], reducer, state)
    stored = reducer.encode(state)
    before = readings_in(run(events[20:40], reducer, state))
    after = readings_in(run(events[20:], reducer, reducer.decode(stored), 9))
    assert all(after[key].sequence >= reading.sequence for key, reading in before.items())


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (StageEvent(SUMMARIES, 0, 0, b"navigation", b"\x00 nothing", START_S), "unreadable_episode"),
        (
            event_of(
                AgentStatus(
                    agent="a", session="s", producer="p", seen_s=0.0, time_s=0.0, clock_skew_s=0.0, counts=AgentCounts()
                )
            ),
            "unreadable_episode",
        ),
        (event_of(summary_of(), key=b"other"), "wrong_key"),
        (event_of(summary_of(recovery_cost=math.nan)), "unreadable_episode"),
        (event_of(summary_of(final_progress=math.inf)), "unreadable_episode"),
        (event_of(begun_of("1", stress=math.nan)), "unreadable_episode"),
        (event_of(summary_of(realised_magnitude=math.nan)), "unreadable_episode"),
        (event_of(summary_of(schema_version=99)), "unreadable_episode"),
    ],
)
def test_what_cannot_be_used_goes_to_the_dead_letters(event: StageEvent, reason: str) -> None:
    reducer, state = AggregateFamilies(CONFIG), AggregateState()
    outputs = reducer.apply([event, event_of(summary_of("good"))], [state, state])
    dead = [output for output in outputs if output.topic == DEAD_LETTER]
    assert [(output.value, dict(output.headers)["reason"]) for output in dead] == [(event.value, reason.encode())]
    (reading,) = readings_in([output for output in outputs if output.topic == FAMILIES]).values()
    assert reading.episodes == 1


def test_a_rejected_event_is_a_dead_letter() -> None:
    (output,) = AggregateFamilies(CONFIG).reject(event_of(summary_of()), ValueError("boom"))
    assert (output.topic, dict(output.headers)["reason"]) == (DEAD_LETTER, b"processing_error")


def test_keys_of_different_groups_differ() -> None:
    def key(family: str, method: str, version: str) -> bytes:
        outputs = run(
            [event_of(summary_of(family=family, method=method, version=version))],
            AggregateFamilies(CONFIG),
            AggregateState(),
        )
        (reading,) = readings_in(outputs).values()
        assert reading_key(reading) == outputs[0].key
        return outputs[0].key

    assert key("navigation", "plan", "1") == b"navigation|plan|1"
    assert key("a|b", "c", "1") == b"a%7Cb|c|1" != key("a", "b|c", "1")
    assert key("a%7Cb", "c", "1") != key("a|b", "c", "1")


def test_other_settings_draw_the_curve_anew() -> None:
    state = AggregateState()
    reducer = AggregateFamilies(CONFIG)
    run([event_of(summary_of(str(i))) for i in range(3)], reducer, state)
    stricter = AggregateFamilies(AggregateConfig(min_episodes=5))
    again = stricter.decode(reducer.encode(state))
    (reading,) = readings_in(stricter.apply([event_of(begun_of("4", START_S + 5))], [again])).values()
    assert [(point.episodes, point.sufficient) for point in reading.margins][:2] == [(3, False), (0, False)]


def test_a_state_of_version_1_is_brought_over() -> None:
    """Forty episodes of four groups, all ended, and one that runs; counts as the older version had them."""
    before = gzip.decompress((DATA / "families_state.v1.msgpack.gz").read_bytes())
    reducer = AggregateFamilies(CONFIG)
    state = reducer.decode(before)
    assert state.schema_version == 3
    family = state.families["family-0"]
    counts = {key: (g.episodes, g.censored, g.violations, g.success.total) for key, g in family.groups.items()}
    assert counts == {
        ("plan", "1"): (6, 0, 1, 5.0),
        ("plan", "2"): (12, 3, 7, 10.0),
        ("react", "1"): (11, 2, 7, 7.0),
        ("react", "2"): (5, 1, 3, 4.0),
    }
    assert family.groups["plan", "2"].navigation["all"].episodes == 11
    # What rested on costs, by the definitions of then, begins anew.
    assert not any(group.levels or group.pairs.tasks or group.costs.episodes for group in family.groups.values())
    # What has ended is not counted again, and what runs is still watched.
    ended = [event_of(found, i) for i, found in enumerate(random_events(11, episodes=40, families=1))]
    assert reducer.apply(ended, [state] * len(ended)) != []
    assert {key: g.episodes for key, g in family.groups.items()} == {key: count[0] for key, count in counts.items()}
    assert (family.groups["plan", "2"].live, family.groups["plan", "2"].active) == (0.4, 1)
    # Its readings replace those sent before, which said up to 81; and what is stored from now on is read as it is.
    assert all(group.sequence >= 81 for group in family.groups.values())
    assert reducer.decode(reducer.encode(state)).families["family-0"].active == family.active


def test_a_state_without_provisional_rows_is_read_as_having_none() -> None:
    # As it was stored before levels kept them, and before it was known when references behind bounds were told.
    reducer, state = AggregateFamilies(CONFIG), AggregateState()
    told = {"bound_references": 30, "bound_references_needed": 20}
    run([event_of(summary_of(str(i), stress=None if i % 2 else 0.2, **told)) for i in range(6)], reducer, state)
    before = msgspec.msgpack.decode(reducer.encode(state), strict=False)
    (family,) = before["families"].values()
    del family["bound_references_s"]
    (group,) = family["groups"].values()
    for level in (group["undeclared"], *group["levels"].values()):
        del level["newer_provisional"], level["older_provisional"]
    found = reducer.decode(msgspec.msgpack.encode(before))
    (known,) = found.families["navigation"].groups.values()
    assert (len(known.undeclared), len(known.levels[0.2]), len(known.undeclared.rows(provisional=True))) == (3, 3, 0)
    # The next that tells is the last.
    run([event_of(summary_of("anew", bound_references=2, bound_references_needed=20))], reducer, found)
    assert found.families["navigation"].bound_references == 2


def test_a_state_of_another_version_is_an_error() -> None:
    data = msgspec.msgpack.encode({"schema_version": 99})
    with pytest.raises(StateFormatError, match="schema_version 99"):
        AggregateFamilies(CONFIG).decode(data)
    with pytest.raises(StateFormatError, match="cannot be read"):
        AggregateFamilies(CONFIG).decode(b"\xc1")


def test_a_tick_tells_of_a_breach_that_no_event_brings() -> None:
    reducer, state = AggregateFamilies(CONFIG), AggregateState()
    failed = {"outcome": "failure", "final_progress": 0.0, "final_propositions": 0.0}
    run([event_of(summary_of(str(i), stress=0.4, **failed)) for i in range(5)], reducer, state)
    run([event_of(begun_of("long", START_S + 100, stress=0.4))], reducer, state)
    assert reducer.tick(state, START_S + 129.9) is None
    (told,) = readings_in(reducer.tick(state, START_S + 130) or []).values()
    assert (told.stress_state, told.breaches, told.live_stress, told.contract_violated) == ("breach", 1, 0.4, True)
    # A worker that starts again a while later goes on from there: the breach ends a minute after the mission does.
    again = reducer.decode(reducer.encode(state))
    run([event_of(summary_of("long", stress=0.4, ended_s=START_S + 500))], reducer, again)
    (over,) = readings_in(reducer.tick(again, START_S + 560) or []).values()
    assert (over.stress_state, over.breaches) == (None, 1)


def test_groups_let_go_are_counted() -> None:
    reducer = AggregateFamilies(AggregateConfig(group_memory=1))
    run([event_of(summary_of(str(i), version=str(i))) for i in range(3)], reducer, AggregateState())
    assert reducer.groups_let_go == 2

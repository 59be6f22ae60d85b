"""The reducer of families: what changes its results, and what must not."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.stream_processors.resilience.families.contract_config import AggregateConfig, FamilyContract
from springback.stream_processors.resilience.families.family_aggregate import (
    FamilyAggregator,
    FamilyEvent,
    FamilyState,
    aggregate,
    in_order,
    monitors,
)
from springback.stream_processors.resilience.quantiles import decode_sketch, encode_sketch, quantile
from springback.stream_processors.resilience.readings import EpisodeBegun, EpisodeSummary, FamilyReading
from tests.stream_processors.random_episodes import by_seed, seeds
from tests.stream_processors.resilience.families.summary_builders import START_S, begun_of, random_events, summary_of

FIXED = AggregateConfig(default=FamilyContract(recovery=8.0, stability=5.0, safety=4.0), min_episodes=2)
AUTO = AggregateConfig(min_episodes=2)
HISTORY = ("live_stress", "in_breach", "breaches", "updated_s")
"""What depends on when episodes ran, as it should."""


def assert_alike(found: Iterable[FamilyReading], expected: Iterable[FamilyReading], *without: str) -> None:
    """The same readings but for some fields, to 1e-9: sums differ in their last digit by the order of their terms."""
    one, other = (
        [{k: v for k, v in msgspec.to_builtins(reading).items() if k not in without} for reading in readings]
        for readings in (found, expected)
    )
    assert alike(one, other), f"{one}\n is not\n{other}"


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 1e-9 * max(1.0, abs(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)


def ends_of(events: Iterable[FamilyEvent]) -> list[EpisodeSummary]:
    return [event for event in events if isinstance(event, EpisodeSummary)]


@by_seed(20)
@given(seeds, st.randoms(use_true_random=False))
def test_the_order_of_episodes_changes_no_figure(seed: int, random: Any) -> None:
    events = random_events(seed)
    shuffled = random.sample(events, len(events))
    assert_alike(aggregate(shuffled, FIXED), aggregate(events, FIXED), "sequence", *HISTORY)
    # With `auto` thresholds an episode's own monitor is held to what was known at its end.
    assert_alike(aggregate(shuffled, AUTO), aggregate(events, AUTO), "sequence", "violations", *HISTORY)
    assert monitors(ends_of(shuffled), AUTO) == monitors(ends_of(events), AUTO)


@by_seed(12)
@given(seeds)
def test_repetitions_change_nothing(seed: int) -> None:
    events = random_events(seed, episodes=30)
    again = [copy for i, event in enumerate(events) for copy in (event, *events[max(0, i - 4) : i])]
    assert aggregate(again, AUTO) == aggregate(events, AUTO)


@by_seed(12)
@given(seeds)
def test_a_restart_in_the_middle_changes_nothing(seed: int) -> None:
    aggregator = FamilyAggregator(msgspec.structs.replace(AUTO, breach_evaluations=2))
    whole, stored = FamilyState(), FamilyState()
    for event in random_events(seed, families=1):
        expected = aggregator.take(whole, event, time_of(event)) + aggregator.due(whole, "family-0", time_of(event))
        found = aggregator.take(stored, event, time_of(event)) + aggregator.due(stored, "family-0", time_of(event))
        assert found == expected
        data = msgspec.msgpack.encode(stored, enc_hook=encode_sketch)
        stored = msgspec.msgpack.decode(data, type=FamilyState, dec_hook=decode_sketch)
        assert stored == whole


@by_seed(12)
@given(seeds)
def test_families_do_not_touch_each_other(seed: int) -> None:
    events = random_events(seed, families=3)
    apart = [
        reading
        for family in sorted({event.traits.family for event in events})
        for reading in aggregate([event for event in events if event.traits.family == family], AUTO)
    ]
    assert apart == aggregate(events, AUTO)


@by_seed(20)
@given(seeds)
def test_figures_are_those_of_a_batch(seed: int) -> None:
    events = random_events(seed)
    readings = {reading.identity: reading for reading in aggregate(events, AUTO)}
    ends = ends_of(events)
    assert readings.keys() == {(e.traits.family, e.traits.method, e.traits.version) for e in ends}
    for (family, method, version), reading in readings.items():
        group = [
            e for e in ends if e.traits.family == family and (e.traits.method, e.traits.version) == (method, version)
        ]
        seen = [e for e in group if e.outcome != "aborted"]
        assert (reading.episodes, reading.censored) == (len(seen), len(group) - len(seen))
        if seen:
            assert reading.success_rate == pytest.approx(sum(e.outcome == "success" for e in seen) / len(seen))
            assert reading.mean_steps == pytest.approx(sum(e.steps for e in seen) / len(seen))
        references = [e for e in ends if e.traits.family == family and e.traits.reference and e.outcome != "aborted"]
        costs = [e.recovery_cost for e in references if e.recovery_cost is not None]
        assert reading.thresholds.recovery == (max(10.0, 2 * quantile(costs, 0.95)) if costs else None)
        for point in reading.margins:
            inside = [
                e
                for e in seen
                if min(AUTO.grid, key=lambda p: (abs(p - (e.traits.declared_stress or 0.0)), p)) == point.stress
            ]
            assert point.episodes == len(inside)
            if inside:
                assert point.ratios.progress == pytest.approx(quantile([e.final_progress for e in inside], 0.1) / 0.5)


def time_of(event: FamilyEvent) -> float:
    return event.time_s if isinstance(event, EpisodeBegun) else event.ended_s


def test_a_censored_episode_is_counted_and_nothing_else() -> None:
    (found,) = aggregate([summary_of(outcome="aborted", reference=True, recovery_cost=99.0)], AUTO)
    assert (found.episodes, found.censored, found.success_rate, found.violations) == (0, 1, None, 0)
    assert found.thresholds.recovery is None
    assert sum(point.episodes for point in found.margins) == 0
    assert monitors([summary_of(outcome="aborted")], AUTO) == {}


def test_a_worse_version_does_not_loosen_its_own_contract() -> None:
    good = [summary_of(f"good-{i}", version="1", reference=True, recovery_cost=10.0) for i in range(20)]
    bad = [summary_of(f"bad-{i}", version="2", recovery_cost=500.0) for i in range(20)]
    first, second = aggregate([*good, *bad], AUTO)
    assert first.thresholds == second.thresholds
    assert (first.thresholds.recovery, first.violations, second.violations) == (20.0, 0, 20)


def test_versions_as_stress() -> None:
    config = AggregateConfig(
        default=FamilyContract(recovery=10.0, stability=9.0, evolution=("1.0", "1.1", "1.2")), grid=(0.0, 0.5, 1.0)
    )
    events = [
        summary_of(f"{version}-{i}", version=version, task=f"task-{i}", recovery_cost=cost, stability_loss=loss)
        for version, cost, loss in (("1.0", 1.0, 2.0), ("1.1", 5.0, 2.5), ("1.2", 40.0, 5.0))
        for i in range(5)
    ]
    (found,) = aggregate(events, config)
    assert found.identity == ("navigation", "default", "evolution")
    # r at 1.2: p and q 2, recovery 10/40, stability 9/5; safety is unknown without a reference episode.
    assert [point.margin for point in found.margins][2] == pytest.approx((0.25 + 1.8 + 2.0) / 3 - 1)
    # |2.5 - 2|/0.5 = 1 and |5 - 2|/1 = 3.
    assert found.beta == pytest.approx(3.0)
    assert (found.pairs, list(found.beta_by_kind)) == (10, ["evolution"])


def withstands(stress: float) -> list[EpisodeSummary]:
    """Enough episodes at 0 … 1 for the capacity to be `stress`."""
    found = []
    for point in FIXED.grid:
        load = 0.0 if point <= stress else 1e6
        found += [
            summary_of(f"past-{point}-{i}", stress=point, recovery_cost=load, violation=load, stability_loss=load)
            for i in range(5)
        ]
    return found


def fed(events: Iterable[FamilyEvent], config: AggregateConfig = FIXED) -> tuple[FamilyAggregator, FamilyState]:
    aggregator, state = FamilyAggregator(config), FamilyState()
    for event in events:
        aggregator.take(state, event, START_S)
    return aggregator, state


def test_a_breach_begins_after_enough_evaluations_and_is_told_at_once() -> None:
    aggregator, state = fed(withstands(0.2))
    told = [aggregator.take(state, begun_of(f"live-{i}", stress=0.8), START_S + 1) for i in range(4)]
    assert [len(readings) for readings in told] == [0, 0, 1, 0]
    (reading,) = told[2]
    assert (reading.in_breach, reading.breaches, reading.live_stress, reading.capacity) == (True, 1, 0.8, 0.2)
    # Twenty calm episodes bring the 0.9 quantile down: 4 of 24 at 0.8 are not enough, and 3 evaluations end it.
    calm = [begun_of(f"calm-{i}", stress=0.2) for i in range(50)]
    told = [aggregator.take(state, event, START_S + 2) for event in calm]
    ended = [reading for readings in told for reading in readings]
    assert [(reading.in_breach, reading.breaches, reading.live_stress) for reading in ended] == [(False, 1, 0.2)]


def test_a_breach_ends_when_nothing_has_run_for_a_while() -> None:
    aggregator, state = fed([*withstands(0.2), *(begun_of(f"live-{i}", stress=0.8) for i in range(3))])
    for i in range(3):
        aggregator.take(state, summary_of(f"live-{i}", stress=0.8), START_S + 1)
    assert state.groups["default", "0"].breach.active
    assert state.live is None
    aggregator.due(state, "navigation", START_S + 2)
    quiet_s = FIXED.breach_quiet_s
    assert aggregator.tick(state, "navigation", START_S + quiet_s) is None
    found = aggregator.tick(state, "navigation", START_S + 2 + quiet_s)
    assert found is not None
    assert [(reading.in_breach, reading.breaches) for reading in found] == [(False, 1)]


def test_a_group_that_does_not_run_is_in_no_breach() -> None:
    old = [msgspec.structs.replace(e, traits=msgspec.structs.replace(e.traits, version="old")) for e in withstands(0.0)]
    new = [msgspec.structs.replace(e, key=msgspec.structs.replace(e.key, session="new")) for e in withstands(1.0)]
    _, state = fed([*old, *new, *(begun_of(f"live-{i}", stress=0.8) for i in range(9))])
    assert [group.breach.active for group in state.groups.values()] == [False, False]


def test_a_breach_goes_on_while_a_long_episode_runs() -> None:
    aggregator, state = fed([*withstands(0.2), *(begun_of(f"live-{i}", stress=0.8) for i in range(3))])
    assert aggregator.tick(state, "navigation", START_S + 10 * FIXED.breach_quiet_s) is None
    assert state.groups["default", "0"].breach.active


def test_what_holds_of_the_family_is_told_of_each_group_once() -> None:
    aggregator, state = fed([summary_of("1", version="1"), summary_of("2", version="2")], AUTO)

    def told(event: FamilyEvent, second: int) -> list[str]:
        aggregator.take(state, event, START_S + second)
        return sorted(reading.version for reading in aggregator.due(state, "navigation", START_S + second))

    assert told(begun_of("3", version="1"), 1) == ["1", "2"]  # there is a live stress
    assert told(begun_of("4", version="1"), 2) == []  # it is as before
    assert told(summary_of("3", version="1"), 3) == ["1"]
    assert told(summary_of("4", version="1", reference=True), 4) == ["1", "2"]  # there are thresholds, and it is quiet
    assert told(begun_of("5", version="1"), 5) == ["1", "2"]
    dear = summary_of("6", version="1", reference=True, recovery_cost=50.0)
    assert told(dear, 6) == ["1", "2"]  # the live stress is the same, the thresholds are not


def test_an_episode_whose_end_is_never_seen_is_forgotten() -> None:
    aggregator, state = fed([summary_of(), begun_of("lost", stress=0.8)])
    assert state.live == 0.8
    assert aggregator.due(state, "navigation", START_S)
    sequence = state.sequence
    assert aggregator.tick(state, "navigation", START_S + FIXED.active_timeout_s) is None
    found = aggregator.tick(state, "navigation", START_S + FIXED.active_timeout_s + 1)
    assert found is not None
    assert [(reading.live_stress, reading.sequence) for reading in found] == [(None, sequence + 1)]
    assert aggregator.tick(state, "navigation", START_S + 2 * FIXED.active_timeout_s) is None


def test_a_beginning_that_comes_after_its_end_is_over() -> None:
    _, state = fed([summary_of("1", stress=0.8), begun_of("1", stress=0.8)])
    assert (state.active, state.live, state.sequence) == ({}, None, 1)


def test_readings_of_a_group_go_out_at_most_once_an_interval() -> None:
    aggregator, state = fed([])
    sent = []
    for tenth in range(25):
        aggregator.take(state, summary_of(str(tenth)), START_S + tenth / 10)
        sent += aggregator.due(state, "navigation", START_S + tenth / 10)
    assert [reading.episodes for reading in sent] == [1, 11, 21]
    assert aggregator.tick(state, "navigation", START_S + 2.5) is None
    last = aggregator.tick(state, "navigation", START_S + 3.0)
    assert last is not None
    assert [reading.episodes for reading in last] == [25]
    assert aggregator.tick(state, "navigation", START_S + 9.0) is None
    assert [reading.sequence for reading in [*sent, *last]] == [1, 11, 21, 25]


def test_a_clock_that_was_put_back_silences_nobody() -> None:
    aggregator, state = fed([summary_of("1")])
    assert len(aggregator.due(state, "navigation", START_S)) == 1
    aggregator.take(state, summary_of("2"), START_S - 3600)
    assert len(aggregator.due(state, "navigation", START_S - 3600)) == 1


def test_memories_are_bounded_the_oldest_goes() -> None:
    config = AggregateConfig(group_memory=2, ended_memory=3, active_memory=4)
    _, state = fed([summary_of(f"v{i}", version=str(v)) for i, v in enumerate((1, 2, 1, 3))], config)
    assert list(state.groups) == [("default", "1"), ("default", "3")]
    assert (state.groups_let_go, len(state.ended)) == (1, 3)
    _, state = fed([begun_of(str(i), stress=i / 10) for i in range(10)], config)
    assert [episode.stress for episode in state.active.values()] == [0.6, 0.7, 0.8, 0.9]


def test_a_group_that_is_let_go_leaves_no_breach_behind() -> None:
    config = msgspec.structs.replace(FIXED, group_memory=1)
    aggregator, state = fed([*withstands(0.0), *(begun_of(f"live-{i}", stress=0.8) for i in range(3))], config)
    (last,) = aggregator.take(state, summary_of("other", version="1"), START_S)
    assert (last.version, last.in_breach, last.breaches) == ("0", False, 1)


def test_by_time_ends_come_before_beginnings() -> None:
    first, second = begun_of("1", START_S), begun_of("2", START_S + 5)
    end = summary_of("1", ended_s=START_S + 5)
    assert in_order([second, first], [end]) == [first, end, second]

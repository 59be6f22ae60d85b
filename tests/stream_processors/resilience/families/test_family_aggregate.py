"""The reducer of families: what changes its results, and what must not."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from springback.stream_processors.resilience.families.contract_config import AggregateConfig, FamilyContract
from springback.stream_processors.resilience.families.family_aggregate import (
    FamilyAggregator,
    FamilyEvent,
    aggregate,
    in_order,
    monitors,
)
from springback.stream_processors.resilience.families.family_state import FamilyState
from springback.stream_processors.resilience.families.operational_margin import monitor
from springback.stream_processors.resilience.quantiles import decode_sketch, encode_sketch, quantile
from springback.stream_processors.resilience.readings import EpisodeBegun, EpisodeSummary, FamilyReading
from tests.stream_processors.random_episodes import by_seed, seeds
from tests.stream_processors.resilience.families.summary_builders import START_S, begun_of, random_events, summary_of

FIXED = AggregateConfig(
    default=FamilyContract(progress=0.5, propositions=0.5, recovery=8.0, stability=5.0, safety=4.0), min_episodes=2
)
AUTO = AggregateConfig(min_episodes=2)
HISTORY = (
    "live_stress", "active_episodes", "active_undeclared", "stress_state", "breaches", "contract_violated",
    "contract_violations", "updated_s",
)  # fmt: skip
"""What depends on when episodes ran, as it should."""


def assert_alike(found: Iterable[FamilyReading], expected: Iterable[FamilyReading], *without: str) -> None:
    """The same readings but for some fields, to 1e-9: sums differ in their last digit by the order of their terms."""
    one, other = (
        [{k: v for k, v in msgspec.to_builtins(reading).items() if k not in without} for reading in readings]
        for readings in (found, expected)
    )
    assert difference(one, other) is None


def difference(one: Any, other: Any, where: str = "") -> str | None:
    """Where two results differ first, None if nowhere."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        pairs = [(key, one[key], other[key]) for key in one]
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        pairs = [(i, *both) for i, both in enumerate(zip(one, other, strict=True))]
    elif isinstance(one, float) and isinstance(other, float):
        return None if abs(one - other) <= 1e-9 * max(1.0, abs(other)) else f"{where}: {one} is not {other}"
    else:
        return None if one == other else f"{where}: {one} is not {other}"
    return next((found for key, a, b in pairs if (found := difference(a, b, f"{where}/{key}"))), None)


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
    aggregator = FamilyAggregator(AUTO)
    whole, stored = FamilyState(), FamilyState()
    for event in random_events(seed, families=1):
        expected = aggregator.take(whole, event, time_of(event)) + aggregator.due(whole, "family-0", time_of(event))
        found = aggregator.take(stored, event, time_of(event)) + aggregator.due(stored, "family-0", time_of(event))
        assert found == expected
        data = msgspec.msgpack.encode(stored, enc_hook=encode_sketch)
        stored = msgspec.msgpack.decode(data, type=FamilyState, dec_hook=decode_sketch)
        assert stored == whole


@by_seed(15)
@given(seeds, st.floats(0.3, 40.0))
def test_streaming_with_ticks_is_offline(seed: int, every_s: float) -> None:
    """Undeclared stress, and two versions of two methods at once: also what counts live, and how often it began."""
    events = random_events(seed, episodes=150, families=1)
    aggregator, state = FamilyAggregator(AUTO), FamilyState()
    now_s = START_S
    latest: dict[tuple[str, str, str], FamilyReading] = {}

    def heard(readings: Iterable[FamilyReading]) -> None:
        latest.update({reading.identity: reading for reading in readings})

    for event in [*events, None]:
        until_s = now_s + 90 if event is None else time_of(event)
        while now_s + every_s < until_s:
            now_s += every_s
            heard(aggregator.tick(state, "family-0", now_s) or [])
        now_s = until_s
        if event is not None:
            heard(aggregator.take(state, event, now_s))
            heard(aggregator.due(state, "family-0", now_s))
    streamed = sorted(latest.values(), key=lambda reading: reading.identity)
    # Ticks count in the sequence, and a level may have come to break its contract in the last minute.
    assert_alike(streamed, aggregate(events, AUTO), "sequence", "updated_s")
    assume(any(reading.breaches for reading in streamed))  # few examples come to none: many would be an error
    assert any(reading.undeclared for reading in streamed)


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
        counted = [e for e in seen if not e.provisional]
        assert (reading.episodes, reading.censored) == (len(seen), len(group) - len(seen))
        assert reading.provisional_episodes == len(seen) - len(counted)
        if seen:
            assert reading.success_rate == pytest.approx(sum(e.outcome == "success" for e in seen) / len(seen))
            assert reading.mean_steps == pytest.approx(sum(e.steps for e in seen) / len(seen))
        references = [
            e for e in ends if e.traits.family == family and e.traits.reference and not e.censored and not e.provisional
        ]
        costs = [e.recovery_cost for e in references if e.recovery_cost is not None]
        assert reading.thresholds.recovery == (max(5.0, 2 * quantile(costs, 0.95)) if costs else None)
        own = [e for e in ends if e.traits.family == family]
        told = [(e.ended_s, e.bound_references) for e in own if e.bound_references is not None]
        assert reading.bound_references == max(told, default=(None, None))[1]
        nowhere = [e.provisional for e in seen if e.traits.declared_stress is None]
        undeclared = reading.undeclared
        assert (0 if undeclared is None else undeclared.episodes) == nowhere.count(False)
        assert (0 if undeclared is None else undeclared.provisional) == nowhere.count(True)
        for point in reading.margins:
            inside = [e for e in counted if level_of(e) == point.stress]
            assert point.episodes == len(inside)
            if inside:
                least = quantile([e.final_progress for e in inside], 0.1) / reading.thresholds.progress
                assert point.ratios.progress == pytest.approx(min(least, 1.5))
            early = [e for e in seen if e.provisional and level_of(e) == point.stress]
            assert point.provisional == len(early)
            assert point.violations == sum(monitor(e, reading.thresholds) < 0 for e in [*inside, *early])


def level_of(summary: EpisodeSummary) -> float | None:
    stress = summary.traits.declared_stress
    return None if stress is None else min(AUTO.grid, key=lambda point: (abs(point - stress), point))


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
    # r at 1.2: p and q 1.5 of 2, recovery 10/40, stability 1.5 of 9/5; safety is unknown without a reference episode.
    assert [point.margin for point in found.margins][2] == pytest.approx((0.25 + 1.5) / 2 - 1)
    # |2.5 - 2|/0.5 = 1 and |5 - 2|/1 = 3.
    assert found.beta == pytest.approx(3.0)
    assert (found.pairs, list(found.beta_by_kind)) == (10, ["evolution"])


def withstands(stress: float, **traits: Any) -> list[EpisodeSummary]:
    """Enough episodes at 0 … 1 for the capacity to be `stress`: below it nothing is amiss, above nothing is reached."""
    found = []
    for point in FIXED.grid:
        reached = float(point <= stress)
        found += [
            summary_of(f"past-{point}-{i}", stress=point, final_progress=reached, final_propositions=reached, **traits)
            for i in range(5)
        ]
    return found


def fed(events: Iterable[FamilyEvent], config: AggregateConfig = FIXED) -> tuple[FamilyAggregator, FamilyState]:
    aggregator, state = FamilyAggregator(config), FamilyState()
    for event in events:
        aggregator.take(state, event, START_S)
    return aggregator, state


def told(found: Iterable[FamilyReading] | None) -> list[tuple[str, str | None, int]]:
    return [(reading.version, reading.stress_state, reading.breaches) for reading in found or []]


def settle(aggregator: FamilyAggregator, state: FamilyState, now_s: float) -> None:
    """Lets what waits be told, so that what is told next is new."""
    aggregator.due(state, "navigation", now_s)


def test_a_reference_without_a_declared_stress_is_at_0() -> None:
    (found,) = aggregate([summary_of(str(i), reference=True, stress=None) for i in range(5)], AUTO)
    assert (found.undeclared, found.margins[0].episodes, found.capacity) == (None, 5, 0.0)


@pytest.mark.parametrize(
    ("realised", "beta", "unpaired"),
    # |1.5 - 1| over the 0.5 that was announced, over the 0.25 there was, and over nothing, which divides nothing.
    [(None, 1.0, {}), (0.25, 2.0, {}), (0.0, None, {"no_magnitude": 1})],
)
def test_beta_divides_by_the_magnitude_that_was_realised(
    realised: float | None, beta: float | None, unpaired: dict[str, int]
) -> None:
    events = [
        summary_of("1", task="mug", reference=True, stability_loss=1.0),
        summary_of(
            "2", task="mug", stability_loss=1.5, stress=0.4, magnitude=0.5, perturbation="physical",
            realised_magnitude=realised,
        ),
    ]  # fmt: skip
    (found,) = aggregate(events, AUTO)
    assert found.beta == (None if beta is None else pytest.approx(beta))
    assert {reason: count for reason, count in found.unpaired.items() if count} == unpaired


def test_provisional_episodes_count_in_the_outcome_and_in_the_share_of_violations_alone() -> None:
    wild: dict[str, Any] = {"recovery_cost": 500.0, "stability_loss": 90.0, "violation": 70.0, "final_progress": 0.0}
    learning = [
        summary_of(
            f"early-{i}", reference=True, provisional=True, bound_references=i, bound_references_needed=20, **wild
        )
        for i in range(12)
    ]
    (found,) = aggregate(learning, AUTO)
    assert (found.episodes, found.provisional_episodes, found.success_rate) == (12, 12, 1.0)
    assert (found.bound_references, found.bound_references_needed, found.learning) == (11, 20, True)
    assert (found.recovery_cost_mean, found.stability_loss_mean, found.beta) == (None, None, None)
    assert (found.capacity_flag, found.thresholds.recovery, found.thresholds.progress) == ("insufficient", None, 0.5)
    assert monitors(learning, AUTO) == {}
    level = found.margins[0]
    assert (level.state, level.episodes, level.margin, level.unmeasured) == ("insufficient", 0, None, ())
    # Progress 0 of 0.5 breaks the contract.
    assert (level.provisional, level.violations, found.violations, found.contract_violated) == (12, 12, 12, True)


def test_a_family_with_a_new_baseline_is_learning_again() -> None:
    needed = {"bound_references_needed": 20}
    knows = summary_of("1", ended_s=START_S + 10, bound_references=30, **needed)
    anew = summary_of("2", ended_s=START_S + 20, bound_references=3, **needed)
    late = summary_of("3", ended_s=START_S + 15, bound_references=31, **needed)
    as_late = summary_of("4", ended_s=START_S + 20, bound_references=2, **needed)
    silent = summary_of("5", ended_s=START_S + 30)
    for events in ([knows, anew, late, as_late, silent], [silent, as_late, late, anew, knows]):
        (found,) = aggregate(events, AUTO)
        # Of the two that ended last of those that said so, the larger.
        assert (found.bound_references, found.learning) == (3, True)


def test_what_rests_on_windows_violates_nothing_while_a_family_is_learning() -> None:
    # A cost of 500 of 8, and a stability loss of 90 of 5; all else is well.
    dear = [summary_of(str(i), provisional=True, recovery_cost=500.0, stability_loss=90.0) for i in range(12)]
    (found,) = aggregate(dear, FIXED)
    assert (found.margins[0].provisional, found.margins[0].violations, found.violations) == (12, 0, 0)
    assert (found.contract_violated, found.violated) == (False, None)


def test_provisional_episodes_change_no_margin_but_keep_a_level_from_being_kept() -> None:
    good = [summary_of(f"good-{i}", stress=0.2) for i in range(20)]
    early = [summary_of(f"early-{i}", stress=0.2, provisional=True, final_progress=0.0) for i in range(20)]
    (alone,), (both,) = aggregate(good, FIXED), aggregate([*early, *good], FIXED)
    one, other = alone.margins[1], both.margins[1]
    assert (other.episodes, other.margin, other.favourable_margin) == (20, one.margin, one.favourable_margin)
    assert (alone.capacity, both.capacity) == (0.2, 0.2)
    # 20 of 40: (0.5 + 0.048 - 1.96 sqrt(0.25/40 + 0.0006))/1.096 = 0.352, more than 0.1.
    assert other.violation_low == pytest.approx(0.352, abs=1e-3)
    assert (one.state, other.state, both.contract_violated) == ("kept", "undecided", True)


def test_what_holds_of_the_family_is_told_of_each_group_once() -> None:
    aggregator, state = fed([summary_of("1", version="1"), summary_of("2", version="2")], AUTO)

    def told_at(event: FamilyEvent, second: int) -> list[str]:
        aggregator.take(state, event, START_S + second)
        return sorted(reading.version for reading in aggregator.due(state, "navigation", START_S + second))

    assert told_at(begun_of("0", version="2"), 1) == ["1", "2"]  # nothing was told before
    assert told_at(begun_of("3", version="1"), 2) == ["1"]
    assert told_at(summary_of("3", version="1"), 3) == ["1"]
    assert told_at(summary_of("4", version="1", reference=True), 4) == ["1", "2"]  # there are thresholds
    assert told_at(summary_of("5", version="1", reference=True), 5) == ["1"]  # they are as before
    dear = summary_of("6", version="1", reference=True, recovery_cost=50.0)
    assert told_at(dear, 6) == ["1", "2"]
    learnt = summary_of("7", version="1", bound_references=20, bound_references_needed=20)
    assert told_at(learnt, 7) == ["1", "2"]


def test_an_episode_whose_end_is_never_seen_is_forgotten() -> None:
    aggregator, state = fed([summary_of(), begun_of("lost", stress=0.8)])
    group = state.groups["default", "0"]
    assert (group.live, group.active) == (0.8, 1)
    aggregator.tick(state, "navigation", START_S + 30)
    assert group.watch.state == "untested"
    sequence = state.sequence
    assert aggregator.tick(state, "navigation", START_S + FIXED.active_timeout_s) is None
    found = aggregator.tick(state, "navigation", START_S + FIXED.active_timeout_s + 1)
    assert found is not None
    assert [(r.live_stress, r.active_episodes, r.stress_state, r.sequence) for r in found] == [
        (None, 0, None, sequence + 1)
    ]
    assert aggregator.tick(state, "navigation", START_S + 2 * FIXED.active_timeout_s) is None


def test_a_beginning_that_comes_after_its_end_is_over() -> None:
    _, state = fed([summary_of("1", stress=0.8), begun_of("1", stress=0.8)])
    assert (state.active, state.groups["default", "0"].live, state.sequence) == ({}, None, 1)


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
    _, state = fed([begun_of(str(i), version=str(i < 3), stress=i / 10) for i in range(10)], config)
    assert [episode.stress for episode in state.active.values()] == [0.6, 0.7, 0.8, 0.9]
    assert [(group.active, group.live) for group in state.groups.values()] == [(0, None), (4, 0.8)]


def test_a_group_that_is_let_go_leaves_no_breach_behind() -> None:
    config = msgspec.structs.replace(FIXED, group_memory=1)
    aggregator, state = fed([*withstands(0.0), begun_of("live", stress=0.8)], config)
    assert told(aggregator.tick(state, "navigation", START_S + 30)) == [("0", "breach", 1)]
    (last,) = aggregator.take(state, summary_of("other", version="1"), START_S + 31)
    assert (last.version, last.in_breach, last.breaches, last.contract_violated) == ("0", False, 1, False)


def test_on_the_stream_a_level_keeps_its_latest_offline_it_keeps_all() -> None:
    config = msgspec.structs.replace(FIXED, level_generation=10)
    events = [summary_of(str(i)) for i in range(35)]
    _, state = fed(events, config)
    assert state.reading("navigation", ("default", "0"), config).margins[0].episodes == 15
    (offline,) = aggregate([*events, *events], config)
    assert offline.margins[0].episodes == 35


def test_by_time_ends_come_before_beginnings() -> None:
    first, second = begun_of("1", START_S), begun_of("2", START_S + 5)
    end = summary_of("1", ended_s=START_S + 5)
    assert in_order([second, first], [end]) == [first, end, second]


def test_a_beginning_told_late_is_where_the_episode_started() -> None:
    # A whole recording may come as one batch: its episodes are told to have begun when they have ended.
    end = summary_of("1", ended_s=START_S + 500)
    assert in_order([begun_of("1", START_S + 500)], [end]) == [begun_of("1", START_S), end]
    failed = [*withstands(0.2), summary_of("long", stress=0.8, ended_s=START_S + 500)]
    (found,) = aggregate(in_order([begun_of("long", START_S + 500, stress=0.8)], failed), FIXED)
    assert (found.breaches, found.stress_state) == (1, None)


def test_an_episode_that_silence_had_ended_and_that_went_on_counts_as_what_it_came_to() -> None:
    aborted = summary_of(episode="1", outcome="aborted")
    corrected = summary_of(episode="1", outcome="success")
    corrected = msgspec.structs.replace(corrected, revision=1)
    goes_on = msgspec.structs.replace(begun_of(episode="1"), revision=1)
    short: list[FamilyEvent] = [begun_of(episode="1"), aborted, corrected]
    long: list[FamilyEvent] = [begun_of(episode="1"), aborted, goes_on, corrected]
    for events in (long, short):
        aggregator, state = FamilyAggregator(FIXED), FamilyState()
        aggregator.take(state, summary_of(episode="2", outcome="aborted"), START_S)
        seen = []
        for event in [*events, *events]:
            aggregator.take(state, event, START_S)
            seen.append([(g.episodes, g.censored, g.active) for g in state.groups.values()])
        assert seen[1] == [(0, 2, 0)]
        assert seen[2] == ([(0, 1, 1)] if len(events) == 4 else [(1, 1, 0)])
        assert seen[-1] == [(1, 1, 0)]

"""What figures of families once said that misled, each with what is right worked out by hand."""

from typing import Any

import msgspec
import pytest

from springback.stream_processors.metrics.figure_words import violated_sentences
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.families.family_aggregate import FamilyAggregator, FamilyEvent, aggregate
from springback.stream_processors.resilience.families.family_state import FamilyState
from springback.stream_processors.resilience.readings import EpisodeSummary, FamilyReading
from tests.stream_processors.resilience.families.summary_builders import START_S, begun_of, summary_of
from tests.stream_processors.resilience.families.test_family_aggregate import (
    AUTO,
    FIXED,
    fed,
    settle,
    time_of,
    told,
    withstands,
)


def test_situation_1_a_family_that_fails_whenever_it_is_disturbed_has_no_capacity_beyond_0() -> None:
    # Every disturbed episode is cut at step 2: progress 0, nothing to recover from. The capacity was 1.0, "kept".
    cut: dict[str, Any] = {"outcome": "failure", "steps": 2, "final_progress": 0.0, "final_propositions": 0.0}
    events: list[FamilyEvent] = [summary_of(f"clean-{i}", reference=True) for i in range(20)]
    for point in AggregateConfig().grid[1:]:
        events += [summary_of(f"{point}-{i}", stress=point, recovery_cost=None, **cut) for i in range(10)]
    events.append(begun_of("next", START_S + 60, stress=1.0))
    (found,) = aggregate(events, AggregateConfig())
    assert [level.state for level in found.margins] == ["kept", *["broken"] * 5]
    assert (found.capacity, found.capacity_flag, found.dependable, found.first_breach) == (0.0, "ok", 0.0, 0.2)
    assert found.success_rate == pytest.approx(20 / 70)
    assert found.contract_violated
    aggregator, state = fed(events)
    assert told(aggregator.tick(state, "navigation", START_S + 90)) == [("0", "breach", 1)]


def test_situation_3_a_long_mission_in_a_broken_level_is_alerted_without_further_events() -> None:
    aggregator, state = fed([*withstands(0.2), begun_of("long", stress=0.8)])
    settle(aggregator, state, START_S)
    assert aggregator.tick(state, "navigation", START_S + 29.9) is None
    found = aggregator.tick(state, "navigation", START_S + 30.0)
    assert told(found) == [("0", "breach", 1)]
    assert found is not None
    assert (found[0].live_stress, found[0].capacity, found[0].dependable) == (0.8, 0.2, 0.2)
    # It goes on while the mission runs, and ends a minute after it.
    assert aggregator.tick(state, "navigation", START_S + 3600) is None
    assert aggregator.take(state, summary_of("long", stress=0.8), START_S + 4000) == []
    settle(aggregator, state, START_S + 4001)
    assert aggregator.tick(state, "navigation", START_S + 4059.9) is None
    assert told(aggregator.tick(state, "navigation", START_S + 4060.0)) == [("0", None, 1)]


def test_situation_3_forty_perfect_episodes_are_no_breach() -> None:
    # Half of them at 0, half at 0.25, which goes to the level of 0.2: 0.25 > 0.2 was a breach.
    events: list[FamilyEvent] = []
    for i in range(40):
        stress = 0.25 * (i % 2)
        events += [
            begun_of(str(i), START_S + 60 * i, stress=stress),
            summary_of(str(i), stress=stress, ended_s=START_S + 60 * i + 55),
        ]
    aggregator, state = FamilyAggregator(FIXED), FamilyState()
    readings = [reading for event in events for reading in aggregator.take(state, event, time_of(event))]
    assert not any(reading.in_breach for reading in readings)
    (found,) = aggregate(events, FIXED)
    assert (found.capacity, found.capacity_flag, found.dependable, found.breaches) == (0.2, "open", 0.2, 0)
    # While one at 0.25 runs, the live stress is a level, and within what is known once it has held for half a minute.
    aggregator.take(state, begun_of("41", stress=0.25), START_S + 2400)
    assert told(aggregator.tick(state, "navigation", START_S + 2431)) == [("0", "within", 0)]
    assert state.groups["default", "0"].live == 0.2


def test_situation_3_a_version_is_not_in_breach_for_what_another_runs_under() -> None:
    events: list[FamilyEvent] = [*withstands(1.0, version="2", task="other")]
    events = [msgspec.structs.replace(e, key=msgspec.structs.replace(e.key, session="2")) for e in events]
    aggregator, state = fed([*withstands(0.0, version="1"), *events])
    aggregator.take(state, begun_of("a", version="1", stress=0.0), START_S)
    aggregator.take(state, begun_of("b", version="2", stress=0.8), START_S)
    aggregator.tick(state, "navigation", START_S + 60)
    assert {key: (group.live, group.watch.state) for key, group in state.groups.items()} == {
        ("default", "1"): (0.0, "within"),
        ("default", "2"): (0.8, "within"),
    }


def test_situation_3_a_burst_within_30_milliseconds_begins_no_breach() -> None:
    aggregator, state = fed(withstands(0.2))
    for i in range(30):
        assert aggregator.take(state, begun_of(f"live-{i}", stress=0.8), START_S + i / 1000) == []
    for i in range(30):
        aggregator.take(state, summary_of(f"live-{i}", stress=0.8), START_S + 0.03 + i / 1000)
    aggregator.tick(state, "navigation", START_S + 100)
    assert (state.groups["default", "0"].watch.state, state.groups["default", "0"].watch.breach.beginnings) == (None, 0)


def test_situation_3_a_repaired_fleet_gets_its_capacity_back() -> None:
    failed = {"outcome": "failure", "final_progress": 0.0, "final_propositions": 0.0}
    _, state = fed([summary_of(f"bad-{i}", stress=0.4, **failed) for i in range(6)], AUTO)

    def good(first: int, last: int) -> str:
        for i in range(first, last):
            FamilyAggregator(AUTO).take(state, summary_of(f"good-{i}", stress=0.4), START_S)
        (found,) = [p for p in state.reading("navigation", ("default", "0"), AUTO).margins if p.stress == 0.4]
        return found.state

    # Of 26 the sixth worst is still bad, and so far 95 % reach: P(Bin(26, 0.1) <= 5) = 0.960, k = 21. Of 46 they reach
    # the ninth, which is good, but the 0.1 quantile is the fifth. Of 61 that is the seventh.
    assert good(0, 20) == "broken"
    assert good(20, 40) == "undecided"
    assert good(40, 55) == "kept"


def test_situation_3_what_failed_long_ago_is_forgotten_on_the_stream() -> None:
    failed = {"outcome": "failure", "final_progress": 0.0, "final_propositions": 0.0}
    events: list[FamilyEvent] = [summary_of(f"bad-{i}", stress=0.4, **failed) for i in range(100)]
    events += [summary_of(f"good-{i}", stress=0.4) for i in range(200)]
    _, state = fed(events, AUTO)
    live = state.reading("navigation", ("default", "0"), AUTO)
    # Two generations of a hundred, all of them good; offline everything counts.
    assert [(level.episodes, level.state) for level in live.margins if level.episodes] == [(200, "kept")]
    (offline,) = aggregate(events, AUTO)
    assert [(level.episodes, level.state) for level in offline.margins if level.episodes] == [(300, "broken")]


def test_situation_4_fleets_that_declare_no_stress_have_a_level_of_their_own() -> None:
    aggregator, state = FamilyAggregator(AUTO), FamilyState()
    said: list[FamilyReading] = []
    for i in range(20):
        start_s = START_S + 60 * i
        said += aggregator.take(state, begun_of(str(i), start_s, stress=None), start_s)
        failed = summary_of(
            str(i), stress=None, outcome="failure", final_progress=0.2, final_propositions=0.0, ended_s=start_s + 50
        )
        said += aggregator.take(state, failed, start_s + 50)
    found = state.reading("navigation", ("default", "0"), AUTO)
    assert found.undeclared is not None
    assert (found.undeclared.state, found.undeclared.episodes, found.undeclared.violations) == ("broken", 20, 20)
    # p 0.2/0.5 and q 0: (0.4 + 0)/2 - 1.
    assert found.undeclared.margin == pytest.approx(-0.8)
    # 20 of 20, z = 1.96: 1/(1 + 3.84/20) = 0.839.
    assert found.undeclared.violation_low == pytest.approx(0.8389, abs=1e-4)
    # Nothing is said of stress, as nothing is known of it.
    assert (found.capacity, found.capacity_flag, found.dependable) == (None, "insufficient", None)
    assert (found.live_stress, found.stress_state, found.breaches) == (None, None, 0)
    assert sum(point.episodes for point in found.margins) == 0
    # But the contract is: from the second (AUTO has n_min = 2) failed mission on, half a minute later.
    assert (found.contract_violated, found.contract_violations) == (True, 1)
    assert [reading.contract_violated for reading in said] == [True]
    aggregator.take(state, begun_of("running", stress=None), START_S + 1300)
    (running,) = aggregator.due(state, "navigation", START_S + 1300)
    assert (running.live_stress, running.active_episodes, running.active_undeclared) == (None, 1, 1)
    # Offline too.
    (offline,) = aggregate(ends_of_undeclared(), AUTO)
    assert (offline.contract_violated, offline.contract_violations, offline.stress_state) == (True, 1, None)


def test_situation_4_a_family_that_fails_while_it_is_learning_is_told_of() -> None:
    # Eight references, which are too few to learn by, and then 20 of 20 missions fail: there was no alert at all.
    learning: dict[str, Any] = {"provisional": True, "bound_references": 4, "bound_references_needed": 20}
    failed: dict[str, Any] = {"outcome": "failure", "final_progress": 0.2, "final_propositions": 0.0, **learning}
    events: list[FamilyEvent] = [summary_of(f"clean-{i}", reference=True, **learning) for i in range(8)]
    events += [
        summary_of(str(i), stress=None, recovery_cost=None, ended_s=START_S + 60 * i, **failed) for i in range(20)
    ]
    aggregator, state = FamilyAggregator(AggregateConfig()), FamilyState()
    said = [reading for event in events for reading in aggregator.take(state, event, time_of(event))]
    # From the fifth on: the lower Wilson bound of 5 of 5 is 1/(1 + 3.84/5) = 0.566. It is told with the next event.
    assert [(reading.contract_violated, reading.episodes) for reading in said] == [(True, 14)]
    found = state.reading("navigation", ("default", "0"), AggregateConfig())
    assert (found.learning, found.contract_violated, found.contract_violations, found.violated) == (True, True, 1, True)
    assert found.undeclared is not None
    assert (found.undeclared.episodes, found.undeclared.provisional, found.undeclared.violations) == (0, 20, 20)
    assert (found.undeclared.state, found.undeclared.margin) == ("insufficient", None)
    assert found.undeclared.violation_low == pytest.approx(0.8389, abs=1e-4)
    # In no capacity, and the clean ones violate nothing.
    assert (found.capacity, found.capacity_flag, found.dependable) == (None, "insufficient", None)
    assert (found.margins[0].provisional, found.margins[0].violations) == (8, 0)
    assert violated_sentences(found) == [
        "Contract violated: under undeclared stress 20 of 20 (84 to 100 %; of which 20 provisional) episodes broke it."
    ]


def ends_of_undeclared() -> list[EpisodeSummary]:
    return [summary_of(str(i), stress=None, final_propositions=0.0, ended_s=START_S + 60 * i) for i in range(20)]


def test_situation_6_why_perturbed_episodes_found_no_pair() -> None:
    pushed: dict[str, Any] = {"stress": 0.4, "magnitude": 0.5, "perturbation": "physical"}
    events = [
        summary_of("1", task="mug", reference=True, stability_loss=1.0),
        summary_of("2", task="mug", stability_loss=1.5, **pushed),  # |1.5 - 1|/0.5 = 1
        summary_of("3", task="door", reference=True, version="old"),
        summary_of("4", task="door", **pushed),
        summary_of("5", task="cup", reference=True, provisional=True),
        summary_of("6", task="cup", **pushed),
        summary_of("7", task="box", **pushed),
        summary_of("8", task="mug", **pushed | {"stability_loss": None}),
        summary_of("9", task="mug", **pushed | {"stress": None, "magnitude": 0.0}),
        summary_of("10", task="mug", provisional=True, **pushed),
        summary_of("11", task="mug", outcome="aborted", **pushed),
    ]
    found = {reading.version: reading for reading in aggregate(events, AUTO)}["0"]
    assert found.pairs == 1
    assert found.beta == pytest.approx(1.0)
    assert found.beta_difference == pytest.approx(0.5)
    assert found.unpaired == {
        "no_magnitude": 1, "no_twin": 1, "other_version": 1, "twin_unmeasured": 1, "unmeasured": 1,
    }  # fmt: skip
    assert (found.episodes, found.provisional_episodes, found.censored) == (9, 2, 1)

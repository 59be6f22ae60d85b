"""What the page alerts to, and that it is what the rules for Prometheus say."""

import re
from typing import Any

import pytest
from msgspec.structs import replace

from springback.dashboards.live_page.alerts import conditions
from springback.dashboards.live_page.alerts.conditions import RULES, Condition, conditions_of
from springback.dashboards.live_page.fleet_view import FleetView
from springback.dashboards.live_page.links import agent_link, family_link
from springback.sinks.fleet.agent_state import DEFAULT_TIMES
from springback.sinks.sink import DeadLetter
from springback.stream_processors.resilience.readings import (
    ContractThresholds,
    EpisodeSummary,
    Reading,
    decode_reading,
    encode_reading,
)
from tests.dashboards.live_page.fake_fleet import NOTHING_KNOWN, family, status, summary
from tests.deploy.monitoring import rule_reading

NOW_S = 100_000.0
CALM: dict[str, Any] = {"updated_s": NOW_S - 10, "contract_violated": False, "margins": (), "live_stress": 0.2}


def view_of(*readings: Reading) -> FleetView:
    view = FleetView()
    view.sight.caught_up = True
    for reading in readings:
        view.take(reading, NOW_S)
    view.sight.show_frames_behind({0: 0}, NOW_S)
    return view


def found(view: FleetView, now_s: float = NOW_S) -> list[Condition]:
    return conditions_of(view, now_s, DEFAULT_TIMES)


def names(view: FleetView, now_s: float = NOW_S) -> list[str]:
    return [condition.rule.name.removeprefix("Springback") for condition in found(view, now_s)]


def episodes(number: int, aborted: int = 0, cost: float = 1.0, ago_s: float = 60.0) -> list[EpisodeSummary]:
    return [
        replace(
            summary("robot-1", str(n), outcome="aborted" if n < aborted else "success"),
            ended_s=NOW_S - ago_s,
            recovery_cost=cost,
        )
        for n in range(number)
    ]


def test_the_rules_are_those_for_prometheus() -> None:
    unit_s = {"s": 1, "m": 60, "h": 3600}

    def seconds(text: str) -> float:
        return int(text[:-1]) * unit_s[text[-1]]

    shipped: dict[str, set[tuple[Any, ...]]] = {}
    for rule in rule_reading.alerts():
        told = (
            rule["labels"]["severity"],
            rule["labels"]["about"],
            *(seconds(rule.get(key, "0s")) for key in ("for", "keep_firing_for")),
        )
        shipped.setdefault(rule["alert"], set()).add(told)
    assert {rule.name: {rule[1:]} for rule in RULES} == {rule.name: shipped[rule.name] for rule in RULES}
    sections = rule_reading.runbook_sections()
    assert all(rule.name in sections for rule in RULES)


@pytest.mark.parametrize(
    ("alert", "numbers"),
    [
        (conditions.OPEN_WINDOW, ["> 300"]),
        (conditions.BEHIND, ["<= 30"]),
        (conditions.ABORTED, ["> 0.3", ">= 5"]),
        (conditions.COST, [">= 5"]),
        (conditions.BETA, [">= 5"]),
    ],
)
def test_the_thresholds_are_those_for_prometheus(alert: conditions.AlertRule, numbers: list[str]) -> None:
    (expression,) = {rule["expr"] for rule in rule_reading.alerts() if rule["alert"] == alert.name}
    told = re.findall(r"[<>]=? [0-9.]+", expression)
    assert [number for number in told if number != "> 0"] == numbers
    assert (conditions.OPEN_S, conditions.LATE_S, conditions.MOST_ABORTED, conditions.LEAST_EPISODES) == (
        300,
        30,
        0.3,
        5,
    )
    past = next(
        r["expr"] for r in rule_reading.rules(rule_reading.RECORDING_RULES) if r["record"].endswith("family_past")
    )
    assert [float(n) for n in re.findall(r"> ([0-9]+)", past)] == [conditions.PAST_S, 0, conditions.LOST_S]


def test_a_calm_fleet_has_none() -> None:
    assert found(view_of(status("robot-1", seen_s=NOW_S), family(**CALM), *episodes(9))) == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"stress_state": "breach"}, ["StressCapacityBreach"]),
        ({"contract_violated": True}, ["ContractViolated"]),
        ({"stress_state": "untested"}, ["StressUntested"]),
        ({"stress_state": "untested", "bound_references": 12}, []),  # it is learning: nobody need be told
        ({"margins": family().margins}, ["MarginNegative"]),
        ({"stability_repeatability": None, "beta_p95": 7.0}, ["BetaAboveContract"]),
        ({"stability_repeatability": None, "beta_p95": 7.0, "pairs": 4}, []),
        ({"stability_repeatability": 0.9, "beta_p95": 7.0}, []),  # no more than two clean runs differ by
        (NOTHING_KNOWN, []),
    ],
)
def test_what_is_known_of_a_family(fields: dict[str, Any], expected: list[str]) -> None:
    thresholds = ContractThresholds(progress=0.5, propositions=0.5, recovery=5.0, stability=6.0, safety=5.0)
    reading = family(**(CALM | {"thresholds": thresholds} | fields))
    view = view_of(decode_reading(encode_reading(reading)))
    assert names(view) == expected
    for condition in found(view):
        assert (condition.subject, condition.link) == ("navigation \N{MIDDLE DOT} reflexion 1.4", family_link(reading))


def test_a_family_that_has_ended_is_told_of_for_an_hour_and_one_that_runs_for_a_day() -> None:
    broken: dict[str, Any] = CALM | {"contract_violated": True, "stress_state": "breach"}
    ended, runs = view_of(family(**broken, active_episodes=0)), view_of(family(**broken, active_episodes=1))
    hour, day = NOW_S - 10 + 3600, NOW_S - 10 + 86_400
    for view in (ended, runs):
        view.sight.show_frames_behind({}, day)
    assert [len(names(ended, at)) for at in (hour, hour + 1)] == [2, 0]
    assert [len(names(runs, at)) for at in (hour + 1, day, day + 1)] == [2, 2, 0]


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (episodes(16, aborted=5), ["EpisodesAborted"]),
        (episodes(17, aborted=5), []),  # 5 of 17 are less than three in ten
        (episodes(4, aborted=4), []),
        (episodes(16, aborted=5, ago_s=3601), []),
        (episodes(5, cost=5.01), ["RecoveryCostAboveContract"]),
        (episodes(5, cost=5.0), []),
        (episodes(4, cost=9.0), []),
        (episodes(10, aborted=6, cost=9.0), ["EpisodesAborted"]),  # the cost of an aborted episode is not known
    ],
)
def test_what_the_last_hour_shows(ended: list[EpisodeSummary], expected: list[str]) -> None:
    thresholds = ContractThresholds(progress=0.5, propositions=0.5, recovery=5.0, stability=None, safety=5.0)
    assert names(view_of(family(**CALM, thresholds=thresholds), *ended)) == expected


def test_an_agent_is_told_of_with_since_when() -> None:
    silent = status("robot-1", seen_s=NOW_S - 90)
    stale = status("robot-2", seen_s=NOW_S, step_s=NOW_S - 70)
    stalled = status("robot-3", seen_s=NOW_S, step_s=NOW_S, progress_s=NOW_S - 400)
    contested = status("robot-4", seen_s=NOW_S, step_s=NOW_S, contested_s=NOW_S - 5)
    rebound = status("robot-5", seen_s=NOW_S, departed=4)
    told = {c.subject: c for c in found(view_of(silent, stale, stalled, contested, rebound))}
    assert {subject: (c.rule.name, c.since_s, c.true_s) for subject, c in told.items()} == {
        "robot-1": ("SpringbackAgentSilent", NOW_S - 90, NOW_S - 30),
        "robot-2": ("SpringbackAgentStale", NOW_S - 70, NOW_S - 10),
        "robot-3": ("SpringbackAgentStalled", NOW_S - 400, NOW_S - 100),
        "robot-4": ("SpringbackAgentContested", None, None),
    }
    assert all(c.link == agent_link(subject) for subject, c in told.items())
    late = view_of(rebound, replace(rebound, seen_s=NOW_S + 301, step_s=NOW_S + 301, progress_s=NOW_S + 301))
    late.sight.show_frames_behind({}, NOW_S + 301)
    (window,) = found(late, NOW_S + 301)
    assert (window.rule.name, window.since_s) == ("SpringbackReboundWindowOpenTooLong", NOW_S)


def test_frames_that_wait_and_dead_letters() -> None:
    view = view_of(status("robot-1", seen_s=NOW_S - 31))
    view.sight.show_frames_behind({0: 3, 1: 4}, NOW_S)
    for number, (reason, sent_s) in enumerate(
        [("unreadable", NOW_S - 601), ("over_bounds", NOW_S - 60), ("too_costly", NOW_S - 1), ("nan", NOW_S - 2)]
    ):
        view.take_dead_letter(DeadLetter(reason, bytes([number]), sent_s))
    view.take_dead_letter(DeadLetter("of_an_unknown_time", b"x"))
    assert [(c.rule.name.removeprefix("Springback"), c.subject, c.since_s) for c in found(view)] == [
        ("PipelineBehind", "steps", None),
        ("DeadLetters", "nan", NOW_S - 2),
        ("DeadLetters", "over bounds", NOW_S - 60),
        ("ProducerOverBounds", "over bounds", NOW_S - 60),
        ("DeadLetters", "too costly", NOW_S - 1),
        ("MessageGivenUp", "too costly", NOW_S - 1),
    ]
    assert "wait unread (7)" in found(view)[0].told
    view.sight.heard(NOW_S)
    assert "PipelineBehind" not in names(view)


def test_while_nothing_is_seen_that_is_all_there_is_to_tell() -> None:
    view = view_of(family(**(CALM | {"contract_violated": True})), status("robot-1", seen_s=NOW_S - 90))
    view.sight.show_broker_away(NOW_S + 5)
    (away,) = found(view, NOW_S + 5)
    assert (away.rule.name, away.since_s) == ("SpringbackExporterBlind", NOW_S)
    view.sight.show_frames_behind({}, NOW_S + 6)
    view.sight.caught_up = False
    (reading,) = found(view, NOW_S + 6)
    assert (reading.rule, reading.since_s) == (away.rule, None)

"""From agents on a robot's side to a message in someone's hand, every piece the real one."""

import re
import urllib.parse
from pathlib import Path
from typing import Any

import pytest

from springback.stream_processors.metrics.catalogue import METRIC_CATALOGUE
from springback.stream_processors.metrics.spec import MetricSpec
from tests.deploy.monitoring.fleet_traffic import BREACHED, FIELD
from tests.deploy.monitoring.monitoring_stack import MonitoringStack
from tests.deploy.monitoring.monitoring_tools import output_of

pytestmark = pytest.mark.broker

BREACH = "SpringbackStressCapacityBreach"
VIOLATED = "SpringbackContractViolated"
# What this fleet has on purpose, and what follows from it.
EXPECTED_ALERTS = {
    BREACH,
    VIOLATED,
    "SpringbackStressUntested",
    "SpringbackMarginNegative",
    "SpringbackRecoveryCostAboveContract",
    "SpringbackBetaAboveContract",
    "SpringbackReboundWindowOpenTooLong",
    "SpringbackAgentSilent",
    "SpringbackAgentStale",
    "SpringbackDeadLetters",
    "SpringbackSuspicions",
}
SUSPECTED = {"unreadable_part", "rejected_part", "clock_unset", "session_reused"}
"""Of `odd-1`, and of `echo-1`, whose steps come again with other content."""
# What only a fault of the pipeline, a far larger fleet, or topics with a past bring to the page.
UNLIT = {
    "springback_exporter_reach_timestamp_seconds",
    "springback_exporter_overflow_readings_total",
    "springback_exporter_refused_values_total",
    "springback_exporter_sink_retries_total",
}


def test_both_jobs_are_scraped_and_every_rule_is_evaluated(monitoring: MonitoringStack) -> None:
    monitoring.wait_until(
        lambda: (
            {sample.labels["job"] for sample in monitoring.prometheus.query("up == 1")}
            == {"springback-exporter", "springback-worker"}
        ),
        "both jobs up",
    )

    def states() -> list[tuple[str, str]]:
        groups = monitoring.prometheus.api("/api/v1/rules")["data"]["groups"]
        return [(rule["health"], rule.get("lastError", "")) for group in groups for rule in group["rules"]]

    monitoring.wait_until(lambda: all(health != "unknown" for health, _ in states()), "an evaluation of every rule")
    assert set(states()) == {("ok", "")}


def test_promtool_finds_no_fault_in_the_pages(monitoring: MonitoringStack) -> None:
    worker = f"http://{urllib.parse.urlsplit(monitoring.stack.health_url).netloc}/metrics"
    for page in (monitoring.metrics_page(), monitoring.metrics_page(worker)):
        assert page.count("\n") > 50
        assert output_of("promtool", "check", "metrics", given=page) == ""


def test_the_fleet_lights_up_the_catalogue(monitoring: MonitoringStack) -> None:
    dark = [spec for spec in METRIC_CATALOGUE if spec.name not in UNLIT]

    def still_dark() -> list[str]:
        names = {sample.labels["__name__"] for sample in monitoring.prometheus.query('{__name__=~"springback_.+"}')}
        return [spec.name for spec in dark if _series_name(spec) not in names]

    monitoring.wait_until(lambda: not still_dark(), lambda: f"a series of {still_dark()}")


def test_exemplars_lead_to_an_episode(monitoring: MonitoringStack) -> None:
    def found() -> list[dict[str, Any]]:
        now_s = monitoring.prometheus.query("time()")[0].value
        selector = "springback_episode_recovery_cost_bucket"
        return monitoring.prometheus.exemplars(selector, monitoring.started_s - 60, now_s + 60)

    monitoring.wait_until(found, "an exemplar")
    labels = found()[0]["exemplars"][0]["labels"]
    assert labels["episode"].startswith(("teacher-", "runner-", "calm-"))


def test_a_breach_is_told_and_later_its_end(monitoring: MonitoringStack) -> None:
    receiver = monitoring.receiver
    monitoring.wait_until(lambda: receiver.alerts(BREACH, "firing"), "a message that tells of the breach")
    (first, *_) = receiver.alerts(BREACH, "firing")
    assert first["labels"] == {
        "alertname": BREACH,
        "severity": "critical",
        "about": "family",
        "job": "springback-exporter",
        **BREACHED,
    }
    summary, description = first["annotations"]["summary"], first["annotations"]["description"]
    assert summary == "navigation (reflexion 2) runs under stress at which it is known to break its contract"
    broken = r"A stress level at or below that of its running episodes \(0.8\) is broken \(broken: (0.6 0.8|0.8 0.6)\)"
    assert re.search(broken, description)
    assert "Dependable is 0.4." in description
    link = urllib.parse.urlsplit(first["annotations"]["runbook_url"])
    assert f"## {BREACH}\n" in Path(link.path).read_text()
    assert link.fragment == BREACH.lower()
    (message, *_) = [found for found in receiver.messages if first in found["alerts"]]
    assert message["groupLabels"] == {"family": "navigation", "method": "reflexion"}

    assert not receiver.alerts(BREACH, "resolved")
    monitoring.traffic.end_breach()
    monitoring.traffic.flush()
    monitoring.wait_until(lambda: receiver.alerts(BREACH, "resolved"), "a message that tells of its end")
    assert receiver.alerts(BREACH, "resolved")[0]["labels"] == first["labels"]

    told = [alert for message in receiver.messages for alert in message["alerts"]]
    assert {alert["labels"]["alertname"] for alert in told} <= EXPECTED_ALERTS
    assert {a["labels"]["kind"] for a in told if a["labels"]["alertname"] == "SpringbackSuspicions"} <= SUSPECTED
    assert "<error" not in str(told)
    margins = [a for a in told if a["labels"]["alertname"] == "SpringbackMarginNegative" and a["status"] == "firing"]
    assert all(a["startsAt"] for a in margins)


def test_missions_that_fail_are_told_where_nobody_declared_their_stress(monitoring: MonitoringStack) -> None:
    """20 of 20: by Wilson 1/(1 + 1.96^2/20) = 83.89 % or more. Nothing is said of a live stress, for there is none."""
    receiver = monitoring.receiver

    def told() -> list[dict[str, Any]]:
        return [alert for alert in receiver.alerts(VIOLATED, "firing") if alert["labels"].items() >= FIELD.items()]

    monitoring.wait_until(told, "a message that tells of the violated contract")
    (first, *_) = told()
    assert first["labels"]["severity"] == "critical"
    assert first["annotations"]["summary"] == (
        "manipulation (reflexion 3) breaks its contract in more than one episode of ten"
    )
    assert (
        "Of the episodes whose stress nobody declared 83.89% or more break the contract"
        in (first["annotations"]["description"])
    )
    assert "live" not in str(first["annotations"])
    assert not [alert for alert in receiver.alerts(BREACH, "firing") if alert["labels"].items() >= FIELD.items()]
    assert not monitoring.prometheus.query("springback_live_stress{version='3'}")


def _series_name(spec: MetricSpec) -> str:
    return f"{spec.name}_count" if spec.kind == "histogram" else spec.name

"""The shipped rules: their syntax, their unit tests, and that they ask for what is exported."""

import re

import pytest

from springback.producers.emitter.reports import NO_SPOOL
from springback.producers.gateway.metrics import GatewayMetrics
from springback.stream_processors.metrics.catalogue import METRIC_CATALOGUE
from springback.stream_processors.metrics.glossary import glossary_table
from springback.stream_processors.metrics.services import JUDGE_METRICS, WORKER_METRICS
from springback.stream_processors.metrics.spec import CLOSED_LABELS, MetricSpec
from tests.deploy.monitoring import rule_reading
from tests.deploy.monitoring.monitoring_tools import output_of
from tests.deploy.monitoring.rule_reading import ALERT_RULES, RECORDING_RULES, RUNBOOK, Selector, alerts, rules
from tests.house import ROOT


def gateway_series() -> set[str]:
    """The gauges of a gateway that has a spool."""
    metrics = GatewayMetrics()
    metrics.tell_spool(NO_SPOOL)
    return {metric.name for metric in metrics.registry.collect()}


SPECS = {spec.name: spec for spec in (*METRIC_CATALOGUE, *WORKER_METRICS, *JUDGE_METRICS)}
RECORDED = {rule["record"] for rule in rules(RECORDING_RULES)}
ALERTS = [pytest.param(rule, id=f"{rule['alert']}-{rule['labels']['severity']}") for rule in alerts()]
EXPRESSIONS = [
    pytest.param(rule["expr"], id=rule.get("record") or f"{rule['alert']}-{rule['labels']['severity']}")
    for rule in (*rules(RECORDING_RULES), *alerts())
]
GATEWAY = gateway_series()
JOBS = {f"springback-{service}" for service in ("exporter", "worker", "judge", "gateway")}
ADDED_LABELS = {"job", "instance", "le"}  # by Prometheus
ANY_LABEL = {label for spec in SPECS.values() for label in spec.labels} | ADDED_LABELS


def spec_of(metric: str) -> MetricSpec | None:
    """The metric's declaration; a histogram's by each of the names that its series have."""
    if metric in SPECS:
        return SPECS[metric]
    histogram = SPECS.get(re.sub(r"_(bucket|count|sum)$", "", metric))
    return histogram if histogram is not None and histogram.kind == "histogram" else None


def check_exported(selector: Selector) -> None:
    """Whether there is such a series."""
    metric, matchers = selector
    if metric == "up":
        assert matchers["job"] in JOBS
        return
    if ":" in metric:
        assert metric in RECORDED
        return
    if metric.startswith("springback_gateway_"):
        assert metric in GATEWAY
        return
    spec = spec_of(metric)
    assert spec is not None, f"{metric} is not in the catalogue"
    assert matchers.keys() <= {*spec.labels, *ADDED_LABELS}, metric
    for label in matchers.keys() & CLOSED_LABELS.keys():
        assert matchers[label] in CLOSED_LABELS[label] | {"%q"}, f"{metric}{{{label}}}"


@pytest.mark.broker
def test_promtool_finds_no_fault() -> None:
    for path in (RECORDING_RULES, *ALERT_RULES):
        assert "SUCCESS" in output_of("promtool", "check", "rules", str(path))
    assert "SUCCESS" in output_of("promtool", "check", "config", str(RECORDING_RULES.with_name("prometheus.yml")))


@pytest.mark.broker
@pytest.mark.parametrize("path", rule_reading.RULE_TESTS, ids=lambda path: path.stem)
def test_the_rules_pass_their_unit_tests(path: object) -> None:
    assert "SUCCESS" in output_of("promtool", "test", "rules", str(path))


def test_every_alert_is_tested_both_ways() -> None:
    assert rule_reading.tested_ways() == {rule["alert"]: {True, False} for rule in alerts()}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_rules_ask_for_what_is_exported(expression: str) -> None:
    found = rule_reading.selectors(expression)
    assert found
    for selector in found:
        check_exported(selector)
    assert rule_reading.label_lists(expression) <= ANY_LABEL


@pytest.mark.parametrize("rule", ALERTS)
def test_an_alert_says_what_it_is_about_and_leads_to_the_runbook(rule: rule_reading.Rule) -> None:
    name = rule["alert"]
    assert re.fullmatch(r"Springback[A-Z]\w+", name)
    assert rule["labels"].keys() == {"severity", "about"}
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert rule["labels"]["about"] in {"agent", "family", "pipeline", "worker", "exporter"}
    assert "keep_firing_for" in rule
    annotations = rule["annotations"]
    assert annotations.keys() == {"summary", "description", "runbook_url"}
    assert "Look at" in annotations["description"]
    assert annotations["runbook_url"] == f"{RUNBOOK.relative_to(ROOT)}#{name.lower()}"
    for selector in rule_reading.selectors("".join(annotations.values())):
        check_exported(selector)


def test_the_runbook_has_a_section_for_every_alert_and_no_other() -> None:
    sections = rule_reading.runbook_sections()
    assert set(sections) == {rule["alert"] for rule in alerts()}
    for name, text in sections.items():
        for part in ("**Look at**", "**Do**", "**False alarm**"):
            assert part in text, f"{name}: {part}"
        for selector in rule_reading.selectors(text):
            check_exported(selector)


def test_the_runbook_has_the_words_of_the_glossary() -> None:
    told = "what `python -m springback.stream_processors.metrics.glossary` prints belongs between the runbook's marks"
    between = re.search(r"<!-- Words: .*? -->\n\n(.*?)\n\n<!-- End of the words. -->", RUNBOOK.read_text(), re.DOTALL)
    assert between is not None, told
    assert between[1] == glossary_table(), told

"""What the shipped rules, their unit tests and the runbook say. PromQL is read by pattern."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import yaml  # type: ignore[import-untyped]

from tests.house import ROOT

PROMETHEUS = ROOT / "deploy" / "prometheus"
ALERT_RULES = (PROMETHEUS / "fleet_alerts.yml", PROMETHEUS / "pipeline_alerts.yml")
RECORDING_RULES = PROMETHEUS / "recording_rules.yml"
RUNBOOK = PROMETHEUS / "runbook.md"
RULE_TESTS = sorted((Path(__file__).parent / "rules").glob("*.yml"))

Rule = dict[str, Any]
_SELECTOR = re.compile(r"\b(springback(?:_[a-z0-9_]+|:[a-z0-9_:]+)|up(?=\{))\b(?:\{([^}]*)\})?")
_MATCHER = re.compile(r"([a-z_]+)\s*(=~|!~|!=|=)\s*(\"[^\"]*\"|%q)")
_LABEL_LIST = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right) ?\(([^)]*)\)")
_FIRING = re.compile(r'ALERTS\{alertname="(\w+)",alertstate="firing"\}')


class Selector(NamedTuple):
    """A metric that is asked for, and the labels and values that it is asked by."""

    metric: str
    matchers: dict[str, str]


def rules(path: Path) -> list[Rule]:
    """All rules of a file."""
    return [rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]


def alerts() -> list[Rule]:
    """The alerts."""
    return [rule for path in ALERT_RULES for rule in rules(path)]


def selectors(text: str) -> list[Selector]:
    """The metrics of ours in an expression, or in prose."""
    return [
        Selector(name, {label: value.strip('"') for label, _, value in _MATCHER.findall(matchers)})
        for name, matchers in _SELECTOR.findall(text)
    ]


def label_lists(text: str) -> set[str]:
    """The labels in clauses such as `by (...)`."""
    found = (label.strip() for group in _LABEL_LIST.findall(text) for label in group.split(","))
    return {label for label in found if label}


def runbook_sections() -> dict[str, str]:
    """The runbook's sections by heading."""
    parts = re.split(r"^## (.+)$", RUNBOOK.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def tested_ways() -> dict[str, set[bool]]:
    """By alert, whether a unit test expects it to fire (True), and whether one expects it not to (False)."""
    ways: dict[str, set[bool]] = {}
    for path in RULE_TESTS:
        for test in yaml.safe_load(path.read_text())["tests"]:
            for check in test["promql_expr_test"]:
                for name in _FIRING.findall(check["expr"]):
                    ways.setdefault(name, set()).add(bool(check["exp_samples"]))
    return ways

"""What counts as having come within a window, on Prometheus' own engine (`promtool test rules`)."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from springback.dashboards.grafana_parts.metric_query import MetricQueries
from springback.stream_processors.metrics.catalogue import WINDOWS_OPENED
from springback.stream_processors.metrics.exporter import CAUGHT_UP
from tests.deploy.monitoring.monitoring_tools import output_of

RISE = MetricQueries({}).rise(WINDOWS_OPENED, ("family",), window="4m")
GROUP = 'family="nav",method="m",version="1",perturbation="none"'


class Page(NamedTuple):
    """What one exporter shows from minute 0 on: windows opened, and whether it has caught up."""

    opened: str
    caught_up: str


def check(tmp_path: Path, minute: int, expected: float, *pages: Page) -> None:
    series = []
    for number, page in enumerate(pages):
        target = f'job="springback-exporter",instance="{number}"'
        series.append({"series": f"{WINDOWS_OPENED.name}{{{GROUP},{target}}}", "values": page.opened})
        series.append({"series": f"{CAUGHT_UP.name}{{{target}}}", "values": page.caught_up})
    samples = [{"labels": '{family="nav"}', "value": expected}]
    case = {"expr": RISE, "eval_time": f"{minute}m", "exp_samples": samples}
    file = tmp_path / "rise.yml"
    file.write_text(json.dumps({"tests": [{"interval": "1m", "input_series": series, "promql_expr_test": [case]}]}))
    assert "SUCCESS" in output_of("promtool", "test", "rules", str(file))


# Ten scrapes each; the window at minute 9 holds the last five.
ALWAYS = "1 1 1 1 1 1 1 1 1 1"
NEW = "_ _ _ _ _ _ _ 1 1 1"
RESTARTED = "1 1 1 1 1 1 0 1 1 1"


@pytest.mark.parametrize(
    ("opened", "caught_up", "expected"),
    [
        pytest.param("5 5 5 5 5 5 5 5 5 5", ALWAYS, 0, id="nothing came"),
        pytest.param("5 5 5 5 5 5 5 8 8 8", ALWAYS, 3, id="three more"),
        pytest.param("1 2 3 4 5 6 7 8 9 10", ALWAYS, 4, id="one a minute"),
        pytest.param("_ _ _ _ _ _ _ 7 7 7", ALWAYS, 7, id="the first ones, all at once"),
        pytest.param("_ _ _ _ _ _ _ 7 9 9", ALWAYS, 9, id="the first ones and two more"),
        pytest.param("_ _ _ _ _ _ _ 500 500 500", NEW, 0, id="the past of an exporter that is new to Prometheus"),
        pytest.param("_ _ _ _ _ _ _ 500 502 502", NEW, 2, id="what comes after that"),
        pytest.param("5 5 5 5 5 5 _ 5 5 5", RESTARTED, 0, id="a restart"),
        pytest.param("5 5 5 5 5 5 _ 6 6 6", RESTARTED, 1, id="a window opened during a restart"),
        pytest.param("5 5 5 5 5 5 _ 4 4 4", RESTARTED, 0, id="a restart after retention took some"),
    ],
)
def test_what_came_within_a_window(tmp_path: Path, opened: str, caught_up: str, expected: float) -> None:
    check(tmp_path, 9, expected, Page(opened, caught_up))


def test_two_exporters_show_the_same_windows_once(tmp_path: Path) -> None:
    check(tmp_path, 9, 3, *[Page("5 5 5 5 5 5 5 8 8 8", ALWAYS)] * 2)


def test_a_second_exporter_that_is_new_changes_nothing(tmp_path: Path) -> None:
    check(tmp_path, 9, 3, Page("5 5 5 5 5 5 5 8 8 8", ALWAYS), Page("_ _ _ _ _ _ _ 8 8 8", NEW))

import re

from springback.sinks.metrics_reference import REFERENCE, metrics_reference
from springback.stream_processors.metrics.catalogue import METRIC_CATALOGUE
from springback.stream_processors.metrics.services import JUDGE_METRICS, WORKER_METRICS


def test_the_reference_is_fresh() -> None:
    told = "sinks/metrics.md is not what the metric catalogue says; run: python -m springback.sinks.metrics_reference"
    assert REFERENCE.read_text(encoding="utf-8") == metrics_reference(), told


def test_it_has_every_metric_once() -> None:
    listed = re.findall(r"^\| `(springback_\w+)`", metrics_reference(), re.MULTILINE)
    assert sorted(listed) == sorted(spec.name for spec in (*METRIC_CATALOGUE, *WORKER_METRICS, *JUDGE_METRICS))


def test_every_row_has_all_cells() -> None:
    rows = [line for line in metrics_reference().splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {7}

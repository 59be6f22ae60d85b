"""The page of a process's own metrics: both formats, nothing shown that was not measured, and clean for promtool."""

import os
import shutil
import subprocess
from collections.abc import Sequence

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from springback.stream_processors.metrics.catalogue import METRIC_CATALOGUE
from springback.stream_processors.metrics.services import (
    JUDGE_METRICS,
    WORKER_FRAMES,
    WORKER_LAST_OFFSET_AGE,
    WORKER_METRICS,
    WORKER_READY,
)
from springback.stream_processors.metrics.spec import MetricSpec
from springback.stream_processors.service.health import Measurement, MetricsPage

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


def page_of(*measured: Measurement, catalogue: Sequence[MetricSpec] = WORKER_METRICS) -> MetricsPage:
    return MetricsPage(CollectorRegistry(), catalogue, lambda: measured)


def text_of(page: MetricsPage) -> str:
    return page.render("")[1].decode()


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "text/plain; version=0.0.4"),
        ("*/*", "text/plain; version=0.0.4"),
        ("nonsense;;,", "text/plain; version=0.0.4"),
        (OPENMETRICS, "application/openmetrics-text; version=1.0.0"),
    ],
)
def test_the_format_is_the_one_that_was_asked_for(accept: str, content_type: str) -> None:
    page = page_of(Measurement(WORKER_FRAMES, 7), Measurement(WORKER_LAST_OFFSET_AGE, 1.5, ("track_steps",)))
    found_type, body = page.render(accept)
    assert found_type.startswith(content_type)
    parse = parse_openmetrics if "openmetrics" in content_type else parse_text
    samples = {(s.name, *s.labels.values()): s.value for family in parse(body.decode()) for s in family.samples}
    assert samples["springback_worker_frames_total",] == 7
    assert samples["springback_worker_last_offset_age_seconds", "track_steps"] == 1.5


def test_what_was_not_measured_has_no_series() -> None:
    text = text_of(page_of(Measurement(WORKER_READY, True)))
    series = [line for line in text.splitlines() if line.startswith("springback_")]
    assert series == ["springback_worker_ready 1.0"]


def test_each_scrape_measures_anew() -> None:
    frames = iter([1, 2])
    page = MetricsPage(CollectorRegistry(), WORKER_METRICS, lambda: [Measurement(WORKER_FRAMES, next(frames))])
    assert "springback_worker_frames_total 1.0" in text_of(page)
    assert "springback_worker_frames_total 2.0" in text_of(page)


def test_the_process_and_its_python_are_shown() -> None:
    text = text_of(page_of())
    assert "\nprocess_resident_memory_bytes " in text
    assert "\npython_info{" in text


def test_two_pages_cannot_share_a_registry() -> None:
    registry = CollectorRegistry()
    MetricsPage(registry, WORKER_METRICS, lambda: ())
    with pytest.raises(ValueError, match="Duplicated"):
        MetricsPage(registry, WORKER_METRICS, lambda: ())


def test_no_two_metrics_share_a_name() -> None:
    names = [spec.name for spec in {*METRIC_CATALOGUE, *WORKER_METRICS, *JUDGE_METRICS}]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("catalogue", [WORKER_METRICS, JUDGE_METRICS])
def test_promtool_finds_nothing(catalogue: Sequence[MetricSpec]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        give_up = pytest.fail if os.environ.get("CI") else pytest.skip  # CI may not skip it
        give_up("promtool is not on the path: it comes with Debian's package prometheus")
    measured = [Measurement(spec, 1, ("a",) * len(spec.labels)) for spec in catalogue]
    page = text_of(page_of(*measured, catalogue=catalogue))
    assert all(f"\n{spec.name}" in page for spec in catalogue)
    done = subprocess.run(
        [promtool, "check", "metrics"], input=page, text=True, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")

"""Every query of every panel runs on a real Prometheus and has data where every metric of the catalogue is shown."""

import json
import re
import time
import urllib.error
import urllib.parse
from collections.abc import Iterator

import pytest

from springback.dashboards.grafana_parts.colour_scheme import (
    FLAG_NUMBERS,
    LEVEL_STATE_NUMBERS,
    LIVE_STATE_NUMBERS,
    STATE_NUMBERS,
)
from springback.dashboards.grafana_parts.metric_query import (
    RATE_WINDOW,
    MetricQueries,
    capacity_flag_number,
    level_state_number,
    live_state_number,
    state_number,
)
from springback.stream_processors.metrics.catalogue import OPEN_WINDOWS
from springback.stream_processors.metrics.exporter import READINGS
from tests.dashboards.grafana_parts.catalogue_page import AGENT, catalogue_page
from tests.dashboards.grafana_parts.panel_queries import EVERYTHING, boards, panel_queries
from tests.deploy.monitoring.monitoring_servers import PrometheusServer

SCRAPES = 8
SCRAPE_TIMEOUT_S = 0.5
DEADLINE_S = 60.0
_CONFIG = """
global: {{scrape_interval: 500ms, scrape_timeout: 500ms}}
scrape_configs:
  - job_name: springback-exporter
    static_configs: [{{targets: [{target}]}}]
  - job_name: springback-worker
    static_configs: [{{targets: [{target}]}}]
"""


pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    """A Prometheus that has scraped the page a few times, as two jobs: so every series is there twice."""
    config = tmp_path_factory.mktemp("prometheus") / "prometheus.yml"
    with catalogue_page() as address:
        config.write_text(_CONFIG.format(target=urllib.parse.urlsplit(address).netloc))
        with PrometheusServer(config) as server:
            server.wait_until_ready()
            end = time.monotonic() + DEADLINE_S
            while not any(s.value >= SCRAPES for s in server.query(f"min(count_over_time({READINGS.name}[1h]))")):
                assert time.monotonic() < end, "the page was not scraped"
                time.sleep(0.1)
            yield server


def test_every_query_of_every_panel_returns_data(prometheus: PrometheusServer) -> None:
    now = time.time()
    empty, failed = [], []
    for query in panel_queries(AGENT.replace("\\", "\\\\").replace('"', '\\"')):
        try:
            found = prometheus.query_range(query.expression, now - 10, now, 0.5)
        except urllib.error.HTTPError as error:
            failed.append(f"{query.place}: {json.load(error)['error']}")
            continue
        if not any(value != "NaN" for series in found for _, value in series["values"]):
            empty.append(query.place)

    assert not failed, "\n".join(failed)
    assert not empty, "\n".join(empty)


def test_every_variable_has_values(prometheus: PrometheusServer) -> None:
    for uid, board in boards().items():
        for variable in board["templating"]["list"]:
            asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
            assert asked, variable
            selector = re.sub(r"\$(\w+)", lambda found: EVERYTHING[found[1]], asked[1])
            series = prometheus.api("/api/v1/series", **{"match[]": selector})["data"]
            assert any(labels.get(asked[2]) for labels in series), f"{uid}: {variable['name']}"


def test_series_of_two_exporters_count_once(prometheus: PrometheusServer) -> None:
    """The page is scraped as two jobs: nothing that is added up may be twice what one of them shows."""
    # One instant for all, since the two jobs are scraped at others; late enough that no scrape of before is under way.
    queries, now_s = MetricQueries({}), time.time() - 2 * SCRAPE_TIMEOUT_S
    once = prometheus.query(f"sum({OPEN_WINDOWS.name}{{job='springback-exporter'}})", now_s)
    assert [s.value for s in prometheus.query(queries.total(OPEN_WINDOWS), now_s)] == [s.value for s in once]

    largest: dict[str, float] = {}
    for sample in prometheus.query(f"rate({READINGS.name}[30s])", now_s):
        kind = sample.labels["kind"]
        largest[kind] = max(sample.value, largest.get(kind, 0.0))
    (rate,) = prometheus.query(queries.rate(READINGS).replace(RATE_WINDOW, "30s"), now_s)
    assert rate.value == pytest.approx(sum(largest.values()))
    assert rate.value > 0


def test_fleet_table_has_one_row_an_agent_with_its_state_and_group(prometheus: PrometheusServer) -> None:
    table = [q for q in panel_queries("") if (q.board, q.panel) == ("springback-fleet", "Agents")]
    state = next(query for query in table if "group_left" in query.expression)
    rows = {s.labels["agent"]: s.labels for s in prometheus.query(state.expression)}

    assert rows.keys() == {AGENT, "rover-1"}  # not `other`, which is no agent
    assert rows["rover-1"] == {
        "agent": "rover-1",
        "state": "rebound",
        "family": "navigation",
        "method": "1",
        "version": "1",
    }


def test_a_state_is_shown_by_its_number(prometheus: PrometheusServer) -> None:
    shown = {s.labels["agent"]: s.value for s in prometheus.query(state_number(MetricQueries({})))}

    assert shown == {AGENT: STATE_NUMBERS["rebound"], "rover-1": STATE_NUMBERS["rebound"]}


def test_what_stress_and_its_levels_and_the_capacity_are_is_shown_by_numbers(prometheus: PrometheusServer) -> None:
    live, flag, levels = (
        {s.value for s in prometheus.query(query(MetricQueries({})))}
        for query in (live_state_number, capacity_flag_number, level_state_number)
    )
    assert (live, flag, levels) == (
        {LIVE_STATE_NUMBERS["untested"]},
        {FLAG_NUMBERS["open"]},
        {LEVEL_STATE_NUMBERS["undecided"]},
    )


def test_of_two_exporters_the_one_that_has_heard_of_more_tells_how_old_the_newest_event_is() -> None:
    asked = {q.expression for q in panel_queries("") if "springback_last_event_age_seconds" in q.expression}
    assert asked == {"min(springback_last_event_age_seconds)"}


def test_stress_levels_without_episodes_enough_show_no_margin() -> None:
    metrics = ("springback_stress_margin", "springback_extensibility_ratio")
    asked = [q for q in panel_queries("") if any(metric in q.expression for metric in metrics)]
    assert len(asked) == 3
    too_few = r"unless ignoring \(quantity, state\) .*springback_stress_level_state\{.*state=\"insufficient\"\}\) == 1"
    assert all(re.search(too_few, query.expression) for query in asked)


def test_agents_whose_episodes_have_ended_are_not_waited_for(prometheus: PrometheusServer) -> None:
    waiting = [q for q in panel_queries("") if q.expression.startswith("topk(15, time()")]
    assert {q.panel for q in waiting} == {"Silent for", "No progress for", "In a window for"}
    for query in waiting:
        assert prometheus.query(query.expression)
        assert not prometheus.query(query.expression.replace('state="ended"', 'state="rebound"'))

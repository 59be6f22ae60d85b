"""The dashboards and the marks on the whole pipeline: a fleet's frames through Kafka, workers, exporter, Prometheus."""

import asyncio
import json
import time
import urllib.error

import pytest

from springback.sinks.grafana.annotations_sink import BREACH_TAG, OPEN_TAG, WINDOW_TAG, annotate_readings
from springback.sinks.grafana.connection import GrafanaConnection
from tests.dashboards.grafana_parts.panel_queries import PanelQuery, panel_queries
from tests.deploy.monitoring.fleet_traffic import BREACHED
from tests.deploy.monitoring.monitoring_stack import MonitoringStack
from tests.sinks.grafana.grafana_stub import TOKEN, GrafanaStub, serve

pytestmark = pytest.mark.broker

AGENT = "slow-1"  # it gets into a window and stays there
DEADLINE_S = 60.0


def test_every_query_of_every_panel_returns_data(monitoring: MonitoringStack) -> None:
    waiting = list(panel_queries(AGENT, window="5s", span="10m"))
    assert len(waiting) > 100

    def all_have_data() -> bool:
        waiting[:] = [query for query in waiting if not has_data(monitoring, query)]
        return not waiting

    try:
        monitoring.wait_until(all_have_data, "data for every panel")
    except AssertionError:
        pytest.fail("without data:\n" + "\n".join(query.place for query in waiting))


def has_data(monitoring: MonitoringStack, query: PanelQuery) -> bool:
    now = time.time()
    try:
        series = monitoring.prometheus.query_range(query.expression, monitoring.started_s, now, 1.0)
    except urllib.error.HTTPError as error:
        pytest.fail(f"{query.place}: {json.load(error)['error']}")
    return any(value != "NaN" for found in series for _, value in found["values"])


def test_windows_and_breaches_are_marked_as_they_come(monitoring: MonitoringStack) -> None:
    with serve(GrafanaStub()) as stub, GrafanaConnection(stub.url, TOKEN) as grafana:
        for _ in range(2):  # the second time as after a restart
            asyncio.run(_annotate_until(monitoring, grafana, stub))

        marks = list(stub.annotations.values())
    windows = [mark for mark in marks if WINDOW_TAG in mark["tags"]]
    identities = [next(tag for tag in mark["tags"] if tag.startswith("id:")) for mark in marks]
    assert len(identities) == len(set(identities))
    assert any(OPEN_TAG in mark["tags"] and f"agent:{AGENT}" in mark["tags"] for mark in windows)
    assert any(mark["timeEnd"] > mark["time"] for mark in windows)
    assert all(f"family:{BREACHED['family']}" in mark["tags"] for mark in marks if BREACH_TAG in mark["tags"])


async def _annotate_until(monitoring: MonitoringStack, grafana: GrafanaConnection, stub: GrafanaStub) -> None:
    stop, ready = asyncio.Event(), asyncio.Event()
    running = asyncio.ensure_future(
        annotate_readings(monitoring.stack.broker_address, stop, grafana, on_ready=lambda _: ready.set())
    )
    async with asyncio.timeout(DEADLINE_S):
        await asyncio.wait((running, asyncio.ensure_future(ready.wait())), return_when=asyncio.FIRST_COMPLETED)
        while not any(f"agent:{AGENT}" in mark["tags"] for mark in stub.annotations.values()):
            await asyncio.sleep(0.05)
    stop.set()
    await running

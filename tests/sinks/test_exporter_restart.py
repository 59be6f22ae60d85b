"""The exporter while its broker falls and comes back: a real Kafka, which keeps what it had."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.request import ProxyHandler, build_opener

import pytest
from prometheus_client.parser import text_string_to_metric_families

from springback.deploy.apache_kafka import ApacheKafka
from springback.sinks.exporter import export_readings
from springback.sinks.sink_runner import ReadingTopics
from springback.stream_processors.service.log import RepetitionFilter
from springback.stream_processors.topics import declare_topics

Make = Callable[..., Any]
Send = Callable[..., Awaitable[None]]
Until = Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]

OPENER = build_opener(ProxyHandler({}))


def totals(address: str) -> dict[str, float]:
    """The page's values, summed over labels."""
    text = OPENER.open(address, timeout=10).read().decode("utf-8")
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


@pytest.mark.kafka
def test_a_broker_that_falls_and_returns_loses_and_doubles_nothing(
    apache_kafka: str, prefix: str, send: Send, until: Until, summary: Make, caplog: pytest.LogCaptureFixture
) -> None:
    del apache_kafka  # only for its skip where there is no Kafka; this one is killed
    topics = ReadingTopics.of_prefix(prefix)
    caplog.set_level(logging.WARNING, logger="aiokafka")

    async def scenario(kafka: ApacheKafka) -> None:
        await declare_topics(kafka.address, prefix=prefix, partitions=2)
        await send(kafka.address, topics.summaries, [summary(episode=str(number)) for number in range(5)])
        stop = asyncio.Event()
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        running = asyncio.ensure_future(
            export_readings(kafka.address, stop, port=0, prefix=prefix, on_ready=ready.set_result)
        )
        address = await asyncio.wait_for(ready, 30)

        async def shows(reachable: float, steps: float) -> bool:
            page = await asyncio.to_thread(totals, address)
            shown = page["springback_exporter_broker_reachable"], page["springback_steps_total"]
            return shown == (reachable, steps)

        await until(lambda: shows(1, 100))
        await asyncio.to_thread(kafka.kill)
        await until(lambda: shows(0, 100))
        await asyncio.to_thread(kafka.start)
        await send(kafka.address, topics.summaries, [summary(episode="5", steps=11)])
        await until(lambda: shows(1, 111))
        assert "springback_exporter_repeated_readings_total" not in await asyncio.to_thread(totals, address)
        stop.set()
        await running

    caplog.handler.addFilter(repetition := RepetitionFilter())
    try:
        with ApacheKafka() as kafka:
            asyncio.run(scenario(kafka))
    finally:
        caplog.handler.removeFilter(repetition)
    lines = [(record.name, record.msg) for record in caplog.records if record.name.startswith("aiokafka")]
    assert len(lines) == len(set(lines)), "the client repeated itself"

"""Baselines out of and into a running fleet: read from the compacted topic, and replaced by a message to the learner.

An import does not write the compacted topic: it asks the one stage that does, and waits until the topic shows it.
"""

import asyncio
import uuid

import aiokafka  # type: ignore[import-untyped]
import msgspec
from springback.stream_processors.errors import BaselineImportError
from springback.stream_processors.kafka_connection import KafkaConnection
from springback.stream_processors.plain_consumer import plain_consumer, started
from springback.stream_processors.resilience.anchor import AnchorGrid
from springback.stream_processors.resilience.baseline_codec import (
    BaselineFormatError,
    BaselineReplacement,
    apply_record,
    dump_baseline,
    encode_contribution,
    family_record_key,
    load_baseline,
)
from springback.stream_processors.resilience.stage_baseline import FamilyBaseline, StageBaseline
from springback.stream_processors.topics import BASELINES, CONTRIBUTIONS, LARGEST_RECORD_BYTES, topic_name

_POLL_MS = 500


async def export_baseline(kafka: KafkaConnection, *, prefix: str = "", grid: AnchorGrid | None = None) -> bytes:
    """All that the fleet has learned, as a baseline file's content.

    Args:
        kafka: how to reach the brokers.
        prefix: what the topics' names begin with.
        grid: the anchor grid that the workers learn with; the default one where not given.

    Raises:
        BaselineFormatError: a record of the topic cannot be read.
    """
    learned = StageBaseline(grid=grid or AnchorGrid())
    consumer = plain_consumer(kafka, topic_name(BASELINES, prefix))
    async with started(consumer):
        ends = await consumer.end_offsets(consumer.assignment())
        while [place for place, end in ends.items() if await consumer.position(place) < end]:
            for records in (await consumer.getmany(timeout_ms=_POLL_MS)).values():
                for record in records:
                    apply_record(learned, record.key, record.value)
    return dump_baseline(learned)


async def import_baseline(
    kafka: KafkaConnection,
    data: bytes,
    *,
    prefix: str = "",
    grid: AnchorGrid | None = None,
    frozen: bool = False,
    timeout_s: float = 60.0,
) -> list[str]:
    """Put a baseline file's families in the place of what the fleet has learned of them.

    Families that the file does not name stay as they are. A worker must be running: it does the work.

    Args:
        kafka: how to reach the brokers.
        data: the file's content.
        prefix: what the topics' names begin with.
        grid: the anchor grid that the workers learn with; the default one where not given.
        frozen: keep the families as imported: later contributions to them are ignored and counted.
        timeout_s: how long to wait for the workers.

    Returns:
        The families.

    Raises:
        BaselineImportError: the file cannot be used, or no worker has taken it up in time.
    """
    families = _families_of(data, grid or AnchorGrid())
    request = uuid.uuid4().hex
    reader = plain_consumer(kafka, topic_name(BASELINES, prefix))
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=kafka.bootstrap, max_request_size=LARGEST_RECORD_BYTES, **kafka.client_options()
    )
    async with started(reader), started(producer):
        await reader.seek_to_end(*reader.assignment())
        for place in reader.assignment():  # where the end is must be known before the request is sent
            await reader.position(place)
        for family, baseline in families.items():
            baseline.frozen = frozen
            value = encode_contribution(BaselineReplacement(family=family, request=request, baseline=baseline))
            key = family.encode("utf-8", "replace")
            await producer.send_and_wait(topic_name(CONTRIBUTIONS, prefix), value, key=key)
        waiting = set(families)
        try:
            async with asyncio.timeout(timeout_s):
                await _see_done(reader, request, waiting)
        except TimeoutError as error:
            text = (
                f"No worker has taken up the baselines of {sorted(waiting)} within {timeout_s:.0f} s. The request is "
                "in the topic, and will be done once a worker runs; start one and look at its log."
            )
            raise BaselineImportError(text) from error
    return sorted(families)


def _families_of(data: bytes, grid: AnchorGrid) -> dict[str, FamilyBaseline]:
    try:
        found = load_baseline(data)
    except BaselineFormatError as error:
        message = f"The baseline cannot be imported: {error}."
        raise BaselineImportError(message) from error
    if found.grid != grid:
        message = f"The baseline cannot be imported: it has the grid {found.grid}, the workers have {grid}."
        raise BaselineImportError(message)
    return found.families


async def _see_done(reader: aiokafka.AIOKafkaConsumer, request: str, waiting: set[str]) -> None:
    while waiting:
        for records in (await reader.getmany(timeout_ms=_POLL_MS)).values():
            for record in records:
                family = msgspec.msgpack.decode(record.key)[0]
                if record.key != family_record_key(family) or record.value is None:
                    continue
                shown = apply_record(StageBaseline(), record.key, record.value)
                if shown is not None and shown.request == request:
                    waiting.discard(family)

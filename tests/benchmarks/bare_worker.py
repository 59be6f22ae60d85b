"""A bare Faust worker to compare ours with: it forwards each message's bytes to another topic, and keeps no state.

Everything that Faust can be told is as in the product's worker, batches and their acknowledgement by hand included; and
it says how far it is at an endpoint of the same kind. Started as a program, with the settings in SPRINGBACK_*.
"""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from springback.stream_processors.service.health import health_endpoint
from springback.stream_processors.service.log import configure_logging
from springback.stream_processors.settings import WorkerSettings, load_settings
from springback.stream_processors.topics import STEPS, topic_name
from springback.stream_processors.worker.app import create_app

FORWARDED: Final = "forwarded."
"""What the target's name begins with: the prefix of a second set of topics."""
STAGE: Final = "forward"


async def forward_steps(settings: WorkerSettings, ready_file: Path) -> None:
    """Forward until SIGTERM; the file is written once the endpoint answers."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    source, target = topic_name(STEPS, settings.prefix), topic_name(STEPS, FORWARDED + settings.prefix)
    forwarded = 0
    app = create_app(settings)
    topic = app.topic(
        source, key_serializer="raw", value_serializer="raw", partitions=settings.partitions, allow_empty=True
    )

    async def forward(stream: Any) -> None:
        nonlocal forwarded
        async for events in stream.noack_take(settings.batch_max, within=settings.batch_within_s):
            sent = [await app.producer.send(target, event.key, event.value, None, None, []) for event in events]
            for acknowledgement in sent:
                await acknowledgement
            for event in events:
                await stream.ack(event)
            forwarded += len(events)

    app.agent(topic, name=STAGE, concurrency=1)(forward)
    async with health_endpoint("127.0.0.1", 0, lambda: {"stages": {STAGE: {"events": forwarded}}}) as address:
        await app.start()
        ready_file.write_bytes(msgspec.json.encode({"health": address}))
        await stop.wait()
        await app.stop()


if __name__ == "__main__":
    configure_logging()
    asyncio.run(forward_steps(load_settings(), Path(sys.argv[1])))

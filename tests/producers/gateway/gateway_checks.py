"""A gateway in the test's own process, and frames to send to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import numpy as np

from springback.producers.contract.codec import encode_json
from springback.producers.contract.frame import EpisodeHeader, StepFrame
from springback.producers.emitter.reports import SpoolReport
from springback.producers.gateway.app import GatewayApp
from springback.producers.gateway.metrics import GatewayMetrics
from springback.producers.gateway.options import GatewayOptions
from springback.producers.gateway.request_bodies import AdmittedFrame
from springback.producers.gateway.server import serve_gateway, start_speaking
from springback.producers.gateway.spooled_delivery import Delivery

JSON = {"Content-Type": "application/json"}


def frame_of(producer: str, step: int, **header: Any) -> bytes:
    return encode_json(
        StepFrame(
            producer=producer,
            session="s",
            episodes=(EpisodeHeader(agent=producer, episode="1", family="f", **header),),
            steps={"episode": np.array([0]), "step": np.array([step]), "progress": np.array([0.5])},
        )
    )


class FakeDelivery:
    """Says of frames what the test wants said, and holds them back while `held` is not set."""

    def __init__(self) -> None:
        self.largest_record = 1024 * 1024
        self.problem: str | None = None
        self.taken: list[AdmittedFrame] = []
        self.say: dict[bytes, tuple[str, str]] = {}
        self.free = asyncio.Event()
        self.free.set()

    @property
    def kafka_up(self) -> bool:
        return self.problem is None

    @property
    def spool_report(self) -> SpoolReport | None:
        return None

    async def run(self) -> None:
        """There is nothing to connect to."""

    async def deliver(self, frames: Sequence[AdmittedFrame]) -> list[tuple[str, str] | None]:
        await self.free.wait()
        results = [self.say.get(frame.key) for frame in frames]
        self.taken += [frame for frame, problem in zip(frames, results, strict=True) if problem is None]
        return results


@asynccontextmanager
async def gateway_without_kafka(
    delivery: Delivery, **options: Any
) -> AsyncIterator[tuple[aiohttp.ClientSession, GatewayApp, int]]:
    """A client of a gateway in front of the fake, the application and the port."""
    told = GatewayOptions(bootstrap="", **options)
    metrics = GatewayMetrics()
    app = GatewayApp(told, delivery, metrics)
    runner, guard = await start_speaking(app, told, metrics)
    server = await asyncio.get_running_loop().create_server(guard, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
        try:
            yield client, app, port
        finally:
            server.close()
            if isinstance(delivery, FakeDelivery):
                delivery.free.set()
    await runner.cleanup()


@asynccontextmanager
async def gateway_on(bootstrap: str, topic: str, **options: Any) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of a whole gateway on a broker, ready or not."""
    stop = asyncio.Event()
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    told = GatewayOptions(bootstrap=bootstrap, topic=topic, port=0, **options)
    serving = asyncio.create_task(serve_gateway(told, stop, address.set_result))

    def not_started(_: object) -> None:
        if not address.done():
            address.set_exception(RuntimeError("the gateway did not start"))

    serving.add_done_callback(not_started)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(await address, connector=connector) as client:
        _stops[client] = stop
        try:
            yield client
        finally:
            del _stops[client]
            stop.set()
            await serving


_stops: dict[aiohttp.ClientSession, asyncio.Event] = {}


def stop_gateway(client: aiohttp.ClientSession) -> None:
    """Stops the gateway of this client now, as SIGTERM would."""
    _stops[client].set()


async def until_ready(client: aiohttp.ClientSession, status: int = 200, deadline_s: float = 60.0) -> None:
    async with asyncio.timeout(deadline_s):
        while True:
            async with client.get("/readyz") as answer:
                if answer.status == status:
                    return
            await asyncio.sleep(0.05)

"""Runs the gateway: listens, keeps Kafka's connection, and on a stop answers what is under way before it ends."""

import asyncio
import errno
import logging
import os
from collections.abc import Callable
from contextlib import suppress

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from springback.producers.gateway.app import GatewayApp
from springback.producers.gateway.connection_guard import ConnectionGuard
from springback.producers.gateway.errors import GatewayAddressError
from springback.producers.gateway.kafka_delivery import KafkaDelivery
from springback.producers.gateway.metrics import GatewayMetrics
from springback.producers.gateway.options import GatewayOptions

log = logging.getLogger(__name__)


class _NonsenseFilter(logging.Filter):
    """Keeps to itself what aiohttp says of bytes that are no HTTP: a flood of them, with headers as they came."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


http_log = logging.getLogger("springback.producers.gateway.http")
http_log.addFilter(_NonsenseFilter())

BACKLOG = 512
LINGER_S = 1.0


async def serve_gateway(
    options: GatewayOptions, stop: asyncio.Event, on_listening: Callable[[str], None] | None = None
) -> None:
    """Serves until `stop` is set, then answers the requests under way within `drain_timeout_s`.

    Args:
        options: what the gateway is told.
        stop: ends it.
        on_listening: called with the address once it listens; Kafka may not be there yet.

    Raises:
        GatewayOptionsError: it would listen beyond this machine without a token.
        GatewayAddressError: it cannot listen there.
    """
    options.check()
    metrics = GatewayMetrics()
    delivery = KafkaDelivery(
        options.bootstrap, options.topic, ack_timeout_s=options.ack_timeout_s, client_options=options.client_options
    )
    gateway = GatewayApp(options, delivery, metrics)
    runner, guard = await start_speaking(gateway, options, metrics)
    connecting = asyncio.create_task(delivery.run())
    try:
        server = await listen(guard, options)
        if on_listening is not None:
            scheme, host = "https" if options.tls is not None else "http", options.host
            bracketed = f"[{host}]" if ":" in host else host
            on_listening(f"{scheme}://{bracketed}:{server.sockets[0].getsockname()[1]}")
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait([stopped, connecting], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        gateway.draining = True
        server.close()
        if connecting.done():
            connecting.result()  # a fault of ours: it must not go on without Kafka
    finally:
        await runner.cleanup()
        connecting.cancel()
        with suppress(asyncio.CancelledError):
            await connecting
        log.info("the gateway has ended")


async def listen(guard: ConnectionGuard, options: GatewayOptions) -> asyncio.Server:
    """The server that hands each connection to the guard.

    Raises:
        GatewayAddressError: it cannot listen there.
    """
    try:
        return await asyncio.get_running_loop().create_server(
            guard,
            options.host,
            options.port,
            ssl=options.tls,
            backlog=BACKLOG,
            ssl_handshake_timeout=options.header_timeout_s if options.tls is not None else None,
        )
    except OSError as error:
        code = error.errno or 0
        reason = os.strerror(code) if code in errno.errorcode else error.strerror or str(error)  # asyncio adds to it
        message = (
            f"the gateway cannot listen at {options.host}:{options.port} ({reason}). "
            "Choose another port with --port, or 0 for any free one"
        )
        raise GatewayAddressError(message) from error


async def start_speaking(
    gateway: GatewayApp, options: GatewayOptions, metrics: GatewayMetrics
) -> tuple[web.AppRunner, ConnectionGuard]:
    """What speaks HTTP for the gateway (to be cleaned up at the end), and what makes the protocols of connections."""
    runner = web.AppRunner(
        gateway.build(),
        access_log=None,
        logger=http_log,
        auto_decompress=False,  # `request_bodies` unpacks them, within bounds
        shutdown_timeout=options.drain_timeout_s,
        keepalive_timeout=options.header_timeout_s,
        lingering_time=LINGER_S,
    )
    await runner.setup()
    assert runner.server is not None
    gateway.guard = ConnectionGuard(
        runner.server,
        most_connections=options.most_connections,
        silence_s=options.header_timeout_s,
        request_s=options.body_timeout_s + 2 * options.ack_timeout_s,
        metrics=metrics,
    )
    return runner, gateway.guard

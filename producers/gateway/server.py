"""Runs the gateway: listens, keeps the connection to Kafka, and answers the requests under way before it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from aiohttp import web

from springback.producers.gateway.app import GatewayApp
from springback.producers.gateway.kafka_delivery import KafkaDelivery
from springback.producers.gateway.metrics import GatewayMetrics
from springback.producers.gateway.options import GatewayOptions
from springback.producers.gateway.spooled_delivery import Delivery, SpooledDelivery
from springback.producers.http_server import ConnectionGuard, ConnectionLimits, listen
from springback.producers.serving import open_socket, server_url

log = logging.getLogger(__name__)


async def serve_gateway(
    options: GatewayOptions, stop: asyncio.Event, on_listening: Callable[[str], None] | None = None
) -> None:
    """Serves until `stop` is set, then answers the requests under way within `drain_timeout_s`.

    Args:
        options: what the gateway is started with.
        stop: ends it.
        on_listening: called with the address once it listens; Kafka may not be there yet.

    Raises:
        GatewayOptionsError: it would listen beyond this machine without a token.
        ServerAddressError: it cannot listen there.
        SpoolInUseError: another process has the spool.
    """
    options.check()
    at = open_socket(options.host, options.port, what="gateway")
    metrics = GatewayMetrics()
    delivery = _delivery(options)
    gateway = GatewayApp(options, delivery, metrics)
    runner, guard = await start_speaking(gateway, options, metrics)
    connecting = asyncio.create_task(delivery.run())
    try:
        server = await listen(guard, at, options.tls, options.header_timeout_s)
        if on_listening is not None:
            scheme = "https" if options.tls is not None else "http"
            on_listening(server_url(scheme, options.host, at.getsockname()[1]))
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait([stopped, connecting], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        gateway.draining = True
        server.close()
        if connecting.done():
            connecting.result()  # a fault of ours: it must not go on without Kafka
    finally:
        at.close()
        await runner.cleanup()
        connecting.cancel()
        with suppress(asyncio.CancelledError):
            await connecting
        log.info("the gateway has ended")


def _delivery(options: GatewayOptions) -> Delivery:
    where, timeout_s = (options.bootstrap, options.topic), options.ack_timeout_s
    if options.spool is None:
        return KafkaDelivery(*where, ack_timeout_s=timeout_s, client_options=options.client_options)
    return SpooledDelivery.to_kafka(*where, options.spool, ack_timeout_s=timeout_s, **options.spool_client_options)


async def start_speaking(
    gateway: GatewayApp, options: GatewayOptions, metrics: GatewayMetrics
) -> tuple[web.AppRunner, ConnectionGuard]:
    """Starts what speaks HTTP for the gateway (to be cleaned up at the end), and what guards its connections."""
    guard = ConnectionGuard(
        ConnectionLimits(
            most_connections=options.most_connections,
            silence_s=options.header_timeout_s,
            request_s=options.body_timeout_s + 2 * options.ack_timeout_s,
        ),
        on_count=metrics.connections.set,
        on_turned_away=lambda reason: metrics.turned_away.labels(reason).inc(),
    )
    return await guard.start_application(gateway.build(), options.drain_timeout_s), guard

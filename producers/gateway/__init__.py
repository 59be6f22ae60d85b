"""The HTTP gateway: step frames of any language by POST /v1/frames, answered once Kafka has acknowledged them."""

from __future__ import annotations

from springback.producers.install_hints import MissingExtraError

try:
    import aiohttp as aiohttp
    import aiokafka as aiokafka  # type: ignore[import-untyped]
    import prometheus_client as prometheus_client
except ImportError as error:
    raise MissingExtraError(extra="gateway", cause=error) from error

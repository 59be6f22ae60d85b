"""Serves the metrics page over HTTP."""

import contextlib
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, start_http_server

from sinks.errors import MetricsAddressError


@contextlib.contextmanager
def metrics_server(registry: CollectorRegistry, host: str, port: int) -> Iterator[str]:
    """Serve the registry's page for as long as the block runs.

    Args:
        registry: what the page shows.
        host: where to listen.
        port: its port; 0 takes a free one.

    Yields:
        The page's address, with the port that was taken.

    Raises:
        MetricsAddressError: the address cannot be listened at.
    """
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        message = (
            f"The metrics page cannot be served at {host}:{port} ({error.strerror or error}). "
            "Choose another port, or 0 for any free one."
        )
        raise MetricsAddressError(message) from error
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

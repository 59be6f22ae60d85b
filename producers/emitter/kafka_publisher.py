"""Publishes frames to Kafka. The one module that imports kafka-python."""

import contextlib
import socket
import threading
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

from springback.producers.emitter.publishers import OnDone
from springback.producers.errors import FrameRefusedError, PublishError

with warnings.catch_warnings():
    # kafka-python 3.0 reads its own files in a way that Python 3.11 and 3.12 call deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer  # type: ignore[import-untyped]
    from kafka.errors import (  # type: ignore[import-untyped]
        InvalidRecordError,
        KafkaError,
        KafkaTimeoutError,
        MessageSizeTooLargeError,
        RecordListTooLargeError,
    )

_NEVER_ACCEPTED = (InvalidRecordError, MessageSizeTooLargeError, RecordListTooLargeError)


class KafkaPublisher:
    """Publishes each frame as one message, acknowledged by all replicas, idempotently where the broker can.

    The key decides the partition (murmur2, as the Java client has it). The connection is made at the first frame, so
    that an agent starts whether or not Kafka is there; while it is not, `publish` answers with a `PublishError`.

    Args:
        bootstrap: HOST:PORT of a broker, or several.
        topic: where to.
        buffer_bytes: how much may be on its way at once; a frame beyond that is answered with a `PublishError`.
        connect_timeout_s: how long one try to connect may take, s.
        close_timeout_s: how long the close waits for what is on its way, s.
        **client_options: options of kafka-python's `KafkaProducer`, such as `security_protocol`, `ssl_cafile` or
            `sasl_mechanism`. Take secrets from files or the environment.

    Raises:
        ValueError: kafka-python has no such option.
    """

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        topic: str = "steps",
        *,
        buffer_bytes: int = 32 * 1024 * 1024,
        connect_timeout_s: float = 5.0,
        close_timeout_s: float = 2.0,
        **client_options: Any,
    ) -> None:
        unknown = sorted(set(client_options) - set(KafkaProducer.DEFAULT_CONFIG))
        if unknown:
            # Names only: kafka-python's own message would show the values, secrets among them.
            message = f"kafka-python's producer has no option {', '.join(unknown)}"
            raise ValueError(message)
        self._brokers = bootstrap.split(",") if isinstance(bootstrap, str) else list(bootstrap)
        self._connect_timeout_s = connect_timeout_s
        self._options = {
            "bootstrap_servers": self._brokers,
            "bootstrap_timeout_ms": int(connect_timeout_s * 1000),
            "acks": "all",
            "linger_ms": 5,
            "max_block_ms": 2000,
            **client_options,
        }
        self._topic = topic
        self._buffer_bytes = buffer_bytes
        self._close_timeout_s = close_timeout_s
        self._lock = threading.Lock()
        self._client: Any = None
        self._spoiled = False
        self._closed = False
        self._bytes_on_their_way = 0

    def publish(self, key: bytes, frame_bytes: bytes, on_done: OnDone) -> None:
        """Hands the frame to kafka-python's sender. At worst it waits for one try to connect."""
        size = len(frame_bytes)
        with self._lock:
            refused = self._bytes_on_their_way + size > self._buffer_bytes
            if not refused:
                self._bytes_on_their_way += size
        if refused:
            message = f"{self._buffer_bytes} bytes are on their way to Kafka; waiting for acknowledgements"
            on_done(PublishError(message))
            return
        settle = partial(self._settle, size, on_done)
        try:
            future = self._connected().send(self._topic, key=key, value=frame_bytes)
        except Exception as error:  # a certificate that is not there, say: whatever it is, the frame is not on its way
            settle(error)
            return
        future.add_callback(lambda _: settle(None))
        future.add_errback(settle)

    def flush(self, timeout_s: float) -> None:
        """Sends what is held back, and waits for it for at most `timeout_s`."""
        client = self._client
        if client is not None:
            # Not done in time is no error here: each frame's `on_done` tells what became of it.
            with contextlib.suppress(KafkaTimeoutError):
                client.flush(timeout_s)

    def close(self) -> None:
        """Waits for what is on its way for `close_timeout_s`, gives up the rest and disconnects."""
        with self._lock:
            self._closed = True
            client, self._client = self._client, None
        if client is not None:
            _close_client(client, self._close_timeout_s)

    def _connected(self) -> Any:
        with self._lock:
            client, spoiled, self._spoiled = self._client, self._spoiled, False
            if client is not None and spoiled:
                self._client = None
        if client is not None and not spoiled:
            return client
        if client is not None:
            _close_client(client, 0.0)
        if not self._options.keys() & {"proxy_url", "socks5_proxy"}:
            _check_reachable(self._brokers, self._connect_timeout_s)
        client = _connect(self._options)
        with self._lock:
            if not self._closed:
                self._client = client
                return client
        _close_client(client, 0.0)
        message = f"the publisher to topic {self._topic} is closed"
        raise PublishError(message)

    def _settle(self, size: int, on_done: OnDone, error: Exception | None) -> None:
        with self._lock:
            self._bytes_on_their_way -= size
            # After an error that kafka-python does not retry, an idempotent client may be useless.
            if isinstance(error, KafkaError) and not isinstance(error, _NEVER_ACCEPTED):
                self._spoiled |= not error.retriable
        on_done(None if error is None else self._translated(error))

    def _translated(self, error: Exception) -> PublishError:
        if isinstance(error, PublishError):
            return error
        kind = FrameRefusedError if isinstance(error, _NEVER_ACCEPTED) else PublishError
        message = f"Kafka topic {self._topic}: {error}"
        translated = kind(message)
        translated.__cause__ = error
        return translated


def _check_reachable(brokers: Sequence[str], timeout_s: float) -> None:
    """Looks whether anybody is there at all: a client that kafka-python makes in vain is slow, loud, and leaks."""
    problems: list[str] = []
    for broker in brokers:
        host, _, port = broker.strip().rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout_s).close()
        except (OSError, ValueError) as error:
            problems.append(f"{broker}: {error}")
        else:
            return
    message = f"no Kafka broker can be reached; expected HOST:PORT of one that runs: {'; '.join(problems)}"
    raise PublishError(message)


def _connect(options: dict[str, Any]) -> Any:
    connections: list[Any] = []

    def remembered(**settings: Any) -> Any:
        connections.append(KafkaProducer.DEFAULT_CONFIG["kafka_client"](**settings))
        return connections[0]

    try:
        client = KafkaProducer(kafka_client=remembered, **options)
    except BaseException:
        # kafka-python 3.0 leaves its sockets and a thread behind when it finds no broker.
        for connection in connections:
            connection.close()
        raise
    # Its own hook at exit would close it before an emitter's hook has sent the last steps.
    client._unregister_cleanup()
    return client


def _close_client(client: Any, timeout_s: float) -> None:
    try:
        client.close(timeout_s)
    except KafkaTimeoutError:
        # kafka-python 3.0 gives up a close whose flush was not done in time, and leaves its thread running.
        client._sender.force_close()
        client.close(1.0)

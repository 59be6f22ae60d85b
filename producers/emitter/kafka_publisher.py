"""Publishes frames to Kafka. Beside `broker_fault` the one module that imports kafka-python."""

from __future__ import annotations

import contextlib
import logging
import threading
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from springback.producers.broker_fault import FaultLog, TokenProvider, access_fault, find_fault
from springback.producers.emitter.publishers import OnDone
from springback.producers.errors import FrameRefusedError, PublishError

with warnings.catch_warnings():
    # kafka-python 3.0 reads its own files in a way that Python 3.11 and 3.12 call deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer  # type: ignore[import-untyped]
    from kafka.errors import (  # type: ignore[import-untyped]
        InvalidRecordError,
        KafkaTimeoutError,
        MessageSizeTooLargeError,
        RecordListTooLargeError,
    )

_DISCONNECT_S = 1.0
_log = logging.getLogger(__name__)
_NEVER_ACCEPTED = (InvalidRecordError, MessageSizeTooLargeError, RecordListTooLargeError)


class KafkaPublisher:
    """Publishes each frame as one message, acknowledged by all replicas, idempotently where the broker can.

    The key decides the partition (murmur2, as the Java client has it). The connection is made at the first frame, so
    that an agent starts whether or not Kafka is there; while it is not, `publish` answers with a `PublishError`.

    **No frame passes an older one.** kafka-python gives up a batch some time after it was made (`delivery_timeout_ms`,
    120 s), and would go on with younger ones. So the first frame that fails ends the connection, before anything that
    came after it is sent: all that is on its way fails with it, and whoever published it does so again, in order.

    Args:
        bootstrap: HOST:PORT of a broker, or several.
        topic: where to.
        buffer_bytes: how much may be on its way at once; a frame beyond that is answered with a `PublishError`.
        connect_timeout_s: how long one try to connect may take, s.
        close_timeout_s: how long the close waits for what is on its way, s.
        **client_options: options of kafka-python's `KafkaProducer`, such as `security_protocol`, `ssl_cafile` or
            `sasl_mechanism`. Take secrets from files or the environment. The `sasl_oauth_token_provider` may be any
            object with `token()` and `extensions()`.

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
            "max_in_flight_requests_per_connection": 1,
            "max_block_ms": 2000,
            **client_options,
        }
        if client_options.get("sasl_oauth_token_provider") is not None:
            self._options["sasl_oauth_token_provider"] = TokenProvider(client_options["sasl_oauth_token_provider"])
        self._topic = topic
        self._buffer_bytes = buffer_bytes
        self._close_timeout_s = close_timeout_s
        self._faults = FaultLog(f"sending to the topic {topic}", _log)
        self._lock = threading.Lock()
        self._client: Any = None
        self._spoiled = False
        self._closed = False
        self._bytes_on_their_way = 0
        self._all_settled = threading.Condition(self._lock)

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
            client = self._connected()
            future = client.send(self._topic, key=key, value=frame_bytes)
        except Exception as error:  # a certificate that is not there, say: whatever it is, the frame is not on its way
            settle(error)
            return
        future.add_callback(lambda _: settle(None))
        future.add_errback(partial(self._fail, client, settle))

    def flush(self, timeout_s: float) -> None:
        """Waits for what is on its way for at most `timeout_s`; each frame's `on_done` tells what became of it."""
        # kafka-python's own flush takes the time that it is given for each of its batches.
        with self._all_settled:
            self._all_settled.wait_for(lambda: not self._bytes_on_their_way, timeout_s)

    def close(self) -> None:
        """Waits for what is on its way for `close_timeout_s`, gives up the rest and disconnects."""
        self.flush(self._close_timeout_s)
        with self._lock:
            self._closed = True
            client, self._client = self._client, None
        if client is not None:
            _close_client(client)

    def _connected(self) -> Any:
        with self._lock:
            client, spoiled, self._spoiled = self._client, self._spoiled, False
            if client is not None and spoiled:
                self._client = None
        if client is not None and not spoiled:
            return client
        if client is not None:
            _close_client(client)
        if not self._options.keys() & {"proxy_url", "socks5_proxy"}:
            self._check_usable()
        client = _connect(self._options)
        with self._lock:
            if not self._closed:
                self._client = client
                return client
        _close_client(client)
        message = f"the publisher to topic {self._topic} is closed"
        raise PublishError(message)

    def _fail(self, client: Any, settle: Callable[[Exception], None], error: Exception) -> None:
        if not isinstance(error, _NEVER_ACCEPTED):
            # This is kafka-python's own thread, or the frame never came to it: nothing younger has gone meanwhile.
            client._sender.force_close()
            with self._lock:
                self._spoiled |= self._client is client
        settle(error)

    def _check_usable(self) -> None:
        """Looks whether the broker can be used: a client that kafka-python makes in vain is slow, loud, and leaks."""
        fault = find_fault(self._brokers, self._options, self._connect_timeout_s)
        self._faults.note(fault)
        if fault is not None:
            message = f"no frame can go to Kafka ({fault})"
            raise PublishError(message)

    def _settle(self, size: int, on_done: OnDone, error: Exception | None) -> None:
        with self._lock:
            self._bytes_on_their_way -= size
            if not self._bytes_on_their_way:
                self._all_settled.notify_all()
        if error is None:
            self._faults.clear()
        on_done(None if error is None else self._translated(error))

    def _translated(self, error: Exception) -> PublishError:
        if isinstance(error, PublishError):
            return error
        refusal = access_fault(error)
        self._faults.note(refusal)
        kind = FrameRefusedError if isinstance(error, _NEVER_ACCEPTED) else PublishError
        message = f"Kafka topic {self._topic}: {refusal or error}"
        translated = kind(message)
        translated.__cause__ = error
        return translated


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


def _close_client(client: Any) -> None:
    client._sender.force_close()  # its own close waits for what cannot be delivered, for each batch anew
    client._sender.join(_DISCONNECT_S)
    with contextlib.suppress(KafkaTimeoutError):  # the thread ends a little later
        client.close(0.0)

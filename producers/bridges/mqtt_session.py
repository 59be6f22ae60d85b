"""A subscription at an MQTT broker that is kept up: it comes back after every outage, and finds what came meanwhile.

The session is persistent (the client's id stays, `clean_session` is false), so that the broker keeps messages of
quality 1 while this side is away. A message is acknowledged once it has been dealt with and not before; any other is
delivered again after an outage. A second delivery is recognised by its packet id, topic and payload.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import socket
import ssl
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from springback.producers.backoff import Backoff
from springback.producers.bridges.settings import BridgeOptionError, MqttSettings
from springback.producers.broker_fault import ADDRESS, AUTHENTICATION, TLS, UNANSWERED, BrokerFault, FaultLog
from springback.producers.errors import ProducerError
from springback.producers.install_hints import MissingExtraError
from springback.producers.secret_files import warn_of_readers

try:
    import aiomqtt
    from aiomqtt.exceptions import MqttConnectError
except ImportError as error:
    raise MissingExtraError(extra="mqtt", cause=error) from error

LARGEST_PAYLOAD_BYTES = 1024 * 1024
"""What the topic of steps takes, and far more than a robot's signal has."""

TICK_S: Final = 0.1
BACKOFF: Final = Backoff(0.5, 30.0, spread=(0.5, 1.0))  # not all bridges come back at once
_REFUSED: Final = frozenset((1, 2, 4, 5, 132, 133, 134, 135, 138, 140))
_SUBSCRIPTION_REFUSED: Final = 128
_ANSWER_S: Final = 5.0
_NO_TOPIC: Final = "springback/nothing"
_REMEMBERED: Final = 2000

log = logging.getLogger(__name__)


class MqttRefusedError(ProducerError):
    """The broker rejects this client or what it asks for: trying again is of no use."""


@dataclass(eq=False)
class Delivery:
    """A message as it came; `settle` acknowledges it once it is dealt with, from any thread."""

    topic: str
    payload: bytes
    qos: int
    retained: bool
    redelivered: bool  # to this client, perhaps to an earlier run of it
    settle: Callable[[], None]


@dataclass(eq=False)
class _Known:
    """A message that has come before: by which connection last, and whether it has been dealt with."""

    topic: str
    payload: bytes
    client: Any
    settled: bool = False


class _Queue(asyncio.Queue[Any]):
    """A bounded queue that drops and counts the messages that find it full."""

    dropped = 0
    must_resend = False

    def put_nowait(self, item: Any) -> None:
        """Takes a message in, or counts it; the broker sends one of quality 1 again after a reconnection."""
        if self.full():
            self.dropped += item.qos == 0
            self.must_resend |= item.qos > 0
        else:
            super().put_nowait(item)


class MqttSession:
    """Keeps the subscriptions up and hands messages over, one at a time.

    Args:
        settings: where the broker is, and who asks.
        subscriptions: the topics, with wildcards.

    Attributes:
        connections: how often a connection was made.
        duplicates: second deliveries; they are not handed over.
        too_large: messages larger than `LARGEST_PAYLOAD_BYTES`, which are not looked into.
    """

    def __init__(self, settings: MqttSettings, subscriptions: Sequence[str]) -> None:
        self._settings = settings
        self._subscriptions = tuple(subscriptions)
        self._known: OrderedDict[int, _Known] = OrderedDict()
        self._dropped = 0
        self._queue: _Queue | None = None
        self._client: Any = None
        self._faults = FaultLog("the MQTT bridge", log)
        self.connections = 0
        self.duplicates = 0
        self.too_large = 0

    @property
    def dropped(self) -> int:
        """Messages of quality 0 that found the queue full."""
        return self._dropped + (self._queue.dropped if self._queue is not None else 0)

    @property
    def connected(self) -> bool:
        """Whether the subscriptions are up."""
        return self._client is not None

    async def run(
        self,
        handle: Callable[[Delivery], None],
        tick: Callable[[], None],
        has_room: Callable[[], bool],
        leave: Callable[[], None],
        stop: threading.Event,
    ) -> None:
        """Stays connected until `stop` is set.

        Args:
            handle: called with each message; must settle it, then or later.
            tick: called about ten times a second, connected or not.
            has_room: whether another message may come; while it may not, the broker keeps them.
            leave: called at the end, after the last message; what it settles is still acknowledged.
            stop: ends the session.

        Raises:
            MqttRefusedError: the broker rejects this client or a subscription.
        """
        staying = asyncio.create_task(self._stay_connected(handle, has_room))
        try:
            while not stop.is_set() and not staying.done():
                tick()
                await asyncio.wait((staying,), timeout=TICK_S)
        finally:
            leave()
            staying.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await staying

    async def _stay_connected(self, handle: Callable[[Delivery], None], has_room: Callable[[], bool]) -> None:
        failures = 0
        while True:
            before = self.connections
            try:
                await self._connect_once(handle, has_room)
            except aiomqtt.MqttError as error:
                fault = mqtt_fault(error, self._settings.place)
                if fault.kind == AUTHENTICATION and self.connections == 0:
                    message = f"the MQTT broker at {self._settings.place} refuses {self._settings.client_id!r}: {error}"
                    raise MqttRefusedError(message) from error
                self._faults.note(fault)
            failures = 1 if self.connections > before else failures + 1
            await asyncio.sleep(BACKOFF.pause_s(failures, random.random()))

    async def _connect_once(self, handle: Callable[[Delivery], None], has_room: Callable[[], bool]) -> None:
        queue = self._queue = _Queue(self._settings.queue)
        client = self._new_client(queue)
        try:
            async with client:
                for topic in self._subscriptions:
                    granted = await client.subscribe(topic, qos=self._settings.qos)
                    if any(_number(code) >= _SUBSCRIPTION_REFUSED for code in granted):
                        refusal = f"the MQTT broker refuses the subscription to {topic!r}; see its access control list"
                        raise MqttRefusedError(refusal)
                self.connections += 1
                self._client = client
                self._faults.clear()
                log.info("connected to the MQTT broker; subscribed to %s", ", ".join(self._subscriptions))
                try:
                    await self._take_all(client, queue, handle, has_room)
                except asyncio.CancelledError:
                    # The answer says that the broker has read all acknowledgements; a close alone may overtake them.
                    with contextlib.suppress(aiomqtt.MqttError):
                        await client.unsubscribe(_NO_TOPIC)
                    raise
        finally:
            self._client = None
            self._dropped += queue.dropped
            self._queue = None

    async def _take_all(
        self, client: aiomqtt.Client, queue: _Queue, handle: Callable[[Delivery], None], has_room: Callable[[], bool]
    ) -> None:
        messages: Any = client.messages  # paho's own messages, see `_new_client`
        async for message in messages:
            while not has_room():
                await asyncio.sleep(TICK_S)
            self._take(client, message, handle)
            if queue.must_resend and queue.empty():
                log.info("the queue of messages was full; reconnecting, so that the rest is sent again")
                return

    def _new_client(self, queue: _Queue) -> aiomqtt.Client:
        settings = self._settings
        client = aiomqtt.Client(
            settings.host,
            settings.port,
            identifier=settings.client_id,
            username=settings.username,
            password=settings.password,
            clean_session=False,
            keepalive=settings.keepalive_s,
            timeout=_ANSWER_S,
            queue_type=lambda maxsize: queue,  # type: ignore[arg-type]
            tls_context=_tls_context(settings),
        )
        paho = client._client  # aiomqtt has no manual acknowledgements, and does not say what is delivered again
        paho.manual_ack_set(True)

        def arrived(paho_client: Any, userdata: Any, message: Any) -> None:
            if len(message.payload) <= LARGEST_PAYLOAD_BYTES:
                queue.put_nowait(message)
                return
            if not self.too_large:
                told = len(message.payload), message.topic, LARGEST_PAYLOAD_BYTES
                log.warning("left out: %d bytes on %s, at most %d are taken; further ones are only counted", *told)
            self.too_large += 1
            if message.qos:  # else the broker would send it again for ever
                _acknowledge(client, message.mid, message.qos)

        paho.on_message = arrived
        noting: Any = paho.on_connect

        def note_session(paho_client: Any, userdata: Any, flags: Any, code: Any, properties: Any) -> None:
            if not flags.session_present:
                self._known.clear()  # packet ids start again
            noting(paho_client, userdata, flags, code, properties)

        paho.on_connect = note_session
        return client

    def _take(self, client: aiomqtt.Client, message: Any, handle: Callable[[Delivery], None]) -> None:
        topic, payload = message.topic, message.payload
        known = self._known.get(message.mid) if message.qos else None
        if known is not None and known.topic == topic and known.payload == payload:
            self.duplicates += 1
            known.client = client
            if known.settled:
                _acknowledge(client, message.mid, message.qos)
            return
        fresh = _Known(topic, payload, client)
        if message.qos:
            self._known[message.mid] = fresh
            self._known.move_to_end(message.mid)
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        loop = asyncio.get_running_loop()

        def settle() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the broker will send it again
                loop.call_soon_threadsafe(self._settle, fresh, message.mid, message.qos)

        handle(Delivery(topic, payload, message.qos, message.retain, message.dup, settle))

    def _settle(self, known: _Known, mid: int, qos: int) -> None:
        known.settled = True
        if qos and known.client is self._client:
            _acknowledge(known.client, mid, qos)


def _tls_context(settings: MqttSettings) -> ssl.SSLContext | None:
    files = [file for file in (settings.ca_file, settings.cert_file, settings.key_file) if file is not None]
    if not settings.tls and not files:
        return None
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
        if settings.cert_file is not None:
            context.load_cert_chain(settings.cert_file, settings.key_file, "")  # None would ask at the terminal
            warn_of_readers(settings.key_file or settings.cert_file, "the key for the MQTT broker")
    except (OSError, ValueError) as error:
        message = (
            f"ca_file, cert_file, key_file: cannot use {', '.join(map(repr, files))} ({error}). Expected PEM files, "
            "the key without a password."
        )
        raise BridgeOptionError(message) from error
    return context


def mqtt_fault(error: aiomqtt.MqttError, place: str) -> BrokerFault:
    """What an error of an MQTT broker is a fault of, in the words of Kafka's faults.

    Args:
        error: of aiomqtt, which says no more than the text of what came before it.
        place: the broker's HOST:PORT.
    """
    cause = error.__cause__ or error.__context__
    if isinstance(error, MqttConnectError) and _number(error.rc) in _REFUSED:
        return BrokerFault(AUTHENTICATION, f"the MQTT broker at {place} refuses this client ({error})")
    if isinstance(cause, ssl.SSLCertVerificationError):
        told = f"the certificate of the MQTT broker at {place} is not accepted ({cause.verify_message}); see ca_file"
        return BrokerFault(TLS, told)
    if isinstance(cause, ssl.SSLError):
        told = f"TLS with the MQTT broker at {place} fails ({cause.reason or cause}); does it speak TLS at that port?"
        return BrokerFault(TLS, told)
    if isinstance(cause, socket.gaierror):
        return BrokerFault(ADDRESS, f"{place}: the name is not known ({cause.strerror})")
    if isinstance(cause, OSError) and cause.args:  # a wait of aiomqtt's own that was in vain has none
        return BrokerFault(ADDRESS, f"no MQTT broker can be reached at {place} ({error})")
    if isinstance(cause, aiomqtt.MqttError):
        return BrokerFault(UNANSWERED, f"the connection to the MQTT broker at {place} was lost ({cause})")
    told = f"{place} takes the connection, but no MQTT broker answers ({error}); must it be with TLS, or without?"
    return BrokerFault(UNANSWERED, told)


def _number(code: Any) -> Any:
    """A reason code of paho as a number."""
    return getattr(code, "value", code)


def _acknowledge(client: aiomqtt.Client, mid: int, qos: int) -> None:
    client._client.ack(mid, qos)

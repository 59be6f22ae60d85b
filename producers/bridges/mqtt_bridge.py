"""MQTT as a source of steps: `springback bridge mqtt --mapping FILE`, or `-o frames=TOPIC` for robots that send frames.

Payloads are either step frames, which are checked and passed on as they are, or anything that a mapping reads: JSON, a
bare number, a bare text. A message of quality 1 is acknowledged when its frame has arrived in Kafka, or its step is
with the emitter; until then it comes again after a crash, and the broker keeps what this side has no room for. Retained
messages are old states and make no steps. A last will ends what is open as aborted where a mapping says so; of robots
that send frames, whose episodes are remembered for this, unless they are heard again soon.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from springback.producers.bridges.mqtt_session import Delivery, MqttSession
from springback.producers.bridges.settings import BridgeOptionError, MqttBridgeSettings, bridge_settings
from springback.producers.contract.codec import decode_frame, encode_json
from springback.producers.contract.frame import EpisodeEnd, EpisodeHeader, StepFrame
from springback.producers.emitter.delivery import FramesUnderWay
from springback.producers.emitter.publishers import FramePublisher
from springback.producers.errors import UnreadableFrameError
from springback.producers.mapping.live import MappedSteps
from springback.producers.mapping.paths import TopicPattern
from springback.producers.mapping.signal_mapping import SignalMapping, TimedMessage

MOST_PRODUCERS: Final = 1000
MOST_EPISODES: Final = 1000
MOST_STEPS: Final = 50_000
SETTLED_S: Final = 2.0
DRAIN_S: Final = 5.0

log = logging.getLogger(__name__)


class BridgedEpisodes:
    """The open episodes of the producers heard last, as far as frames tell.

    >>> header = EpisodeHeader(agent="r7", episode="12", family="delivery")
    >>> known = BridgedEpisodes()
    >>> known.note(StepFrame(producer="r7", session="s", episodes=(header,), steps={}, ends=()))
    >>> frame = known.abort("r7", time_s=1790000000.0)
    >>> frame.ends[0].outcome, known.abort("r7", time_s=1790000000.0)
    ('aborted', None)
    """

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, tuple[str, dict[tuple[str, str], EpisodeHeader]]] = OrderedDict()

    def note(self, frame: StepFrame) -> None:
        """Takes notice of a frame: its episodes are open unless they end in it; a new session replaces an old one."""
        session, running = self._sessions.get(frame.producer, ("", {}))
        if session != frame.session:
            running = {}
        for header in frame.episodes:
            running[header.agent, header.episode] = header
        for end in frame.ends:
            if 0 <= end.episode < len(frame.episodes):
                header = frame.episodes[end.episode]
                running.pop((header.agent, header.episode), None)
        while len(running) > MOST_EPISODES:
            del running[next(iter(running))]
        self._sessions[frame.producer] = frame.session, running
        self._sessions.move_to_end(frame.producer)
        while len(self._sessions) > MOST_PRODUCERS:
            self._sessions.popitem(last=False)

    def abort(self, producer: str, time_s: float) -> StepFrame | None:
        """A frame that ends all open episodes of this producer as aborted; None where there are none.

        Args:
            producer: its id.
            time_s: the instant of the ends, s UTC epoch.
        """
        session, running = self._sessions.pop(producer, ("", {}))
        if not running:
            return None
        headers = tuple(running.values())
        ends = tuple(EpisodeEnd(episode=place, outcome="aborted", time_s=time_s) for place in range(len(headers)))
        return StepFrame(producer=producer, session=session, episodes=headers, steps={}, ends=ends)


class PendingWills:
    """Last wills that may yet come to nothing: a robot that says something soon after its will is there.

    A connection that breaks while a robot roams from one access point to the next has a will too, and a will may come
    late, of a connection that the robot has replaced already.

    Args:
        grace_s: how long a robot must be silent after its will, s.

    >>> wills = PendingWills(5.0)
    >>> wills.note("r7", 0.0), wills.note("r8", 1.0), wills.heard("r7")
    (None, None, None)
    >>> wills.due(4.0), wills.due(6.0), wills.due(7.0)
    ([], ['r8'], [])
    """

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._since_s: dict[str, float] = {}

    def note(self, producer: str, now_s: float) -> None:
        """Takes notice of a will."""
        self._since_s.setdefault(producer, now_s)

    def heard(self, producer: str) -> None:
        """Takes notice that a producer has said something."""
        self._since_s.pop(producer, None)

    def due(self, now_s: float) -> list[str]:
        """The producers that have been silent for long enough, each once."""
        due = [producer for producer, since_s in self._since_s.items() if now_s - since_s >= self._grace_s]
        for producer in due:
            del self._since_s[producer]
        return due


class MqttBridge:
    """Makes steps of what comes over MQTT.

    Args:
        settings: where the broker is, and on which topics step frames come.
        mapping: what all other messages mean; None where there are only frames.
        publisher: where frames go; it stays open.

    Raises:
        BridgeOptionError: there is nothing to listen to, or a topic is malformed.
    """

    def __init__(self, settings: MqttBridgeSettings, mapping: SignalMapping | None, publisher: FramePublisher) -> None:
        self._frames = _pattern("frames", settings.frames)
        self._wills = _pattern("wills", settings.wills)
        if self._wills is not None and "producer" not in self._wills.names:
            message = (
                f"wills is {settings.wills!r}; expected a topic with a level {{producer}}: fleet/{{producer}}/state"
            )
            raise BridgeOptionError(message)
        own = tuple(pattern for pattern in (self._frames, self._wills) if pattern is not None)
        patterns = (*own, *(mapping.patterns if mapping is not None else ()))
        if not patterns:
            message = "the bridge mqtt listens to nothing: give a mapping that names topics, or -o frames=TOPIC"
            raise BridgeOptionError(message)
        self._will_text = settings.will_text
        self._pending = PendingWills(settings.will_grace_s)
        self._steps = None if mapping is None else MappedSteps(mapping, publisher)
        self._passing = FramesUnderWay(publisher)
        self._open = BridgedEpisodes()
        self._left_out: Counter[str] = Counter()
        self._has_room = True
        self._connected_at: float | None = None
        self.session = MqttSession(settings, subscriptions_of(patterns))

    def run(self, stop: threading.Event) -> None:
        """Works until `stop` is set; then sends what there is.

        Raises:
            MqttRefusedError: the broker rejects this client or a subscription.
        """
        asyncio.run(self.session.run(self._take, self._tick, self._may_come, self._leave, stop))

    def __str__(self) -> str:
        """What came in, and what became of it, in a line."""
        said = [str(self._steps)] if self._steps is not None else []
        if self._frames is not None:
            said.append(f"{self._passing.arrived} frames passed on, {self._passing.refused} refused by Kafka")
        told = self._left_out | Counter(
            duplicate=self.session.duplicates, no_room=self.session.dropped, too_large=self.session.too_large
        )
        if any(told.values()):
            said.append("left out: " + ", ".join(f"{count} {reason}" for reason, count in told.items() if count))
        return "; ".join([*said, f"{self.session.connections} connections"])

    def _take(self, delivery: Delivery) -> None:
        if self._frames is not None and self._frames.match(delivery.topic) is not None:
            self._take_frame(delivery)
            return
        if self._wills is not None and (named := self._wills.match(delivery.topic)) is not None:
            self._take_will(delivery, named["producer"])
        if self._steps is not None:
            value = payload_value(delivery.payload)
            self._steps.add(TimedMessage(delivery.topic, time.time(), value, delivery.retained, delivery.redelivered))
        delivery.settle()

    def _take_frame(self, delivery: Delivery) -> None:
        if delivery.retained:
            self._leave_out("retained", "an old frame")
            delivery.settle()
            return
        try:
            frame = decode_frame(delivery.payload)
        except UnreadableFrameError as error:
            self._leave_out(error.reason, f"{delivery.topic}: {error}")
            delivery.settle()
            return
        self._open.note(frame)
        self._pending.heard(frame.producer)
        self._passing.offer(frame.producer.encode(), delivery.payload, lambda _: delivery.settle())

    def _take_will(self, delivery: Delivery, producer: str) -> None:
        text = delivery.payload.decode(errors="replace")
        if delivery.retained or not text or (self._will_text is not None and text != self._will_text):
            return
        self._pending.note(producer, time.monotonic())

    def _end_by_will(self, producer: str) -> None:
        frame = self._open.abort(producer, time.time())
        if frame is not None:
            log.info("the last will of %s ends %d episodes", producer, len(frame.ends))
            self._passing.offer(producer.encode(), encode_json(frame), lambda _: None)

    def _leave_out(self, reason: str, detail: str) -> None:
        if not self._left_out[reason]:
            log.warning("left out (%s): %s; further ones are only counted", reason, detail)
        self._left_out[reason] += 1

    def _leave(self) -> None:
        if self._steps is not None:
            self._steps.close()
        if not self._passing.drain(DRAIN_S):
            log.warning("frames could not be delivered (%s); the broker sends them again", self._passing.last_error)

    def _may_come(self) -> bool:
        return self._has_room and self._passing.has_room()

    def _tick(self) -> None:
        self._passing.push()
        self._has_room = self._steps is None or self._steps.steps_buffered < MOST_STEPS
        now = time.monotonic()
        if not self.session.connected or not self._may_come():
            self._connected_at = None
        elif self._connected_at is None:
            self._connected_at = now
        # Silence means something only once what was sent meanwhile has come.
        if self._connected_at is not None and now - self._connected_at > SETTLED_S:
            if self._steps is not None:
                self._steps.advance(time.time())
            for producer in self._pending.due(now):
                self._end_by_will(producer)


def subscriptions_of(patterns: Iterable[TopicPattern]) -> tuple[str, ...]:
    """What to subscribe to, without what a wider subscription covers: many brokers would deliver it twice.

    >>> subscriptions_of(TopicPattern(text) for text in ("fleet/{robot}/pose", "fleet/7/pose", "fleet/#", "dock"))
    ('fleet/#', 'dock')
    """
    asked = tuple(dict.fromkeys(pattern.subscription for pattern in patterns))
    return tuple(one for one in asked if not any(_covers(other, one) for other in asked if other != one))


def _covers(wider: str, narrower: str) -> bool:
    wide, narrow = wider.split("/"), narrower.split("/")
    if wide[-1] == "#":
        narrow = narrow[: len(wide) - 1]
        wide = wide[:-1]
    elif narrow[-1] == "#":
        return False
    return len(wide) == len(narrow) and all(one in ("+", other) for one, other in zip(wide, narrow))


def payload_value(payload: bytes) -> Any:
    """The value of a payload: JSON of any kind, else a text, else bytes; None for an empty one.

    >>> payload_value(b'{"done": 0.5}'), payload_value(b"0.5"), payload_value(b"docking"), payload_value(b"")
    ({'done': 0.5}, 0.5, 'docking', None)
    """
    if not payload:
        return None
    try:
        return msgspec.json.decode(payload)
    except (msgspec.MsgspecError, RecursionError):
        pass
    try:
        text = payload.decode("utf-8-sig")
        return json.loads(text)  # it takes the NaN that Python and C++ clients write
    except UnicodeDecodeError:
        return payload
    except (ValueError, RecursionError):
        return text


def run_mqtt_bridge(
    mapping: SignalMapping | None, publisher: FramePublisher, options: Mapping[str, str], stop: threading.Event
) -> str:
    """Bridges MQTT to the publisher until `stop` is set; see `sources.Bridge`.

    Raises:
        BridgeOptionError: there is nothing to listen to, or a setting is wrong.
        MqttRefusedError: the broker rejects this client or a subscription.
    """
    name = f"springback-{socket.gethostname()}"
    settings = bridge_settings(MqttBridgeSettings, "mqtt", mapping, options, client_id=name)
    bridge = MqttBridge(settings, mapping, publisher)
    bridge.run(stop)
    return str(bridge)


def _pattern(name: str, text: str | None) -> TopicPattern | None:
    try:
        return None if text is None else TopicPattern(text)
    except ValueError as error:
        message = f"{name}: {error}"
        raise BridgeOptionError(message) from error

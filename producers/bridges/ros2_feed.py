"""ROS 2 as a feed of messages: topics of any type, found as they appear, at the quality of service of their publishers.

A subscription asks for no more than every publisher of its topic offers, as rosbag2 does: reliable delivery and latched
messages where all of them offer that, else best effort and volatile. So sensors and latched states are both heard.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final, NamedTuple

from springback.producers.bridges.ros_common import (
    NANOSECOND_S,
    ArrivedMessage,
    BridgeInbox,
    NoticedTopics,
    ReceiveClock,
    import_rclpy,
    plain_message,
)
from springback.producers.mapping.paths import TopicPattern

NODE_NAME: Final = "springback_bridge"
QUEUE_DEPTH: Final = 100
_SPIN_S: Final = 0.1

log = logging.getLogger(__name__)


class _Offer(NamedTuple):
    """What a topic's publishers have in common."""

    type_name: str
    reliable: bool
    latched: bool


class Ros2Feed:
    """Subscribes to topics and puts what comes into an inbox.

    Args:
        patterns: which topics.
        inbox: where the messages go.
        sim_time: whether to go by `/clock`; else by the node's own parameter `use_sim_time`, false by default.
        watch_s: how often to look for new topics and publishers, s.

    Raises:
        MissingRosError: rclpy cannot be imported.
    """

    def __init__(
        self, patterns: Iterable[TopicPattern], inbox: BridgeInbox, *, sim_time: bool = False, watch_s: float = 1.0
    ) -> None:
        self._rclpy = import_rclpy()
        self._patterns = tuple(patterns)
        self._inbox = inbox
        self._sim_time = sim_time
        self._watch_s = watch_s
        self._subscribed: dict[str, tuple[_Offer, Any]] = {}
        self._clock: ReceiveClock | None = None
        self._unreadable: set[str] = set()
        self._noticed = NoticedTopics(self._patterns)

    def run(self, stop: threading.Event) -> None:
        """Subscribes to all topics as they appear, until `stop` is set or the context is shut down from outside."""
        executors = import_module("rclpy.executors")
        context = import_module("rclpy.context").Context()
        no_handlers = import_module("rclpy.signals").SignalHandlerOptions.NO
        self._rclpy.init(context=context, signal_handler_options=no_handlers)
        try:
            overrides = (
                [import_module("rclpy.parameter").Parameter("use_sim_time", value=True)] if self._sim_time else []
            )
            node = self._rclpy.create_node(NODE_NAME, context=context, parameter_overrides=overrides)
            ros_clock = node.get_clock()
            self._clock = ReceiveClock(lambda: float(ros_clock.now().nanoseconds * NANOSECOND_S))
            executor = executors.SingleThreadedExecutor(context=context)
            executor.add_node(node)
            look_at = time.monotonic()
            while not stop.is_set() and context.ok():
                if time.monotonic() >= look_at:
                    self._subscribe(node)
                    look_at = time.monotonic() + self._watch_s
                try:
                    executor.spin_once(timeout_sec=_SPIN_S)
                except executors.ExternalShutdownException:
                    log.info("ROS 2 was shut down from outside")
            executor.shutdown()
            node.destroy_node()
        finally:
            self._rclpy.try_shutdown(context=context)

    def now_s(self) -> float:
        """The time of the messages' arrival, s UTC epoch."""
        return time.time() if self._clock is None else self._clock.now_s()

    def plain(self, message: Any) -> Any:
        """The message as plain nested values."""
        return plain_message(message)

    def _subscribe(self, node: Any) -> None:
        there = node.get_topic_names_and_types()
        self._noticed.notice(topic for topic, _ in there)
        for topic, types in there:
            if not any(pattern.match(topic) is not None for pattern in self._patterns):
                continue
            offer = _offer(types, node.get_publishers_info_by_topic(topic))
            held = self._subscribed.get(topic)
            # Without publishers there is nothing to hear and nothing to adapt to: a subscription may stay.
            if offer is None or (held is not None and held[0] == offer):
                continue
            if held is not None:
                log.info("%s is now offered differently (%s); subscribing again", topic, offer)
                node.destroy_subscription(held[1])
                del self._subscribed[topic]
            kind = self._type(topic, offer.type_name)
            if kind is not None:
                subscription = node.create_subscription(kind, topic, self._taker(topic), _quality(offer))
                self._subscribed[topic] = offer, subscription

    def _type(self, topic: str, type_name: str) -> Any:
        try:
            return import_module("rosidl_runtime_py.utilities").get_message(type_name)
        except (ImportError, AttributeError, ValueError, RuntimeError) as error:
            if type_name not in self._unreadable:
                log.warning("%s is left out: no Python support for %s here (%s); source its workspace's setup.bash",
                            topic, type_name, error)  # fmt: skip
                self._unreadable.add(type_name)
            return None

    def _taker(self, topic: str) -> Any:
        def take(message: Any) -> None:
            self._inbox.put(ArrivedMessage(topic, message, self.now_s()))

        return take


def _offer(types: list[str], publishers: list[Any]) -> _Offer | None:
    if not publishers:
        return None
    qos = import_module("rclpy.qos")
    return _Offer(
        type_name=publishers[0].topic_type or types[0],
        reliable=all(info.qos_profile.reliability == qos.ReliabilityPolicy.RELIABLE for info in publishers),
        latched=all(info.qos_profile.durability == qos.DurabilityPolicy.TRANSIENT_LOCAL for info in publishers),
    )


def _quality(offer: _Offer) -> Any:
    qos = import_module("rclpy.qos")
    return qos.QoSProfile(
        depth=QUEUE_DEPTH,
        reliability=qos.ReliabilityPolicy.RELIABLE if offer.reliable else qos.ReliabilityPolicy.BEST_EFFORT,
        durability=qos.DurabilityPolicy.TRANSIENT_LOCAL if offer.latched else qos.DurabilityPolicy.VOLATILE,
    )

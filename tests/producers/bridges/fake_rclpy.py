"""As much of rclpy as the bridge uses, true to its rules: what it refuses, the fake refuses.

Kept to (rclpy of Humble to Jazzy): a context is initialised once; a subscription hears a publisher only where their
qualities of service agree; callbacks run in `spin_once` alone, one each; a context that was shut down ends the spinning
by an exception; a `byte` is bytes of length 1; messages tell their fields by `get_fields_and_field_types`.
"""

from __future__ import annotations

import enum
import sys
import threading
import time
import types
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest


class ReliabilityPolicy(enum.IntEnum):
    RELIABLE = 1
    BEST_EFFORT = 2


class DurabilityPolicy(enum.IntEnum):
    TRANSIENT_LOCAL = 1
    VOLATILE = 2


@dataclass(frozen=True)
class QoSProfile:
    depth: int
    reliability: ReliabilityPolicy
    durability: DurabilityPolicy

    def hears(self, offered: QoSProfile) -> bool:
        """Whether a subscription of this quality hears a publisher of that one."""
        return self.reliability >= offered.reliability and self.durability >= offered.durability


RELIABLE = QoSProfile(10, ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE)
SENSOR = QoSProfile(5, ReliabilityPolicy.BEST_EFFORT, DurabilityPolicy.VOLATILE)
LATCHED = QoSProfile(1, ReliabilityPolicy.RELIABLE, DurabilityPolicy.TRANSIENT_LOCAL)


@dataclass
class Endpoint:
    """A publisher: rclpy's TopicEndpointInfo, and what it has latched."""

    topic_type: str
    qos_profile: QoSProfile
    latched: deque[Any] = field(default_factory=deque)


@dataclass(eq=False)
class Subscription:
    msg_type: type
    topic: str
    callback: Callable[[Any], None]
    qos_profile: QoSProfile


class Graph:
    """The nodes outside of the bridge: publishers come and go, and publish."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.publishers: dict[str, list[Endpoint]] = {}
        self.types: dict[str, type] = {}
        self.subscriptions: list[Subscription] = []
        self.ready: deque[tuple[Subscription, Any]] = deque()
        self.ros_time_ns = time.time_ns()
        self.contexts: list[Context] = []
        self.sim_time = False

    def advertise(self, topic: str, type_name: str, quality: QoSProfile) -> Endpoint:
        with self.lock:
            endpoint = Endpoint(type_name, quality)
            self.publishers.setdefault(topic, []).append(endpoint)
            return endpoint

    def publish(self, topic: str, endpoint: Endpoint, message: Any) -> None:
        with self.lock:
            if endpoint.qos_profile.durability is DurabilityPolicy.TRANSIENT_LOCAL:
                endpoint.latched.append(message)
            for subscription in self.subscriptions:
                if subscription.topic == topic and subscription.qos_profile.hears(endpoint.qos_profile):
                    self.ready.append((subscription, message))

    def heard(self, topic: str) -> list[QoSProfile]:
        with self.lock:
            return [one.qos_profile for one in self.subscriptions if one.topic == topic]


class Context:
    graph: Graph

    def __init__(self) -> None:
        self.state = "new"
        self.graph.contexts.append(self)

    def ok(self) -> bool:
        return self.state == "ok"


class Clock:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def now(self) -> Any:
        return types.SimpleNamespace(nanoseconds=self._graph.ros_time_ns)


class Node:
    def __init__(self, graph: Graph, context: Context) -> None:
        self._graph, self.context, self.destroyed = graph, context, False

    def get_topic_names_and_types(self) -> list[tuple[str, list[str]]]:
        with self._graph.lock:
            known = self._graph.publishers.items()
            return [(topic, sorted({one.topic_type for one in ends})) for topic, ends in known]

    def get_publishers_info_by_topic(self, topic: str) -> list[Endpoint]:
        with self._graph.lock:
            return list(self._graph.publishers.get(topic, ()))

    def create_subscription(
        self, msg_type: type, topic: str, callback: Callable[[Any], None], qos_profile: QoSProfile
    ) -> Subscription:
        assert msg_type in self._graph.types.values(), "check_is_valid_msg_type"
        assert isinstance(qos_profile, QoSProfile)
        with self._graph.lock:
            subscription = Subscription(msg_type, topic, callback, qos_profile)
            self._graph.subscriptions.append(subscription)
            for endpoint in self._graph.publishers.get(topic, ()):
                late = qos_profile.durability is DurabilityPolicy.TRANSIENT_LOCAL and qos_profile.hears(
                    endpoint.qos_profile
                )
                self._graph.ready.extend((subscription, message) for message in endpoint.latched if late)
            return subscription

    def destroy_subscription(self, subscription: Subscription) -> bool:
        with self._graph.lock:
            self._graph.subscriptions.remove(subscription)
            return True

    def get_clock(self) -> Clock:
        return Clock(self._graph)

    def destroy_node(self) -> None:
        assert not self.destroyed
        self.destroyed = True


class ExternalShutdownException(Exception):
    """As rclpy's."""


class SingleThreadedExecutor:
    def __init__(self, *, context: Context) -> None:
        self._context, self._nodes = context, list[Node]()

    def add_node(self, node: Node) -> bool:
        self._nodes.append(node)
        return True

    def spin_once(self, timeout_sec: float | None = None) -> None:
        graph = self._context.graph
        if not self._context.ok():
            raise ExternalShutdownException
        until = time.monotonic() + (timeout_sec or 0.0)
        while time.monotonic() < until:
            with graph.lock:
                if graph.ready:
                    subscription, message = graph.ready.popleft()
                    break
            time.sleep(0.002)
        else:
            return
        if subscription in graph.subscriptions:
            subscription.callback(message)

    def shutdown(self) -> bool:
        return True


def install(monkeypatch: pytest.MonkeyPatch, message_types: dict[str, type]) -> Graph:
    """Puts the fake in the place of rclpy and rosidl_runtime_py, and gives the graph behind it."""
    graph = Graph()
    graph.types = message_types

    def init(*, context: Context, signal_handler_options: object) -> None:
        assert context.state == "new", "Context.init() must only be called once"
        assert signal_handler_options == "NO"
        context.state = "ok"

    def create_node(name: str, *, context: Context, parameter_overrides: Iterable[Any]) -> Node:
        assert context.ok()
        graph.sim_time = any(one.name == "use_sim_time" and one.value for one in parameter_overrides)
        return Node(graph, context)

    def try_shutdown(*, context: Context) -> None:
        context.state = "shut down"

    def get_message(identifier: str) -> type:
        try:
            return graph.types[identifier]
        except KeyError as error:
            raise ModuleNotFoundError(identifier) from error

    modules: dict[str, dict[str, Any]] = {
        "rclpy": {"init": init, "create_node": create_node, "try_shutdown": try_shutdown},
        "rclpy.context": {"Context": type("Context", (Context,), {"graph": graph})},
        "rclpy.executors": {
            "SingleThreadedExecutor": SingleThreadedExecutor,
            "ExternalShutdownException": ExternalShutdownException,
        },
        "rclpy.parameter": {"Parameter": lambda name, value: types.SimpleNamespace(name=name, value=value)},
        "rclpy.signals": {"SignalHandlerOptions": types.SimpleNamespace(NO="NO")},
        "rclpy.qos": {
            "QoSProfile": QoSProfile,
            "ReliabilityPolicy": ReliabilityPolicy,
            "DurabilityPolicy": DurabilityPolicy,
        },
        "rosidl_runtime_py": {},
        "rosidl_runtime_py.utilities": {"get_message": get_message},
    }
    for name, contents in modules.items():
        module = types.ModuleType(name)
        module.__dict__.update(contents)
        monkeypatch.setitem(sys.modules, name, module)
    return graph

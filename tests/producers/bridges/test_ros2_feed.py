"""The rclpy side of the bridge against a fake that keeps to rclpy's rules, with messages as rclpy has them."""

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from springback.producers.bridges.ros2_feed import Ros2Feed
from springback.producers.bridges.ros_bridge import run_ros_bridge
from springback.producers.bridges.settings import BridgeOptionError
from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.mapping.signal_mapping import parse_mapping
from tests.deploy.process_checks import becomes_true
from tests.producers.bridges.fake_rclpy import LATCHED, RELIABLE, SENSOR, Endpoint, Graph, QoSProfile, install
from tests.producers.bridges.rosidl_messages import STORE, rosidl_class, rosidl_message

DEADLINE_S = 60.0
LEVEL, BATTERY, DIAGNOSTICS = (
    "std_msgs/msg/Float64",
    "sensor_msgs/msg/BatteryState",
    "diagnostic_msgs/msg/DiagnosticArray",
)
MAPPING = """
agent = { segment = "robot" }
header = { family = "delivery" }
step = { trigger = "{robot}/level" }
[signals]
progress = { topic = "{robot}/level", field = "data" }
[signals.risk]
topic = "{robot}/diagnostics"
field = "status[*].level"
transform = [{ table = { 0 = 0.0, 2 = 1.0 } }, "maximum"]
[episode]
end = { topic = "{robot}/level", field = "data", outcomes = { 1 = "success" } }
"""


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setenv("ROS_VERSION", "2")
    monkeypatch.setattr("springback.producers.bridges.ros_bridge.Ros2Feed", functools.partial(Ros2Feed, watch_s=0.02))
    return install(monkeypatch, {name: rosidl_class(name) for name in (LEVEL, DIAGNOSTICS)})


@contextmanager
def bridge(publisher: MemoryPublisher, said: list[str], **options: str) -> Iterator[threading.Thread]:
    stop = threading.Event()
    mapping = parse_mapping(MAPPING, "robots.toml")
    thread = threading.Thread(target=lambda: said.append(run_ros_bridge(mapping, publisher, options, stop)))
    thread.start()
    try:
        yield thread
    finally:
        stop.set()
        thread.join(DEADLINE_S)
        assert not thread.is_alive()


def level(value: float) -> Any:
    return rosidl_message(STORE.types[LEVEL](data=value))


def failing() -> Any:
    kinds = STORE.types
    stamp = kinds["builtin_interfaces/msg/Time"](sec=0, nanosec=0)
    status = kinds["diagnostic_msgs/msg/DiagnosticStatus"](level=2, name="", message="", hardware_id="", values=[])
    header = kinds["std_msgs/msg/Header"](stamp=stamp, frame_id="")
    return rosidl_message(kinds[DIAGNOSTICS](header=header, status=[status]))


def until(condition: Callable[[], bool]) -> None:
    assert becomes_true(condition, DEADLINE_S)


def heard(graph: Graph, quality: QoSProfile, topic: str) -> Endpoint:
    """A publisher that the bridge hears."""
    name = {"level": LEVEL, "diagnostics": DIAGNOSTICS}[topic.rpartition("/")[2]]
    endpoint = graph.advertise(topic, name, quality)
    until(lambda: any(asked.hears(quality) for asked in graph.heard(topic)))
    return endpoint


def columns(publisher: MemoryPublisher, name: str) -> list[float]:
    return [value for frame in publisher.frames if frame.steps for value in frame.steps[name].tolist()]  # type: ignore[union-attr]


@pytest.mark.parametrize("quality", [RELIABLE, SENSOR, LATCHED], ids=["reliable", "sensor", "latched"])
def test_topics_are_heard_at_whatever_quality_they_are_offered(graph: Graph, quality: QoSProfile) -> None:
    publisher, said = MemoryPublisher(), list[str]()
    with bridge(publisher, said):
        robot, sick = heard(graph, quality, "/r7/level"), heard(graph, quality, "/r7/diagnostics")
        graph.publish("/r7/diagnostics", sick, failing())
        graph.publish("/r7/level", robot, level(0.5))
        graph.publish("/r7/level", robot, level(1.0))
        until(lambda: any(frame.ends for frame in publisher.frames))
    assert columns(publisher, "progress") == [0.5, 1.0]
    assert columns(publisher, "risk") == [1.0, 1.0]
    assert said == ["3 messages became 2 steps and 1 ends of episodes"]
    assert [context.state for context in graph.contexts] == ["shut down"]


def test_what_was_latched_before_is_heard(graph: Graph) -> None:
    publisher = MemoryPublisher()
    endpoint = graph.advertise("/r7/level", LEVEL, LATCHED)
    graph.publish("/r7/level", endpoint, level(1.0))
    with bridge(publisher, []):
        until(lambda: any(frame.ends for frame in publisher.frames))


def test_a_publisher_of_lesser_quality_that_comes_later_is_heard_too(graph: Graph) -> None:
    publisher = MemoryPublisher()
    with bridge(publisher, []):
        first, second = heard(graph, LATCHED, "/r7/level"), heard(graph, SENSOR, "/r7/level")
        assert len(graph.heard("/r7/level")) == 1
        graph.publish("/r7/level", first, level(0.5))
        graph.publish("/r7/level", second, level(1.0))
        until(lambda: any(frame.ends for frame in publisher.frames))
    assert columns(publisher, "progress")[-2:] == [0.5, 1.0]


def test_a_type_that_is_not_installed_is_told_once_and_the_rest_goes_on(
    graph: Graph, caplog: pytest.LogCaptureFixture
) -> None:
    publisher = MemoryPublisher()
    graph.advertise("/r8/level", BATTERY, RELIABLE)
    with bridge(publisher, []):
        graph.publish("/r7/level", heard(graph, RELIABLE, "/r7/level"), level(1.0))
        until(lambda: any(frame.ends for frame in publisher.frames))
    assert sum("no Python support for sensor_msgs/msg/BatteryState" in message for message in caplog.messages) == 1


def test_simulated_time_stands_still_with_the_simulator(graph: Graph) -> None:
    publisher = MemoryPublisher()
    graph.ros_time_ns = 5_000_000_000
    with bridge(publisher, [], use_sim_time="true"):
        robot = heard(graph, RELIABLE, "/r7/level")
        assert graph.sim_time
        for seconds, value in ((5, 0.1), (8, 0.2), (8, 0.3), (9, 1.0)):
            graph.ros_time_ns = seconds * 1_000_000_000
            graph.publish("/r7/level", robot, level(value))
            until(lambda: not graph.ready)
        until(lambda: any(frame.ends for frame in publisher.frames))
    first, *later = columns(publisher, "time_s")
    assert abs(first - time.time()) < DEADLINE_S
    assert [round(time_s - first, 3) for time_s in later] == [3.0, 3.0, 4.0]


def test_a_shutdown_from_outside_ends_it(graph: Graph) -> None:
    publisher, said = MemoryPublisher(), list[str]()
    with bridge(publisher, said) as thread:
        graph.publish("/r7/level", heard(graph, RELIABLE, "/r7/level"), level(0.5))
        until(lambda: not graph.ready)
        graph.contexts[0].state = "shut down"
        thread.join(DEADLINE_S)
        assert said == ["1 messages became 1 steps and 1 ends of episodes"]
    assert [end.outcome for frame in publisher.frames for end in frame.ends] == ["aborted"]


def test_what_breaks_the_feed_is_raised(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(node: object) -> None:
        message = "rmw failure"
        raise RuntimeError(message)

    monkeypatch.setattr("tests.producers.bridges.fake_rclpy.Node.get_topic_names_and_types", broken)
    with pytest.raises(RuntimeError, match="rmw failure"):
        run_ros_bridge(parse_mapping(MAPPING, "robots.toml"), MemoryPublisher(), {}, threading.Event())


def test_it_needs_a_mapping(graph: Graph) -> None:
    with pytest.raises(BridgeOptionError, match="needs a mapping that names topics"):
        run_ros_bridge(None, MemoryPublisher(), {}, threading.Event())

"""The feed against a real ROS 1 master, with a robot in a process of its own; the feed's node has one too."""

import atexit
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from springback.producers.bridges.ros1_feed import Ros1Feed
from springback.producers.bridges.ros_common import BridgeInbox, import_rospy
from tests.producers.bridges.ros_robot import (
    CLOCK,
    FEEDBACK,
    NUMBER,
    STATUS,
    RosMaster,
    RosRobot,
    master_program,
    stamp,
)

pytestmark = pytest.mark.ros
DEADLINE_S = 30.0

LISTENER = """
import json, signal, sys, threading
from springback.producers.bridges.ros_common import BridgeInbox
from springback.producers.mapping.paths import TopicPattern
from springback.producers.bridges.ros1_feed import Ros1Feed
inbox, stop = BridgeInbox(), threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
feed = Ros1Feed([TopicPattern(text) for text in sys.argv[1:]], inbox, watch_s=0.1)
thread = threading.Thread(target=feed.run, args=(stop,))
thread.start()
while thread.is_alive():
    for arrived in inbox.take(0.05):
        print(json.dumps([arrived.topic, feed.plain(arrived.message), arrived.receive_s]), flush=True)
"""


class Listener:
    """What a feed's process has heard."""

    def __init__(self, started: "list[Listener]", master: RosMaster, *topics: str) -> None:
        started.append(self)
        self.process = subprocess.Popen(
            [sys.executable, "-c", LISTENER, *topics], stdout=subprocess.PIPE, env=master.environment, text=True
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def hear(self) -> tuple[str, Any, float]:
        """The next message."""
        topic, value, receive_s = json.loads(self._lines.get(timeout=DEADLINE_S))
        return topic, value, receive_s

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(DEADLINE_S)
        assert self.process.stdout is not None
        return code

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout:
            for line in self.process.stdout:
                if line.startswith("["):
                    self._lines.put(line)


@pytest.fixture
def started() -> Iterator[list[Listener]]:
    """All listeners of the test, none of which outlives it."""
    listeners: list[Listener] = []
    yield listeners
    for listener in listeners:
        listener.process.kill()
        listener.process.wait(DEADLINE_S)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[RosMaster]:
    with RosMaster(tmp_path) as running:
        yield running


def test_any_type_is_read_without_its_package_and_sigterm_ends_it(master: RosMaster, started: list[Listener]) -> None:
    listener = Listener(started, master, "/nav/status", "/{part}/level")
    with RosRobot(master) as robot:
        robot.advertise("/nav/status", "actionlib_msgs/GoalStatusArray", STATUS)
        robot.wait_until_heard("/nav/status")
        goal = {"goal_id": {"stamp": stamp(1.0), "id": "g1"}, "status": 1, "text": "on its way"}
        robot.publish("/nav/status", {"header": {"stamp": stamp(5.5)}, "status_list": [goal]})
        topic, value, _ = listener.hear()
        assert topic == "/nav/status"
        assert value["header"]["stamp"] == {"sec": 5, "nanosec": 500_000_000}
        assert value["status_list"][0]["goal_id"] == {"stamp": {"sec": 1, "nanosec": 0}, "id": "g1"}

        robot.advertise("/battery/level", "robot_msgs/Level", NUMBER, latch=True)  # matches the wildcard
        robot.publish("/battery/level", {"data": 0.5})
        assert listener.hear()[:2] == ("/battery/level", {"data": 0.5})
    assert listener.stop() == 0


def test_robots_and_the_master_come_and_go(tmp_path: Path, started: list[Listener]) -> None:
    master = RosMaster(tmp_path)
    listener = Listener(started, master, "/level")  # nobody is there yet
    with master, RosRobot(master) as first:
        first.advertise("/level", "robot_msgs/Level", NUMBER)
        first.wait_until_heard("/level")
        first.publish("/level", {"data": 1.0})
        assert listener.hear()[1] == {"data": 1.0}

        master.stop()
        first.publish("/level", {"data": 2.0})  # they are connected without it
        assert listener.hear()[1] == {"data": 2.0}
        master.start()
        with RosRobot(master) as second:
            second.advertise("/level", "robot_msgs/Level", NUMBER)
            second.wait_until_heard("/level")  # the feed has told the new master that it listens
            second.publish("/level", {"data": 3.0})
            assert listener.hear()[1] == {"data": 3.0}
            first.publish("/level", {"data": 4.0})
            assert listener.hear()[1] == {"data": 4.0}
        first.stop()
        assert listener.stop() == 0


def test_simulated_time_is_a_date_and_jumps_back_with_the_simulator(master: RosMaster, started: list[Listener]) -> None:
    master.set_parameter("/use_sim_time", True)
    listener = Listener(started, master, "/clock", "/feedback")
    with RosRobot(master) as robot:
        robot.advertise("/clock", "rosgraph_msgs/Clock", CLOCK)
        robot.advertise("/feedback", "robot_msgs/Feedback", FEEDBACK)
        robot.wait_until_heard("/clock")
        robot.wait_until_heard("/feedback")

        def received_s(simulated_s: float) -> float:
            robot.publish("/clock", {"clock": stamp(simulated_s)})
            assert listener.hear()[0] == "/clock"
            robot.publish("/feedback", {"header": {"stamp": stamp(simulated_s)}, "remaining": 3.0, "mode": "go"})
            return listener.hear()[2]

        first_s, later_s, reset_s = received_s(100.0), received_s(103.5), received_s(1.0)
        assert first_s > 1.7e9
        assert later_s - first_s == pytest.approx(3.5)
        assert reset_s - first_s == pytest.approx(-99.0)
    assert listener.stop() == 0


def test_it_can_be_stopped_while_it_waits_for_a_master(tmp_path: Path, started: list[Listener]) -> None:
    listener = Listener(started, RosMaster(tmp_path), "/level")
    os.kill(listener.process.pid, 0)
    assert listener.stop() in (0, -signal.SIGTERM)  # the latter before Python has set its handler


def test_bytes_that_do_not_fit_their_definition_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    master_program()
    monkeypatch.setattr(sys, "path", list(sys.path))
    rospy = import_rospy()
    atexit.unregister(rospy.core._ros_atexit)  # no node was begun here, and the log that it writes to is gone by then
    feed = Ros1Feed([], BridgeInbox())
    message = rospy.AnyMsg()
    message._connection_header = {"type": "robot_msgs/Level", "md5sum": "x", "message_definition": NUMBER}
    message._buff = b"\x00"
    with pytest.raises(ValueError, match="a message of type robot_msgs/Level cannot be read"):
        feed.plain(message)
    message._connection_header = {"type": "robot_msgs/Odd", "md5sum": "y", "message_definition": "no definition"}
    with pytest.raises(ValueError, match="a message of type robot_msgs/Odd cannot be read"):
        feed.plain(message)

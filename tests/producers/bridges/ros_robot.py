"""A real ROS 1 master of a test's own, and a robot: a node in a process of its own that publishes what it is told to.

The robot makes its message types of their definitions, so that no message package has to be installed.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import xmlrpc.client
from pathlib import Path
from typing import Any

import pytest

from springback.deploy.broker_process import free_port
from springback.deploy.child_process import ChildProcess
from tests.deploy.process_checks import becomes_true

STARTED_S = 20.0

HEADER = """
================================================================================
MSG: std_msgs/Header
uint32 seq
time stamp
string frame_id
"""
CLOCK = "time clock\n"
NUMBER = "float64 data\n"
FEEDBACK = f"Header header\nfloat64 remaining\nstring mode\n{HEADER}"
REPORT = f"""Header header
string order
float64 done
float64 thinking
float64 danger
string mode
bool disturbed
string result
{HEADER}"""
STATUS = f"""Header header
actionlib_msgs/GoalStatus[] status_list
{HEADER}
================================================================================
MSG: actionlib_msgs/GoalStatus
actionlib_msgs/GoalID goal_id
uint8 status
string text
================================================================================
MSG: actionlib_msgs/GoalID
time stamp
string id
"""

_ROBOT = """
import json, sys
from springback.producers.bridges.ros_common import import_rospy
rospy = import_rospy()
import genpy
from genpy.dynamic import generate_dynamic

def filled(kinds, name, values):  # genpy's own filling looks for the package of each type that is nested in a list
    if name in ("time", "duration"):
        return (genpy.Time if name == "time" else genpy.Duration)(values["secs"], values["nsecs"])
    if name.endswith("[]"):
        return [filled(kinds, name[:-2], value) for value in values]
    if name not in kinds:
        return values
    message = kinds[name]()
    for field, kind in zip(message.__slots__, message._slot_types):
        if field in values:
            setattr(message, field, filled(kinds, kind, values[field]))
    return message

rospy.init_node("robot", anonymous=True, disable_signals=True, disable_rosout=True, disable_rostime=True)
publishers = {}
print("ready", flush=True)
for line in sys.stdin:
    order = json.loads(line)
    topic = order["topic"]
    if "type" in order:
        name = order["type"]
        kinds = generate_dynamic(name, order["definition"])
        publisher = rospy.Publisher(topic, kinds[name], queue_size=1000, latch=order["latch"])
        publishers[topic] = kinds, name, publisher
    kinds, name, publisher = publishers[topic]
    if order.get("heard"):
        while publisher.get_num_connections() == 0:
            rospy.rostime.wallsleep(0.02)
    for values in order.get("messages", ()):
        publisher.publish(filled(kinds, name, values))
    print("done", flush=True)
rospy.signal_shutdown("told to")
"""


def master_program() -> str:
    """Where rosmaster is; without it the test is skipped, which CI does not accept."""
    program = shutil.which("rosmaster")
    if program is None:
        reason = "no ROS 1 here; deploy/ensure_tools.sh sources, as root, installs it on Debian 12"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return program


class RosMaster:
    """A master that can go away and come back, having forgotten everything."""

    def __init__(self, folder: Path) -> None:
        self._program = master_program()
        self._folder = folder
        self._port = free_port()
        self._process: ChildProcess | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What nodes need to find it."""
        return os.environ | {
            "ROS_MASTER_URI": f"http://127.0.0.1:{self._port}",
            "ROS_HOSTNAME": "127.0.0.1",
            "ROS_LOG_DIR": str(self._folder / "ros_logs"),
        }

    def start(self) -> None:
        """Starts it, and waits until it listens."""
        command = [self._program, "--core", "-p", str(self._port)]
        self._process = ChildProcess("rosmaster", command, self._folder / "rosmaster.log", environment=self.environment)
        assert becomes_true(self._listens, STARTED_S), self._process.log_tail()

    def stop(self) -> None:
        """Ends it."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def set_parameter(self, name: str, value: Any) -> None:
        """Sets a parameter, such as /use_sim_time."""
        with xmlrpc.client.ServerProxy(self.environment["ROS_MASTER_URI"]) as master:
            master.setParam("/test", name, value)

    def __enter__(self) -> "RosMaster":
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0


class RosRobot:
    """A node that publishes."""

    def __init__(self, master: RosMaster) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _ROBOT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=master.environment,
            text=True,
            start_new_session=True,
        )
        self._expect("ready")

    def advertise(self, topic: str, type_name: str, definition: str, *, latch: bool = False) -> None:
        """Announces a topic."""
        self._order(topic=topic, type=type_name, definition=definition, latch=latch)

    def wait_until_heard(self, topic: str) -> None:
        """Waits until somebody has subscribed to it."""
        self._order(topic=topic, heard=True)

    def publish(self, topic: str, *messages: dict[str, Any]) -> None:
        """Publishes messages, by their fields."""
        self._order(topic=topic, messages=messages)

    def stop(self) -> None:
        """Ends it as a node does."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended by itself
            self._process.stdin.close()
        self._process.wait(STARTED_S)
        self._process.stdout.close()

    def __enter__(self) -> "RosRobot":
        return self

    def __exit__(self, *exc: object) -> None:
        if exc[0] is not None:
            self._process.kill()
        self.stop()

    def _order(self, **order: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        self._expect("done")

    def _expect(self, answer: str) -> None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        while line and line.strip() != answer:  # rospy says a word too, now and then
            line = self._process.stdout.readline()
        assert line, "the robot has ended"


def stamp(time_s: float) -> dict[str, int]:
    """A ROS 1 time."""
    return {"secs": int(time_s), "nsecs": round((time_s - int(time_s)) * 1e9)}

"""What the feeds of ROS 1 and ROS 2 share: client libraries, plain messages, the clock of arrival, and the inbox.

The client libraries belong to the system's Python, and are not packages of a virtual environment. Their messages become
plain nested values, the same for ROS 1, ROS 2 and bags, so that one mapping reads them all. They arrive by ROS time,
which a simulator or a bag may drive, and wait in a bounded inbox, so that no callback is ever held up.
"""

from __future__ import annotations

import array
import dataclasses
import importlib
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from springback.producers.errors import ProducerError
from springback.producers.mapping.clocks import plausible
from springback.producers.mapping.paths import TopicPattern
from springback.producers.mapping.unread_topics import unread_topics

KNOWN_PLACES: Final = ("/opt/ros/*/lib/python3/dist-packages", "/usr/lib/python3/dist-packages")
NANOSECOND_S: Final = 1e-9
ROSPY, RCLPY = "rospy", "rclpy"
_ROS_2: Final = "source /opt/ros/DISTRO/setup.bash, and run springback with the Python of that ROS"
_INSTALL: Final = {
    ROSPY: "ROS 1: apt-get install ros-core python3-rospy (Debian 12), or source /opt/ros/noetic/setup.bash; "
    f"ROS 2: {_ROS_2}",
    RCLPY: _ROS_2,
}

log = logging.getLogger(__name__)


class MissingRosError(ProducerError, ImportError):
    """No ROS was found for this Python; the message says what to do."""

    def __init__(self, library: str, cause: ImportError) -> None:
        super().__init__(
            f"{library} cannot be imported by {sys.executable}: {cause}. {_INSTALL[library]}", name=library
        )


def import_rospy(places: tuple[str, ...] = KNOWN_PLACES) -> ModuleType:
    """Imports rospy; where this Python does not find it, from the places where distributions install it.

    Such a place goes to the end of the module search path, behind everything that is installed here.

    Args:
        places: folders to look into, as glob patterns from the root.

    Raises:
        MissingRosError: it is in none of them, or does not work with this Python.
    """
    try:
        return importlib.import_module(ROSPY)
    except ImportError as error:
        failure = error
    for place in [str(found.parent) for pattern in places for found in Path("/").glob(f"{pattern[1:]}/rospy")]:
        sys.path.append(place)
        try:
            return importlib.import_module(ROSPY)
        except ImportError as error:
            failure = error
            sys.path.remove(place)
    raise MissingRosError(ROSPY, failure) from failure


def import_rclpy() -> ModuleType:
    """Imports rclpy, which works only with the Python that its ROS 2 was built for.

    Raises:
        MissingRosError: it cannot be imported.
    """
    try:
        return importlib.import_module(RCLPY)
    except ImportError as error:
        raise MissingRosError(RCLPY, error) from error


def plain_message(message: Any) -> Any:
    """A message of rospy (genpy), rclpy (rosidl) or rosbags as dicts, lists, numbers, texts and bytes.

    Times and durations become `{"sec": …, "nanosec": …}` in all of them, numeric arrays become lists, and arrays of
    bytes (images, point clouds) stay bytes, since no field path leads into them.

    Raises:
        TypeError: it, or something in it, cannot be part of a ROS message.
    """
    if message is None or isinstance(message, (bool, int, float, str, bytes)):
        return message
    if isinstance(message, np.generic):
        return message.item()
    if isinstance(message, np.ndarray):
        return message.tobytes() if message.dtype == np.uint8 else message.tolist()
    if isinstance(message, array.array):
        return message.tobytes() if message.typecode == "B" else message.tolist()
    if isinstance(message, (bytearray, memoryview)):
        return bytes(message)
    if isinstance(message, (list, tuple)):
        return [plain_message(element) for element in message]
    return _fields(message)


def _fields(message: Any) -> dict[str, Any]:
    kind = type(message)
    if dataclasses.is_dataclass(kind) and hasattr(kind, "__msgtype__"):  # rosbags
        # What has a default is a constant of the type rather than a field of the message.
        names = (field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING)
        return {name: plain_message(getattr(message, name)) for name in names}
    if hasattr(kind, "get_fields_and_field_types"):  # rclpy
        types: Mapping[str, str] = kind.get_fields_and_field_types()
        return {name: _plain_field(getattr(message, name), type_name) for name, type_name in types.items()}
    if hasattr(kind, "to_nsec"):  # a time or duration of genpy or rospy, which is not a message
        return {"sec": message.secs, "nanosec": message.nsecs}
    if hasattr(kind, "_slot_types"):  # rospy
        return {name: plain_message(getattr(message, name)) for name in kind.__slots__}
    problem = f"a {kind.__module__}.{kind.__qualname__} is neither a ROS message nor a part of one: {message!r:.200}"
    raise TypeError(problem)


def _plain_field(value: Any, type_name: str) -> Any:
    # rclpy gives a `byte`, such as the level of a DiagnosticStatus, as bytes of length 1; the others as a number.
    if type_name == "octet" and isinstance(value, bytes) and len(value) == 1:
        return value[0]
    return plain_message(value)


class ReceiveClock:
    """The time of arrival: ROS time as s UTC epoch.

    A simulated time that counts from some zero is moved so that its first reading is now: it still stops with the
    simulator, and jumps back with it, and yet is a date. Before the first `/clock`, ROS time is zero, and the machine's
    own clock stands in.

    Args:
        ros_time_s: returns ROS time, s.
        wall_s: returns the machine's time, s UTC epoch.

    >>> times = iter([0.0, 12.0, 14.5, 1.0])
    >>> clock = ReceiveClock(lambda: next(times), wall_s=lambda: 1790000000.0)
    >>> [clock.now_s() - 1790000000.0 for _ in range(4)]
    [0.0, 0.0, 2.5, -11.0]
    """

    def __init__(self, ros_time_s: Callable[[], float], wall_s: Callable[[], float] = time.time) -> None:
        self._ros_time_s = ros_time_s
        self._wall_s = wall_s
        self._shift_s: float | None = None

    def now_s(self) -> float:
        """The time now."""
        ros_s = self._ros_time_s()
        if plausible(ros_s):
            return ros_s
        if ros_s <= 0.0:
            return self._wall_s()
        if self._shift_s is None:
            self._shift_s = self._wall_s() - ros_s
        return ros_s + self._shift_s


class ArrivedMessage(NamedTuple):
    """A message as its client library gave it: its topic, what it is, and when it came (s UTC epoch, by ROS time)."""

    topic: str
    message: Any
    receive_s: float


class BridgeInbox:
    """A queue of messages between the threads of a client library and the one that makes steps of them.

    Args:
        capacity: the most messages that wait; those that find it full are dropped and counted.

    >>> inbox = BridgeInbox(capacity=1)
    >>> inbox.put(ArrivedMessage("/odom", 1, 0.0))
    >>> inbox.put(ArrivedMessage("/odom", 2, 0.1))
    >>> [arrived.message for arrived in inbox.take(0.0)], inbox.dropped
    ([1], 1)
    """

    def __init__(self, capacity: int = 10_000) -> None:
        if capacity < 1:
            message = f"the capacity of an inbox must be 1 or more, got {capacity}"
            raise ValueError(message)
        self._capacity = capacity
        self._waiting: deque[ArrivedMessage] = deque()
        self._changed = threading.Condition()
        self._failure: BaseException | None = None
        self.dropped = 0

    def put(self, arrived: ArrivedMessage) -> None:
        """Takes a message in, or drops and counts it; never waits."""
        with self._changed:
            if len(self._waiting) >= self._capacity:
                self.dropped += 1
                return
            self._waiting.append(arrived)
            if len(self._waiting) == 1:
                self._changed.notify()

    def fail(self, error: BaseException) -> None:
        """Ends the inbox: once all that waits is taken, the next `take` raises this error."""
        with self._changed:
            self._failure = error
            self._changed.notify()

    def take(self, timeout_s: float) -> list[ArrivedMessage]:
        """Takes all messages that wait, in order; waits at most `timeout_s` for the first one.

        Raises:
            BaseException: the error that the other side has failed with.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._failure is not None, timeout_s)
            taken = list(self._waiting)
            self._waiting.clear()
            if not taken and self._failure is not None:
                raise self._failure
        return taken


class NoticedTopics:
    """Tells once of topics that are there and are not read, though the mapping reads one of the kind.

    Args:
        patterns: the topics that are read.
    """

    def __init__(self, patterns: Iterable[TopicPattern]) -> None:
        self._patterns = tuple(patterns)
        self._seen: set[str] = set()
        self._told: set[str] = set()

    def notice(self, topics: Iterable[str]) -> None:
        """Logs what can be said of these topics, where there are new ones among them."""
        there = set(topics)
        if there <= self._seen:
            return
        self._seen |= there
        for said in unread_topics(self._patterns, sorted(self._seen), "the mapping"):
            if said not in self._told:
                self._told.add(said)
                log.warning("%s", said)

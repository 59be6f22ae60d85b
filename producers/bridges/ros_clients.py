"""The client libraries of ROS: they belong to the system's Python, and are no packages of a virtual environment.

ROS messages as plain nested values, the same for ROS 1, ROS 2 and bags, so that one mapping reads them all.

A message of rospy (genpy), rclpy (rosidl) or rosbags becomes a dict of its fields. Times and durations become
`{"sec": …, "nanosec": …}` in all of them, numeric arrays become lists, and arrays of bytes (images, point clouds) stay
bytes, for no field path leads into them.

When messages of ROS arrive: by ROS time, which a simulator or a bag may drive, as seconds of the epoch.
"""

import array
import dataclasses
import importlib
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from springback.producers.errors import ProducerError
from springback.producers.mapping.clocks import plausible

KNOWN_PLACES: Final = ("/opt/ros/*/lib/python3/dist-packages", "/usr/lib/python3/dist-packages")
ROSPY, RCLPY = "rospy", "rclpy"
_ROS_2: Final = "source /opt/ros/DISTRO/setup.bash, and run springback with the Python of that ROS"
_INSTALL: Final = {
    ROSPY: "ROS 1: apt-get install ros-core python3-rospy (Debian 12), or source /opt/ros/noetic/setup.bash; "
    f"ROS 2: {_ROS_2}",
    RCLPY: _ROS_2,
}


class MissingRosError(ProducerError, ImportError):
    """No ROS was found for this Python: the message says what to do."""

    def __init__(self, library: str, cause: ImportError) -> None:
        super().__init__(
            f"{library} cannot be imported by {sys.executable}: {cause}. {_INSTALL[library]}", name=library
        )


def import_rospy(places: tuple[str, ...] = KNOWN_PLACES) -> ModuleType:
    """rospy; where this Python does not find it, from the places where distributions install it.

    Such a place goes to the end of the module search path, behind everything that is installed here.

    Args:
        places: folders to look into, as glob patterns from the root.

    Raises:
        MissingRosError: it is nowhere, or does not work with this Python.
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
    """rclpy, which works with the very Python that its ROS 2 was built for.

    Raises:
        MissingRosError: it cannot be imported.
    """
    try:
        return importlib.import_module(RCLPY)
    except ImportError as error:
        raise MissingRosError(RCLPY, error) from error


NANOSECOND_S: Final = 1e-9


def plain_message(message: Any) -> Any:
    """The message as dicts, lists, numbers, texts and bytes.

    Raises:
        TypeError: it, or something in it, is nothing that a ROS message can hold.
    """
    if message is None or isinstance(message, bool | int | float | str | bytes):
        return message
    if isinstance(message, np.generic):
        return message.item()
    if isinstance(message, np.ndarray):
        return message.tobytes() if message.dtype == np.uint8 else message.tolist()
    if isinstance(message, array.array):
        return message.tobytes() if message.typecode == "B" else message.tolist()
    if isinstance(message, bytearray | memoryview):
        return bytes(message)
    if isinstance(message, list | tuple):
        return [plain_message(element) for element in message]
    return _fields(message)


def header_time_s(value: Any) -> float | None:
    """The stamp of the plain message's header, s; None where there is none, or it was never set (zero).

    >>> header_time_s({"header": {"stamp": {"sec": 12, "nanosec": 500000000}, "frame_id": "map"}, "data": 1})
    12.5
    """
    header = value.get("header") if isinstance(value, Mapping) else None
    stamp = header.get("stamp") if isinstance(header, Mapping) else None
    return stamp_s(stamp) or None


def stamp_s(stamp: Any) -> float | None:
    """A plain ROS time or duration in seconds; None where it is none."""
    if not isinstance(stamp, Mapping) or stamp.keys() != {"sec", "nanosec"}:
        return None
    return float(stamp["sec"]) + float(stamp["nanosec"]) * NANOSECOND_S


def _fields(message: Any) -> dict[str, Any]:
    kind = type(message)
    if dataclasses.is_dataclass(kind) and hasattr(kind, "__msgtype__"):  # rosbags
        # What has a default is no field of the message but one of its type's constants.
        names = (field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING)
        return {name: plain_message(getattr(message, name)) for name in names}
    if hasattr(kind, "get_fields_and_field_types"):  # rclpy
        types: Mapping[str, str] = kind.get_fields_and_field_types()
        return {name: _plain_field(getattr(message, name), type_name) for name, type_name in types.items()}
    if hasattr(kind, "to_nsec"):  # a time or duration of genpy or rospy, which is no message
        return {"sec": message.secs, "nanosec": message.nsecs}
    if hasattr(kind, "_slot_types"):  # rospy
        return {name: plain_message(getattr(message, name)) for name in kind.__slots__}
    problem = f"a {kind.__module__}.{kind.__qualname__} is no ROS message, nor a part of one: {message!r:.200}"
    raise TypeError(problem)


def _plain_field(value: Any, type_name: str) -> Any:
    # rclpy gives a `byte`, such as the level of a DiagnosticStatus, as bytes of length 1; the others as a number.
    if type_name == "octet" and isinstance(value, bytes) and len(value) == 1:
        return value[0]
    return plain_message(value)


class ReceiveClock:
    """ROS time as s UTC epoch.

    A simulated time that counts from some zero is moved by what makes its first reading now: so it stands still with
    the simulator, and jumps back with it, and is a date all the same. Before the first `/clock`, ROS time is zero, and
    the machine's own clock stands in.

    Args:
        ros_time_s: gives ROS time, s.
        wall_s: gives the machine's time, s UTC epoch.

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

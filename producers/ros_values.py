"""ROS messages as plain nested values, the same for ROS 1, ROS 2 and bags, so that one mapping reads them all.

A message of rospy (genpy), rclpy (rosidl) or rosbags becomes a dict of its fields. Times and durations become
`{"sec": …, "nanosec": …}` in all of them, numeric arrays become lists, and arrays of bytes (images, point clouds) stay
bytes, for no field path leads into them.
"""

import array
import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

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

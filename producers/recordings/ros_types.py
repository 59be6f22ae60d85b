"""Decoders of ROS messages, by the definitions of their types that a recording holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from springback.producers.install_hints import MissingExtraError

try:
    from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore
    from rosbags.typesys.base import TypesysError
    from rosbags.typesys.msg import normalize_msgtype
except ImportError as error:
    raise MissingExtraError(extra="recordings", cause=error) from error

Decode = Callable[[bytes], Any]

IDL: Final = "ros2idl"


class RecordedTopic(NamedTuple):
    """A topic of a recording, and what makes values of its messages; None where they are not wanted or unreadable."""

    name: str
    decode: Decode | None


def ros1_decoder(kind: str, definition: str) -> Decode:
    """What makes a message object of the bytes that ROS 1 writes.

    Args:
        kind: the type, such as `nav_msgs/Odometry`.
        definition: the text with all types that it needs.
    """
    name = normalize_msgtype(kind)
    store = get_typestore(Stores.EMPTY)  # of its own: two connections may know a type by two definitions
    store.register(get_types_from_msg(definition, name))
    return lambda data: store.deserialize_ros1(data, name)


def cdr_decoder(kind: str, encoding: str, definition: str) -> Decode | None:
    """What makes a message object of the bytes that ROS 2 writes (CDR); None where nothing is known of the type.

    Args:
        kind: the type, such as `nav2_msgs/action/NavigateToPose_FeedbackMessage`.
        encoding: of the definition: `ros2idl`, or `ros2msg` for anything else.
        definition: the text with all types that it needs; empty where the recording has none, so that only the types
            that come with ROS 2 are known.
    """
    store = get_typestore(Stores.LATEST)
    if definition:
        own = get_typestore(Stores.EMPTY)
        try:
            own.register(get_types_from_idl(definition) if encoding == IDL else get_types_from_msg(definition, kind))
        except TypesysError:
            own = store  # it may be a type that comes with ROS 2
        store = own if kind in own.fielddefs else store
    if kind not in store.fielddefs:
        return None
    return lambda data: store.deserialize_cdr(data, kind)

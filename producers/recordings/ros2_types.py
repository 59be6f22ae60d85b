"""Decoders of ROS 2 messages (CDR), by the definition that a recording holds of their type."""

from collections.abc import Callable
from typing import Any, Final

from springback.producers.errors import MissingExtraError

try:
    from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore
    from rosbags.typesys.base import TypesysError
except ImportError as error:
    raise MissingExtraError(extra="recordings", cause=error) from error

Decode = Callable[[bytes], Any]

IDL: Final = "ros2idl"


def cdr_decoder(kind: str, encoding: str, definition: str) -> Decode | None:
    """What makes a message object of its bytes; None where nothing is known of the type.

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

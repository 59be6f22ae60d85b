"""Messages as rclpy hands them over, made of the types that rosbags knows: fields are properties, a byte is bytes."""

import array
from operator import attrgetter
from typing import Any

import numpy as np
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_HUMBLE)
_OCTET = "octet"


def rosidl_class(name: str) -> type:
    """The class of this message type, such as `diagnostic_msgs/msg/DiagnosticArray`, in the way of rosidl_python."""
    _, fields = STORE.fielddefs[name]
    types = {field: _type_name(described) for field, described in fields}
    slots = tuple(f"_{field}" for field in types)
    properties = {field: property(attrgetter(f"_{field}")) for field in types}
    described = {
        "__slots__": slots,
        "_fields_and_field_types": types,
        "get_fields_and_field_types": classmethod(lambda cls: dict(cls._fields_and_field_types)),
        **properties,
    }
    return type(name.rpartition("/")[2], (), described)


def rosidl_message(message: Any) -> Any:
    """The same message as rclpy would hand it over."""
    made = rosidl_class(message.__msgtype__)()
    for field, type_name in made.get_fields_and_field_types().items():
        setattr(made, f"_{field}", _value(getattr(message, field), type_name))
    return made


def _value(value: Any, type_name: str) -> Any:
    if type_name == _OCTET:
        return bytes([value])
    if isinstance(value, np.ndarray):
        return value if type_name.endswith("]") else array.array(value.dtype.char, value.tolist())
    if isinstance(value, list):
        return [_value(one, "") for one in value]
    return rosidl_message(value) if hasattr(value, "__msgtype__") else value


def _type_name(described: Any) -> str:
    kind, detail = described
    if kind is Nodetype.ARRAY:
        return f"{_type_name(detail[0])}[{detail[1]}]"
    if kind is Nodetype.SEQUENCE:
        return f"sequence<{_type_name(detail[0])}>"
    name = detail if kind is Nodetype.NAME else detail[0]
    return _OCTET if name == "byte" else str(name).replace("/msg/", "/")

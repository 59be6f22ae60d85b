"""One plain form of messages, whichever of the three libraries they come from."""

import math
from typing import Any

import numpy as np
import pytest
from rosbags.typesys import Stores, get_typestore

from springback.producers.bridges.ros_common import plain_message
from tests.producers.bridges.rosidl_messages import rosidl_message

ROS_1, ROS_2 = get_typestore(Stores.ROS1_NOETIC), get_typestore(Stores.ROS2_HUMBLE)


def made(store: Any, kind: str, /, **fields: Any) -> Any:
    package, short = kind.split("/")
    return store.types[f"{package}/msg/{short}"](**fields)


def header(store: Any) -> Any:
    stamp = made(store, "builtin_interfaces/Time", sec=12, nanosec=500_000_000)
    more = {"seq": 3} if store is ROS_1 else {}
    return made(store, "std_msgs/Header", stamp=stamp, frame_id="map", **more)


def diagnostics(store: Any) -> Any:
    value = made(store, "diagnostic_msgs/KeyValue", key="volt", value="11.8")
    status = made(
        store,
        "diagnostic_msgs/DiagnosticStatus",
        level=2,
        name="cell",
        message="low",
        hardware_id="b",
        values=[value],
    )
    return made(store, "diagnostic_msgs/DiagnosticArray", header=header(store), status=[status])


def odometry(store: Any) -> Any:
    point = made(store, "geometry_msgs/Point", x=1.0, y=math.nan, z=0.0)
    turn = made(store, "geometry_msgs/Quaternion", x=0.0, y=0.0, z=0.0, w=1.0)
    pose = made(store, "geometry_msgs/Pose", position=point, orientation=turn)
    return made(store, "geometry_msgs/PoseWithCovariance", pose=pose, covariance=np.arange(36.0))


@pytest.mark.parametrize("store", [ROS_1, ROS_2], ids=["ROS 1", "ROS 2"])
def test_rosbags_and_rclpy_give_the_same(store: Any) -> None:
    plain = plain_message(diagnostics(store))
    assert plain["header"]["stamp"] == {"sec": 12, "nanosec": 500_000_000}
    assert plain["status"] == [
        {
            "level": 2,
            "name": "cell",
            "message": "low",
            "hardware_id": "b",
            "values": [{"key": "volt", "value": "11.8"}],
        }
    ]
    if store is ROS_2:
        assert plain_message(rosidl_message(diagnostics(store))) == plain


def test_arrays_are_lists_and_arrays_of_bytes_are_bytes() -> None:
    for message in (odometry(ROS_2), rosidl_message(odometry(ROS_2))):
        plain = plain_message(message)
        assert plain["covariance"] == list(range(36))
        assert math.isnan(plain["pose"]["position"]["y"])
    uuid = made(ROS_2, "unique_identifier_msgs/UUID", uuid=np.arange(16, dtype=np.uint8))
    for message in (uuid, rosidl_message(uuid)):
        assert plain_message(message) == {"uuid": bytes(range(16))}


def test_what_is_no_message_is_told() -> None:
    with pytest.raises(TypeError, match=r"a builtins\.object is neither a ROS message"):
        plain_message([object()])

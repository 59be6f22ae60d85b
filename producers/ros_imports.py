"""The client libraries of ROS: they belong to the system's Python, and are no packages of a virtual environment."""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from springback.producers.errors import ProducerError

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

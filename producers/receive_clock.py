"""When messages of ROS arrive: by ROS time, which a simulator or a bag may drive, as seconds of the epoch."""

import time
from collections.abc import Callable

from springback.producers.mapping_parts.session_clock import plausible


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

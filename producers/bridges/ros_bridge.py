"""ROS 1 and ROS 2 as sources of steps, behind one signal mapping: `springback bridge ros --mapping FILE`.

The mapping's topics are subscribed to, whatever their types. Times are those of the messages' headers or of their
arrival, as the mapping says; arrival is by ROS time, so that simulated time, a reset of the simulator and a bag that
starts again are seen as what they are. Callbacks do no more than put a message into a bounded inbox.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

from springback.producers.bridges.ros1_feed import Ros1Feed
from springback.producers.bridges.ros2_feed import Ros2Feed
from springback.producers.bridges.ros_common import (
    ArrivedMessage,
    BridgeInbox,
    MissingRosError,
    import_rclpy,
    import_rospy,
)
from springback.producers.bridges.settings import BridgeOptionError, RosSettings, bridge_settings
from springback.producers.emitter.publishers import FramePublisher
from springback.producers.mapping.live import MappedSteps
from springback.producers.mapping.signal_mapping import SignalMapping, TimedMessage

TICK_S = 0.1

log = logging.getLogger(__name__)


class RosFeed(Protocol):
    """Messages of ROS 1 or of ROS 2."""

    def run(self, stop: threading.Event) -> None:
        """Puts messages into the inbox until `stop` is set."""

    def now_s(self) -> float:
        """The time of the messages' arrival, s UTC epoch."""

    def plain(self, message: Any) -> Any:
        """The message as plain nested values.

        Raises:
            ValueError: it cannot be read.
        """


class RosBridge:
    """Makes steps of what a feed delivers.

    Args:
        mapping: what the messages mean.
        publisher: where frames go; it stays open.
        inbox: where the feed puts messages.
        feed: where the messages come from.
    """

    def __init__(self, mapping: SignalMapping, publisher: FramePublisher, inbox: BridgeInbox, feed: RosFeed) -> None:
        self._steps = MappedSteps(mapping, publisher)
        self._inbox = inbox
        self._feed = feed
        self._unreadable: Counter[str] = Counter()

    def run(self, stop: threading.Event) -> None:
        """Works until `stop` is set or ROS is shut down from outside; then sends what there is.

        Raises:
            Exception: whatever made the feed fail.
        """
        feeding = threading.Thread(target=self._feed_inbox, args=(stop,), name="ros-feed", daemon=True)
        feeding.start()
        try:
            while feeding.is_alive():
                self._work_off(TICK_S)
                self._steps.advance(self._feed.now_s())
            self._work_off(0.0)
        finally:
            stop.set()
            feeding.join()
            self._steps.close()

    def __str__(self) -> str:
        """What came in, and what became of it, in a line."""
        said = str(self._steps)
        if self._inbox.dropped:
            said += f"; {self._inbox.dropped} messages found the inbox full"
        if self._unreadable:
            said += "; unreadable: " + ", ".join(f"{count} of {topic}" for topic, count in self._unreadable.items())
        return said

    def _feed_inbox(self, stop: threading.Event) -> None:
        try:
            self._feed.run(stop)
        except Exception as error:
            self._inbox.fail(error)

    def _work_off(self, timeout_s: float) -> None:
        for arrived in self._inbox.take(timeout_s):
            value = self._plain(arrived)
            if value is not None:
                self._steps.add(TimedMessage(arrived.topic, arrived.receive_s, value))

    def _plain(self, arrived: ArrivedMessage) -> Any:
        try:
            return self._feed.plain(arrived.message)
        except (ValueError, TypeError) as error:
            if not self._unreadable[arrived.topic]:
                log.warning("left out (unreadable): %s: %s; further ones are only counted", arrived.topic, error)
            self._unreadable[arrived.topic] += 1
            return None


def run_ros_bridge(
    mapping: SignalMapping | None, publisher: FramePublisher, options: Mapping[str, str], stop: threading.Event
) -> str:
    """Bridges ROS to the publisher until `stop` is set; see `sources.Bridge`.

    Raises:
        BridgeOptionError: there is no mapping, it names no topic, or a setting is wrong.
        MissingRosError: no ROS is found.
    """
    settings = bridge_settings(RosSettings, "ros", mapping, options)
    if mapping is None or not mapping.patterns:
        message = "the bridge ros needs a mapping that names topics: --mapping FILE, or one that comes with springback"
        raise BridgeOptionError(message)
    inbox = BridgeInbox(settings.inbox)
    feed: RosFeed
    if _version(settings) == 1:
        feed = Ros1Feed(mapping.patterns, inbox)
    else:
        feed = Ros2Feed(mapping.patterns, inbox, sim_time=settings.use_sim_time)
    bridge = RosBridge(mapping, publisher, inbox, feed)
    bridge.run(stop)
    return str(bridge)


def _version(settings: RosSettings) -> int:
    if settings.version is not None:
        return settings.version
    if os.environ.get("ROS_VERSION") in ("1", "2"):
        return int(os.environ["ROS_VERSION"])
    try:
        import_rclpy()
    except MissingRosError:
        import_rospy()
        return 1
    return 2

"""ROS 1 as a feed of messages: any topic of any type, while nodes and the master come and go.

Topics are subscribed to without a type; each connection brings the definition of its messages, by which they are read.
So a topic need not exist yet, and no message package need be installed here. rospy allows one node per process, once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

from springback.producers.bridges.ros_common import (
    ArrivedMessage,
    BridgeInbox,
    NoticedTopics,
    ReceiveClock,
    import_rospy,
    plain_message,
)
from springback.producers.mapping.paths import TopicPattern

NODE_NAME: Final = "springback_bridge"
_POLL_S: Final = 0.2

log = logging.getLogger(__name__)


class Ros1Feed:
    """Subscribes to topics and puts what comes into an inbox.

    Args:
        patterns: which topics. Plain names are remapped and resolved as those of any node are, and need not exist yet;
            topics that match a wildcard are looked up every `watch_s`.
        inbox: where the messages go.
        watch_s: how often to check whether the master still knows this node, s.

    Raises:
        MissingRosError: rospy cannot be imported.
    """

    def __init__(self, patterns: Iterable[TopicPattern], inbox: BridgeInbox, *, watch_s: float = 1.0) -> None:
        self._rospy = import_rospy()
        self._patterns = tuple(patterns)
        self._subscribed: set[str] = set()
        self._noticed = NoticedTopics(self._patterns)
        self._inbox = inbox
        self._watch_s = watch_s
        self._clock: ReceiveClock | None = None
        self._classes: dict[tuple[str, str], Any] = {}

    def run(self, stop: threading.Event) -> None:
        """Waits for the master, subscribes, and stays until `stop` is set or the node is shut down from outside."""
        rospy = self._rospy
        if not self._wait_for_master(stop):
            return
        with _own_log():
            rospy.init_node(NODE_NAME, anonymous=True, disable_signals=True, disable_rosout=True)
        self._clock = ReceiveClock(rospy.get_time)
        try:
            for pattern in self._patterns:
                if pattern.is_plain:
                    self._subscribe(pattern.text)
            while not rospy.is_shutdown() and not stop.is_set():
                self._look_around()
                stop.wait(self._watch_s)
        finally:
            rospy.signal_shutdown("springback bridge ends")

    def now_s(self) -> float:
        """The time of the messages' arrival, s UTC epoch."""
        return time.time() if self._clock is None else self._clock.now_s()

    def plain(self, message: Any) -> Any:
        """The message as plain nested values.

        Raises:
            ValueError: its bytes do not fit its definition.
        """
        if not isinstance(message, self._rospy.AnyMsg):  # rospy has subscribed to `/clock` itself, by its type
            return plain_message(message)
        genpy, genmsg = import_module("genpy"), import_module("genmsg")
        header = message._connection_header
        kind = header["type"]
        try:
            empty = self._message_of(kind, header["md5sum"], header["message_definition"])
            return plain_message(empty.deserialize(message._buff))
        except (
            genpy.MessageException,
            genmsg.InvalidMsgSpec,
            genmsg.MsgGenerationException,
            genmsg.MsgNotFound,
        ) as error:
            problem = f"a message of type {kind} cannot be read: {error}"
            raise ValueError(problem) from error

    def _message_of(self, kind: str, checksum: str, definition: str) -> Any:
        """An empty message of this type."""
        if (kind, checksum) not in self._classes:
            generated = import_module("genpy.dynamic").generate_dynamic(kind, definition)
            self._classes[kind, checksum] = generated[kind]
        return self._classes[kind, checksum]()

    def _take(self, message: Any, topic: str) -> None:
        self._inbox.put(ArrivedMessage(topic, message, self.now_s()))

    def _wait_for_master(self, stop: threading.Event) -> bool:
        rosgraph = import_module("rosgraph")
        told = False
        while not rosgraph.is_master_online():
            if not told:
                log.warning("no ROS master at %s yet (ROS_MASTER_URI); waiting for it", rosgraph.get_master_uri())
                told = True
            if stop.wait(_POLL_S):
                return False
        return not stop.is_set()

    def _subscribe(self, topic: str) -> None:
        if topic not in self._subscribed:
            self._subscribed.add(topic)
            self._rospy.Subscriber(topic, self._rospy.AnyMsg, self._take, callback_args=topic)

    def _look_around(self) -> None:
        """Subscribes to new topics that match a wildcard, and registers again with a master that was restarted."""
        rosgraph = import_module("rosgraph")
        name = self._rospy.get_name()
        master = rosgraph.Master(name)
        try:
            there = [topic for topic, _ in master.getPublishedTopics("")]
            self._noticed.notice(there)
            for topic in there:
                if any(not pattern.is_plain and pattern.match(topic) is not None for pattern in self._patterns):
                    self._subscribe(topic)
            master.lookupNode(name)
        except rosgraph.MasterError:
            log.warning("the ROS master does not know %s any more (a restart?); registering again", name)
            self._register_again()
        except OSError as error:
            log.debug("the ROS master does not answer: %s", error)

    def _register_again(self) -> None:
        # rospy does not do this by itself. Its connections to publishers stay: a new master may not know of those.
        registration = import_module("rospy.impl.registration")
        for topic, kind in self._rospy.topics.get_topic_manager().get_subscriptions():
            registration.get_registration_listeners().notify_added(topic, kind, registration.Registration.SUB)


@contextmanager
def _own_log() -> Iterator[None]:
    """Keeps the handlers of the log, which rospy replaces with a file of its own."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        for handler in [handler for handler in root.handlers if handler not in handlers]:
            handler.close()
        root.handlers[:] = handlers
        root.setLevel(level)

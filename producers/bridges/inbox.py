"""What a bridge's callbacks put messages into: bounded, and never in the way of the client library that calls them.

The settings of a bridge: those of the command line above those of the mapping's `[source.NAME]`.
"""

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from springback.producers.errors import ProducerError
from springback.producers.mapping.signal_mapping import SignalMapping


class ArrivedMessage(NamedTuple):
    """A message as its client library gave it: where, what, and when it came (s, by the clock of the source)."""

    topic: str
    message: Any
    receive_s: float


class BridgeInbox:
    """A queue of messages between the threads of a client library and the one that makes steps of them.

    Args:
        capacity: the most messages that wait; what comes when it is full is dropped and counted.

    >>> inbox = BridgeInbox(capacity=1)
    >>> inbox.put(ArrivedMessage("/odom", 1, 0.0))
    >>> inbox.put(ArrivedMessage("/odom", 2, 0.1))
    >>> [arrived.message for arrived in inbox.take(0.0)], inbox.dropped
    ([1], 1)
    """

    def __init__(self, capacity: int = 10_000) -> None:
        if capacity < 1:
            message = f"the capacity of an inbox must be 1 or more, got {capacity}"
            raise ValueError(message)
        self._capacity = capacity
        self._waiting: deque[ArrivedMessage] = deque()
        self._changed = threading.Condition()
        self._failure: BaseException | None = None
        self.dropped = 0

    def put(self, arrived: ArrivedMessage) -> None:
        """Takes a message in, or drops and counts it; never waits."""
        with self._changed:
            if len(self._waiting) >= self._capacity:
                self.dropped += 1
                return
            self._waiting.append(arrived)
            if len(self._waiting) == 1:
                self._changed.notify()

    def fail(self, error: BaseException) -> None:
        """Ends it: once all that waits is taken, the next `take` raises this error."""
        with self._changed:
            self._failure = error
            self._changed.notify()

    def take(self, timeout_s: float) -> list[ArrivedMessage]:
        """All messages that wait, in order; waits for the first one for at most `timeout_s`.

        Raises:
            BaseException: the error that the other side has failed with.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._failure is not None, timeout_s)
            taken = list(self._waiting)
            self._waiting.clear()
            if not taken and self._failure is not None:
                raise self._failure
        return taken


Settings = TypeVar("Settings", bound=msgspec.Struct)


class BridgeOptionError(ProducerError, ValueError):
    """A bridge has no such setting, or it cannot have that value."""


def bridge_settings(
    kind: type[Settings], name: str, mapping: SignalMapping | None, options: Mapping[str, str], **defaults: Any
) -> Settings:
    """The settings of the bridge.

    Args:
        kind: the struct of its settings.
        name: the bridge's name.
        mapping: its `[source.NAME]` is read, if there is one.
        options: KEY=VALUE of the command line, texts all of them.
        **defaults: what is known otherwise.

    Raises:
        BridgeOptionError: a setting is not known, or has a wrong value.
    """
    given = defaults | (mapping.sources.get(name, {}) if mapping is not None else {}) | dict(options)
    known = kind.__struct_fields__
    unknown = sorted(set(given) - set(known))
    if unknown:
        message = f"the bridge {name} has no setting {', '.join(unknown)}; it has {', '.join(known)}"
        raise BridgeOptionError(message)
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        message = f"a setting of the bridge {name}: {error}"
        raise BridgeOptionError(message) from error

"""What every bridge and every reader of recordings gives: a message, where and when."""

from typing import Any, NamedTuple


class TimedMessage(NamedTuple):
    """A message of any source.

    Attributes:
        topic: its topic; empty for the rows of a table.
        receive_s: when it arrived or was recorded, s UTC epoch (the row's number for a table without times).
        value: what it says: nested dicts, lists and scalars, or an object with attributes, as ROS messages are.
        retained: it is an old message that a broker kept.
        redelivered: it may have been delivered before.
    """

    topic: str
    receive_s: float
    value: Any
    retained: bool = False
    redelivered: bool = False

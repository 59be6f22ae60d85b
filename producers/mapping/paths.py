"""Where a value stands in a message: a dotted path into nested dicts, lists and message objects.

`pose.pose.position.x`, `status[0].level` (or `status.0.level`), `status[-1].level`, `status[*].level` (a list of all),
`status[name=battery].level` (a list of those whose field has that text), `"next.done"` (a key that holds a dot, in
double quotes). The empty path is the whole message.

Which topics a rule is for: MQTT's wildcards for ROS and recordings too, and levels with a name.

`fleet/{robot}/pose` matches `fleet/7/pose` and calls the level `robot`; `+` is any one level; `#` at the end is all
that follows. A leading slash is a level of its own in MQTT and none in ROS, so it plays no part.

Plain values out of what messages hold: numbers, vectors, instants; None where there is none that is finite.
"""

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

MISSING: Final = object()
"""What `FieldPath.read` answers where there is nothing at that place."""

_PIECE: Final = re.compile(
    r"""\.?(?:"(?P<quoted>[^"]+)"|(?P<name>[^.\[\]"\s][^.\[\]"]*))"""
    r"""|\[(?:(?P<all>\*)|(?P<index>-?\d+)|(?P<key>[^\[\]=*]+)=(?P<value>[^\[\]]*))\]"""
)


class _Each(NamedTuple):
    """All items of a list, or those whose field `key` has the text `value`."""

    key: str | None
    value: str


class FieldPath:
    """A parsed path.

    Args:
        text: the path as written.

    Raises:
        ValueError: it is no path.

    >>> FieldPath("status[*].level").read({"status": [{"level": 1}, {"level": 2}]})
    [1, 2]
    >>> FieldPath('"next.done"').read({"next.done": True})
    True
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._pieces = _parse(text)

    @property
    def top(self) -> str | None:
        """The name of the field that it begins with; None where it reads the whole message or a list."""
        return self._pieces[0] if self._pieces and isinstance(self._pieces[0], str) else None

    def read(self, value: Any) -> Any:
        """What stands at this place of the value; `MISSING` where there is no such place."""
        return _read(value, self._pieces, 0)

    def __repr__(self) -> str:
        """As it was written."""
        return f"FieldPath({self.text!r})"


def _parse(text: str) -> tuple[str | int | _Each, ...]:
    pieces: list[str | int | _Each] = []
    at = 0
    while at < len(text):
        found = _PIECE.match(text, at)
        dot_first = text[at] == "."
        if found is None or (at == 0 and dot_first) or (at > 0 and not dot_first and text[at] != "["):
            message = (
                f"{text!r} is no field path: cannot go on at {text[at:]!r}; such are pose.x, status[0].level, a[*].b"
            )
            raise ValueError(message)
        if found["quoted"] or found["name"]:
            pieces.append(found["quoted"] or found["name"])
        elif found["index"]:
            pieces.append(int(found["index"]))
        else:
            pieces.append(_Each(found["key"], found["value"] or ""))
        at = found.end()
    return tuple(pieces)


def _read(value: Any, pieces: tuple[str | int | _Each, ...], at: int) -> Any:
    for place in range(at, len(pieces)):
        piece = pieces[place]
        if isinstance(piece, _Each):
            if not isinstance(value, list | tuple | np.ndarray):
                return MISSING
            read = [_read(item, pieces, place + 1) for item in value if _chosen(item, piece)]
            return [item for item in read if item is not MISSING]
        value = _at(value, piece)
        if value is MISSING:
            return MISSING
    return value


def _at(value: Any, piece: str | int) -> Any:
    if isinstance(value, Mapping):
        return value.get(piece, MISSING)
    if isinstance(value, list | tuple | np.ndarray):
        try:
            index = int(piece)
            return value[index] if -len(value) <= index < len(value) else MISSING
        except (ValueError, TypeError):
            return MISSING  # a name, or an array of no dimension
    if isinstance(piece, str) and not piece.startswith("_"):
        found = getattr(value, piece, MISSING)  # a ROS message
        return MISSING if callable(found) else found
    return MISSING


def _chosen(item: Any, each: _Each) -> bool:
    return each.key is None or text_of(_at(item, each.key)) == each.value


def text_of(value: Any) -> str | None:
    """A scalar as the text that tables and comparisons know it by; None for what has none.

    Whole numbers have no point, truths are `true` and `false`, and bytes and lists of bytes (UUIDs) are hexadecimal.

    >>> text_of(4.0), text_of(True), text_of([0, 255]), text_of({})
    ('4', 'true', '00ff', None)
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return str(int(value)) if value.is_integer() else repr(value)
        case bytes() if len(value) == 1:  # `byte` of ROS 2
            return str(value[0])
        case bytes() | bytearray():
            return value.hex()
        case list() | tuple() if value and all(type(item) is int and 0 <= item <= 255 for item in value):
            return bytes(value).hex()
    return None


_NAMED: Final = re.compile(r"\{([a-z_][a-z0-9_]*)\}")


class TopicPattern:
    """A parsed pattern.

    Args:
        text: the pattern as written.

    Raises:
        ValueError: it is no pattern.

    >>> TopicPattern("fleet/{robot}/pose").match("fleet/7/pose")
    {'robot': '7'}
    >>> TopicPattern("/odom").match("odom"), TopicPattern("a/#").match("b/c")
    ({}, None)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.levels = tuple(text.removeprefix("/").split("/"))
        self.names = tuple(found[1] for level in self.levels if (found := _NAMED.fullmatch(level)))
        for place, level in enumerate(self.levels):
            wild = _NAMED.fullmatch(level) or level == "+" or (level == "#" and place == len(self.levels) - 1)
            if not level or (not wild and re.search(r"[{}+#\s\0]", level)):
                message = (
                    f"{text!r} is no topic pattern: level {place} is {level!r}; wildcards are +, {{name}}, # at the end"
                )
                raise ValueError(message)

    @property
    def subscription(self) -> str:
        """The pattern as MQTT knows it.

        >>> TopicPattern("/fleet/{robot}/pose").subscription
        '/fleet/+/pose'
        """
        return _NAMED.sub("+", self.text)

    @property
    def is_plain(self) -> bool:
        """Whether it is the name of one topic."""
        return not self.names and not {"+", "#"} & set(self.levels)

    def match(self, topic: str) -> dict[str, str] | None:
        """The named levels of a topic that matches; None for any other topic."""
        levels = topic.removeprefix("/").split("/")
        if self.levels[-1] == "#":
            if len(levels) < len(self.levels) - 1:
                return None
        elif len(levels) != len(self.levels):
            return None
        named: dict[str, str] = {}
        for pattern, level in zip(self.levels, levels, strict=False):
            if pattern == "#":
                break
            if pattern.startswith("{"):
                named[pattern[1:-1]] = level
            elif pattern not in ("+", level):
                return None
        return named


def number_of(value: Any) -> float | None:
    """The value as a finite number; None where it is none. A truth counts 0 or 1.

    >>> number_of(np.float32(0.5)), number_of(True), number_of(float("nan")), number_of("0.5")
    (0.5, 1.0, None, None)
    """
    if isinstance(value, np.generic | np.ndarray):
        if value.size != 1:
            return None
        value = value.item()
    if isinstance(value, bytes) and len(value) == 1:  # `byte` of ROS 2
        value = value[0]
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def vector_of(value: Any) -> tuple[float, ...] | None:
    """A position or vector, of a list of numbers or of fields x, y and z; None where a coordinate is not finite.

    >>> vector_of({"x": 1, "y": 2.5})
    (1.0, 2.5)
    """
    if isinstance(value, list | tuple | np.ndarray):
        items: Sequence[Any] = list(value)
    elif isinstance(value, Mapping):
        items = [value[axis] for axis in "xyz" if axis in value]
    else:
        items = [getattr(value, axis) for axis in "xyz" if hasattr(value, axis)]
    numbers = [number_of(item) for item in items]
    known = tuple(number for number in numbers if number is not None)
    return known if known and len(known) == len(numbers) else None


def named_of(value: Any, name: str) -> Any:
    """A field of a mapping or an object; None where it has none."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def seconds_of(value: Any, unit_s: float = 1.0) -> float | None:
    """A stamp or duration (sec and nanosec, nsec; secs and nsecs), an ISO 8601 time or a number, in seconds.

    A number counts `unit_s`; a time without a zone is UTC.

    >>> seconds_of({"sec": 3, "nanosec": 500_000_000}), seconds_of(1500, 1e-3)
    (3.5, 1.5)
    """
    for whole, part in (("sec", "nanosec"), ("secs", "nsecs"), ("sec", "nsec")):
        seconds, nanoseconds = number_of(named_of(value, whole)), number_of(named_of(value, part))
        if seconds is not None and nanoseconds is not None:
            return seconds + nanoseconds * 1e-9
    if isinstance(value, str):
        return _iso_seconds(value)
    number = number_of(value)
    return None if number is None else number * unit_s


def _iso_seconds(text: str) -> float | None:
    try:
        instant = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return (instant if instant.tzinfo else instant.replace(tzinfo=datetime.UTC)).timestamp()

"""How a mapping points at things: topics by a pattern, and the values of a message by a field path.

A **topic pattern** has MQTT's wildcards, for ROS and recordings too, and levels with a name: `fleet/{robot}/pose`
matches `fleet/7/pose` and calls the level `robot`; `+` is any one level; `#` at the end is all that follows. A leading
slash is a level of its own in MQTT and none in ROS, so it plays no part.

A **field path** leads through nested dicts, lists and message objects: `pose.pose.position.x`, `status[0].level` (or
`status.0.level`), `status[-1].level`, `status[*].level` (a list of all), `status[name=battery].level` (a list of those
whose field has that text), `"next.done"` (a key with a dot in it, in double quotes). The empty path is the whole
message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from springback.producers.mapping.values import text_of

MISSING: Final = object()
"""What `FieldPath.read` returns where there is nothing at that place."""

_NAMED: Final = re.compile(r"\{([a-z_][a-z0-9_]*)\}")
_PIECE: Final = re.compile(
    r"""\.?(?:"(?P<quoted>[^"]+)"|(?P<name>[^.\[\]"\s][^.\[\]"]*))"""
    r"""|\[(?:(?P<all>\*)|(?P<index>-?\d+)|(?P<key>[^\[\]=*]+)=(?P<value>[^\[\]]*))\]"""
)


class TopicPattern:
    """A parsed topic pattern.

    Args:
        text: the pattern as written.

    Raises:
        ValueError: the text is not a topic pattern.

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
                    f"{text!r} is not a topic pattern: level {place} is {level!r}; expected a name, +, {{name}}, or # "
                    "at the end"
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
        for pattern, level in zip(self.levels, levels):
            if pattern == "#":
                break
            if pattern.startswith("{"):
                named[pattern[1:-1]] = level
            elif pattern not in ("+", level):
                return None
        return named


class _Each(NamedTuple):
    """All items of a list, or those whose field `key` has the text `value`."""

    key: str | None
    value: str


class FieldPath:
    """A parsed field path.

    Args:
        text: the path as written.

    Raises:
        ValueError: the text is not a field path.

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

    def items(self, value: Any) -> list[tuple[Any, Any]]:
        """The items of the first list that the path goes through, each with what it reads in it.

        A path without a list reads one thing, and its item is the whole value; what is missing is left out.

        >>> FieldPath("status[*].level").items({"status": [{"name": "arm", "level": 1}]})
        [({'name': 'arm', 'level': 1}, 1)]
        """
        for place, piece in enumerate(self._pieces):
            if isinstance(piece, _Each):
                listed = _read(value, self._pieces[:place], 0)
                if not isinstance(listed, (list, tuple, np.ndarray)):
                    return []
                read = [(item, _read(item, self._pieces, place + 1)) for item in listed if _chosen(item, piece)]
                return [(item, found) for item, found in read if found is not MISSING]
        found = self.read(value)
        return [] if found is MISSING else [(value, found)]

    def __repr__(self) -> str:
        """The path as it was written."""
        return f"FieldPath({self.text!r})"


def _parse(text: str) -> tuple[str | int | _Each, ...]:
    pieces: list[str | int | _Each] = []
    at = 0
    while at < len(text):
        found = _PIECE.match(text, at)
        dot_first = text[at] == "."
        if found is None or (at == 0 and dot_first) or (at > 0 and not dot_first and text[at] != "["):
            message = (
                f"{text!r} is not a field path: {text[at:]!r} cannot be read; expected something like pose.x, "
                "status[0].level or a[*].b"
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
            if not isinstance(value, (list, tuple, np.ndarray)):
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
    if isinstance(value, (list, tuple, np.ndarray)):
        try:
            index = int(piece)
            return value[index] if -len(value) <= index < len(value) else MISSING
        except (ValueError, TypeError):
            return MISSING  # a name, or an array without a dimension
    if isinstance(piece, str) and not piece.startswith("_"):
        found = getattr(value, piece, MISSING)  # a ROS message
        return MISSING if callable(found) else found
    return MISSING


def _chosen(item: Any, each: _Each) -> bool:
    return each.key is None or text_of(_at(item, each.key)) == each.value

"""Where a value stands in a message: a dotted path into nested dicts, lists and message objects.

`pose.pose.position.x`, `status[0].level` (or `status.0.level`), `status[-1].level`, `status[*].level` (a list of all),
`status[name=battery].level` (a list of those whose field has that text), `"next.done"` (a key that holds a dot, in
double quotes). The empty path is the whole message.
"""

import re
from collections.abc import Mapping
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

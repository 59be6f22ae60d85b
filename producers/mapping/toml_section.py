"""A table of a mapping file, read key by key: errors name the file, the key, what arrived and what was expected."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, TypeVar

from springback.producers.errors import MappingError

Made = TypeVar("Made")
REQUIRED: Any = object()
SCALARS = (str, int, float, bool)


class TomlSection:
    """One table of the file.

    Args:
        values: the table.
        file: the file's name.
        place: the table's own key; empty for the whole file.

    Raises:
        MappingError: `values` is not a table.
    """

    def __init__(self, values: object, file: str, place: str = "") -> None:
        self.file, self.place = file, place
        if not isinstance(values, dict):
            self.refuse("", values, "a table")
        self.values: dict[str, Any] = values
        self._asked: set[str] = set()

    def key(self, name: str) -> str:
        """The full key of one of its values."""
        return ".".join(filter(None, (self.place, name)))

    def refuse(self, name: str, arrived: object, expected: str) -> NoReturn:
        """Says which key is wrong, what arrived and what was expected.

        Raises:
            MappingError: always.
        """
        message = f"{self.file}: {self.key(name) or 'the file'}: got {arrived!r}, expected {expected}"
        raise MappingError(message)

    def take(self, name: str, default: Any = REQUIRED) -> Any:
        """The value as it is.

        Raises:
            MappingError: there is neither a value nor a default.
        """
        self._asked.add(name)
        if name not in self.values and default is REQUIRED:
            message = f"{self.file}: {self.key(name)} is missing"
            raise MappingError(message)
        return self.values.get(name, default)

    def text(self, name: str, default: Any = REQUIRED) -> Any:
        """A text, or the default.

        Raises:
            MappingError: it is not a text.
        """
        value = self.take(name, default)
        if value is not default and not isinstance(value, str):
            self.refuse(name, value, "a text")
        return value

    def flag(self, name: str) -> bool:
        """True or false; false if not given.

        Raises:
            MappingError: it is neither.
        """
        value = self.take(name, False)
        if not isinstance(value, bool):
            self.refuse(name, value, "true or false")
        return value

    def number(self, name: str, default: Any = REQUIRED, *, least: float = -math.inf) -> Any:
        """A finite number of `least` or more, or the default.

        Raises:
            MappingError: it is not one.
        """
        value = self.take(name, default)
        if value is default:
            return value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < least:
            self.refuse(name, value, "a number" if least == -math.inf else f"a number of {least:g} or more")
        return float(value)

    def one_of(self, name: str, options: Sequence[str], default: Any = REQUIRED) -> Any:
        """One of the options, or the default.

        Raises:
            MappingError: it is not one of them.
        """
        value = self.text(name, default)
        if value is not default and value not in options:
            self.refuse(name, value, f"one of {', '.join(options)}")
        return value

    def parsed(self, name: str, parse: Callable[[str], Made], default: Any = REQUIRED) -> Made:
        """What `parse` makes of a text, or the default.

        Raises:
            MappingError: it is not a text, or `parse` raises ValueError.
        """
        value = self.text(name, default)
        if value is default and not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        try:
            return parse(value)
        except ValueError as error:
            message = f"{self.file}: {self.key(name)}: {error}"
            raise MappingError(message) from error

    def section(self, name: str, default: Any = REQUIRED) -> TomlSection:
        """A table in it.

        Raises:
            MappingError: it is not a table.
        """
        return TomlSection(self.take(name, default), self.file, self.key(name))

    def sections(self, name: str) -> list[TomlSection]:
        """A table, or a list of tables, in it; none if not given.

        Raises:
            MappingError: it is something else.
        """
        value = self.take(name, [])
        values = value if isinstance(value, list) else [value]
        places = [name] if value is not values else [f"{name}[{place}]" for place in range(len(values))]
        return [TomlSection(item, self.file, self.key(place)) for item, place in zip(values, places)]

    def finish(self, also: Iterable[str] = ()) -> None:
        """Checks that all of its keys have been asked for.

        Args:
            also: further keys that are allowed, though they were not asked for this time.

        Raises:
            MappingError: a key was not asked for, so it is unknown.
        """
        for name in self.values:
            if name not in self._asked:
                known = sorted(self._asked | set(also))
                near = difflib.get_close_matches(name, known, 1)
                hint = f"did you mean {near[0]}?" if near else f"the keys here are {', '.join(known)}"
                message = f"{self.file}: {self.key(name)} is not known; {hint}"
                raise MappingError(message)

"""What is wrong with settings, in words: which key, what arrived there, and what was expected.

A library that fills structs says the like in words of its own, about types of its own. Settings come from files, from
the environment and from the command line; whoever wrote them knows their keys.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Optional, Union, get_args, get_origin, get_type_hints

import msgspec

_NOUNS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    type(None): "none",
    list: "a list",
    tuple: "a list",
}
_LONGEST_SHOWN = 200


class SettingFault(NamedTuple):
    """The first thing that is wrong with settings.

    Attributes:
        path: the key, with those of the tables that it is in.
        what: what arrived there, and what was expected.
        value: what arrived; UNSET where a key is missing or not known.
    """

    path: tuple[str, ...]
    what: str
    value: object = msgspec.UNSET

    def __str__(self) -> str:
        """The fault as a sentence without its end."""
        where = ".".join(self.path)
        if not where or self.what.startswith(where):
            return self.what
        return f"{where}{': ' if self.value is msgspec.UNSET else ' '}{self.what}"


def setting_fault(kind: Any, value: object, *, strict: bool = False, secret: Any = None) -> Optional[SettingFault]:
    """The first thing that keeps a value from becoming settings of this kind; None where nothing does.

    Args:
        kind: the struct of the settings.
        value: what arrived: tables as mappings.
        strict: whether a number must be one; otherwise a text that says a number is one.
        secret: a compiled expression; values of keys in which it is found are not shown.

    >>> class Place(msgspec.Struct, forbid_unknown_fields=True):
    ...     host: str
    ...     port: int = 9092
    >>> for given in ({"host": "a", "port": "x"}, {"hots": "a"}, {}, {"host": "a", "port": "1"}):
    ...     print(setting_fault(Place, given))
    port is 'x', expected a whole number
    hots: not known; did you mean host?
    host: missing, expected a text
    None
    """
    return next(_faults(kind, value, (), strict, secret), None)


def _faults(kind: Any, value: object, path: tuple[str, ...], strict: bool, secret: Any) -> Iterator[SettingFault]:
    try:
        msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        yield from _inside(kind, value, path, strict, secret)
        if isinstance(error.__cause__, ValueError):  # what the struct itself checks
            yield SettingFault(path, str(error.__cause__))
        else:
            hidden = secret is not None and path and secret.search(path[-1])
            shown = "…" if hidden else _shown(value)
            yield SettingFault(path, f"is {shown}, expected {expected_words(kind)}", value)


def _inside(kind: Any, value: object, path: tuple[str, ...], strict: bool, secret: Any) -> Iterator[SettingFault]:
    """What is wrong inside a table or a list; nothing where the value is neither, or is wrong as a whole."""
    for part in _parts(kind):
        if _is_struct(part) and isinstance(value, Mapping):
            hints = get_type_hints(part)
            for name in value:
                if name not in hints:
                    yield SettingFault((*path, str(name)), _unknown(str(name), list(hints)))
            for field in msgspec.structs.fields(part):
                if field.name in value:
                    yield from _faults(hints[field.name], value[field.name], (*path, field.name), strict, secret)
                elif field.required:
                    yield SettingFault((*path, field.name), f"missing, expected {expected_words(hints[field.name])}")
        elif _is_table(part) and isinstance(value, Mapping):
            for name, each in value.items():
                yield from _faults((get_args(part) or (Any, Any))[1], each, (*path, str(name)), strict, secret)
        elif get_origin(part) in (list, tuple) and isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
            for number, each in enumerate(value):
                place = (*path[:-1], f"{path[-1] if path else ''}[{number}]")
                yield from _faults(get_args(part)[0], each, place, strict, secret)


def expected_words(kind: Any) -> str:
    """What a setting of this type takes, in words.

    >>> expected_words(Union[float, Literal["auto"]]), expected_words(Literal["a", "b", "c"])
    ("a number or 'auto'", "'a', 'b' or 'c'")
    """
    words: list[str] = []
    for part in _parts(kind):
        if get_origin(part) is Literal:
            words += [repr(choice) for choice in get_args(part)]
        elif _is_struct(part) or _is_table(part):
            words.append("a table of keys")
        elif part is not type(None):
            words.append(_NOUNS.get(get_origin(part) or part, "another value"))
    *others, last = dict.fromkeys(words)
    return f"{', '.join(others)} or {last}" if others else last


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return "a table of keys"
    shown = repr(value)
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}…"


def _unknown(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f"not known; did you mean {near[0]}?" if near else f"not known; the keys there are {', '.join(known)}"


def _parts(kind: Any) -> tuple[Any, ...]:
    """The types of a union, or the type itself. Two forms of it: `X | Y` has a class of its own."""
    of_union = get_origin(kind) is Union or type(kind).__name__ == "UnionType"
    return get_args(kind) if of_union else (kind,)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _is_table(kind: Any) -> bool:
    origin = get_origin(kind) or kind
    return isinstance(origin, type) and issubclass(origin, Mapping)

"""What each value of a mapping has to be: how it is made plain, and whether what the file itself says can be."""

from collections.abc import Callable
from typing import Any, Final, Literal

from springback.producers.contract.columns import COLUMN_BY_NAME, without_lone_surrogates
from springback.producers.emitter.signal_checks import checked_header
from springback.producers.errors import MappingError, SignalError
from springback.producers.mapping.paths import number_of, text_of
from springback.producers.mapping.rules import ValueRule, read_value
from springback.producers.mapping.toml_section import Section

Convert = Callable[[Any], Any]
Group = Literal["header", "signals", "navigation", "episode"]

_NUMBERS_OF_HEADER: Final = ("stress", "magnitude")
_DISTANCES: Final = ("shortest_path", "path", "final_distance")


def plain_text(value: Any) -> str | None:
    """A scalar as a text, fit for UTF-8; None for what has none."""
    text = text_of(value)
    return None if text is None else without_lone_surrogates(text)


def truth_of(value: Any) -> bool | None:
    """A truth, of itself, a number or a text.

    >>> truth_of("true"), truth_of(0.0), truth_of("perhaps")
    (True, False, None)
    """
    return {"true": True, "1": True, "false": False, "0": False}.get(text_of(value) or "")


def count_of(value: Any) -> int | None:
    """A whole number; None where it is none.

    >>> count_of(3.0), count_of(3.5)
    (3, None)
    """
    number = number_of(value)
    return int(number) if number is not None and number.is_integer() else None


def conversion_of(group: Group, name: str) -> Convert:
    """What makes the values of a key plain; None of it stands for what cannot be used."""
    if group == "signals":
        return number_of if COLUMN_BY_NAME[name].kind == "number" else plain_text
    if group == "navigation":
        return number_of if name in _DISTANCES else truth_of if name == "target_in_view" else count_of
    if group == "header" and name in _NUMBERS_OF_HEADER:
        return number_of
    return truth_of if group == "header" and name == "reference" else plain_text


def read_rule(owner: Section, group: Group, name: str, default: ValueRule | None = None) -> ValueRule:
    """The rule for one value of a group, with what it fixes checked: a constant, a default, how messages add up.

    Raises:
        MappingError: it is not as it must be.
    """
    rule = read_value(owner, name, default)
    convert = conversion_of(group, name)
    fixed = rule.constant if rule.constant is not None else rule.default
    if fixed is not None:
        plain = convert(fixed)
        if plain is None or not _in_range(group, name, plain):
            owner.refuse(name, fixed, _expected(group, name, convert))
        if group == "header":
            _check_header(owner, name, plain)
    if convert not in (number_of, count_of):
        for source in rule.sources:
            if source.over != "last":
                owner.refuse(name, source.over, "over = last, for it is no number")
    return rule


def _in_range(group: Group, name: str, plain: Any) -> bool:
    spec = COLUMN_BY_NAME[name] if group == "signals" else None
    return spec is None or spec.kind != "number" or spec.minimum <= plain <= spec.maximum


def _expected(group: Group, name: str, convert: Convert) -> str:
    if convert is number_of and group == "signals":
        return f"a number from {COLUMN_BY_NAME[name].minimum:g} to {COLUMN_BY_NAME[name].maximum:g}"
    kinds: dict[Convert, str] = {number_of: "a number", count_of: "a whole number", truth_of: "true or false"}
    return kinds.get(convert, "a text")


def _check_header(owner: Section, name: str, plain: Any) -> None:
    try:
        checked_header({"agent": "a", "episode": "0", "family": "f", name: plain})
    except SignalError as error:
        message = f"{owner.file}: {owner.key(name)}: got {plain!r}: {error.__cause__ or error}"
        raise MappingError(message) from error

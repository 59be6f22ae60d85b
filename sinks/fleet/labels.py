"""What may stand as a label's value: the one place where ids from outside become safe and their number bounded.

A metrics page is UTF-8 text, one series a line. One lone surrogate in one id would fail the whole page for everybody,
a newline would split a series, and ten thousand ids would sink the time-series database.
"""

import hashlib
import unicodedata
from typing import NewType

from springback.stream_processors.metrics.spec import CLOSED_LABELS, OTHER

LabelValue = NewType("LabelValue", str)
"""Text that is safe as a label's value."""

OTHER_VALUE = LabelValue(OTHER)
UNKNOWN_VALUE = LabelValue("unknown")
LONGEST_VALUE = 100
"""Characters of the longest value. (Prometheus installations commonly refuse more than 200 bytes or so.)"""

_RESERVED = frozenset({OTHER_VALUE, UNKNOWN_VALUE})
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})
# They would turn the rest of a line around in whatever shows it.
_UNSAFE_FORMATS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


def clean_label_value(raw: str, longest: int = LONGEST_VALUE) -> LabelValue:
    r"""The id as a label's value.

    Control characters, lone surrogates and line separators become U+FFFD; a long id is cut; an empty one is
    "unknown". An id that had to be changed, or that is itself one of our own words, gets a short hash at its end, so
    that different ids stay different.

    Args:
        raw: the id.
        longest: characters of the longest value.

    >>> clean_label_value("robot-7"), clean_label_value("")
    ('robot-7', 'unknown')
    >>> clean_label_value("a\nb"), clean_label_value("other")
    ('a�b~fcd127ff', 'other~d0941e68')
    """
    if not raw.strip():
        return UNKNOWN_VALUE
    head = raw[: longest + 1]
    safe = head if head.isascii() and head.isprintable() else "".join(map(_safe_character, head))
    if safe == raw and len(raw) <= longest and raw not in _RESERVED:
        return LabelValue(raw)
    mark = hashlib.sha1(raw.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:8]
    return LabelValue(f"{safe[: longest - 9]}~{mark}")


def closed_label_value(label: str, raw: str) -> LabelValue:
    """The value of a label whose values are known beforehand; any other one is "other".

    >>> closed_label_value("perturbation", "physical"), closed_label_value("perturbation", "ghost")
    ('physical', 'other')
    """
    return LabelValue(raw) if raw in CLOSED_LABELS[label] else OTHER_VALUE


def label_value(label: str, raw: str) -> LabelValue:
    """The value of any label: of one of the known ones where those are all there are, else made safe.

    >>> label_value("perturbation", "ghost"), label_value("stress", "0.2")
    ('other', '0.2')
    """
    return closed_label_value(label, raw) if label in CLOSED_LABELS else clean_label_value(raw)


class LabelBound:
    """How many distinct combinations of values there may be. Whichever come first keep their own.

    >>> bound = LabelBound(1)
    >>> bound.admit((LabelValue("navigation"),)), bound.admit((LabelValue("assembly"),))
    (('navigation',), ('other',))
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._admitted: set[tuple[LabelValue, ...]] = set()

    def admit(self, values: tuple[LabelValue, ...]) -> tuple[LabelValue, ...]:
        """The values, or as many times "other" once the bound is reached."""
        if values not in self._admitted:
            if len(self._admitted) >= self._limit:
                return (OTHER_VALUE,) * len(values)
            self._admitted.add(values)
        return values


def _safe_character(character: str) -> str:
    unsafe = unicodedata.category(character) in _UNSAFE_CATEGORIES or character in _UNSAFE_FORMATS
    return _REPLACEMENT if unsafe else character

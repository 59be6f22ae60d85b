"""Figures and names as people read them. Names come from producers, so they may hold anything."""

import unicodedata

MISSING = "-"
_LONGEST = 48
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def name_text(name: str, longest: int = _LONGEST) -> str:
    r"""A name to show: control, direction and broken characters made visible, and cut where it is too long.

    >>> name_text("a\x00b\u202ec")
    'a\ufffdb\ufffdc'
    >>> name_text("x" * 100, longest=5)
    'xxxx…'
    """
    shown = "".join("\ufffd" if unicodedata.category(letter) in _UNSEEN else letter for letter in name[: longest + 1])
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def figure_text(value: float | None) -> str:
    """A figure with three digits that count; a dash where there is none.

    >>> [figure_text(value) for value in (0.12345, 12.345, 1234.5, 0.0, None)]
    ['0.123', '12.3', '1234', '0', '-']
    """
    if value is None:
        return MISSING
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def share_text(value: float | None) -> str:
    """A share as a percentage."""
    return MISSING if value is None else f"{value:.0%}"


def p_text(p: float, *, brief: bool = False) -> str:
    """A p-value as it is read: below a bound where it is tiny; `brief` sets that bound high.

    >>> [p_text(p) for p in (0.5, 0.0123, 0.00012, 3e-17)]
    ['p = 0.50', 'p = 0.012', 'p = 1e-04', 'p < 1e-15']
    """
    least = 0.001 if brief else 1e-15
    if p < least:
        return f"p < {least:g}"
    if p < 0.001:
        return f"p = {p:.0e}"
    return f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def count_text(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun.

    >>> count_text(1, "episode"), count_text(2, "episode")
    ('1 episode', '2 episodes')
    """
    return f"{count} {one if count == 1 else many or one + 's'}"

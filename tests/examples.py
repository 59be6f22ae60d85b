"""How many examples hypothesis makes: all in `make test`, a fifth of them in the inner loop."""

from __future__ import annotations

from hypothesis import settings

ALL, INNER_LOOP = "all", "inner-loop"
"""The profiles; `pytest --hypothesis-profile=all` chooses the other than the inner loop's."""
_SHARES = {ALL: 1.0, INNER_LOOP: 1 / 5}
_MOST = 100


def examples(count: int) -> int:
    """As many of so many as the chosen profile makes."""
    return max(2, round(count * _SHARES.get(settings.get_current_profile_name(), 1.0)))


def register_profiles() -> None:
    """Makes the profiles known, and chooses the inner loop's until the command line says otherwise.

    How long an example takes says nothing on a busy machine; no test is about it.
    """
    for name, share in _SHARES.items():
        settings.register_profile(name, deadline=None, max_examples=round(_MOST * share))
    settings.load_profile(INNER_LOOP)

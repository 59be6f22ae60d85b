"""How many dead letters there were within the last ten minutes."""

from typing import NamedTuple

WITHIN_S = 600.0
_MINUTE_S = 60.0


class Letters(NamedTuple):
    """Dead letters of one reason: how many there were lately, and when the broker got the first of them."""

    number: int
    first_s: float


class RecentLetters:
    """Dead letters of the last ten minutes, by reason: memory for a dozen numbers each.

    >>> letters = RecentLetters()
    >>> for sent_s in (30.0, 1000.0, 1010.0):
    ...     letters.take("unreadable", sent_s)
    >>> letters.recent(1020.0), letters.recent(1900.0)
    ({'unreadable': Letters(number=2, first_s=1000.0)}, {})
    """

    def __init__(self) -> None:
        self._minutes: dict[str, dict[int, Letters]] = {}

    def take(self, reason: str, sent_s: float) -> None:
        """Takes one in.

        Args:
            reason: why it could not be used; there are to be few different ones.
            sent_s: when the broker got it, in seconds since 1970.
        """
        minutes = self._minutes.setdefault(reason, {})
        minute = int(sent_s // _MINUTE_S)
        known = minutes.get(minute, Letters(0, sent_s))
        minutes[minute] = Letters(known.number + 1, min(known.first_s, sent_s))
        newest = max(minutes)
        self._minutes[reason] = {m: n for m, n in minutes.items() if newest - m <= WITHIN_S / _MINUTE_S}

    def recent(self, now_s: float) -> dict[str, Letters]:
        """By reason, those of the last ten minutes, to the minute; a reason without any is not among them."""
        found = {}
        for reason, minutes in self._minutes.items():
            lately = [letters for letters in minutes.values() if now_s - letters.first_s <= WITHIN_S]
            if lately:
                found[reason] = Letters(
                    sum(letters.number for letters in lately), min(letters.first_s for letters in lately)
                )
        return found

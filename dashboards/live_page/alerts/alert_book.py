"""Which alerts there are, and since when: a condition is told once it has held for its time, and for a while after.

That is the `for` and the `keep_firing_for` of the rules for Prometheus, so that the page says what Prometheus says.
What is not seen for a while, as the broker is away, is neither over nor does it begin: the book stands still meanwhile.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from springback.dashboards.live_page.alerts.conditions import BLIND, RULES, AlertRule, Condition


class Alert(NamedTuple):
    """An alert.

    Attributes:
        rule: which one.
        subject: what it is of, safe to be shown.
        told: it in a sentence, as it was when it last held.
        link: where on the page to look.
        since_s: since when it has been so, in seconds since 1970.
        at_least: whether it has been so for longer, as it was so already when the page began to look.
        over_s: when it last held, where that is over.
    """

    rule: AlertRule
    subject: str
    told: str
    link: str
    since_s: float
    at_least: bool = False
    over_s: float | None = None


@dataclass(slots=True)
class _Entry:
    condition: Condition
    seen_s: float
    at_least: bool
    told: bool = False
    last_s: float = 0.0


_Place = tuple[str, str]


class AlertBook:
    """Takes in what holds, again and again, and knows the alerts.

    Attributes:
        waiting: what holds now, and has not held for as long as its alert takes.
    """

    def __init__(self) -> None:
        self.waiting: list[Condition] = []
        self._entries: dict[_Place, _Entry] = {}
        self._seeing = False
        self._stepped_s: float | None = None

    def step(self, conditions: Iterable[Condition], now_s: float) -> list[Alert]:
        """Takes in all that holds now.

        Args:
            conditions: as `conditions_of` gives them.
            now_s: the present, in seconds since 1970.

        Returns:
            the alerts: by the order of the rules, then those that have lasted longest first.
        """
        found = {(condition.rule.name, condition.subject): condition for condition in conditions}
        blind = any(condition.rule is BLIND for condition in found.values())
        if blind:
            # What was known stays in the book, to go on with once we see again: its time does not run meanwhile.
            self._stand_still(now_s)
        for place, condition in found.items():
            entry = self._entries.get(place)
            if entry is None or (entry.condition.since_s != condition.since_s and not entry.told):
                # What is so the first time that we look may have been so for long.
                at_least = condition.since_s is None and not self._seeing and not blind
                entry = self._entries[place] = _Entry(condition, now_s, at_least)
            entry.condition, entry.last_s = condition, now_s
            entry.told = entry.told or now_s - self._true_s(entry) >= condition.rule.hold_s
        self._seeing = self._seeing or not blind
        self._stepped_s = now_s
        self._entries = {
            place: entry
            for place, entry in self._entries.items()
            if place in found or self._is_kept(entry, now_s, blind)
        }
        self.waiting = [entry.condition for place, entry in self._entries.items() if place in found and not entry.told]
        told = [
            _alert(entry, now_s, over=not blind and place not in found)
            for place, entry in self._entries.items()
            if entry.told
        ]
        # Once it is told that nothing is seen, what was seen before is not told beside it.
        unseen = [alert for alert in told if alert.rule is BLIND and alert.over_s is None]
        return sorted(
            unseen if blind and unseen else told,
            key=lambda alert: (RULES.index(alert.rule), alert.since_s, alert.subject),
        )

    def _stand_still(self, now_s: float) -> None:
        passed_s = 0.0 if self._stepped_s is None else now_s - self._stepped_s
        for entry in self._entries.values():
            if entry.condition.rule is not BLIND:
                entry.last_s += passed_s

    def _is_kept(self, entry: _Entry, now_s: float, blind: bool) -> bool:
        if blind and entry.condition.rule is not BLIND:
            return True
        return entry.told and now_s - entry.last_s < entry.condition.rule.keep_s

    @staticmethod
    def _true_s(entry: _Entry) -> float:
        known_s = entry.condition.true_s
        return entry.seen_s if known_s is None else min(known_s, entry.seen_s)


def _alert(entry: _Entry, now_s: float, *, over: bool) -> Alert:
    condition = entry.condition
    since_s = entry.seen_s if condition.since_s is None else min(condition.since_s, now_s)
    return Alert(
        condition.rule,
        condition.subject,
        condition.told,
        condition.link,
        since_s,
        entry.at_least,
        entry.last_s if over else None,
    )

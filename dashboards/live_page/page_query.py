"""What a page shows, as the query of its address: so a reload shows the same, and so does the link somebody is sent.

A choice is a step that the browser's way back undoes; a search is not, at each letter.
"""

from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl

from nicegui import events, ui

from springback.dashboards.live_page.links import with_query

_LONGEST = 200
_MOST = 20


class PageQuery:
    """The query of one page that is open, name by name.

    Args:
        given: what the address said.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        self._values = _bounded(given)
        self._readers: list[Callable[[], None]] = []
        self._frame: ui.element | None = None

    def text(self, name: str) -> str:
        """What it says; empty where it says nothing."""
        return self._values.get(name, "")

    def number(self, name: str, default: int) -> int:
        """A whole number that it says; the default where it says none.

        >>> PageQuery({"page": "3", "rows": "many"}).number("page", 1)
        3
        """
        told = self.text(name)
        return int(told) if told.isascii() and told.isdecimal() and len(told) < 10 else default

    def put(self, values: Mapping[str, str | int | None], *, step: bool = True) -> None:
        """Says something else from now on, in the browser's address too.

        Args:
            values: by name; None and empty say nothing. What is not named stays.
            step: whether the way back leads to what was said before.
        """
        before = dict(self._values)
        self._values |= _bounded({name: "" if value is None else str(value) for name, value in values.items()})
        self._values = {name: value for name, value in self._values.items() if value}
        if self._values != before and self._frame is not None:
            self._frame.run_method("address", with_query("", self._values), step)

    def read_by(self, reader: Callable[[], None]) -> None:
        """Has this called whenever the browser's way back or forth has changed what the query says."""
        self._readers.append(reader)

    def bind(self, frame: ui.element) -> None:
        """Binds it to the element that knows the browser's address."""
        self._frame = frame
        frame.on("query", self._went)

    def _went(self, event: events.GenericEventArguments) -> None:
        self._values = _bounded(dict(parse_qsl(str(event.args).removeprefix("?")[: _MOST * _LONGEST])))
        for reader in self._readers:
            reader()


def _bounded(given: Mapping[str, str]) -> dict[str, str]:
    """What may be kept and sent back of what came from outside."""
    return {name[:_LONGEST]: value[:_LONGEST] for name, value in list(given.items())[:_MOST]}

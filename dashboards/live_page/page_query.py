"""What a page shows, as the query of its address: so a reload shows the same, and so does the link somebody is sent.

A choice is a step that the browser's way back undoes; a search is not, at each letter.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple
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

    def choice(self, name: str, choices: Collection[str]) -> str:
        """Which of some choices it says; empty where none of them."""
        told = self.text(name)
        return told if told in choices else ""

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


class SearchBox:
    """A field for words to search for, which are the query's `search`.

    Args:
        query: of the page.
        told: what can be found by them.
        on_search: called when others are searched for.
        begins: names of the pages that are turned to, of which the first is shown then.
    """

    def __init__(
        self, query: PageQuery, told: str, on_search: Callable[[], None], *, begins: Sequence[str] = ()
    ) -> None:
        self._query, self._on_search, self._begins = query, on_search, begins
        self._field = ui.input(placeholder=told, value=query.text("search")).classes("sb-search")
        self._field.props(f'dense outlined clearable debounce=200 aria-label="{told}"')
        self._field.on_value_change(self._searched)
        query.read_by(self._went)

    def _searched(self) -> None:
        told = self._field.value or ""
        if told != self._query.text("search"):
            self._query.put({**dict.fromkeys(self._begins), "search": told}, step=False)
            self._on_search()

    def _went(self) -> None:
        self._field.value = self._query.text("search")


class TablePlace(NamedTuple):
    """By which column a table is sorted, which page of it is shown, counted from 1, and how many rows that has."""

    column: str
    descending: bool
    page: int
    rows: int

    def paging(self) -> dict[str, Any]:
        """The same as `ui.table` has it."""
        return {
            **{"sortBy": self.column, "descending": self.descending},
            **{"page": self.page, "rowsPerPage": self.rows},
        }


class TableQuery:
    """What the query says of a table: `sort` (descending with a minus before it), `page` and `rows`.

    Args:
        query: of the page.
        columns: what it can be sorted by; by the first where the query does not say.
        sizes: how many rows a page may have.
        rows: how many it has where the query does not say.
    """

    def __init__(self, query: PageQuery, columns: Sequence[str], sizes: Collection[int], rows: int) -> None:
        self._query, self._columns, self._sizes, self._rows = query, columns, sizes, rows

    def place(self) -> TablePlace:
        """What it says now."""
        query = self._query
        sort = query.text("sort")
        column = sort.removeprefix("-")
        order = (column, sort.startswith("-")) if column in self._columns else (self._columns[0], False)
        rows = query.number("rows", self._rows)
        return TablePlace(*order, max(1, query.number("page", 1)), rows if rows in self._sizes else self._rows)

    def put(self, paging: Mapping[str, Any]) -> None:
        """Says what was chosen in the table, as the browser tells it."""
        first = self._columns[0]
        sort = f"{'-' if paging.get('descending') else ''}{paging.get('sortBy') or first}"
        page, rows = int(paging.get("page") or 1), int(paging.get("rowsPerPage") or self._rows)
        self._query.put(
            {
                "sort": None if sort == first else sort,
                "page": page if page > 1 else None,
                "rows": None if rows == self._rows else rows,
            }
        )


def _bounded(given: Mapping[str, str]) -> dict[str, str]:
    """What may be kept and sent back of what came from outside."""
    return {name[:_LONGEST]: value[:_LONGEST] for name, value in list(given.items())[:_MOST]}

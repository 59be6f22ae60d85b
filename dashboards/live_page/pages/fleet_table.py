"""The fleet table: every agent, sorted, filtered and paged on the server, so that a thousand are no more than fifty."""

from typing import Any

from nicegui import events, ui

from springback.dashboards.live_page.fleet_rows import FleetRow, RowOrder, count_states, filter_rows, page_of, sort_rows
from springback.dashboards.live_page.live_sink import LiveSink
from springback.dashboards.live_page.page_parts import (
    NOTHING,
    PROVISIONAL,
    STATE_LOOKS,
    Column,
    LiveTable,
    StateFilter,
    ago,
    figure,
    group_name,
    percent,
    section_title,
)

_PAGE_SIZES = (25, 50, 100)
_COLUMNS = (
    Column("name", "Agent", "left", look="agent"),
    Column("state", "State", "left", look="state"),
    Column("family", "Family", "left", "sb-wide"),
    Column("progress", "Progress", "left", "sb-wide", "share"),
    Column("intensity", "g", "right", hint="How far its last step was off the stage baseline"),
    Column("cost", "Cost", "right", look="cost", hint="What its open rebound windows have cost up to now"),
    Column("seen", "Heard", "right", "sb-wide", hint="When something last came from it"),
)
_PAGING_LABEL = """(first, last, all) =>
  [first, last].map(n => n.toLocaleString("en")).join("\N{EN DASH}") + " of " + all.toLocaleString("en")"""


class FleetTable:
    """The table with its filters.

    Args:
        sink: what is shown.
    """

    def __init__(self, sink: LiveSink) -> None:
        self._sink = sink
        self._order = RowOrder()
        self._page, self._size = 1, 50
        self._shown: list[dict[str, Any]] = []
        with ui.element("section").classes("sb-card sb-fleet").props('aria-label="Fleet"'):
            with ui.element("div").classes("sb-bar"):
                section_title("Fleet")
                self._search = ui.input(placeholder="Find an agent or a family", on_change=self._refilter)
                self._search.props('dense outlined clearable debounce=200 aria-label="Find an agent or a family"')
                self._search.classes("sb-search")
                self._filter = StateFilter(self._refilter)
            self._table = self._make_table()
            self._none = ui.label("No agent is like that.").classes("sb-none")
            self._forgotten = ui.label().classes("sb-note")

    def refresh(self) -> None:
        """Shows what holds now; only what has changed is sent to the browser."""
        all_rows = self._sink.fleet_rows()
        self._filter.show(count_states(all_rows))
        rows = sort_rows(filter_rows(all_rows, self._filter.chosen, self._search.value or ""), self._order)
        page = page_of(rows, self._page, self._size)
        with self._sink.look() as (view, now_s):
            forgotten, room = view.agents_forgotten, view.bounds.agents
        shown = [_shown(row, now_s) for row in page.rows]
        paging: dict[str, Any] = {
            "page": (page.first - 1) // self._size + 1 if page.first else 1,
            "rowsPerPage": self._size,
            "rowsNumber": page.total,
            "sortBy": self._order.column,
            "descending": self._order.descending,
        }
        if shown != self._shown or paging != self._table.pagination:
            self._page = paging["page"]
            self._shown = shown
            self._table.pagination = paging
            self._table.rows = shown
        self._none.set_visibility(not shown)
        self._forgotten.set_visibility(forgotten > 0)
        self._forgotten.text = (
            f"There is room for {room:,} agents: {forgotten:,} times the one silent for longest was left out."
        )

    def _make_table(self) -> LiveTable:
        paging = {"page": 1, "rowsPerPage": self._size, "rowsNumber": 0, "sortBy": "state", "descending": False}
        table = LiveTable(_COLUMNS, row_key="token", pagination=paging, sizes=_PAGE_SIZES)
        table.props[":pagination-label"] = _PAGING_LABEL
        table.on("request", self._turn)
        table.on("rowClick", js_handler="(event, row) => { window.location.href = '/agent/' + row.token }")
        return table

    def _turn(self, event: events.GenericEventArguments) -> None:
        """Another page, order or number of rows was asked for."""
        asked = event.args["pagination"]
        self._page = int(asked["page"])
        self._size = min(max(int(asked["rowsPerPage"]), 1), _PAGE_SIZES[-1])
        self._order = RowOrder(str(asked["sortBy"] or "state"), bool(asked["descending"]))
        self.refresh()

    def _refilter(self) -> None:
        self._page = 1
        self.refresh()


def _shown(row: FleetRow, now_s: float) -> dict[str, Any]:
    """A row as the browser gets it."""
    look = STATE_LOOKS[row.state]
    return {
        "token": row.token,
        "name": row.name,
        "state": row.state,
        "word": look.word,
        "remark": PROVISIONAL if row.provisional and row.state == "rebound" else None,
        "icon": look.icon,
        "family": group_name(row.family, row.method, row.version) or NOTHING,
        "progress": percent(row.progress),
        "share": None if row.progress is None else round(100 * min(max(row.progress, 0.0), 1.0)),
        "intensity": figure(row.intensity),
        "cost": figure(row.cost) if row.departure_step is not None else NOTHING,
        "since": None if row.departure_step is None else f"since step {row.departure_step:,}",
        "seen": ago(None if row.seen_s is None else now_s - row.seen_s),
    }

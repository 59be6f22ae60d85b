"""The fleet table: every agent, sorted, filtered and paged on the server, so that a thousand are no more than fifty."""

from typing import Any

from nicegui import events, ui

from dashboards.live_page.fleet_rows import FleetRow, RowOrder, count_states, filter_rows, page_of, sort_rows
from dashboards.live_page.live_sink import LiveSink
from dashboards.live_page.page_text import NOTHING, STATE_LOOKS, ago, figure, group_name, percent
from dashboards.live_page.state_chips import STATE_CELL, StateFilter

_PAGE_SIZES = (25, 50, 100)
_COLUMNS = (
    ("name", "Agent", "left", ""),
    ("state", "State", "left", ""),
    ("family", "Family", "left", "sb-wide"),
    ("progress", "Progress", "left", "sb-wide"),
    ("intensity", "g", "right", ""),
    ("cost", "Cost", "right", ""),
    ("seen", "Heard", "right", "sb-wide"),
)
_HINTS = {
    "intensity": "How far its last step was off the stage baseline",
    "cost": "What its open rebound window has cost up to now",
    "seen": "When something last came from it",
}
_NAME_CELL = """
<q-td :props="props"><a class="sb-name" :href="'/agent/' + props.row.token" @click.stop>{{ props.row.name }}</a>
<div class="sb-under sb-narrow">{{ props.row.family }}</div></q-td>
"""
_PROGRESS_CELL = """
<q-td :props="props"><span class="sb-meter" v-if="props.row.share !== null" aria-hidden="true"
  ><span :style="{ width: props.row.share + '%' }"></span></span> {{ props.row.progress }}</q-td>
"""
_COST_CELL = """
<q-td :props="props"><span class="sb-under sb-since sb-wide" v-if="props.row.since">{{ props.row.since }}</span
  >{{ props.row.cost }}</q-td>
"""
_HEADER_CELL = """
<q-th :props="props">{{ props.col.label }}<q-tooltip v-if="props.col.hint">{{ props.col.hint }}</q-tooltip></q-th>
"""
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
                ui.label("Fleet").classes("sb-title")
                self._search = ui.input(placeholder="Find an agent or a family", on_change=self._refilter)
                self._search.props('dense outlined clearable debounce=200 aria-label="Find an agent or a family"')
                self._search.classes("sb-search")
                self._filter = StateFilter(self._refilter)
            self._table = self._make_table()
            self._none = ui.label("No agent is like that.").classes("sb-none")
            self._forgotten = ui.label().classes("sb-note")

    def refresh(self) -> None:
        """Show what holds now; only what has changed is sent to the browser."""
        all_rows = self._sink.fleet_rows()
        self._filter.show(count_states(all_rows))
        rows = sort_rows(filter_rows(all_rows, self._filter.chosen, self._search.value or ""), self._order)
        page = page_of(rows, self._page, self._size)
        with self._sink.look() as (view, now_s):
            forgotten = view.agents_forgotten
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
        self._forgotten.text = f"{forgotten:,} agents that were not heard of for longest are no longer remembered."

    def _make_table(self) -> ui.table:
        columns = [
            {
                **{"name": name, "label": label, "field": name, "align": align, "sortable": True},
                **{"hint": _HINTS.get(name), "classes": shown, "headerClasses": shown},
            }
            for name, label, align, shown in _COLUMNS
        ]
        paging = {"page": 1, "rowsPerPage": self._size, "rowsNumber": 0, "sortBy": "state", "descending": False}
        table = ui.table(columns=columns, rows=[], row_key="token", pagination=paging).classes("sb-table")
        table.props(f'flat binary-state-sort rows-per-page-label="Rows" :rows-per-page-options="{list(_PAGE_SIZES)}"')
        table.props[":pagination-label"] = _PAGING_LABEL
        table.add_slot("header-cell", _HEADER_CELL)
        table.add_slot("body-cell-name", _NAME_CELL)
        table.add_slot("body-cell-state", STATE_CELL)
        table.add_slot("body-cell-progress", _PROGRESS_CELL)
        table.add_slot("body-cell-cost", _COST_CELL)
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
        "icon": look.icon,
        "family": group_name(row.family, row.method, row.version) or NOTHING,
        "progress": percent(row.progress),
        "share": None if row.progress is None else round(100 * min(max(row.progress, 0.0), 1.0)),
        "intensity": figure(row.intensity),
        "cost": figure(row.cost) if row.departure_step is not None else NOTHING,
        "since": None if row.departure_step is None else f"since step {row.departure_step:,}",
        "seen": ago(None if row.seen_s is None else now_s - row.seen_s),
    }

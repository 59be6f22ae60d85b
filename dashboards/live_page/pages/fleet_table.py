"""The fleet table: every agent, sorted, filtered and paged on the server, so that a thousand are no more than fifty."""

from typing import Any

from nicegui import events, ui

from springback.dashboards.live_page.explained import moment
from springback.dashboards.live_page.fleet_rows import FleetRow, RowOrder, count_states, filter_rows, page_of, sort_rows
from springback.dashboards.live_page.links import AGENT_ROUTE, FAMILIES, episode_link, token_of_names, with_query
from springback.dashboards.live_page.live_sink import LiveSink
from springback.dashboards.live_page.page_parts import (
    NOTHING,
    PROVISIONAL,
    STATE_LOOKS,
    Column,
    LiveTable,
    StateFilter,
    figure,
    group_name,
    percent,
    section_title,
)
from springback.dashboards.live_page.page_query import PageQuery, SearchBox, TableQuery
from springback.dashboards.live_page.pages.downloads import download_link

_PAGE_SIZES = (25, 50, 100)
_ROWS = 50
_COLUMNS = (
    Column("name", "Agent", "left", look="agent"),
    Column("state", "State", "left", look="state"),
    Column("family", "Family", "left", "sb-wide", "link"),
    Column("progress", "Progress", "left", look="share", word="progress p"),
    Column("intensity", "g", "right", word="intensity g"),
    Column(
        "cost", "Cost", "right", "sb-wide", "cost", hint="What its open rebound windows have cost up to now (C_rec)."
    ),
    Column("seen", "Heard", "right", "sb-wide", "when", hint="When something last came from it."),
)
_SORTED_BY = ("state", *(column.name for column in _COLUMNS if column.name != "state"))
"""By its state where the address does not say."""
_HEARD_JUST_NOW_S = 10.0
_PAGING_LABEL = """(first, last, all) =>
  [first, last].map(n => n.toLocaleString("en")).join("\N{EN DASH}") + " of " + all.toLocaleString("en")"""


class FleetTable:
    """The table with its filters.

    Args:
        sink: what is shown.
        query: what the address says of it: `search`, `state` (several with commas), `sort` (descending with a minus
            before it), `page` and `rows`.
    """

    def __init__(self, sink: LiveSink, query: PageQuery) -> None:
        self._sink, self._query = sink, query
        self._place = TableQuery(query, _SORTED_BY, _PAGE_SIZES, _ROWS)
        self._order = RowOrder()
        self._page, self._size = 1, _ROWS
        self._shown: list[dict[str, Any]] = []
        with ui.element("section").classes("sb-card sb-fleet").props('aria-label="Fleet"'):
            with ui.element("div").classes("sb-bar"):
                section_title("Fleet")
                SearchBox(query, "Find an agent or a family", self._went, begins=("page",))
                self._filter = StateFilter(self._refiltered)
            self._table = self._make_table()
            self._none = ui.label("No agent is like that.").classes("sb-none")
            self._forgotten = ui.label().classes("sb-note")
            download_link("fleet")
        self._read()
        query.read_by(self._went)

    def refresh(self) -> None:
        """Shows what holds now; only what has changed is sent to the browser."""
        all_rows = self._sink.fleet_rows()
        self._filter.show(count_states(all_rows))
        rows = sort_rows(filter_rows(all_rows, self._filter.chosen, self._query.text("search")), self._order)
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
        paging = {"page": 1, "rowsPerPage": _ROWS, "rowsNumber": 0, "sortBy": "state", "descending": False}
        table = LiveTable(_COLUMNS, row_key="token", pagination=paging, sizes=_PAGE_SIZES)
        table.props[":pagination-label"] = _PAGING_LABEL
        table.on("request", self._turn)
        table.on("rowClick", js_handler="(event, row) => { window.location.href = row.href }")
        return table

    def _read(self) -> None:
        """Takes over what the address says."""
        place = self._place.place()
        self._order, self._page, self._size = RowOrder(place.column, place.descending), place.page, place.rows
        self._filter.choose(self._query.text("state").split(","))

    def _went(self) -> None:
        self._read()
        self.refresh()

    def _turn(self, event: events.GenericEventArguments) -> None:
        """Another page, order or number of rows was asked for."""
        self._place.put(event.args["pagination"])
        self._went()

    def _refiltered(self) -> None:
        states = ",".join(state for state in STATE_LOOKS if state in self._filter.chosen)
        self._query.put({"page": None, "state": states})
        self._went()


def _shown(row: FleetRow, now_s: float) -> dict[str, Any]:
    """A row as the browser gets it."""
    look = STATE_LOOKS[row.state]
    return {
        **{"token": row.token, "href": AGENT_ROUTE.format(agent=row.token)},
        "name": row.name,
        "state": row.state,
        "word": look.word,
        "remark": PROVISIONAL if row.provisional and row.state == "rebound" else None,
        "icon": look.icon,
        "family": group_name(row.family, row.method, row.version) or NOTHING,
        "family_href": _family_href(row),
        "progress": percent(row.progress),
        "share": None if row.progress is None else round(100 * min(max(row.progress, 0.0), 1.0)),
        "intensity": figure(row.intensity),
        "cost": figure(row.cost) if row.departure_step is not None else NOTHING,
        "since": None if row.departure_step is None else f"since step {row.departure_step:,}",
        "since_href": None if row.window is None else episode_link(*row.window),
        "seen": _seen(row.seen_s, now_s),
    }


def _family_href(row: FleetRow) -> str | None:
    if not row.family:
        return None
    return with_query(FAMILIES, {"family": token_of_names(row.family, row.method, row.version)})


def _seen(seen_s: float | None, now_s: float) -> float | str:
    """When something last came from an agent; one that reports all the time is not sent again for its clock alone."""
    at_s = moment(seen_s)
    if at_s is None:
        return NOTHING
    return "now" if abs(now_s - at_s) < _HEARD_JUST_NOW_S else at_s

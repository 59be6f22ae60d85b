"""The families: a table, and of the one that is chosen the stress-response curve with its levels.

The table shows success beside what it costs to recover, since the one says little without the other, and a capacity
beside how much of it was tested.
"""

from collections.abc import Callable
from typing import Any

from nicegui import events, ui

from springback.dashboards.live_page.charts import LiveChart, curve_words, stress_chart
from springback.dashboards.live_page.explained import term, word_id
from springback.dashboards.live_page.links import COMPARE, compare_link, family_link, family_token
from springback.dashboards.live_page.live_sink import LiveSink
from springback.dashboards.live_page.page_parts import (
    NOTHING,
    Column,
    LiveTable,
    figure,
    group_name,
    percent,
    section_title,
)
from springback.dashboards.live_page.page_query import PageQuery, SearchBox, TableQuery
from springback.dashboards.live_page.pages.downloads import download_link
from springback.dashboards.live_page.pages.stress_levels import LevelTable
from springback.sinks.fleet.fleet_state import clean_family
from springback.stream_processors.metrics.figure_words import (
    NOT_TESTED_ABOVE,
    beta_sentences,
    capacity_text,
    dependable_text,
    learning_text,
    live_state,
    live_word,
    share_text,
    short,
    stress_text,
    within_noise,
    worst_level,
)
from springback.stream_processors.metrics.glossary import (
    CONTRACT_VIOLATED,
    WITHIN_NOISE,
    LiveState,
    meaning,
)
from springback.stream_processors.resilience.readings import FamilyReading

_COLUMNS = (
    Column("family", "Family", "left", look="family"),
    Column("success", "Success", "left", look="share", hint="Share of episodes that ended in success."),
    Column("cost", "Cost", "right", word="recovery cost C_rec"),
    Column("capacity", "Dependable", "left", look="remark", word="dependable capacity"),
    Column("brief", "Dependable", "right", hint=f"{meaning('dependable capacity')} ≥: at least; {NOT_TESTED_ABOVE}."),
    Column("star", "λ*", "left", "sb-wide", "remark", word="λ*"),
    Column("now", "Stress now", "left", "sb-wide", "mark", word="live stress"),
    Column("violations", "Broke the contract", "left", "sb-wide", "remark", word="violation share"),
    Column("beta", "β", "right", "sb-wide", "remark", word="β"),
    Column("episodes", "Episodes", "right", "sb-wide"),
)
BRIEF_COLUMNS = ("family", "success", "cost", "brief")
"""Those for a narrow place."""

_ROWS = 25
_SIZES = (_ROWS, 100)
LIVE_LOOKS: dict[LiveState, tuple[str, str]] = {
    "within": ("calm", "check_circle_outline"),
    "untested": ("silent", "help_outline"),
    "breach": ("rebound", "warning_amber"),
    "unsettled": ("unknown", "hourglass_empty"),
    "none_declared": ("unknown", "remove_circle_outline"),
}
"""The mark and the icon of what the live stress is against the levels."""


class FamilyTable:
    """The table. A click on a row chooses its family.

    Args:
        columns: which of the columns; all but the brief one when not given.
        on_choose: given the key of the family that was chosen.
        query: what the address says of it: `sort` (descending with a minus before it), `page` and `rows`.
    """

    def __init__(
        self,
        columns: tuple[str, ...] | None = None,
        on_choose: Callable[[str], None] | None = None,
        query: PageQuery | None = None,
    ) -> None:
        self._shown: list[dict[str, Any]] = []
        shown = [c for c in _COLUMNS if (c.name in columns if columns is not None else c.name != "brief")]
        query = query or PageQuery({})
        place = TableQuery(query, [column.name for column in shown], _SIZES, _ROWS)
        paging = place.place().paging()
        table = LiveTable(shown, row_key="key", pagination=paging, sizes=_SIZES, sort_suffix="_sort")

        def went() -> None:
            table.pagination = place.place().paging()

        table.on_pagination_change(lambda event: place.put(event.value))  # the browser shows it already
        query.read_by(went)
        if on_choose is not None:

            def choose(event: events.GenericEventArguments) -> None:
                on_choose(str(event.args))

            table.classes("sb-clickable")
            table.on("rowClick", choose, js_handler="(event, row) => emit(row.key)")
            table.on("choose", choose)
            table.props["choosable"] = True
        self._table = table

    def show(self, families: list[FamilyReading]) -> None:
        """Shows these."""
        rows = [_row(family) for family in families]
        if rows != self._shown:
            self._shown = rows
            self._table.rows = rows
            self._table.props["hide-bottom"] = len(rows) <= _ROWS


def family_title(family: FamilyReading) -> str:
    """A family, method and version, safe to be shown."""
    return group_name(*clean_family(family))


def _row(family: FamilyReading) -> dict[str, Any]:
    name, method, version = clean_family(family)
    state = live_state(family)
    mark, icon = LIVE_LOOKS[state]
    now = live_word(family)
    capacity, _, above = dependable_text(family).partition("; ")
    star, _, above_star = capacity_text(family.capacity, family.capacity_flag).partition("; ")
    worst = worst_level(family)
    violated = CONTRACT_VIOLATED if family.contract_violated else None
    noise = within_noise(family)
    return {
        **{"key": family_token(family), "href": family_link(family)},
        **{"family": name, "method": f"{method} {version}", "family_sort": family_title(family)},
        "learning": learning_text(family.bound_references, family.bound_references_needed),
        "narrow": "; ".join(filter(None, (now, violated))),
        "success": percent(family.success_rate),
        "success_sort": _sortable(family.success_rate),
        "share": None if family.success_rate is None else round(100 * family.success_rate),
        **{"cost": figure(family.recovery_cost_mean), "cost_sort": _sortable(family.recovery_cost_mean)},
        **{"capacity": capacity, "capacity_remark": above, "capacity_sort": _sortable(family.dependable)},
        **{"brief": short(dependable_text(family)), "brief_sort": _sortable(family.dependable)},
        **{"star": star, "star_remark": above_star, "star_sort": _sortable(family.capacity)},
        "now": now if family.live_stress is None else f"{stress_text(family.live_stress)} {now}",
        **{"now_sort": now, "now_mark": mark, "now_icon": icon},
        "now_word": word_id(now),
        "violations": NOTHING if worst is None else f"{worst.level.violations:,} of {worst.level.judged:,}",
        "violations_remark": "; ".join(
            filter(None, (worst and f"λ {stress_text(worst.stress)}", worst and share_text(worst.level)))
        ),
        "violations_alarm": violated,
        "violations_sort": _sortable(worst and worst.level.violation_low),
        **{"beta": figure(family.beta), "beta_sort": _sortable(family.beta)},
        "beta_remark": WITHIN_NOISE if noise else None,
        **{"episodes": f"{family.episodes:,}" if family.episodes else NOTHING, "episodes_sort": family.episodes},
    }


def _sortable(value: float | None) -> float:
    return -1.0 if value is None else value


class FamilyPanel:
    """The page's content. Until somebody chooses, a family that wants to be looked at is shown, or the first.

    Args:
        sink: what is shown.
        query: what the address says of it: `family`, the chosen one, `search`, and what the table reads of it.
    """

    def __init__(self, sink: LiveSink, query: PageQuery) -> None:
        self._sink, self._query = sink, query
        self._none = ui.label("No episode of any family has ended yet.").classes("sb-card sb-none")
        with ui.element("div").classes("sb-family-page") as self._content:
            with ui.element("section").classes("sb-card").props('aria-label="Families"'):
                section_title("Families")
                ui.label(
                    "Success says whether agents arrive, cost what the way back took. A capacity is no more than what "
                    "was tested. A click shows the curve."
                ).classes("sb-note")
                with ui.element("div").classes("sb-choices-bar"):
                    SearchBox(query, "Find a family or a method", self.refresh)
                self._table = FamilyTable(on_choose=self._choose, query=query)
                download_link("families")
                self._gone = ui.label(
                    "Nothing is known (any more) of the family that the address names; another one is shown."
                ).classes("sb-note")
            with ui.element("div").classes("sb-halves"):
                with ui.element("section").classes("sb-card sb-curve").props('aria-label="Stress response"'):
                    self._title = section_title()
                    self._compare = ui.link("Compare its methods and versions", COMPARE).classes("sb-link")
                    self._words = ui.label().classes("sb-note")
                    self._curve = LiveChart("margin over stress", "sb-chart sb-chart--tall")
                    with ui.element("div").classes("sb-where"):
                        for word in ("margin M", "stress λ", "dependable capacity", "λ*", "live stress"):
                            term(word)
                    ui.label(
                        "Square: broken. Triangle: undecided. Hollow: too few episodes to decide anything. Shaded: not "
                        "tested."
                    ).classes("sb-note")
                with ui.element("section").classes("sb-card").props('aria-label="Stress levels"'):
                    section_title("What each level shows")
                    self._levels = LevelTable()
                    download_link("levels")
                    self._beta = ui.label().classes("sb-note sb-beta")
        query.read_by(self.refresh)

    def refresh(self) -> None:
        """Shows what holds now."""
        with self._sink.look() as (view, _):
            known = view.families()
        self._none.set_visibility(not known)
        self._content.set_visibility(bool(known))
        if not known:
            return
        words = self._query.text("search").casefold().split()
        self._table.show([f for f in known if all(word in family_title(f).casefold() for word in words)])
        chosen = self._query.text("family")
        shown = next((family for family in known if family_token(family) == chosen), None)
        self._gone.set_visibility(bool(chosen) and shown is None)
        shown = shown or max(known, key=_urgency)
        self._title.text = f"Stress response of {family_title(shown)}"
        self._words.text = curve_words(shown)
        self._compare.props["href"] = compare_link(shown)
        self._curve.show(stress_chart(shown))
        self._levels.show(shown)
        self._beta.text = " ".join(beta_sentences(shown))

    def _choose(self, key: str) -> None:
        self._query.put({"family": key})
        self.refresh()


def _urgency(family: FamilyReading) -> tuple[bool, bool]:
    return family.in_breach, family.contract_violated

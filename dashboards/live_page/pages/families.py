"""The families: a table, and the stress-response curve of the one that is chosen.

The table shows success beside what it costs to recover, since the one says little without the other.
"""

from collections.abc import Callable
from typing import Any

from nicegui import events, ui

from springback.dashboards.live_page.charts import LiveChart, curve_words, stress_chart
from springback.dashboards.live_page.live_sink import LiveSink
from springback.dashboards.live_page.page_parts import (
    NOTHING,
    Column,
    LiveTable,
    figure,
    group_name,
    percent,
    section_title,
    stress,
)
from springback.sinks.fleet.fleet_state import clean_family, family_key
from springback.stream_processors.resilience.readings import FamilyReading

_BETA = "Policy stability: the largest change of the stability loss per magnitude of a perturbation"
_COLUMNS = (
    Column("family", "Family", "left", look="family"),
    Column("success", "Success", "left", look="share", hint="Share of episodes that ended in success"),
    Column("cost", "Cost", "right", hint="Mean recovery cost of an episode"),
    Column("capacity", "λ*", "right", hint="Stress capacity: the largest stress at which the contract is kept"),
    Column("live", "live λ", "right", "sb-wide", hint="The 0.9 quantile of stress over the family's active episodes"),
    Column("beta", "β", "right", "sb-wide", hint=_BETA),
    Column("episodes", "Episodes", "right", "sb-wide"),
    Column("contract", "Contract", "left", "sb-mark", "mark"),
)
_ROWS = 25


class FamilyTable:
    """The table. A click on a row chooses its family.

    Args:
        columns: which of the columns; all when not given.
        on_choose: given the key of the family that was chosen.
    """

    def __init__(self, columns: tuple[str, ...] | None = None, on_choose: Callable[[str], None] | None = None) -> None:
        self._shown: list[dict[str, Any]] = []
        shown = [column for column in _COLUMNS if columns is None or column.name in columns]
        paging = {"rowsPerPage": _ROWS, "sortBy": "family"}
        table = LiveTable(shown, row_key="key", pagination=paging, sizes=(_ROWS, 100), sort_suffix="_sort")
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
    if family.in_breach:
        mark, icon, contract = "rebound", "warning_amber", "breach"
    elif family.capacity is None:
        mark, icon, contract = "unknown", "help_outline", "too few"
    elif family.capacity_flag == "none":
        mark, icon, contract = "stalled", "report", "never kept"
    else:
        mark, icon, contract = "calm", "check_circle_outline", "kept"
    capacity = "none" if family.capacity_flag == "none" else stress(family.capacity)
    return {
        "key": family_key(family).hex(),
        **{"family": name, "method": f"{method} {version}", "family_sort": family_title(family)},
        "success": percent(family.success_rate),
        "success_sort": _sortable(family.success_rate),
        "share": None if family.success_rate is None else round(100 * family.success_rate),
        **{"cost": figure(family.recovery_cost_mean), "cost_sort": _sortable(family.recovery_cost_mean)},
        **{"capacity": capacity, "capacity_sort": _sortable(family.capacity)},
        **{"live": stress(family.live_stress), "live_sort": _sortable(family.live_stress)},
        **{"beta": figure(family.beta), "beta_sort": _sortable(family.beta)},
        **{"episodes": f"{family.episodes:,}" if family.episodes else NOTHING, "episodes_sort": family.episodes},
        **{"contract": contract, "contract_sort": contract, "mark": mark, "icon": icon},
    }


def _sortable(value: float | None) -> float:
    return -1.0 if value is None else value


class FamilyPanel:
    """The page's content. Until somebody chooses, a family in breach is shown, or the first."""

    def __init__(self, sink: LiveSink) -> None:
        self._sink = sink
        self._families: list[FamilyReading] = []
        self._chosen: str | None = None
        self._none = ui.label("No episode of any family has ended yet.").classes("sb-card sb-none")
        with ui.element("div").classes("sb-family-page") as self._content:
            with ui.element("section").classes("sb-card").props('aria-label="Families"'):
                section_title("Families")
                ui.label(
                    "Success says whether agents arrive, cost what the way back took. A click shows the curve."
                ).classes("sb-note")
                self._table = FamilyTable(on_choose=self._choose)
            with ui.element("section").classes("sb-card sb-curve").props('aria-label="Stress response"'):
                self._title = section_title()
                self._words = ui.label().classes("sb-note")
                self._curve = LiveChart("margin over stress", "sb-chart sb-chart--tall")
                ui.label("Hollow points stand on too few episodes to decide anything.").classes("sb-note")

    def refresh(self) -> None:
        """Shows what holds now."""
        with self._sink.look() as (view, _):
            self._families = view.families()
        self._none.set_visibility(not self._families)
        self._content.set_visibility(bool(self._families))
        if not self._families:
            return
        self._table.show(self._families)
        shown = next((family for family in self._families if family_key(family).hex() == self._chosen), None)
        shown = shown or next((family for family in self._families if family.in_breach), self._families[0])
        self._title.text = f"Stress response of {family_title(shown)}"
        self._words.text = curve_words(shown)
        self._curve.show(stress_chart(shown))

    def _choose(self, key: str) -> None:
        self._chosen = key
        self.refresh()

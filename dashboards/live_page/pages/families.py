"""The families: a table, and of the one that is chosen the stress-response curve with its levels.

The table shows success beside what it costs to recover, since the one says little without the other, and a capacity
beside how much of it was tested.
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
)
from springback.dashboards.live_page.pages.stress_levels import LevelTable
from springback.sinks.fleet.fleet_state import clean_family, family_key
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
    Column("success", "Success", "left", look="share", hint="Share of episodes that ended in success"),
    Column("cost", "Cost", "right", hint="Mean recovery cost of an episode"),
    Column("capacity", "Dependable", "left", look="remark", hint=meaning("dependable capacity")),
    Column("brief", "Dependable", "right", hint=f"{meaning('dependable capacity')} ≥: at least; {NOT_TESTED_ABOVE}."),
    Column("star", "λ*", "left", "sb-wide", "remark", hint=meaning("λ*")),
    Column("now", "Stress now", "left", "sb-wide", "mark", hint=meaning("live stress")),
    Column("violations", "Broke the contract", "left", "sb-wide", "remark", hint=meaning("violation share")),
    Column("beta", "β", "right", "sb-wide", "remark", hint=meaning("β")),
    Column("episodes", "Episodes", "right", "sb-wide"),
)
BRIEF_COLUMNS = ("family", "success", "cost", "brief")
"""Those for a narrow place."""

_ROWS = 25
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
    """

    def __init__(self, columns: tuple[str, ...] | None = None, on_choose: Callable[[str], None] | None = None) -> None:
        self._shown: list[dict[str, Any]] = []
        shown = [c for c in _COLUMNS if (c.name in columns if columns is not None else c.name != "brief")]
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
    state = live_state(family)
    mark, icon = LIVE_LOOKS[state]
    now = live_word(family)
    capacity, _, above = dependable_text(family).partition("; ")
    star, _, above_star = capacity_text(family.capacity, family.capacity_flag).partition("; ")
    worst = worst_level(family)
    violated = CONTRACT_VIOLATED if family.contract_violated else None
    noise = within_noise(family)
    return {
        "key": family_key(family).hex(),
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
        "now_hint": meaning(now),
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
    """The page's content. Until somebody chooses, a family that wants to be looked at is shown, or the first."""

    def __init__(self, sink: LiveSink) -> None:
        self._sink = sink
        self._families: list[FamilyReading] = []
        self._chosen: str | None = None
        self._none = ui.label("No episode of any family has ended yet.").classes("sb-card sb-none")
        with ui.element("div").classes("sb-family-page") as self._content:
            with ui.element("section").classes("sb-card").props('aria-label="Families"'):
                section_title("Families")
                ui.label(
                    "Success says whether agents arrive, cost what the way back took. A capacity is no more than what "
                    "was tested. A click shows the curve."
                ).classes("sb-note")
                self._table = FamilyTable(on_choose=self._choose)
            with ui.element("div").classes("sb-halves"):
                with ui.element("section").classes("sb-card sb-curve").props('aria-label="Stress response"'):
                    self._title = section_title()
                    self._words = ui.label().classes("sb-note")
                    self._curve = LiveChart("margin over stress", "sb-chart sb-chart--tall")
                    ui.label(
                        "Square: broken. Triangle: undecided. Hollow: too few episodes to decide anything. Shaded: not "
                        "tested."
                    ).classes("sb-note")
                with ui.element("section").classes("sb-card").props('aria-label="Stress levels"'):
                    section_title("What each level shows")
                    self._levels = LevelTable()
                    self._beta = ui.label().classes("sb-note sb-beta")

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
        shown = shown or max(self._families, key=_urgency)
        self._title.text = f"Stress response of {family_title(shown)}"
        self._words.text = curve_words(shown)
        self._curve.show(stress_chart(shown))
        self._levels.show(shown)
        self._beta.text = " ".join(beta_sentences(shown))

    def _choose(self, key: str) -> None:
        self._chosen = key
        self.refresh()


def _urgency(family: FamilyReading) -> tuple[bool, bool]:
    return family.in_breach, family.contract_violated

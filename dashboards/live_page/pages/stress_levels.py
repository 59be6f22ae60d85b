"""What is known of one family at each stress level: a table beside its curve."""

from typing import Any

from nicegui import ui

from springback.dashboards.live_page.explained import word_id
from springback.dashboards.live_page.page_parts import NOTHING, Column, LiveTable, figure
from springback.stream_processors.metrics.figure_words import share_text, stress_text
from springback.stream_processors.resilience.readings import FamilyReading, LevelFigures, LevelState

LEVEL_LOOKS: dict[LevelState, tuple[str, str]] = {
    "kept": ("calm", "check_circle_outline"),
    "broken": ("rebound", "warning_amber"),
    "undecided": ("stalled", "balance"),
    "insufficient": ("unknown", "help_outline"),
}
"""The mark and the icon of what a level shows."""

_COLUMNS = (
    Column("stress", "λ", "left", word="stress λ"),
    Column("state", "Shows", "left", look="mark"),
    Column("episodes", "Episodes", "right", "sb-wide", hint="The latest ones that the level rests on."),
    Column("margin", "M", "right", word="margin M"),
    Column("favourable", "M⁺", "right", "sb-wide", word="favourable margin M⁺"),
    Column("violations", "Broke the contract", "right", look="remark", word="violation share"),
)
_MOST_LEVELS = 100


class LevelTable:
    """The levels of one family, the undeclared one last, with what is left out of them."""

    def __init__(self) -> None:
        paging = {"rowsPerPage": _MOST_LEVELS, "sortBy": None}
        self._table = LiveTable(_COLUMNS, row_key="key", pagination=paging, sizes=(_MOST_LEVELS,), sort_suffix="_sort")
        self._table.props["hide-bottom"] = True
        self._table.classes("sb-levels")
        self._shown: list[dict[str, Any]] = []
        self._unmeasured = ui.label().classes("sb-note")

    def show(self, family: FamilyReading) -> None:
        """Shows this one's."""
        rows = [_row(place, stress, level) for place, (stress, level) in enumerate(family.levels)]
        if rows != self._shown:
            self._shown = rows
            self._table.rows = rows
        told = "; ".join(
            f"at {stress_text(stress)} {', '.join(level.unmeasured)}"
            for stress, level in family.levels
            if level.unmeasured
        )
        self._unmeasured.set_visibility(bool(told))
        self._unmeasured.text = f"Not measured, and so in no margin: {told}."


def _row(place: int, stress: float | None, level: LevelFigures) -> dict[str, Any]:
    mark, icon = LEVEL_LOOKS[level.state]
    return {
        "key": place,
        **{"stress": stress_text(stress), "stress_sort": place},
        **{"state": level.state, "state_sort": level.state, "state_mark": mark, "state_icon": icon},
        "state_word": word_id(level.state),
        **{"episodes": f"{level.episodes:,}", "episodes_sort": level.episodes},
        **{"margin": figure(level.margin), "margin_sort": _sortable(level.margin)},
        **{"favourable": figure(level.favourable_margin), "favourable_sort": _sortable(level.favourable_margin)},
        "violations": f"{level.violations:,} of {level.judged:,}" if level.judged else NOTHING,
        "violations_remark": share_text(level),
        "violations_sort": _sortable(level.violation_share),
    }


def _sortable(value: float | None) -> float:
    return -2.0 if value is None else value

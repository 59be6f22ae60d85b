"""The family table: success beside what it costs to recover, for the one says little without the other."""

from collections.abc import Callable
from typing import Any

from nicegui import events, ui

from dashboards.live_page.page_text import NOTHING, figure, group_name, percent, stress
from sinks.bounded_memory import fingerprint
from sinks.label_values import clean_label_value
from stream_processors.resilience.family_readings import FamilyReading

_COLUMNS = (
    ("family", "Family", "left", ""),
    ("success", "Success", "left", ""),
    ("cost", "Cost", "right", ""),
    ("capacity", "λ*", "right", ""),
    ("live", "live λ", "right", "sb-wide"),
    ("beta", "β", "right", "sb-wide"),
    ("episodes", "Episodes", "right", "sb-wide"),
    ("contract", "Contract", "left", "sb-mark"),
)
_HINTS = {
    "success": "Share of episodes that ended in success",
    "cost": "Mean recovery cost of an episode",
    "capacity": "Stress capacity: the largest stress at which the contract is kept",
    "live": "The 0.9 quantile of stress over the family's active episodes",
    "beta": "Policy stability: the largest change of the stability loss per magnitude of a perturbation",
}
_SUCCESS_CELL = """
<q-td :props="props"><span class="sb-meter sb-wide" v-if="props.row.share !== null" aria-hidden="true"
  ><span :style="{ width: props.row.share + '%' }"></span></span> {{ props.row.success }}</q-td>
"""
_CONTRACT_CELL = """
<q-td :props="props"><span :class="'sb-state sb-state--' + props.row.mark" :title="props.row.contract"
  ><q-icon :name="props.row.icon" aria-hidden="true" /><span class="sb-wide">{{ props.row.contract }}</span
></span></q-td>
"""
_FAMILY_CELL = """
<q-td :props="props"><span class="sb-name">{{ props.row.family }}</span>
<div class="sb-under">{{ props.row.method }}</div></q-td>
"""
_HEADER_CELL = """
<q-th :props="props">{{ props.col.label }}<q-tooltip v-if="props.col.hint">{{ props.col.hint }}</q-tooltip></q-th>
"""
_ROWS = 25


class FamilyTable:
    """The table. Whoever clicks at a row chooses its family.

    Args:
        columns: which of the columns; all when not given.
        on_choose: told the key of the family that was chosen.
    """

    def __init__(self, columns: tuple[str, ...] | None = None, on_choose: Callable[[str], None] | None = None) -> None:
        self._shown: list[dict[str, Any]] = []
        shown = [column for column in _COLUMNS if columns is None or column[0] in columns]
        fields = [
            {
                **{"name": name, "label": label, "field": f"{name}_sort", "align": align, "sortable": True},
                **{"hint": _HINTS.get(name), "classes": width, "headerClasses": width},
            }
            for name, label, align, width in shown
        ]
        table = ui.table(columns=fields, rows=[], row_key="key", pagination={"rowsPerPage": _ROWS, "sortBy": "family"})
        table.props(f'flat binary-state-sort rows-per-page-label="Rows" :rows-per-page-options="[{_ROWS}, 100]"')
        table.classes("sb-table")
        table.add_slot("header-cell", _HEADER_CELL)
        for name, *_ in shown:
            table.add_slot(f"body-cell-{name}", f'<q-td :props="props">{{{{ props.row.{name} }}}}</q-td>')
        table.add_slot("body-cell-family", _FAMILY_CELL)
        table.add_slot("body-cell-success", _SUCCESS_CELL)
        table.add_slot("body-cell-contract", _CONTRACT_CELL)
        if on_choose is not None:

            def choose(event: events.GenericEventArguments) -> None:
                on_choose(str(event.args))

            table.classes("sb-clickable")
            table.on("rowClick", choose, js_handler="(event, row) => emit(row.key)")
        self._table = table

    def show(self, families: list[FamilyReading]) -> None:
        """Show these."""
        rows = [_row(family) for family in families]
        if rows != self._shown:
            self._shown = rows
            self._table.rows = rows
            self._table.props["hide-bottom"] = len(rows) <= _ROWS


def family_title(family: FamilyReading) -> str:
    """A family, method and version, safe to be shown."""
    return group_name(*(clean_label_value(part) for part in family.identity))


def family_key(family: FamilyReading) -> str:
    """What a family's row is told from others by."""
    return fingerprint(family.identity).hex()


def _row(family: FamilyReading) -> dict[str, Any]:
    name, method, version = (clean_label_value(part) for part in family.identity)
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
        "key": family_key(family),
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

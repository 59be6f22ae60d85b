"""The family table: success beside what it costs to recover, for the one says little without the other."""

from collections.abc import Callable
from typing import Any

from nicegui import events
from springback.dashboards.live_page.live_table import Column, LiveTable
from springback.dashboards.live_page.page_text import NOTHING, figure, group_name, percent, stress
from springback.sinks.bounded_memory import fingerprint
from springback.sinks.label_values import clean_label_value
from springback.stream_processors.resilience.family_readings import FamilyReading

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
    """The table. Whoever clicks at a row chooses its family.

    Args:
        columns: which of the columns; all when not given.
        on_choose: told the key of the family that was chosen.
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

"""The family table as people read it on a terminal."""

from collections.abc import Iterable

from rich import box
from rich.table import Table

from stream_processors.family_table import FamilyRow

_STATES = ("recovered", "unrecovered", "censored")
_CAUSES = ("effort", "delay", "effort+delay")
_CAPTION = """\
C_rec: recovery cost of an episode. SR: success rate. Windows by state: recovered/unrecovered/censored,
and by cause: effort/delay/both. Lost cycles of an episode; length of a window in steps.
n(-k): k of the n episodes had no baseline to score them by, or no end, and count in no cost."""


def family_table_view(rows: Iterable[FamilyRow], title: str = "Resilience by family, method and stress") -> Table:
    """The rows as a rich table. A dash says that there was nothing to take a figure of."""
    table = Table(
        title=title, caption=_CAPTION, title_justify="left", caption_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1)
    )
    table.add_column("family", no_wrap=True)
    table.add_column("method", overflow="fold")
    for heading in ("λ", "n", "SR", "windows\nrec/unr/cen", "cause\neff/del/both"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("C_rec\nmean", "C_rec\nmedian", "lost\ncycles", "window\nlength"):
        table.add_column(heading, justify="right")
    family = None
    for row in rows:
        if family not in (None, row.family):
            table.add_section()
        family = row.family
        table.add_row(
            row.family,
            row.method,
            f"{row.stress:.1f}",
            _episodes(row),
            "-" if row.success_rate is None else f"{row.success_rate:.0%}",
            "/".join(str(row.windows_by_state.get(state, 0)) for state in _STATES),
            "/".join(str(row.windows_by_cause.get(cause, 0)) for cause in _CAUSES),
            _figure(row.recovery_cost_mean),
            _figure(row.recovery_cost_median),
            _figure(row.lost_cycles_mean),
            _figure(row.window_length_mean),
        )
    return table


def _episodes(row: FamilyRow) -> str:
    left_out = row.censored + row.unscored
    return f"{row.episodes}(-{left_out})" if left_out else str(row.episodes)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"

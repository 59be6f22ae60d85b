"""The family table as people read it on a terminal."""

from collections.abc import Iterable

from rich.table import Table

from stream_processors.family_table import FamilyRow

_STATES = ("recovered", "unrecovered", "censored")
_CAUSES = ("effort", "delay", "effort+delay")


def family_table_view(rows: Iterable[FamilyRow], title: str = "Resilience by family, method and stress") -> Table:
    """The rows as a rich table. A dash says that there was nothing to take a figure of."""
    table = Table(title=title, caption=_CAPTION, title_justify="left", caption_justify="left")
    table.add_column("family", no_wrap=True)
    table.add_column("method", overflow="fold")
    for heading in ("λ", "episodes", "SR", "windows", "rec/unr/cen", "eff/del/both"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("C_rec mean", "C_rec median", "lost cycles", "length"):
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
            str(row.windows),
            "/".join(str(row.windows_by_state.get(state, 0)) for state in _STATES),
            "/".join(str(row.windows_by_cause.get(cause, 0)) for cause in _CAUSES),
            _figure(row.recovery_cost_mean),
            _figure(row.recovery_cost_median),
            _figure(row.lost_cycles_mean),
            _figure(row.window_length_mean),
        )
    return table


_CAPTION = (
    "C_rec: recovery cost of an episode; SR: success rate; windows by state (recovered/unrecovered/censored) and by "
    "cause (effort/delay/both); lost cycles per episode; length of a window in steps. "
    "n(-k): k of the n episodes had no baseline to score them by, or no end, and count in no cost."
)


def _episodes(row: FamilyRow) -> str:
    left_out = row.censored + row.unscored
    return f"{row.episodes}(-{left_out})" if left_out else str(row.episodes)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"

"""What all runs of the harness found, kind by kind."""

from collections.abc import Sequence

import msgspec
from rich.table import Table

from tests.faults.fault_kinds import FAULT_KINDS
from tests.faults.fault_run import RunReport


class KindFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of fault over all runs.

    Attributes:
        kind: its name.
        what: what it does, in words.
        runs: how often it was done.
        runs_with_mismatches: how many of the runs that it was part of found anything wrong.
        longest_recovery_s: from a fault's end until all steps were taken in again; None where it was never done.
    """

    kind: str
    what: str
    runs: int
    runs_with_mismatches: int
    longest_recovery_s: float | None


def kind_figures(reports: Sequence[RunReport]) -> list[KindFigures]:
    """The figures of each kind that was done."""
    found = []
    for kind in FAULT_KINDS:
        own = [(report, fault) for report in reports for fault in report.faults if fault.kind == kind.name]
        times = [fault.recovery_s for _, fault in own if fault.recovery_s is not None]
        if own:
            found.append(
                KindFigures(
                    kind=kind.name,
                    what=kind.what,
                    runs=len(own),
                    runs_with_mismatches=sum(bool(report.mismatches) for report, _ in own),
                    longest_recovery_s=max(times, default=None),
                )
            )
    return found


def kind_table(figures: Sequence[KindFigures]) -> Table:
    """The figures as a table."""
    table = Table(title="Faults: what was done, and what was wrong after it")
    table.add_column("fault")
    for heading in ("runs", "of them with mismatches", "longest recovery"):
        table.add_column(heading, justify="right")
    for row in figures:
        longest = "-" if row.longest_recovery_s is None else f"{row.longest_recovery_s:.1f} s"
        table.add_row(row.what, str(row.runs), str(row.runs_with_mismatches), longest)
    return table


def run_table(reports: Sequence[RunReport]) -> Table:
    """What each run compared."""
    table = Table(title="Runs")
    for heading in ("seed", "baseline"):
        table.add_column(heading)
    for heading in (
        *(
            "faults",
            "episodes",
            "windows",
            "rows sent",
            "taken in",
            "refused",
            "copies and late",
            "switches",
            "repeated",
        ),
        "mismatches",
    ):
        table.add_column(heading, justify="right")
    for report in sorted(reports, key=lambda one: (one.mode, one.seed)):
        counts = (len(report.faults), report.episodes, report.windows, report.sent, report.taken_in, report.rejected)
        more = (report.unused, report.switches, report.repeated, len(report.mismatches))
        table.add_row(str(report.seed), report.mode, *(f"{count:,}" for count in (*counts, *more)))
    return table

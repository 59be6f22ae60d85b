"""Writes the report of an evaluation, with a progress bar on a terminal."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from springback.dashboards.evaluation_report.report_files import write_report
from springback.dashboards.evaluation_report.report_numbers import report_numbers
from springback.stream_processors.offline.evaluation import Evaluation


def write_evaluation_report(
    directory: Path,
    evaluation: Evaluation,
    sources: Sequence[Path],
) -> Path:
    """Write the report into a folder, which is made where it is not there.

    Args:
        directory: the folder.
        evaluation: what was evaluated.
        sources: what the frames were read from.

    Returns:
        The page.

    Raises:
        OSError: a file cannot be written.
    """
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("Report")

        def show(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        numbers = report_numbers(
            evaluation.summaries,
            evaluation.windows,
            evaluation.families,
            evaluation.contract_margins,
            evaluation.config.aggregate,
            sources=["standard input" if str(source) == "-" else source.name for source in sources],
            rejected_rows=len(evaluation.rejected),
            progress=show,
        )
        return write_report(directory, numbers, show)[0]

"""Writes the report of an evaluation, with a progress bar on a terminal."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from springback.dashboards.evaluation_report.report_files import write_report
from springback.dashboards.evaluation_report.report_numbers import report_numbers
from springback.stream_processors.offline.evaluation import Evaluation
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.readings import EpisodeKey, FamilyReading


def write_evaluation_report(
    directory: Path,
    evaluation: Evaluation,
    readings: Sequence[FamilyReading],
    contract_margins: Mapping[EpisodeKey, float],
    config: AggregateConfig,
    sources: Sequence[Path],
) -> Path:
    """Write the report into a folder, which is made where it is not there.

    Args:
        directory: the folder.
        evaluation: what was evaluated.
        readings: what is known of each family, method and version.
        contract_margins: the monitor m_i of each episode that has one.
        config: what the readings were made with.
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
            readings,
            contract_margins,
            config,
            sources=["standard input" if str(source) == "-" else source.name for source in sources],
            rejected_rows=len(evaluation.rejected),
            progress=show,
        )
        return write_report(directory, numbers, show)[0]

"""`springback evaluate`: recovery costs of recordings, without Kafka."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from springback.deploy.commands.recordings.recording_input import LeftOut, read_baseline, reading_progress
from springback.deploy.commands.shared_options import (
    BaselineOption,
    MappingOption,
    RecordingsArgument,
    SettingsOption,
    ValueModelOption,
    read_value_option,
    stream_settings,
)

if TYPE_CHECKING:
    from springback.stream_processors.resilience.readings import EpisodeSummary


def evaluate(
    files: RecordingsArgument,
    mapping: MappingOption = None,
    baseline: BaselineOption = None,
    json_file: Annotated[
        Path | None,
        typer.Option(
            "--json",
            metavar="FILE",
            dir_okay=False,
            allow_dash=True,
            help="Write the table (`families`), every episode with its windows (`episodes`) and what families "
            "withstand (`resilience`) as JSON; - is standard output, in place of the tables.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="Write a page with plots (report.html), and its numbers as JSON and CSV, into this folder.",
        ),
    ] = None,
    value_model: ValueModelOption = None,
    settings: SettingsOption = None,
) -> None:
    """Print recovery costs, rebound windows and success rates of recordings, and what stress families withstand.

    The numbers are those that the stream finds on the same episodes. Without --baseline, one is learned from the
    reference episodes of the recordings themselves, and the order of the episodes plays no part.

    Examples: springback evaluate --report monday --json monday.json monday.frames.jsonl.gz

    springback evaluate --mapping nav2 monday.mcap tuesday_bag/
    """
    from rich.console import Console

    from springback.deploy.family_table_view import family_table_view, resilience_table_view
    from springback.stream_processors.offline.evaluation import evaluate as evaluate_recordings

    config = stream_settings(None, None, settings).resilience
    left_out = LeftOut(lambda line: typer.echo(line, err=True))
    try:
        with reading_progress(mapping is not None) as progress:
            evaluation = evaluate_recordings(
                *files,
                mapping=mapping,
                baseline=None if baseline is None else read_baseline(baseline, config, "--baseline"),
                value_model=read_value_option(value_model),
                config=config,
                report_unreadable=left_out,
                progress=progress,
            )
    finally:
        left_out.finish()
    document = evaluation.document
    if str(json_file) != "-":
        Console().print(family_table_view(document.families), resilience_table_view(document.resilience))
    examples = {row.reason: row.detail for row in reversed(evaluation.rejected)}
    for reason, count in sorted(Counter(row.reason for row in evaluation.rejected).items()):
        typer.echo(f"rejected  {count} row{'s' if count > 1 else ''}: {reason}: {examples[reason]}", err=True)
    for family in _families_without_baseline(evaluation.summaries):
        typer.echo(
            f"unscored  family {family}: no baseline to score it by. Mark clean runs as reference, give --baseline, or "
            'set resilience.learn_from = "success"',
            err=True,
        )
    if json_file is not None:
        if str(json_file) == "-":
            typer.echo(evaluation.json())
        else:
            json_file.write_bytes(evaluation.json() + b"\n")
    if report is not None:
        from springback.deploy.commands.recordings.report_run import write_evaluation_report

        page = write_evaluation_report(report, evaluation, files)
        typer.echo(f"report    {page}", err=True)


def _families_without_baseline(summaries: Sequence["EpisodeSummary"]) -> list[str]:
    scored = {summary.traits.family for summary in summaries if summary.unscored_steps < summary.steps}
    return sorted({summary.traits.family for summary in summaries if summary.steps} - scored)

"""`springback evaluate`: recovery costs of recordings, without Kafka."""

import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from springback.deploy.commands.input_files import (
    BaselineOption,
    LeftOut,
    MappingOption,
    RecordingsArgument,
    ValueModelOption,
    read_baseline_option,
    read_value_option,
    reading_progress,
)
from springback.deploy.commands.shared_options import SettingsOption, stream_settings
from springback.producers.whole_file import write_whole

if TYPE_CHECKING:
    from springback.dashboards.evaluation_report.report_origin import ReportOrigin
    from springback.stream_processors.intake.step_table import RejectedRow
    from springback.stream_processors.offline.evaluation import Evaluation, StepAccount
    from springback.stream_processors.resilience.config import ResilienceConfig
    from springback.stream_processors.resilience.readings import AgentStatus, EpisodeSummary

_MOST_EPISODES_NAMED = 5
_LATEST_DATE_S = 253_402_300_799  # the end of the year 9999


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
            help="Write a page with plots (report.html), and its numbers as JSON and CSV, into this folder. The same "
            "recordings and settings make the same bytes; SOURCE_DATE_EPOCH, if set, is shown as the date of writing.",
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

    from springback.deploy.table_views import family_table_view, resilience_table_view
    from springback.stream_processors.offline.evaluation import evaluate as evaluate_recordings

    config = stream_settings(None, None, settings).resilience
    written_s = None if report is None else _date_of_writing(os.environ.get("SOURCE_DATE_EPOCH"))
    left_out = LeftOut(lambda line: typer.echo(line, err=True))
    try:
        with reading_progress(mapping is not None) as progress:
            evaluation = evaluate_recordings(
                *files,
                mapping=mapping,
                baseline=None if baseline is None else read_baseline_option(baseline, config, "--baseline"),
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
    clocks = _wrong_clocks(evaluation.statuses)
    for line in [*_rejections(evaluation.rejected), *_unused_steps(evaluation.steps), *clocks]:
        typer.echo(line, err=True)
    for family in _families_without_baseline(evaluation.summaries):
        typer.echo(
            f"unscored  family {family}: no baseline to score it by. Mark clean runs as reference, give --baseline, or "
            'set resilience.learn_from = "success"',
            err=True,
        )
    for line in [*_caveats(evaluation.summaries), *_other_rates(evaluation.summaries)]:
        typer.echo(line, err=True)
    if json_file is not None:
        if str(json_file) == "-":
            typer.echo(evaluation.json())
        else:
            write_whole(json_file, evaluation.json() + b"\n")
    if report is not None:
        origin = _origin(files, config, baseline, mapping, value_model, written_s)
        typer.echo(f"report    {_write_report(report, evaluation, origin)}", err=True)


def _rejections(rejected: Sequence["RejectedRow"]) -> list[str]:
    """A line for each fault, told apart by reason and field: what it cost, and an example of it."""
    nouns = {"episodes": "header", "steps": "step", "ends": "end", "navigation": "other part"}
    lines = []
    for reason, field in sorted({(row.reason, row.field) for row in rejected}):
        rows = [row for row in rejected if (row.reason, row.field) == (reason, field)]
        counts = Counter(nouns.get(row.part, "other part") for row in rows)
        cost = ", ".join(f"{counts[n]} {n}{'' if counts[n] == 1 else 's'}" for n in nouns.values() if counts[n])
        # What a header costs besides itself repeats the header's own words.
        example = next((row for row in rows if row.part == "episodes"), rows[0])
        lines.append(f"rejected  {cost}: {reason}: {example.detail}")
    return lines


def _unused_steps(account: "StepAccount") -> list[str]:
    """What became of the steps of the recordings, where not all of them are used."""
    if account.used == account.sent:
        return []
    lines = [
        f"steps     {account.used} of {account.sent} used, {account.rejected} rejected, "
        f"{sum(account.unused.values())} unused"
    ]
    for why, count in sorted(account.unused.items()):
        others = list(account.episodes[why].items())[1:]  # the example tells of the first
        of = f" of {len(others) + 1} episodes" if others else ""
        also = [f"{steps} of {key.episode!r} of {key.agent!r}" for key, steps in others[:_MOST_EPISODES_NAMED]]
        if len(others) > len(also):
            also.append(f"those of {len(others) - len(also)} more")
        told = f"; also {', '.join(also)}" if also else ""
        lines.append(f"unused    {count} step{'s' * (count > 1)}{of}: {why}: {account.examples[why]}{told}")
    return lines


def _wrong_clocks(statuses: Sequence["AgentStatus"]) -> list[str]:
    """How many steps had a time that cannot be, and of whom."""
    wrong = {status.agent: status.counts.replaced_times for status in statuses if status.counts.replaced_times}
    if not wrong:
        return []
    count = sum(wrong.values())
    return [
        f"clock     {count} step{'s' * (count > 1)} had a time before 2001 or far ahead, and got that of arrival: "
        f"{', '.join(sorted(wrong))}"
    ]


def _families_without_baseline(summaries: Sequence["EpisodeSummary"]) -> list[str]:
    scored = {summary.traits.family for summary in summaries if summary.unscored_steps < summary.steps}
    return sorted({summary.traits.family for summary in summaries if summary.steps} - scored)


def _caveats(summaries: Sequence["EpisodeSummary"]) -> list[str]:
    """What families are judged by with too few references behind it, and episodes of which not all can be judged."""
    behind = {s.traits.family: s for s in summaries if s.unscored_steps < s.steps}
    joined = Counter(s.traits.family for s in summaries if s.joined and s.traits.reference)
    gaps = Counter(s.traits.family for s in summaries if s.gap)
    interruptions = Counter[str]()
    for summary in summaries:
        interruptions[summary.traits.family] += summary.interruptions
    return [
        *(
            f"learning  family {family}: {s.bound_references} of {s.bound_references_needed} references stand behind "
            "its alarm bounds; its windows are provisional, and count in no capacity or comparison"
            for family, s in sorted(behind.items())
            if (s.bound_references or 0) < (s.bound_references_needed or 0)
        ),
        *(
            f"joined    family {family}: {count} of its reference episodes begin after step 0, and so teach nothing. "
            "Number the steps of an episode from 0"
            for family, count in sorted(joined.items())
        ),
        *(
            f"gap       family {family}: {count} of its episodes miss so many steps in one place that their course "
            "could not be judged there"
            for family, count in sorted(gaps.items())
        ),
        *(
            f"interrupted  family {family}: {count} cycle{'' if count == 1 else 's'} lasted so long that costs count "
            "them only up to the cap on time: pauses, or a clock that was set"
            for family, count in sorted(interruptions.items())
            if count
        ),
        *_unmoved(summaries),
    ]


def _unmoved(summaries: Sequence["EpisodeSummary"]) -> list[str]:
    """The agents whose progress stood still in episodes that were successes all the same, and why that may be."""
    successes: dict[tuple[str, str], list[EpisodeSummary]] = {}
    for summary in summaries:
        if summary.outcome == "success" and summary.steps > 1:
            successes.setdefault((summary.key.agent, summary.traits.family), []).append(summary)
    lines = []
    for (agent, family), own in sorted(successes.items()):
        still = [summary for summary in own if summary.unmoved]
        # What begins at its goal is done from the first step on: that is no fault while most episodes do not.
        begun_done = all(summary.final_progress >= 1.0 for summary in still) and 2 * len(still) <= len(own)
        if still and not begun_done:
            at = still[0].final_progress
            lines.append(
                f"unmoved   agent {agent}, family {family}: in {len(still)} of {len(own)} successful episodes progress "
                f"was {at:g} after every step, so nothing is known of their course. Likely cause: {_why_unmoved(at)}"
            )
    return lines


def _why_unmoved(progress: float) -> str:
    if progress <= 0.0:
        return "the field or hook that it is read from is never set, or cuts a share to a whole number"
    if progress >= 1.0:
        return "it is a flag rather than a share, or is read from what remains while nothing is to be done yet"
    return "it is told once an episode, and held"


def _other_rates(summaries: Sequence["EpisodeSummary"]) -> list[str]:
    """Agents that decide so much more, or less, often than their family's references that they cannot be compared."""
    references: dict[str, list[float]] = defaultdict(list)
    others: dict[tuple[str, str], list[float]] = defaultdict(list)
    for summary in summaries:
        if summary.cycle_s is not None and summary.off_rate:
            others[summary.traits.family, summary.key.agent].append(summary.cycle_s)
        elif summary.cycle_s is not None and summary.traits.reference:
            references[summary.traits.family].append(summary.cycle_s)
    lines = []
    for (family, agent), cycles in sorted(others.items()):
        usual = f"{median(references[family]):.3g} s" if references[family] else "another time"
        count = f"{len(cycles)} episodes are" if len(cycles) > 1 else "its episode is"
        lines.append(
            f"rate      family {family}: {agent} decides every {median(cycles):.3g} s, the references every {usual}: "
            f'{count} unscored. Give it a family and references of its own, or set resilience.rate_ratio = "any"'
        )
    return lines


def _origin(
    files: Sequence[Path],
    config: "ResilienceConfig",
    baseline: Path | None,
    mapping: str | None,
    value_model: str | None,
    written_s: float | None,
) -> "ReportOrigin":
    """What a report says of how it was made."""
    import msgspec

    from springback.dashboards.evaluation_report.report_origin import LEARNED, ReportOrigin, changed_settings
    from springback.stream_processors.resilience.config import ResilienceConfig

    settings = msgspec.to_builtins(config)
    return ReportOrigin(
        sources=["standard input" if str(source) == "-" else source.name for source in files],
        baseline=LEARNED if baseline is None else f"the baseline {baseline.name}",
        mapping=None if mapping is None else Path(mapping).name,
        value_model=None if value_model is None else Path(value_model).name,
        settings=settings,
        changed=changed_settings(settings, msgspec.to_builtins(ResilienceConfig())),
        written_s=written_s,
    )


def _date_of_writing(told: str | None) -> float | None:
    """The date that `SOURCE_DATE_EPOCH` sets, in seconds since 1970; None where it is not set."""
    if not told:
        return None
    if not (told.isascii() and told.isdigit() and int(told) <= _LATEST_DATE_S):
        message = f"SOURCE_DATE_EPOCH is {told!r}, expected whole seconds since 1970; set it so, or unset it"
        raise typer.BadParameter(message, param_hint="--report")
    return float(told)


def _write_report(directory: Path, evaluation: "Evaluation", origin: "ReportOrigin") -> Path:
    """Writes the report, with a progress bar on a terminal, and returns its page."""
    from rich.console import Console
    from rich.progress import Progress

    from springback.dashboards.evaluation_report.report_files import write_report
    from springback.dashboards.evaluation_report.report_numbers import report_numbers

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
            origin=origin,
            rejected_rows=len(evaluation.rejected),
            progress=show,
        )
        return write_report(directory, numbers, show)[0]

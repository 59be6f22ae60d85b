"""`springback compare`: whether a new version of the agents keeps what the old one could."""

import importlib.resources
from pathlib import Path
from typing import Annotated

import typer

from springback.deploy.commands.input_files import (
    LeftOut,
    MappingOption,
    RecordingsArgument,
    ValueModelOption,
    read_baseline_option,
    read_mapping_option,
    read_value_option,
    reading_progress,
)
from springback.deploy.commands.shared_options import SettingsOption, stream_settings
from springback.producers.whole_file import write_whole

_FAILED = 1
_SHIPPED_CONTRACT = "non_degradation.toml"


def compare(
    files: RecordingsArgument,
    baseline: Annotated[
        str, typer.Option("--baseline", metavar="VERSION", help="The version that sets what is expected.")
    ],
    candidate: Annotated[
        str, typer.Option("--candidate", metavar="VERSION", help="The version that may not be worse.")
    ],
    contract: Annotated[
        Path | None,
        typer.Option(
            "--contract",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="What may not get worse by how much (TOML). The one that comes with springback if not given.",
        ),
    ] = None,
    family: Annotated[
        list[str] | None, typer.Option(help="Compare this family alone. May be given more than once.")
    ] = None,
    baseline_file: Annotated[
        Path | None,
        typer.Option(
            "--baseline-file",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Score both versions by this exported baseline. Without it, one is learned from the reference "
            "episodes of the baseline version alone.",
        ),
    ] = None,
    json_file: Annotated[
        Path | None,
        typer.Option(
            "--json",
            metavar="FILE",
            dir_okay=False,
            allow_dash=True,
            help="Write the comparison as JSON; - is standard output, in place of the table.",
        ),
    ] = None,
    mapping: MappingOption = None,
    value_model: ValueModelOption = None,
    settings: SettingsOption = None,
) -> None:
    """Compare two versions of the agents, family by family: code 0 if the new one may replace the old, 1 if not.

    A family fails by a metric that got worse by more than its allowance, beyond what chance explains: its whole
    bootstrap interval lies beyond the allowance (`rule = "point"` in the contract looks at the difference alone). It
    fails too for want of evidence, unless the contract says otherwise: where fewer episodes than are needed ended in it
    or at one of its stress levels, and where more were aborted. Provisional episodes are no evidence. Code 2 is bad
    input. Record the same tasks with both versions for the sharpest answer.

    Example: springback compare --baseline 1.4 --candidate 1.5 --contract contract.toml nightly.frames.jsonl.gz
    """
    import msgspec
    from rich.console import Console

    from springback.deploy.comparison_view import comparison_view, failure_lines
    from springback.deploy.table_views import shown_name
    from springback.producers.recordings.any_format import RecordedFrames
    from springback.stream_processors.offline.comparison import ScoredVersion, compare_versions
    from springback.stream_processors.offline.comparison_contract import load_contract
    from springback.stream_processors.offline.evaluation import evaluate_frames, learn_baseline
    from springback.stream_processors.offline.version_frames import frames_of_version, versions_in

    shipped = importlib.resources.files("springback.deploy").joinpath("contracts", _SHIPPED_CONTRACT)
    source = _SHIPPED_CONTRACT if contract is None else str(contract)
    rules = load_contract((shipped if contract is None else contract).read_bytes(), source)
    config = stream_settings(None, None, settings).resilience
    given = None if baseline_file is None else read_baseline_option(baseline_file, config, "--baseline-file")
    model = read_value_option(value_model)
    left_out = LeftOut(lambda line: typer.echo(line, err=True))
    chosen = read_mapping_option(mapping, files)
    with reading_progress(chosen is not None) as progress:
        frames = list(RecordedFrames(files, left_out, chosen, progress))
    left_out.finish()
    _check_versions(versions_in(frames), baseline, candidate)
    parts = [frames_of_version(frames, version) for version in (baseline, candidate)]
    learned = learn_baseline(parts[0], config, model=model) if given is None else given
    scored = []
    for part in parts:
        evaluation = evaluate_frames(part, config, learned, model=model)
        scored.append(ScoredVersion(evaluation.summaries, evaluation.windows))
    groups = _groups_to_compare(scored[0].groups(), family)
    _check_contract({name for name, _ in scored[0].groups()}, set(rules.families), source)
    comparison = compare_versions(
        *scored, groups=groups, contract=rules, versions=(baseline, candidate), config=config.aggregate
    )
    document = msgspec.json.format(msgspec.json.encode(comparison), indent=1)
    alone = str(json_file) == "-"
    if alone:
        typer.echo(document)
    else:
        Console().print(comparison_view(comparison))
    if json_file is not None and not alone:
        write_whole(json_file, document + b"\n")
    for line in failure_lines(comparison):
        typer.echo(line, err=True)
    typer.echo(shown_name(comparison.verdict), err=alone)
    if not comparison.passed:
        raise typer.Exit(_FAILED)


def _check_versions(known: list[str], baseline: str, candidate: str) -> None:
    for option, version in (("--baseline", baseline), ("--candidate", candidate)):
        if version not in known:
            there = ", ".join(repr(name) for name in known) or "no episode at all"
            message = f"the recordings have no episode of version {version!r}; they have {there}"
            raise typer.BadParameter(message, param_hint=option)
    if baseline == candidate:
        message = f"{candidate!r} is the baseline version itself"
        raise typer.BadParameter(message, param_hint="--candidate")


def _groups_to_compare(groups: set[tuple[str, str]], families: list[str] | None) -> set[tuple[str, str]]:
    known = {family for family, _ in groups}
    if unknown := [family for family in families or () if family not in known]:
        message = f"the baseline version has no episode of family {unknown[0]!r}; it has {', '.join(sorted(known))}"
        raise typer.BadParameter(message, param_hint="--family")
    return {group for group in groups if not families or group[0] in families}


def _check_contract(families: set[str], named: set[str], source: str) -> None:
    if unknown := sorted(named - families):
        message = f"{source} names family {unknown[0]!r}; the baseline version has {', '.join(sorted(families))}"
        raise typer.BadParameter(message, param_hint="--contract")

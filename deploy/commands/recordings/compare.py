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

_BREACH = 1
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
    """Compare two versions of the agents, family by family, and end with code 1 where a contract is broken.

    A breach is a metric that got worse by more than its allowance, beyond what chance explains: its whole bootstrap
    interval lies beyond the allowance (`rule = "point"` in the contract looks at the difference alone). Record the same
    tasks with both versions for the sharpest answer.

    Example: springback compare --baseline 1.4 --candidate 1.5 --contract contract.toml nightly.frames.jsonl.gz
    """
    import msgspec
    from rich.console import Console

    from springback.deploy.table_views import breach_line, version_table_view
    from springback.producers.recordings.any_format import RecordedFrames
    from springback.stream_processors.offline.comparison import (
        ScoredVersion,
        compare_versions,
        frames_of_version,
        versions_in,
    )
    from springback.stream_processors.offline.comparison_contract import load_contract
    from springback.stream_processors.offline.evaluation import evaluate_frames, learn_baseline

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
    _check_candidate(groups - scored[1].groups(), candidate)
    _check_contract({name for name, _ in scored[0].groups()}, set(rules.families), source)
    comparison = compare_versions(
        *scored, groups=groups, contract=rules, versions=(baseline, candidate), config=config.aggregate
    )
    if str(json_file) == "-":
        typer.echo(msgspec.json.format(msgspec.json.encode(comparison), indent=1))
    else:
        Console().print(version_table_view(comparison))
    if json_file is not None and str(json_file) != "-":
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(comparison), indent=1) + b"\n")
    for breach in comparison.breaches:
        typer.echo(breach_line(breach, comparison), err=True)
    if not comparison.passed:
        raise typer.Exit(_BREACH)


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


def _check_candidate(missing: set[tuple[str, str]], candidate: str) -> None:
    if missing:
        named = ", ".join(f"{family} ({method})" for family, method in sorted(missing))
        message = f"version {candidate!r} has no episode of {named}: record some, or choose others with --family"
        raise typer.BadParameter(message, param_hint="--candidate")


def _check_contract(families: set[str], named: set[str], source: str) -> None:
    if unknown := sorted(named - families):
        message = f"{source} names family {unknown[0]!r}; the baseline version has {', '.join(sorted(families))}"
        raise typer.BadParameter(message, param_hint="--contract")

"""`springback baseline export`, `import` and `unfreeze`: what a fleet has learned, as a file and back again."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from springback.deploy.commands.input_files import read_baseline_option
from springback.deploy.commands.shared_options import (
    BrokerOption,
    PrefixOption,
    SettingsOption,
    silence_kafka_clients,
    stream_settings,
)
from springback.producers.whole_file import write_whole

TimeoutOption = Annotated[
    float, typer.Option("--timeout", min=1.0, metavar="SECONDS", help="How long to wait for the workers.")
]

app = typer.Typer(
    name="baseline",
    help="Save what a fleet has learned to be normal to a file, and load it again.",
    no_args_is_help=True,
)


@app.command("export")
def export_(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", dir_okay=False, show_default=False, help="The file to write.")
    ],
    broker: BrokerOption = None,
    prefix: PrefixOption = None,
    settings: SettingsOption = None,
) -> None:
    """Write the stage baselines of every family to one file.

    The file is what `worker --baseline`, `evaluate --baseline` and `baseline import` take.

    Example: springback baseline export clean.baseline
    """
    from springback.stream_processors.resilience.baseline.codec import load_baseline
    from springback.stream_processors.worker.baselines import export_baseline

    silence_kafka_clients()
    chosen = stream_settings(broker, prefix, settings)
    data = asyncio.run(export_baseline(chosen.kafka, prefix=chosen.prefix, grid=chosen.resilience.grid))
    families = load_baseline(data).families
    if not families:
        typer.echo("springback: nothing has been learned yet: no reference episode has ended in success", err=True)
        raise typer.Exit(1)
    write_whole(file, data)
    learned = ", ".join(
        f"{name} ({family.references} episodes, {len(family.counting_sums())} behind its alarm bounds)"
        for name, family in sorted(families.items())
    )
    typer.echo(f"Wrote {file}: {learned}")


@app.command("import")
def import_(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", exists=True, dir_okay=False, show_default=False, help="An exported baseline."),
    ],
    broker: BrokerOption = None,
    prefix: PrefixOption = None,
    frozen: Annotated[
        bool, typer.Option("--frozen", help="Keep it as it is: what the families do from now on teaches nothing.")
    ] = False,
    timeout_s: TimeoutOption = 60.0,
    settings: SettingsOption = None,
) -> None:
    """Put a file's baselines in the place of what the running workers have learned of those families.

    Families that the file does not name stay as they are. A worker must be running. What was frozen learns again after
    `springback baseline unfreeze`, or after an import without --frozen.

    Example: springback baseline import --frozen clean.baseline
    """
    from springback.stream_processors.worker.baselines import import_baseline

    silence_kafka_clients()
    chosen = stream_settings(broker, prefix, settings)
    read_baseline_option(file, chosen.resilience, "FILE")
    families = asyncio.run(
        import_baseline(
            chosen.kafka,
            file.read_bytes(),
            prefix=chosen.prefix,
            grid=chosen.resilience.grid,
            frozen=frozen,
            timeout_s=timeout_s,
        )
    )
    typer.echo(f"Imported{' and frozen' if frozen else ''}: {', '.join(families)}")


@app.command("unfreeze")
def unfreeze(
    family: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FAMILY]...", show_default=False, help="The families; all that are frozen if not given."
        ),
    ] = None,
    broker: BrokerOption = None,
    prefix: PrefixOption = None,
    timeout_s: TimeoutOption = 60.0,
    settings: SettingsOption = None,
) -> None:
    """Let families that `baseline import --frozen` has frozen learn again, from what they hold.

    A worker must be running.

    Workers that score by a file (`worker --baseline`, `up --baseline`) are told otherwise: start them without it.

    Example: springback baseline unfreeze navigation
    """
    from springback.stream_processors.worker.baselines import unfreeze_baseline

    silence_kafka_clients()
    chosen = stream_settings(broker, prefix, settings)
    families = asyncio.run(
        unfreeze_baseline(
            chosen.kafka, family or (), prefix=chosen.prefix, grid=chosen.resilience.grid, timeout_s=timeout_s
        )
    )
    typer.echo(f"Learning again: {', '.join(families)}" if families else "No family is frozen.")

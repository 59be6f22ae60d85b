"""`springback sources` and `springback schema`: what there is, and what a step frame looks like."""

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from springback.producers.sources import Source


def sources() -> None:
    """List all sources of steps (wrappers, live bridges, recording formats), mappings, value models and sinks.

    Each line says which package brings it, and whether what it needs is installed; below is how to install what is
    missing. Bridges run by `springback bridge`, recordings are read by `springback evaluate` and `springback replay`.

    Example: springback sources
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Column, Table

    from springback.producers.mapping.signal_mapping import shipped_mappings
    from springback.producers.sources import registry
    from springback.sinks.third_party import named_sinks
    from springback.stream_processors.value_models import named_value_models

    names = (Column(name, no_wrap=True) for name in ("source", "kind", "from"))
    table = Table(*names, "what it is", "installed")
    known = registry()
    for source in known.sources:
        installed = f"no: {', '.join(source.missing)}" if source.missing else "yes"
        table.add_row(*map(escape, (source.name, source.kind, source.distribution, source.about, installed)))
    Console().print(table)
    for line in _how_to_install([source for source in known.sources if source.missing]):
        typer.echo(line)
    typer.echo(f"Mappings that come with springback: {', '.join(shipped_mappings())}")
    models = named_value_models()
    named = (f"{name} ({distribution})" for name, distribution in models.distributions.items())
    typer.echo(f"Value models: {', '.join(named)}")
    sinks = named_sinks()
    written = (f"{name} ({distribution})" for name, distribution in sinks.distributions.items())
    typer.echo(f"Sinks: {', '.join(written)}")
    for fault in (*known.faults, *models.faults, *sinks.faults):
        typer.echo(f"{fault}", err=True)


def _how_to_install(missing: "Sequence[Source]") -> list[str]:
    """A line for each command that brings what sources lack: one for all extras of one distribution."""
    from springback.producers.install_hints import install_command

    extras: dict[str, dict[str, list[str]]] = {}
    lines = []
    for source in missing:
        if source.install:
            lines.append(f"To install what {source.name} needs: {source.install}")
        elif source.extra:
            extras.setdefault(source.distribution, {}).setdefault(source.extra, []).append(source.name)
    for distribution, named in extras.items():
        needing = [name for names in named.values() for name in names]
        need = f"{', '.join(needing)} need{'s' if len(needing) == 1 else ''}"
        lines.append(f"To install what {need}: {install_command([*named], distribution)}")
    return lines


def schema() -> None:
    """Print the JSON Schema of a step frame: what any client may send as JSON to the topic `steps`.

    Example: springback schema > step_frame.schema.json
    """
    from springback.deploy.cli import schema_text

    typer.echo(schema_text())

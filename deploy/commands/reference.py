"""`springback sources` and `springback schema`: what there is, and what a step frame looks like."""

import typer


def sources() -> None:
    """List all sources of steps (wrappers, live bridges, recording formats), mappings, value models and sinks.

    Each line says which package brings it, whether what it needs is installed, and how to install it. Bridges run by
    `springback bridge`, recordings are read by `springback evaluate` and `springback replay`.

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
        missing = [f"no: {', '.join(source.missing)}", source.how_to_install] if source.missing else ["yes"]
        installed = "; ".join(filter(None, missing))
        table.add_row(*map(escape, (source.name, source.kind, source.distribution, source.about, installed)))
    Console().print(table)
    typer.echo(f"Mappings that come with springback: {', '.join(shipped_mappings())}")
    models = named_value_models()
    named = (f"{name} ({distribution})" for name, distribution in models.distributions.items())
    typer.echo(f"Value models: {', '.join(named)}")
    sinks = named_sinks()
    written = (f"{name} ({distribution})" for name, distribution in sinks.distributions.items())
    typer.echo(f"Sinks: {', '.join(written)}")
    for fault in (*known.faults, *models.faults, *sinks.faults):
        typer.echo(f"{fault}", err=True)


def schema() -> None:
    """Print the JSON Schema of a step frame: what any client may send as JSON to the topic `steps`.

    Example: springback schema > step_frame.schema.json
    """
    import msgspec

    from springback.producers.contract.schema import frame_schema

    typer.echo(msgspec.json.format(msgspec.json.encode(frame_schema()), indent=2))

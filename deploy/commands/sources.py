"""`springback sources`: where steps can come from, and what of it is installed."""

import typer


def sources() -> None:
    """List all sources of steps: wrappers of environments, live bridges and recording formats.

    Each line says whether what it needs is installed, and how to install it. Bridges run by `springback bridge`,
    recordings are read by `springback evaluate` and `springback replay`.

    Example: springback sources
    """
    from rich.console import Console
    from rich.table import Column, Table

    from springback.producers.mapping.signal_mapping import shipped_mappings
    from springback.producers.sources import SOURCES

    names = (Column(name, no_wrap=True) for name in ("source", "kind"))
    table = Table(*names, "what it is", "installed", "to install")
    for source in SOURCES:
        missing = ", ".join(source.missing)
        table.add_row(
            source.name,
            source.kind,
            source.about,
            f"no: {missing}" if missing else "yes",
            source.how_to_install.replace("[", "\\[") if missing else "",
        )
    Console().print(table)
    typer.echo(f"Mappings that come with springback: {', '.join(shipped_mappings())}")

"""The options of the commands that speak with a Grafana."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from springback.sinks.grafana.connection import GrafanaConnection

GrafanaOption = Annotated[
    str,
    typer.Option(
        "--url",
        envvar="SPRINGBACK_GRAFANA",
        metavar="URL",
        help="Where Grafana is, with the sub-path that it may be served under.",
    ),
]

TokenFileOption = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="A file with the token of a service account; else it is taken from SPRINGBACK_GRAFANA_TOKEN.",
    ),
]

CaFileOption = Annotated[
    Path | None,
    typer.Option(
        "--ca-file",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Certificates to trust for https, in place of the system's.",
    ),
]

DEFAULT_GRAFANA = "http://127.0.0.1:3000"


def grafana_connection(url: str, token_file: Path | None, ca_file: Path | None) -> "GrafanaConnection":
    """The way to the Grafana that the options name.

    Raises:
        typer.BadParameter: no token was given, or none that can be one.
        GrafanaAddressError: the address is none.
    """
    from springback.sinks.grafana.connection import TOKEN_VARIABLE, GrafanaConnection

    told, where = os.environ.get(TOKEN_VARIABLE, ""), TOKEN_VARIABLE
    if token_file is not None:
        told, where = token_file.read_text(encoding="utf-8", errors="replace"), str(token_file)
    token = told.strip()
    if not token:
        message = (
            f"{where} holds no token. Make one in Grafana under Administration > Users and access > Service accounts, "
            f"and put it into {TOKEN_VARIABLE} or a file for --token-file"
        )
        raise typer.BadParameter(message)
    if not token.isascii() or not token.isprintable() or " " in token:
        message = f"what {where} holds is no token: expected one word of plain letters, digits and signs"
        raise typer.BadParameter(message)
    return GrafanaConnection(url, token, ca_file=ca_file)

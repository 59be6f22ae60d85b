"""`springback dashboards build` and `publish`: the Grafana dashboards as files, and in a Grafana."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from springback.deploy.commands.shared_options import (
    DEFAULT_GRAFANA,
    CaFileOption,
    GrafanaOption,
    TokenFileOption,
    grafana_connection,
)

if TYPE_CHECKING:
    from springback.dashboards.grafana_publisher import Published

app = typer.Typer(
    name="dashboards",
    help="Write the Grafana dashboards to files, or publish them to a Grafana.",
    no_args_is_help=True,
)

DataSourceOption = Annotated[
    str | None,
    typer.Option(
        "--data-source",
        metavar="UID",
        help="The data source that the panels ask; springback-prometheus if not given.",
    ),
]


@app.command()
def build(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            file_okay=False,
            help="The folder to write to, made where there is none. In a source tree dashboards/grafana if not given.",
        ),
    ] = None,
    data_source: DataSourceOption = None,
) -> None:
    """Write each dashboard to a file of its own, as JSON.

    Grafana takes them by provisioning (deploy/grafana) or by hand (Dashboards > New > Import).

    Example: springback dashboards build --out /var/lib/grafana/springback
    """
    from springback.dashboards.grafana_dashboards import DASHBOARD_FOLDER, write_dashboards
    from springback.dashboards.grafana_parts.panel_kinds import DATA_SOURCE_UID

    if out is None and not DASHBOARD_FOLDER.is_dir():
        message = "name the folder to write to with --out DIR: only a source tree has one for them"
        raise typer.BadParameter(message)
    for file in write_dashboards(out or DASHBOARD_FOLDER, data_source or DATA_SOURCE_UID):
        typer.echo(f"Wrote {file}")


@app.command()
def publish(
    url: GrafanaOption = DEFAULT_GRAFANA,
    folder: Annotated[
        str | None,
        typer.Option(
            "--folder",
            metavar="TITLE",
            help="The folder for the dashboards, made where there is none. Left where they are if not given.",
        ),
    ] = None,
    prometheus: Annotated[
        str | None,
        typer.Option(
            "--prometheus",
            metavar="URL",
            help="Make the data source too, or set it to this Prometheus, named as Grafana reaches it.",
        ),
    ] = None,
    data_source: DataSourceOption = None,
    token_file: TokenFileOption = None,
    ca_file: CaFileOption = None,
) -> None:
    """Put the dashboards into a Grafana. What is there already and has not changed is left alone.

    The token of a service account with the role Editor (Admin with --prometheus) is taken from
    SPRINGBACK_GRAFANA_TOKEN, or from --token-file; never from the command line, which every user can read.

    Example: springback dashboards publish --url http://127.0.0.1:3000 --folder Robots
    """
    from springback.dashboards.grafana_parts.panel_kinds import DATA_SOURCE_UID
    from springback.dashboards.grafana_publisher import publish_dashboards

    with grafana_connection(url, token_file, ca_file) as grafana:
        for done in publish_dashboards(
            grafana, folder=folder, data_source_uid=data_source or DATA_SOURCE_UID, prometheus=prometheus
        ):
            _tell(done)


def _tell(done: "Published") -> None:
    if done.outcome == "missing":
        typer.echo(
            f"springback: Grafana has no data source {done.name!r}, so all panels will stay empty. Name your "
            "Prometheus with --prometheus URL, or a data source that there is with --data-source UID",
            err=True,
        )
    else:
        typer.echo(f"{done.outcome:<9} {done.kind} {done.name}{f': {done.address}' if done.address else ''}")

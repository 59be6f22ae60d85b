"""`springback alerts export`: rules, configuration of Prometheus and Alertmanager, and the runbook, as files."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="alerts",
    help="Alert rules for Prometheus, their Alertmanager configuration and their runbook.",
    no_args_is_help=True,
)


@app.command("export")
def export_(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", file_okay=False, show_default=False, help="Where to write the files.")
    ],
    exporter: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST:PORT", show_default="127.0.0.1:9464", help="An exporter; can be repeated."),
    ] = None,
    worker: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST:PORT",
            show_default="127.0.0.1:9465",
            help="A worker's health endpoint (its setting health_port); can be repeated.",
        ),
    ] = None,
    judge: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST:PORT", show_default="none", help="A judge's health endpoint (health_port); can be repeated."
        ),
    ] = None,
    gateway: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST:PORT", show_default="none", help="A gateway; can be repeated."),
    ] = None,
    alertmanager: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST:PORT", show_default="127.0.0.1:9093", help="Alertmanager; can be repeated."),
    ] = None,
    runbook: Annotated[
        str, typer.Option(metavar="URL", show_default="DIR/runbook.md", help="What the alerts' links begin with.")
    ] = "",
    hasten: Annotated[
        float,
        typer.Option(
            min=1, max=1000, help="For a drill: divide every `for`, interval and wait by this (scrapes: down to 1 s)."
        ),
    ] = 1.0,
    force: Annotated[bool, typer.Option("--force", help="Replace files that say something else.")] = False,
) -> None:
    """Write rules, prometheus.yml, alertmanager.yml and the runbook to a directory, with your addresses in them.

    Check them with promtool check config DIR/prometheus.yml and amtool check-config DIR/alertmanager.yml; the first
    comment in each says how the server is started. Who has a Prometheus already takes the three files of rules and
    the scrape jobs.

    Example: springback alerts export monitoring --exporter robots-1:9464 --worker robots-1:9465 --worker robots-2:9465
    """
    from springback.deploy.alert_files import AlertFiles

    given = {
        "exporters": exporter,
        "workers": worker,
        "judges": judge,
        "gateways": gateway,
        "alertmanagers": alertmanager,
    }
    files = AlertFiles(
        **{name: tuple(addresses) for name, addresses in given.items() if addresses}, runbook=runbook, hasten=hasten
    )
    for path in files.write(directory, overwrite=force):
        typer.echo(path)

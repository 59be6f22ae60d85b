"""The typer application behind `springback`: every command under its name."""

from typing import Annotated

import typer

from springback.deploy.cli import version_text
from springback.deploy.commands import alerts, baseline, dashboards, dead_letters, reference
from springback.deploy.commands.log_options import with_log
from springback.deploy.commands.option_words import OwnWordsGroup
from springback.deploy.commands.recordings import check, compare, evaluate, fit_value, record, replay
from springback.deploy.commands.services import arrival, one_machine, stream, watching

_ABOUT = """Live resilience telemetry for embodied agents: from step events on Kafka to recovery costs in Prometheus.

Start with `springback demo`: it runs the whole pipeline on this machine and ends by itself."""

_ENDS = """Exit codes: 0 all went well; 1 a finding, or the run failed; 2 wrong usage or bad input; 130 after Ctrl-C
(0 for services such as `up`, `worker`, `export` and `live`, which run until then).

Kafka is at --broker, else at SPRINGBACK_BROKER, else at 127.0.0.1:9092. SPRINGBACK_DEBUG=1 shows tracebacks."""


def build_app() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(
        name="springback",
        cls=OwnWordsGroup,
        help=_ABOUT,
        epilog=_ENDS,
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_global_options)
    for panel, commands in {
        "On one machine": (with_log(one_machine.demo, quiet=True), with_log(one_machine.up, quiet=True)),
        "The parts": (
            with_log(arrival.bridge),
            with_log(arrival.gateway),
            with_log(stream.worker),
            with_log(stream.judge),
            with_log(watching.export),
            with_log(watching.live),
            stream.topics,
        ),
        "Recordings": (
            check.check,
            record.record,
            replay.replay,
            evaluate.evaluate,
            compare.compare,
            fit_value.fit_value,
        ),
        "Monitoring": (with_log(watching.annotate),),
        "Reference": (reference.sources, reference.schema),
    }.items():
        for command in commands:
            app.command(rich_help_panel=panel)(command)
    app.add_typer(dead_letters.app, rich_help_panel="The parts")
    app.add_typer(baseline.app, rich_help_panel="Recordings")
    app.add_typer(alerts.app, rich_help_panel="Monitoring")
    app.add_typer(dashboards.app, rich_help_panel="Monitoring")
    return app


def _print_version(wanted: bool) -> None:
    if not wanted:
        return
    typer.echo(version_text())
    raise typer.Exit


def _global_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    pass

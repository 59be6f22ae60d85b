"""`springback demo` and `springback up`: the whole pipeline on this machine."""

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from springback.deploy.commands.input_files import BaselineOption, read_baseline_option
from springback.deploy.commands.shared_options import (
    AlertmanagerOption,
    LivePortOption,
    LocalBrokerOption,
    MetricsPortOption,
    PrefixOption,
    SettingsOption,
    stream_settings,
)

if TYPE_CHECKING:
    from springback.deploy.local_stack import LocalStack

_CHECK_INTERVAL_S = 1.0
_TRIED_AT = "60"
"""Recorded seconds per second: the recording that comes with springback then takes two and a half minutes."""


def demo(
    source: Annotated[
        Literal["babyai", "habitat", "habitat-live"],
        typer.Option(
            help="Agents that play BabyAI tasks, recorded episodes of real habitat-sim, or, where habitat-sim is "
            "installed, an agent that walks in it now."
        ),
    ] = "babyai",
    broker: LocalBrokerOption = "embedded",
    episodes: Annotated[
        int, typer.Option(min=1, max=1000, help="Episodes per family and stress, of agents that play.")
    ] = 8,
    seed: Annotated[int, typer.Option(min=0, help="The same seed makes the same tasks.")] = 0,
    pace: Annotated[float, typer.Option(min=1.0, help="Steps per second of all agents together.")] = 240.0,
    metrics_port: MetricsPortOption = 0,
    live_port: LivePortOption = 0,
    settings: SettingsOption = None,
    keep: Annotated[
        bool | None,
        typer.Option(
            "--keep/--no-keep",
            help="Leave the live page and the metrics open at the end, until Ctrl-C. They stay if this is a terminal.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run everything on this machine: broker, worker, exporter, live page, and agents that are disturbed.

    Clean episodes come first, until there is a baseline, then rising stress. Meanwhile the live page and the metrics
    can be looked at; at the end there is a table of what recovering has cost. On a terminal the page then stays open
    until Ctrl-C; elsewhere, and with --no-keep, the demo ends by itself. Nothing is left running.

    Example: springback demo --source habitat --broker kafka
    """
    from rich.console import Console

    from springback.deploy.demo.run import run_demo

    run_demo(
        source,
        broker,
        Console(),
        episodes=episodes,
        seed=seed,
        steps_per_second=pace,
        metrics_port=metrics_port,
        live_port=live_port,
        settings=stream_settings(None, None, settings),
        keep=sys.stdout.isatty() if keep is None else keep,
    )


def up(
    broker: LocalBrokerOption = "embedded",
    prefix: PrefixOption = None,
    metrics_port: MetricsPortOption = 0,
    live_port: LivePortOption = 0,
    alertmanager: AlertmanagerOption = None,
    baseline: BaselineOption = None,
    settings: SettingsOption = None,
) -> None:
    """Run a broker, one worker, the exporter and the live page on this machine, until Ctrl-C. Nothing is left running.

    `embedded` is a small Kafka-compatible broker out of a Python package; `kafka` is a real Apache Kafka, which needs
    Java 17 and Maven; HOST:PORT is one that runs already. Free ports are chosen and printed, and the
    broker's is another at every start: tell it to other commands as SPRINGBACK_BROKER. For a Prometheus that is to read
    the worker's own metrics too, SPRINGBACK_HEALTH_PORT=9465 gives those a port that stays.

    Example: springback up --broker kafka --metrics-port 9464
    """
    from springback.deploy.local_stack import LocalStack, live_page_installed, live_page_line

    frozen = None if baseline is None else str(baseline.absolute())
    chosen = stream_settings(None, prefix, settings, frozen_baseline=frozen)
    if baseline is not None:
        read_baseline_option(baseline, chosen.resilience, "--baseline")  # before a broker is started in vain
    page = live_port if live_page_installed() else None
    if page is not None and alertmanager is not None:
        from springback.dashboards.live_page.alerts.alertmanager import AlertmanagerAddress

        AlertmanagerAddress.of(alertmanager)  # raises before a broker is started in vain
    typer.echo("Starting the broker, a worker, the exporter and the live page (about 10 s) ...")
    with LocalStack(broker, chosen, metrics_port=metrics_port, live_port=page, alertmanager=alertmanager) as stack:
        typer.echo(f"{live_page_line(stack)}\nKafka:   {stack.broker_address}")
        typer.echo(f"Metrics: {stack.metrics_url}\nLogs:    {stack.log_directory}")
        if stack.no_steps_yet():
            typer.echo(f"No steps have come yet. To try it, in another terminal:\n  {_try(stack, settings)}")
        typer.echo("Ctrl-C stops all of it.")
        try:
            while True:
                stack.check()
                time.sleep(_CHECK_INTERVAL_S)
        except KeyboardInterrupt:
            typer.echo("Stopping ...")


def _try(stack: "LocalStack", settings: Path | None) -> str:
    """A command that sends the recording that comes with springback to a stack, as it can be typed elsewhere."""
    from springback.producers.recordings import habitat_twins

    program = Path(sys.executable).with_name("springback")  # the other terminal may have another environment
    command = [str(program)] if program.is_file() else [sys.executable, "-P", "-m", "springback"]
    command += ["replay", "--speed", _TRIED_AT, "--broker", stack.broker_address]
    if stack.settings.prefix:
        command += ["--prefix", stack.settings.prefix]
    if settings is not None:
        command += ["--settings", str(settings.absolute())]
    with habitat_twins() as file:
        return shlex.join([*command, str(file)])

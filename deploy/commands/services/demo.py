"""`springback demo`: the whole pipeline on this machine, with a source, to look at."""

from typing import Annotated, Literal

import typer

from springback.deploy.commands.shared_options import (
    LivePortOption,
    LocalBrokerOption,
    MetricsPortOption,
    SettingsOption,
    stream_settings,
)


def demo(
    source: Annotated[
        Literal["babyai", "habitat"],
        typer.Option(help="Agents that play BabyAI tasks, or recorded episodes of real habitat-sim."),
    ] = "babyai",
    broker: LocalBrokerOption = "embedded",
    episodes: Annotated[int, typer.Option(min=1, max=1000, help="BabyAI episodes per family and stress.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="The same seed makes the same BabyAI tasks.")] = 0,
    pace: Annotated[float, typer.Option(min=1.0, help="Steps per second of all agents together.")] = 240.0,
    metrics_port: MetricsPortOption = 0,
    live_port: LivePortOption = 0,
    settings: SettingsOption = None,
) -> None:
    """Run everything on this machine: broker, worker, exporter, live page, and agents that are disturbed.

    Clean episodes come first, until there is a baseline, then rising stress. Meanwhile the live page and the metrics
    can be looked at; at the end there is a table of what recovering has cost. It ends by itself; nothing is left
    running, also after Ctrl-C.

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
    )

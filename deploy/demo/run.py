"""`springback demo`: the whole pipeline on one machine, with something to watch, and a table at the end."""

import math
from typing import Literal

import msgspec
from rich.console import Console

from springback.deploy.demo.pipeline import EXTERNAL_PREFIX, demo_run
from springback.producers.habitat.world import import_habitat
from springback.stream_processors.offline.tables import FamilyRow
from springback.stream_processors.settings import WorkerSettings

DemoSource = Literal["babyai", "habitat", "habitat-live"]

STEPS_PER_SECOND = 240.0

_SETTLING_S = 5.0

_TITLES: dict[DemoSource, str] = {
    "babyai": "BabyAI agents: the same tasks at every stress",
    "habitat": "Habitat twins: the same tasks clean and disturbed",
    "habitat-live": "habitat-sim, live: the same tasks at every stress",
}


def playing_s(source: DemoSource, episodes: int, steps_per_second: float) -> float:
    """About how long the agents of a demo play, in s, in tens.

    Args:
        source: who plays.
        episodes: per family and stress, of agents that play.
        steps_per_second: of all agents together.

    >>> playing_s("babyai", 8, 240.0), playing_s("habitat", 8, 480.0)
    (70.0, 40.0)
    """
    # Steps until learning is over, and per episode of the plan: of the family that takes longest, by all 8 agents; of
    # the one agent in habitat-sim.
    learning, each = {"babyai": (5200, 1140), "habitat": (14400, 0), "habitat-live": (1400, 210)}[source]
    steps = learning + each * episodes
    return math.ceil((steps / steps_per_second + _SETTLING_S) / 10.0) * 10.0


def run_demo(
    source: DemoSource,
    broker: str,
    console: Console,
    *,
    episodes: int = 8,
    seed: int = 0,
    steps_per_second: float = STEPS_PER_SECOND,
    metrics_port: int = 0,
    live_port: int = 0,
    settings: WorkerSettings | None = None,
    keep: bool = False,
) -> list[FamilyRow]:
    """Runs a demo to its end.

    Args:
        source: simulated BabyAI agents, recorded Habitat episodes, or an agent in habitat-sim.
        broker: `embedded`, `kafka`, or HOST:PORT of one that runs.
        console: where to say what happens.
        episodes: per family and stress, of agents that play.
        seed: of their tasks.
        steps_per_second: of all agents that play together; the default is slow enough to watch. Recorded ones are sent
            as much faster or slower than theirs.
        metrics_port: where the metrics are served on 127.0.0.1; 0 takes a free port.
        live_port: where the live page is, in the same way; without its extra the demo goes on without it.
        settings: of the worker; their prefix is replaced on a broker that is not our own.
        keep: leave everything up at the end, until Ctrl-C.

    Returns:
        The rows of the table that was shown.

    Raises:
        DeployError: something is missing, or the demo did not come to its end.
        MissingExtraError: the simulated agents are not installed.
        MissingHabitatError: habitat-sim is not installed.
    """
    if source == "babyai":
        from springback.deploy.demo.babyai import run_babyai  # needs an extra of its own
    elif source == "habitat-live":
        from springback.deploy.demo.habitat_live import run_habitat_live

        import_habitat("habitat_sim")  # before a broker is started in vain
    else:
        from springback.deploy.demo.habitat import TWINS_S, run_habitat

    chosen = settings or WorkerSettings()
    if broker not in ("embedded", "kafka") and not chosen.prefix:
        chosen = msgspec.structs.replace(chosen, prefix=EXTERNAL_PREFIX)
    with demo_run(broker, console, metrics_port, live_port, chosen) as demo:
        takes_s = playing_s(source, episodes, steps_per_second)
        console.print(f"The agents move now, for about {takes_s:.0f} s where the machine keeps up; then comes a table.")
        if source == "babyai":
            run_babyai(demo, episodes, seed, steps_per_second)
        elif source == "habitat-live":
            run_habitat_live(demo, episodes, seed, steps_per_second)
        else:
            run_habitat(demo, TWINS_S * STEPS_PER_SECOND / steps_per_second)
        table = demo.table()
        demo.progress.stop()
        demo.show(table, _TITLES[source], keeps=keep)
        if keep:
            demo.stay()
    return table

"""`springback record`: a recording of the BabyAI testbed, or of habitat-sim."""

from pathlib import Path
from typing import Annotated, Literal

import typer


def _stresses(text: str) -> list[float]:
    try:
        stresses = [float(part) for part in text.split(",")]
    except ValueError:
        stresses = []
    if not stresses or not all(0.0 <= stress <= 1.0 for stress in stresses):
        message = f"{text!r} is not a list of severities from 0 to 1 with commas between, such as 0,0.4,0.8"
        raise typer.BadParameter(message, param_hint="--stresses")
    return stresses


def record(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            dir_okay=False,
            help="The file to make, compressed where its name ends in .gz.",
            show_default=False,
        ),
    ],
    source: Annotated[
        Literal["babyai", "habitat"],
        typer.Option(
            help="Agents of the BabyAI testbed, or, where habitat-sim is installed, its follower in a made-up house."
        ),
    ] = "babyai",
    episodes: Annotated[int, typer.Option(min=1, help="Tasks per family; each is played once at every stress.")] = 20,
    family: Annotated[
        list[str] | None,
        typer.Option(
            help="A task family of BabyAI: navigation, manipulation, transportation or composite. May be given more "
            "than once; all if not given.",
        ),
    ] = None,
    stresses: Annotated[
        str, typer.Option(metavar="LIST", help="Severities in [0, 1]; 0 is clean, and the reference.")
    ] = "0,0.2,0.4,0.6,0.8,1",
    seed: Annotated[int, typer.Option(min=0, help="The same seed makes the same episodes.")] = 0,
    agent_version: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help="What the BabyAI agents' version is called; minigrid's if not given."),
    ] = None,
    replan_s: Annotated[
        float | None,
        typer.Option(
            "--replan",
            min=0.0,
            metavar="SECONDS",
            help="How long a new plan takes a BabyAI agent that has lost its own; 0.5 if not given.",
        ),
    ] = None,
) -> None:
    """Play agents, clean and under perturbations, into a recording that `evaluate` and `replay` take.

    No broker is needed. The time in it is the testbed's own simulated clock, or the simulator's.

    Examples: springback record --episodes 5 --stresses 0,0.8 babyai.frames.jsonl.gz

    springback record --source habitat house.frames.jsonl.gz
    """
    if file.exists():
        message = f"{file} exists already; remove it or choose another name"
        raise typer.BadParameter(message, param_hint="FILE")
    if source == "habitat":
        from springback.producers.habitat_testbed.house_play import record_house

        for name, value in (("--family", family), ("--agent-version", agent_version), ("--replan", replan_s)):
            if value is not None:
                message = "it is one of the BabyAI testbed's; leave it out, or choose --source babyai"
                raise typer.BadParameter(message, param_hint=name)
        house = record_house(file, episodes=episodes, stresses=_stresses(stresses), seed=seed)
        typer.echo(f"Recorded {house.episodes} episodes ({house.steps} steps) in {house.path}")
        return
    from springback.producers.babyai_testbed.recording import record as record_testbed
    from springback.producers.babyai_testbed.simulated_time import CostModel
    from springback.producers.babyai_testbed.tasks import TASK_FAMILIES

    families = list(dict.fromkeys(family or TASK_FAMILIES))
    if unknown := [name for name in families if name not in TASK_FAMILIES]:
        message = f"{unknown[0]!r} is not one of {', '.join(TASK_FAMILIES)}"
        raise typer.BadParameter(message, param_hint="--family")
    made = record_testbed(
        file,
        episodes=episodes,
        families=families,
        stresses=_stresses(stresses),
        seed=seed,
        version=agent_version,
        costs=CostModel() if replan_s is None else CostModel(replan_s=replan_s),
    )
    typer.echo(f"Recorded {made.episodes} episodes ({made.successes} successes, {made.steps} steps) in {made.path}")

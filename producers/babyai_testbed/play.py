"""Plays one task step by step into an emitter, through the Gymnasium wrapper that any environment would use."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import minigrid
import numpy as np
from minigrid.core.actions import Actions

from springback.producers.babyai_testbed.agent import RecoveringAgent
from springback.producers.babyai_testbed.disturbances import make_disturbance
from springback.producers.babyai_testbed.simulated_time import CostModel, SimulatedClock
from springback.producers.babyai_testbed.tasks import Task
from springback.producers.babyai_testbed.world import TestbedWorld, make_level
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.environments.wrapper import Wrapper
from springback.producers.perturbations.kinds import attack_of
from springback.producers.perturbations.severity import KIND_OF, DisturbanceName, checked_severity

DEFAULT_START_S = 1_790_000_000.0
"""In the past, so that a worker that a recording is sent to does not take its times for those of a wrong clock."""

METHOD = "babyai-bot"


@dataclass(frozen=True)
class PlayedStep:
    """A step that has been played and reported.

    Attributes:
        step: its number in the episode, from 0.
        time_s: the simulated instant of its end, s UTC epoch.
        cycle_time_s: the simulated time it took, s.
        signals: what the world's info says of it; see `TestbedWorld`.
        replanned: why the agent planned from scratch in it; empty where it did not.
        outcome: the episode's outcome with its last step, None before.
    """

    step: int
    time_s: float
    cycle_time_s: float
    signals: dict[str, Any]
    replanned: str
    outcome: str | None


def play(
    task: Task,
    emitter: StepEmitter,
    *,
    episode: str,
    agent: str | None = None,
    stress: float = 0.0,
    disturbance: DisturbanceName | None = None,
    start_s: float = DEFAULT_START_S,
    clock: SimulatedClock | None = None,
    costs: CostModel | None = None,
    version: str | None = None,
) -> Generator[PlayedStep]:
    """Plays a task into an emitter, a step for each item that is taken; the arguments alone decide what is reported.

    A generator that is closed early ends its episode as aborted. Steps of several plays may be taken in any order.

    Args:
        task: what is to be done.
        emitter: where the steps go.
        episode: id of the episode, unique for its agent in the emitter's session.
        agent: id of the agent, the producer's by default.
        stress: severity of the disturbance in [0, 1]; 0 is a clean run, which is marked as a reference.
        disturbance: its name; needed when there is stress.
        start_s: the simulated instant at which the episode starts, s UTC epoch.
        clock: the clock to use, and to move on, in place of a new one at `start_s`.
        costs: what planning and looking take.
        version: of the agent; minigrid's if None, for its bot is part of minigrid.

    Raises:
        ValueError: the stress is outside [0, 1], there is stress and no disturbance, or none of that name.
    """
    clean = checked_severity(stress) == 0.0
    if not clean and disturbance is None:
        message = f"stress {stress} needs a disturbance: {', '.join(KIND_OF)}"
        raise ValueError(message)
    name = None if clean else disturbance
    disturbs = make_disturbance(name, stress, task.seed)
    kinds = [] if name is None else [KIND_OF[name]]
    time = SimulatedClock(start_s) if clock is None else clock
    world = TestbedWorld(make_level(task.level_id, task.step_limit), disturbs, time)
    reported = Wrapper(
        world,
        emitter,
        family=task.family,
        agent=agent,
        clock=time,
        episode=episode,
        task=task.task_id,
        method=METHOD,
        version=minigrid.__version__ if version is None else version,
        reference=clean,
        stress=stress,
        perturbation=kinds[0] if kinds else "none",
        perturbation_name=name or "",
        magnitude=stress,
        attack=attack_of(kinds),
    )
    return _steps(task, world, reported, time, CostModel() if costs is None else costs)


def _steps(
    task: Task, world: TestbedWorld, reported: Wrapper, clock: SimulatedClock, costs: CostModel
) -> Generator[PlayedStep]:
    try:
        reported.reset(seed=task.seed)
        agent = RecoveringAgent(world.unwrapped, costs, np.random.default_rng([task.seed, 1]))
        world.attach(agent)
        step, ended = 0, False
        while not ended:
            decision = agent.decide()
            clock.advance(decision.planning_s + decision.perception_s)
            reported.report(
                mode=decision.mode,
                planning_s=decision.planning_s,
                perception_s=decision.perception_s,
                action=Actions(decision.action).name,
                **({"feedback": decision.remark} if decision.remark else {}),
            )
            _, _, terminated, truncated, info = reported.step(decision.action)
            ended = terminated or truncated
            outcome = ("success" if info["success"] else "failure" if terminated else "timeout") if ended else None
            yield PlayedStep(step, clock(), info["cycle_time_s"], info, decision.remark, outcome)
            step += 1
    finally:
        reported.close()

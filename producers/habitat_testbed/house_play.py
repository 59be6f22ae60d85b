"""Lets habitat-sim's own greedy follower walk through a made-up house, clean and disturbed: a live source of twins.

habitat-sim builds the house of its own cubes and makes a navmesh of it; it needs no scene, no renderer and no screen.
Every task is played clean, and then again at every stress with one kind of disturbance, so that twins are compared. The
agent is the simulator's `GreedyGeodesicFollower`, which knows where it is and where the goal is: what disturbs it costs
it steps. Its planning is measured, so that alone differs from run to run; the clock is the simulator's. All of it is
ours.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Optional

import numpy as np

from springback.producers.emitter.new_recording import NewRecording
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.errors import ProducerError
from springback.producers.habitat.metrics import HabitatReading
from springback.producers.habitat.watch import watch
from springback.producers.habitat.world import HABITAT_SIM_BY_CONDA, import_habitat, snapped
from springback.producers.habitat_testbed.house import Box, HousePlan, HouseTask, plan_house
from springback.producers.perturbations.habitat import disturbed
from springback.producers.perturbations.navigation import DisturbanceName

FAMILY = "navigation"
METHOD = "greedy-geodesic"
PRODUCER = "habitat-house"
STRESSES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
KINDS: tuple[DisturbanceName, ...] = ("action_drop", "heading_kick", "goal_move")
"""What there is to disturb: the agent has no sensors, and is told nothing."""
STEP_S = 0.5
"""How long a step takes by the simulator's clock, s."""
MOST_STEPS = 400
BETWEEN_EPISODES_S = 5.0
START_S = 1_790_000_000.0
"""When a recording begins, s UTC epoch: in the past, so that a worker does not take its times for a wrong clock's."""

_STOP_M = 0.15
_READING = HabitatReading(simulated_time=True)


class HouseRun(NamedTuple):
    """An episode that is to be played: a task, the stress, and what makes it; None at stress 0."""

    task: HouseTask
    stress: float
    kind: Optional[DisturbanceName]


def plan_runs(plan: HousePlan, tasks: int, stresses: Sequence[float] = STRESSES, seed: int = 0) -> list[HouseRun]:
    """Every task at every stress, in the order of the stresses; a task meets one kind of disturbance, in turn.

    Args:
        plan: the house.
        tasks: how many tasks.
        stresses: severities in [0, 1]; 0 is clean.
        seed: of the tasks.
    """
    made = list(plan.tasks(tasks, seed))
    return [
        HouseRun(task, stress, KINDS[int(task.episode) % len(KINDS)] if stress else None)
        for stress in sorted(set(stresses))
        for task in made
    ]


class HouseClock:
    """The time of one session by the simulator's clock, s UTC epoch; call it to read it."""

    def __init__(self, simulator: Any, start_s: float) -> None:
        self._simulator = simulator
        self._ahead_s = start_s - simulator.get_world_time()

    def __call__(self) -> float:
        """The current time."""
        return float(self._ahead_s + self._simulator.get_world_time())

    def pause(self, duration_s: float) -> None:
        """Lets time pass in which nothing moves."""
        self._ahead_s += duration_s


@contextmanager
def open_house(plan: HousePlan) -> Iterator[Any]:
    """A `habitat_sim.Simulator` with the house and its navmesh in it, for as long as the context is open.

    Raises:
        MissingHabitatError: habitat-sim is not installed.
        ProducerError: the simulator made no navmesh of the house.
    """
    habitat_sim = import_habitat("habitat_sim")
    backend = habitat_sim.SimulatorConfiguration()
    backend.scene_id, backend.enable_physics, backend.random_seed = "NONE", True, plan.seed
    agent = habitat_sim.AgentConfiguration(sensor_specifications=[])
    simulator = habitat_sim.Simulator(habitat_sim.Configuration(backend, [agent]))
    try:
        for number, box in enumerate([plan.floor, *plan.obstacles]):
            _build(habitat_sim, simulator, f"{plan.name}-{number}", box)
        settings = habitat_sim.NavMeshSettings()
        settings.set_defaults()
        settings.include_static_objects = True
        if not simulator.recompute_navmesh(simulator.pathfinder, settings):
            needed = f"it needs habitat-sim 0.3 with Bullet: {HABITAT_SIM_BY_CONDA}"
            message = f"habitat-sim made no navmesh of {plan.name}; {needed}"
            raise ProducerError(message)
        yield simulator
    finally:
        simulator.close()


def play_run(
    run: HouseRun, simulator: Any, plan: HousePlan, emitter: StepEmitter, *, seed: int = 0
) -> Generator[int, None, None]:
    """Plays an episode into an emitter, a step for each item that is taken.

    A generator that is closed early ends its episode as aborted.

    Args:
        run: what is to be played.
        simulator: the house's own, of `open_house`; it is where the last episode left it, and is used by one at a time.
        plan: the house.
        emitter: where the steps go, as those of the agent that it is the producer of.
        seed: of the disturbances.

    Yields:
        the number of the step.

    Raises:
        ProducerError: a start or a goal is not on the navmesh.
    """
    habitat_sim = import_habitat("habitat_sim")
    start, goal = (_on_floor(simulator, plan, place) for place in (run.task.start, run.task.goal))
    state = simulator.get_agent(0).get_state()
    half = math.radians(run.task.heading_deg) / 2
    state.position, state.rotation = np.array(start, np.float32), [0.0, math.sin(half), 0.0, math.cos(half)]
    simulator.get_agent(0).set_state(state)
    loop = watch(
        disturbed(simulator, run.stress, seed=seed, kinds=[run.kind or KINDS[0]]),
        emitter,
        family=FAMILY,
        agent=emitter.producer,
        reading=_READING,
        max_steps=MOST_STEPS,
        method=METHOD,
        version=habitat_sim.__version__,
    )
    loop.begin_episode(goals=[goal], scene=plan.name, episode=run.task.episode)
    follower = simulator.make_greedy_follower(0, _STOP_M, stop_key="stop")
    try:
        for step in range(MOST_STEPS):
            began_s = time.perf_counter()
            try:
                action = follower.next_action_along(np.array(loop.goals[0], np.float32))
            except habitat_sim.errors.GreedyFollowerError:  # it sees no way: the agent has failed
                loop.end_episode("failure")
                return
            loop.report(planning_s=time.perf_counter() - began_s)
            if action == "stop":
                loop.stop_episode()
            else:
                loop.step(action, STEP_S)
            yield step
            if action == "stop":
                return
    finally:
        loop.end_episode("aborted")  # one that has ended stays as it is


@dataclass(frozen=True)
class HouseRecording:
    """What a recording holds."""

    path: Path
    episodes: int
    steps: int


def record_house(
    path: str | os.PathLike[str],
    *,
    episodes: int = 20,
    stresses: Sequence[float] = STRESSES,
    seed: int = 0,
    frame_steps: int = 64,
) -> HouseRecording:
    """Plays so many tasks at every stress into a file.

    Args:
        path: the file to make, JSON Lines, compressed when its name ends in `.gz`.
        episodes: how many tasks; each is played once at every stress.
        stresses: severities in [0, 1]; 0 is clean.
        seed: of the house, its tasks and the disturbances.
        frame_steps: steps per frame at most; an episode's end begins a new frame too.

    Raises:
        FileExistsError: there is such a file already.
        ValueError: a stress is outside [0, 1].
        MissingHabitatError: habitat-sim is not installed.
        PublishError: the file could not be written.
    """
    recording = NewRecording(path, producer=PRODUCER, seed=seed, frame_steps=frame_steps)
    plan = plan_house(seed)
    runs = plan_runs(plan, episodes, stresses, seed)
    steps = 0
    with open_house(plan) as simulator:
        clock = HouseClock(simulator, START_S)
        with recording.emitter(clock) as emitter:
            for run in runs:
                for step in play_run(run, simulator, plan, emitter, seed=seed):
                    steps += 1
                    if (step + 1) % frame_steps == 0:
                        recording.cut(emitter)
                recording.cut(emitter)
                clock.pause(BETWEEN_EPISODES_S)
    return HouseRecording(recording.path, len(runs), steps)


def _build(habitat_sim: Any, simulator: Any, name: str, box: Box) -> None:
    """Puts a box into the simulator, whose own cube reaches from -1 to 1 on every axis: the scale is half a size."""
    templates = simulator.get_object_template_manager()
    template = templates.get_template_by_handle(templates.get_template_handles("cubeSolid")[0])
    template.scale = np.array(box.half)
    templates.register_template(template, name)
    made = simulator.get_rigid_object_manager().add_object_by_template_handle(name)
    made.translation = np.array(box.centre)
    made.motion_type = habitat_sim.physics.MotionType.STATIC


def _on_floor(simulator: Any, plan: HousePlan, place: Sequence[float]) -> list[float]:
    found = snapped(simulator, place)
    if found is None:
        message = f"{place} in {plan.name} is not on its navmesh; the house of another seed may do (--seed)"
        raise ProducerError(message)
    return found

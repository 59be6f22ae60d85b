"""Turns Habitat into a producer of step events: one line for the emitter, one around the environment.

    emitter = StepEmitter(KafkaPublisher("kafka:9092"), producer="habitat-1")
    env = watch(habitat.Env(config), emitter, family="pointnav")

`watch` takes a `habitat.Env`, habitat-lab's Gym-style environments (`habitat.gym.make_gym_from_config`, an `RLEnv`),
its `VectorEnv`, and a bare `habitat_sim.Simulator`, and gives back what is used in its place. What each signal is read
from stands in `signals` and `metrics`. Neither habitat-lab nor habitat-sim is imported here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.habitat.metrics import DEFAULT_READING, HabitatReading, read_metrics
from springback.producers.habitat.proxy import (
    NOTE_KEY,
    DisturbanceNote,
    WatchedEnv,
    described,
    note_of,
    own_action,
    own_observations,
)
from springback.producers.habitat.reporter import EpisodeStart, HabitatReporter
from springback.producers.habitat.signals import ActionWord, Pose, action_word, names_in_order
from springback.producers.habitat.simulator_loop import SimulatorLoop
from springback.producers.habitat.vector_env import WatchedVectorEnv
from springback.producers.habitat.world import (
    bearing_by_sensors,
    clearance_m,
    core_env,
    pose_by_sensors,
    pose_of,
    way_to,
    with_collision,
)


def watch(
    env: Any,
    emitter: StepEmitter,
    *,
    family: str,
    agent: str | None = None,
    agent_id: int | None = None,
    reading: HabitatReading = DEFAULT_READING,
    action_names: Sequence[str] = (),
    max_steps: int | None = None,
    clock: Callable[[], float] | None = None,
    timer: Callable[[], float] = time.perf_counter,
    **traits: Any,
) -> Any:
    """Has all episodes of a Habitat environment reported, and changes nothing of what the environment does.

    Args:
        env: a `habitat.Env`, a Gym-style environment of habitat-lab, a `VectorEnv` or a `habitat_sim.Simulator`.
        emitter: where the steps go; it stays open when the environment is closed.
        family: the task family of the episodes.
        agent: id of the agent; the producer's by default, and `habitat-1#2` for a second environment on one emitter.
            The environments of a vector have this name and their number.
        agent_id: which of several agents is meant, by Habitat's number; 0 by default. Each is watched by a `watch` of
            its own, around what the one before gave back: on one emitter, where the id is then `habitat-1-0` and so on
            unless `agent` says another, or each on its own. Their episodes have the same `task`.
        reading: how signals are read.
        action_names: names by index, where the environment cannot be asked for them.
        max_steps: the step limit, where the environment cannot be asked: it tells a time-out from a failure.
        clock: gives the instant of a step, s UTC epoch; the emitter's own clock by default.
        timer: measures planning time, s.
        **traits: other fields of `EpisodeHeader` that hold for every episode, such as `method` or `version`.

    Returns:
        A `WatchedHabitatEnv`, a `WatchedGymEnv`, a `WatchedVectorEnv` or a `SimulatorLoop`, to be used in place of the
        environment.

    Raises:
        TypeError: it is none of these.
    """
    base = emitter.producer if agent is None else agent
    number = agent_id or 0
    numbered = "" if agent_id is None or agent is not None else f"-{agent_id}"

    def reporter(name: str = base) -> HabitatReporter:
        return HabitatReporter(
            emitter,
            family=family,
            agent=name + numbered,
            reading=reading,
            clock=clock,
            timer=timer,
            max_steps=max_steps,
            lent=agent is None,
            **traits,
        )

    if hasattr(env, "num_envs") and not hasattr(env, "async_step_at"):
        message = (
            f"springback.watch is for Habitat, and {type(env).__name__} is a vector of Gymnasium environments: use "
            "springback.VectorWrapper"
        )
        raise TypeError(message)
    if hasattr(env, "async_step_at"):
        return WatchedVectorEnv(env, [reporter(f"{base}-{i}") for i in range(env.num_envs)], action_names, number)
    if hasattr(env, "pathfinder") and hasattr(env, "get_agent") and hasattr(env, "step"):
        return SimulatorLoop(env, reporter(), number)
    if hasattr(env, "get_metrics") and hasattr(env, "episode_over"):
        return WatchedHabitatEnv(env, reporter(), number)
    if hasattr(env, "reset") and hasattr(env, "step"):
        return WatchedGymEnv(env, reporter(), action_names, number)
    message = (
        f"cannot watch a {type(env).__name__}: expected a habitat.Env, a Gym-style environment of habitat-lab, its "
        "VectorEnv, or a habitat_sim.Simulator"
    )
    raise TypeError(message)


class WatchedHabitatEnv(WatchedEnv):
    """A `habitat.Env` whose episodes are reported."""

    def reset(self, *args: Any, **kwargs: Any) -> Any:
        """Resets the environment; an episode that is running ends as aborted."""
        self._reporter.abort()
        observations = self._watched.reset(*args, **kwargs)
        self._reporter.observed()
        return observations

    def step(self, action: Any, **kwargs: Any) -> Any:
        """Takes a step and reports it.

        Raises:
            SignalError: nothing says the progress.
        """
        reporter, env, number = self._reporter, self._watched, self._agent_id
        reporter.acted()
        word = _word(own_action(action, number), env, reporter.reading)
        start = None if reporter.running else _start(env, reporter.reading, number)
        began = Situation.of(env, number)
        observations = env.step(action, **kwargs)
        note = env.perturbation_note() if hasattr(env, "perturbation_note") else {}
        _report(reporter, start, env, env.get_metrics(), word, note_of({NOTE_KEY: note}, number), began)
        if env.episode_over:
            reporter.end(_limited(env))
        reporter.observed()
        return observations


class WatchedGymEnv(WatchedEnv):
    """A Gym-style environment of habitat-lab whose episodes are reported; steps of four or of five parts."""

    _own = WatchedEnv._own | {"_name_of", "_first"}

    def __init__(
        self, watched: Any, reporter: HabitatReporter, action_names: Sequence[str] = (), agent_id: int = 0
    ) -> None:
        super().__init__(watched, reporter, agent_id)
        self._name_of = names_in_order(action_names) if action_names else None
        self._first: tuple[Any, Mapping[str, Any] | None] = (None, None)

    def reset(self, *args: Any, **kwargs: Any) -> Any:
        """Resets the environment; an episode that is running ends as aborted."""
        self._reporter.abort()
        result = self._watched.reset(*args, **kwargs)
        with_info = isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], Mapping)
        self._first = result if with_info else (result, None)
        self._reporter.observed()
        return result

    def step(self, action: Any, **kwargs: Any) -> Any:
        """Takes a step and reports it.

        Raises:
            SignalError: nothing says the progress.
        """
        reporter, core, number = self._reporter, core_env(self._watched), self._agent_id
        reporter.acted()
        word = _word(own_action(action, number), core, reporter.reading, self._name_of)
        start = None if reporter.running else self._start(core)
        began = Situation.of(core, number)
        result = self._watched.step(action, **kwargs)
        info = result[-1]
        pose = None if core else pose_by_sensors(own_observations(result[0], number))
        _report(reporter, start, core, info, word, note_of(info, number), began, pose)
        truncated = len(result) == 5 and bool(result[3]) and not result[2]
        if result[2] or truncated:
            reporter.end(True if truncated else _limited(core))
        reporter.observed()
        return result

    def _start(self, core: Any) -> EpisodeStart:
        if core is not None:
            return _start(core, self._reporter.reading, self._agent_id)
        observation, info = own_observations(self._first[0], self._agent_id), self._first[1]
        found = None if info is None else read_metrics(info, self._reporter.reading)
        episode = getattr(self._watched, "current_episode", None)
        named = episode() if callable(episode) else episode
        return described(
            named, found=found, pose=pose_by_sensors(observation), bearing_rad=bearing_by_sensors(observation)
        )


@dataclass(frozen=True)
class Situation:
    """Where an agent is, and what the simulator's clock says, s; None where there is no simulator to ask."""

    agent_id: int
    pose: Pose | None
    time_s: float | None

    @classmethod
    def of(cls, core: Any, agent_id: int) -> Situation:
        """What it is now in a `habitat.Env`."""
        if core is None:
            return cls(agent_id, None, None)
        return cls(agent_id, pose_of(core.sim, agent_id), float(core.sim.get_world_time()))


def _start(core: Any, reading: HabitatReading, agent_id: int) -> EpisodeStart:
    found = read_metrics(core.get_metrics(), reading)
    pose, episode = pose_of(core.sim, agent_id), core.current_episode
    places = [getattr(goal, "position", None) for goal in getattr(episode, "goals", None) or ()]
    known = [place for place in places if place is not None]
    way = way_to(core.sim, pose, known, reading.success_distance_m, agent_id)
    return described(episode, found=found, pose=pose, **way)


def _report(
    reporter: HabitatReporter,
    start: EpisodeStart | None,
    core: Any,
    metrics: Any,
    word: ActionWord,
    note: DisturbanceNote,
    began: Situation,
    pose: Pose | None = None,
) -> None:
    """Reports a step that has just been taken; `start` is that of an episode that begins with it."""
    reading = reporter.reading
    if start is not None:
        reporter.begin(start, note.traits)
    now = Situation.of(core, began.agent_id)
    near = None if now.pose is None else clearance_m(core.sim, now.pose.position, reading.clearance_m)
    passed_s = 0.0 if now.time_s is None or began.time_s is None else now.time_s - began.time_s
    found = read_metrics(metrics, reading)
    reporter.step(
        found if core is None else with_collision(found, core.sim, word),
        word,
        pose=now.pose or pose,
        before=began.pose,
        clearance_m=near,
        cycle_time_s=passed_s if reading.simulated_time and passed_s > 0.0 else None,
        feedback=note.feedback,
        realised_magnitude=note.realised_magnitude,
        same_goal=note.goal_moved,
    )


def _word(
    action: Any, core: Any, reading: HabitatReading, name_of: Callable[[int], str | None] | None = None
) -> ActionWord:
    task = getattr(core, "task", None)
    if name_of is None and hasattr(task, "get_action_name"):
        name_of = _names_of(task)
    return action_word(action, name_of, reading.mode)


def _names_of(task: Any) -> Callable[[int], str | None]:
    def name_of(index: int) -> str | None:
        try:
            return str(task.get_action_name(index))
        except ValueError:  # out of range: the step itself will say so
            return None

    return name_of


def _limited(core: Any) -> bool | None:
    """Whether a limit ended the episode: habitat-lab's task is still active then. None where it cannot be asked."""
    active = getattr(getattr(core, "task", None), "is_episode_active", None)
    return None if active is None else bool(active)

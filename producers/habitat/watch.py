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
from typing import Any

from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.habitat.metrics import DEFAULT_READING, HabitatReading, read_metrics
from springback.producers.habitat.proxy import (
    NOTE_KEY,
    WatchedEnv,
    described,
    note_of,
    own_action,
    own_observations,
)
from springback.producers.habitat.reporter import EpisodeStart, HabitatReporter
from springback.producers.habitat.sight import Sight, SightTaken, report_step, start_of, word_of
from springback.producers.habitat.signals import names_in_order
from springback.producers.habitat.simulator_loop import SimulatorLoop
from springback.producers.habitat.vector_env import WatchedVectorEnv
from springback.producers.habitat.world import bearing_by_sensors, core_env, pose_by_sensors


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
        word = word_of(own_action(action, number), env, reporter.reading)
        start = None if reporter.running else start_of(env, reporter.reading, number)
        look = SightTaken(env, reporter.reading, number, timed=reporter.reading.simulated_time)
        observations = env.step(action, **kwargs)
        note = env.perturbation_note() if hasattr(env, "perturbation_note") else {}
        found, sight = read_metrics(env.get_metrics(), reporter.reading), look.after()
        report_step(reporter, start, found, word, note_of({NOTE_KEY: note}, number), sight)
        if env.episode_over:
            reporter.end(sight.limited)
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
        reading = reporter.reading
        word = word_of(own_action(action, number), core, reading, self._name_of)
        start = None if reporter.running else self._start(core)
        look = None if core is None else SightTaken(core, reading, number, timed=reading.simulated_time)
        result = self._watched.step(action, **kwargs)
        info = result[-1]
        if look is None:
            sight = Sight(number, pose_by_sensors(own_observations(result[0], number)))
        else:
            sight = look.after()
        report_step(reporter, start, read_metrics(info, reading), word, note_of(info, number), sight)
        truncated = len(result) == 5 and bool(result[3]) and not result[2]
        if result[2] or truncated:
            reporter.end(True if truncated else sight.limited)
        reporter.observed()
        return result

    def _start(self, core: Any) -> EpisodeStart:
        if core is not None:
            return start_of(core, self._reporter.reading, self._agent_id)
        observation, info = own_observations(self._first[0], self._agent_id), self._first[1]
        found = None if info is None else read_metrics(info, self._reporter.reading)
        episode = getattr(self._watched, "current_episode", None)
        named = episode() if callable(episode) else episode
        return described(
            named, found=found, pose=pose_by_sensors(observation), bearing_rad=bearing_by_sensors(observation)
        )

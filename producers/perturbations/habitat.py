"""Disturbs Habitat: drops actions, kicks the heading, moves the goal, lets sensors drift, and rewords instructions.

    env = watch(disturbed(habitat.Env(config), severity=0.4, seed=7), emitter, family="pointnav")

It goes inside of `watch`, so that planning is timed and actions are reported as the agent meant them. Each episode's
header then carries stress, perturbation, attack and magnitude, each step's feedback says what acted on it, the first
time as the onset, and the end says how much there really was: of what had nothing to act on (noise without a sensor for
it, a goal without a place to go) nothing is said. For a vector, disturb each environment where it is made. Of several
agents one is disturbed, and the others act and see as they would. It imports nothing of Habitat.

What is disturbed is habitat-lab's navigation (a goal with a position, an agent that is a pose) or a bare simulator. An
instruction is reworded where an episode has one, in its text alone: an agent that reads `instruction_tokens` is told
what it always was, and a bare simulator has no instructions.
"""

from __future__ import annotations

import cmath
import copy
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from springback.producers.habitat.metrics import DISTANCE_KEYS
from springback.producers.habitat.proxy import NOTE_KEY, HabitatProxy, Note, described, own_action, own_observations
from springback.producers.habitat.signals import action_word
from springback.producers.habitat.world import core_env, geodesic_m, snapped
from springback.producers.perturbations.navigation import (
    DISTURBANCES,
    DisturbanceName,
    NavigationDice,
    StepDisturbance,
)
from springback.producers.perturbations.paraphrase import Paraphrase, paraphrase
from springback.producers.perturbations.sensor_noise import told_by_noisy_sensors

TRIES = 10
"""Places that are tried for a goal that moves; where none can be reached it stays."""


def disturbed(
    env: Any,
    severity: float,
    *,
    seed: int = 0,
    kinds: Sequence[DisturbanceName] = DISTURBANCES,
    agent_id: int = 0,
) -> DisturbedEnv | DisturbedSimulator:
    """The environment, disturbed with this severity.

    Args:
        env: a `habitat.Env`, a Gym-style environment of habitat-lab, or a `habitat_sim.Simulator`.
        severity: in [0, 1]; 0 leaves everything as it is, and marks episodes as references.
        seed: the same seed, task and severity give the same disturbances.
        kinds: which disturbances there are; all of them by default.
        agent_id: which of several agents is disturbed, by its number in the simulator.

    Raises:
        ValueError: the severity is outside [0, 1], or there is no such disturbance.
        TypeError: there is no `habitat.Env` behind it, and it is no simulator.
    """
    dice = NavigationDice(severity, seed=seed, kinds=kinds)
    if hasattr(env, "pathfinder") and hasattr(env, "get_agent"):
        return DisturbedSimulator(env, dice, agent_id)
    core = env if hasattr(env, "get_metrics") and hasattr(env, "current_episode") else core_env(env)
    if core is None:
        message = f"cannot disturb a {type(env).__name__}: expected a habitat.Env, one behind Gym, or a simulator"
        raise TypeError(message)
    return DisturbedEnv(env, core, dice, agent_id)


class _Disturbed(HabitatProxy):
    """What disturbs has dice, and a note of what it does."""

    _own = HabitatProxy._own | {"_dice", "_throw", "_acted", "_steps", "_told", "_agent_id"}
    _dice: NavigationDice
    _agent_id: int
    _throw: StepDisturbance
    _acted: Counter[DisturbanceName]
    _told: Paraphrase | None

    def __init__(self, watched: Any, dice: NavigationDice, agent_id: int = 0) -> None:
        super().__init__(watched)
        self._dice = dice
        self._agent_id = agent_id
        self._start("")

    def perturbation_note(self) -> dict[str, Any]:
        """Whose it is, the header's traits, the feedback of the last step, the magnitude so far, a move of the goal.

        The feedback says what acted on the step, with the first as the onset.
        """
        names = ", ".join(self._throw.acting)
        acted = self._acted + Counter(self._throw.acting)
        reworded = None if self._told is None else self._told.share
        return {
            "agent_id": self._agent_id,
            "traits": self._dice.traits(),
            "feedback": names and f"{'perturbed' if self._acted else 'onset'}: {names}",
            "realised_magnitude": self._dice.realised(acted, self._steps, reworded),
            "goal_moved": "goal_move" in self._throw.acting,
        }

    def _start(self, task: str) -> None:
        self._dice.begin(task)
        self._throw = StepDisturbance()
        self._acted, self._steps, self._told = Counter(), 0, None

    def _next(self) -> StepDisturbance:
        self._acted.update(self._throw.acting)
        self._throw = self._dice.throw()
        if self._told is not None and self._told.share > 0.0 and not self._steps:
            self._throw = replace(self._throw, acting=(*self._throw.acting, "paraphrase"))
        self._steps += 1
        return self._throw

    def _did_not(self, name: DisturbanceName) -> None:
        """Takes back what was thrown and could not be done."""
        self._throw = replace(self._throw, acting=tuple(acting for acting in self._throw.acting if acting != name))

    def _noisy(self, observations: Any) -> Any:
        """The observations, with those of the agent as its noisy sensors tell them."""
        if "sensor_noise" not in self._throw.acting:
            return observations
        own, number = own_observations(observations, self._agent_id), self._agent_id
        told = told_by_noisy_sensors(own, self._throw, self._dice, self._is_polar) if isinstance(own, Mapping) else {}
        if not told:
            self._did_not("sensor_noise")
            return observations
        if own is observations:
            return {**observations, **told}
        if number in observations:
            return {**observations, number: {**own, **told}}
        return {**observations, **{f"agent_{number}_{name}": value for name, value in told.items()}}

    def _is_polar(self, name: str) -> bool:
        """Whether a point goal sensor tells distance and bearing, in place of coordinates."""
        return True


class DisturbedEnv(_Disturbed):
    """A `habitat.Env`, or a Gym-style environment around one, that is disturbed.

    A dropped action takes no step of the environment, and nothing of its step limit: the last observation is given
    again with fresh images, and the measures are taken anew. Behind Gym the very first action is never dropped: only a
    step that was taken tells whether steps have four parts or five.
    """

    _own = _Disturbed._own | {"_core", "_observations", "_goals", "_instruction", "_parts"}

    def __init__(self, watched: Any, core: Any, dice: NavigationDice, agent_id: int = 0) -> None:
        super().__init__(watched, dice, agent_id)
        self._instruction: tuple[Any, Any] | None = None
        self._core = core
        self._observations: Any = {}
        self._goals: tuple[Any, list[Any]] | None = None
        self._parts = 0

    def reset(self, *args: Any, **kwargs: Any) -> Any:
        """Resets the environment; a goal that was moved and an instruction that was reworded are first put back."""
        self._put_back()
        result = self._watched.reset(*args, **kwargs)
        episode = self._core.current_episode
        self._start(described(episode).task)
        self._reword(episode)
        with_info = isinstance(result, tuple)
        self._observations = self._reworded(result[0] if with_info else result)
        return (self._observations, *result[1:]) if with_info else self._observations

    def step(self, action: Any, **kwargs: Any) -> Any:
        """Takes a step, disturbed."""
        core = self._core
        throw = self._next()
        number = self._agent_id
        if throw.kick_deg:
            state = core.sim.get_agent_state(number)
            heading = turned(state.rotation, throw.kick_deg)
            core.sim.set_agent_state(state.position, heading, number, reset_sensors=False)
        if throw.goal_moves and not self._move_goal():
            self._did_not("goal_move")
        gym_style = self._watched is not core
        dropped = throw.dropped and not self._is_spared(action)
        if throw.dropped and not dropped:
            self._did_not("action_drop")
        left = _of_others(action, number) if dropped else action
        if dropped and left is None:
            result = self._drop(action, gym_style)
        else:
            result = self._watched.step(left, **kwargs)
            self._parts = len(result)
        self._observations = result[0] if gym_style else result
        observations = self._noisy(self._observations)
        if not gym_style:
            return observations
        info = {**result[-1], NOTE_KEY: Note(self.perturbation_note())}
        return (observations, *result[1:-1], info)

    def close(self) -> None:
        """Puts back what was moved or reworded, and closes the environment."""
        self._put_back()
        super().close()

    def _is_spared(self, action: Any) -> bool:
        """Whether an action is carried out even where dice drop it: a stop, one of others, the first of a Gym's."""
        own = own_action(action, self._agent_id)
        if own is None or action_word(own, self._core.task.get_action_name).mode == "stop":
            return True
        return self._watched is not self._core and not self._parts

    def _drop(self, action: Any, gym_style: bool) -> Any:
        core = self._core
        fresh = core.sim.step(None)
        core.task.measurements.update_measures(
            episode=core.current_episode, action=action, task=core.task, observations=fresh
        )
        if gym_style:
            return self._observations, 0.0, *[False] * (self._parts - 3), core.get_metrics()
        return {**self._observations, **fresh}

    def _move_goal(self) -> bool:
        episode = self._core.current_episode
        measures = getattr(self._core.task.measurements, "measures", {})
        distances = [measure for name, measure in measures.items() if name in DISTANCE_KEYS]
        if any(getattr(measure, "_distance_to", None) == "VIEW_POINTS" for measure in distances):
            return False  # what is measured is the way to places from where the goal is seen: they would stay
        sim = self._core.sim
        here = sim.get_agent_state(self._agent_id).position
        old = [float(part) for part in episode.goals[0].position]
        place = place_near(old, self._dice, sim, here)
        if place is None:
            return False
        if self._goals is None:
            self._goals = (episode, episode.goals)
        moved = copy.copy(episode.goals[0])
        moved.position = place
        episode.goals = [moved]
        episode._shortest_path_cache = None  # habitat-lab would measure the way to the old goal for ever
        for measure in distances:
            if hasattr(measure, "_previous_position"):
                # It would tell the way to the old goal until the agent moves, and success with it.
                measure._previous_position = None
        self._forget_pictures()
        return True

    def _forget_pictures(self) -> None:
        """Has sensors that show the goal (ImageNav) look again: they keep a picture for as long as an episode lasts."""
        for sensor in self._sensors().values():
            if hasattr(sensor, "_current_image_goal"):
                sensor._current_episode_id = None

    def _sensors(self) -> Mapping[str, Any]:
        """The task's sensors by name."""
        sensors: Mapping[str, Any] = getattr(getattr(self._core.task, "sensor_suite", None), "sensors", {})
        return sensors

    def _is_polar(self, name: str) -> bool:
        sensors = self._sensors()
        names = (name, f"agent_{self._agent_id}_{name}")
        formats = [getattr(sensors[known], "_goal_format", "POLAR") for known in names if known in sensors]
        return "CARTESIAN" not in formats

    def _put_back(self) -> None:
        if self._goals is not None:
            episode, goals = self._goals
            episode.goals, self._goals = goals, None
            self._forget_pictures()
        if self._instruction is not None:
            episode, instruction = self._instruction
            episode.instruction, self._instruction = instruction, None

    def _reword(self, episode: Any) -> None:
        """Says the episode's instruction in other words, if it has one; habitat-lab's sensors then tell these."""
        given = getattr(episode, "instruction", None)
        text = getattr(given, "instruction_text", given)
        if "paraphrase" not in self._dice.kinds or not self._dice.severity or not isinstance(text, str) or not text:
            return
        self._told = paraphrase(text, self._dice.severity, seed=self._dice.seed)
        self._instruction = (episode, given)
        reworded: Any = self._told.text
        if text is not given:
            reworded = copy.copy(given)
            reworded.instruction_text = self._told.text
        episode.instruction = reworded

    def _reworded(self, observations: Any) -> Any:
        """The first observation, which was made before the instruction was reworded."""
        if self._told is None or not isinstance(observations, Mapping) or "instruction" not in observations:
            return observations
        said = observations["instruction"]
        told = {**said, "text": self._told.text} if isinstance(said, Mapping) else self._told.text
        return {**observations, "instruction": told if isinstance(said, (Mapping, str)) else said}


class DisturbedSimulator(_Disturbed):
    """A disturbed `habitat_sim.Simulator`. The loop around it says when episodes begin, and takes over moved goals."""

    def begin_disturbances(self, task: str) -> None:
        """Begins an episode of this task."""
        self._start(task)

    def moved_goals(self, goals: list[list[float]], agent_id: int = 0) -> list[list[float]]:
        """An agent's goals after the last step: those of the disturbed one may have moved, others' have not."""
        if not self._throw.goal_moves or agent_id != self._agent_id:
            return goals
        sim = self._watched
        here = sim.get_agent(agent_id).get_state().position
        place = place_near(goals[0], self._dice, sim, here)
        if place is None:
            self._did_not("goal_move")
        return goals if place is None else [place]

    def step(self, action: Any, dt: float = 1.0 / 60.0) -> Any:
        """Takes a step, disturbed. An action that is no mapping from agents to actions is agent 0's."""
        sim, number = self._watched, self._agent_id
        throw = self._next()
        if throw.kick_deg:
            agent = sim.get_agent(number)
            state = agent.get_state()
            state.rotation = turned(state.rotation, throw.kick_deg)
            agent.set_state(state, reset_sensors=False)
        many = isinstance(action, Mapping)
        if throw.dropped and number not in (action if many else (0,)):
            self._did_not("action_drop")
        if "action_drop" not in self._throw.acting:
            return self._noisy(sim.step(action, dt))
        others = {other: given for other, given in action.items() if other != number} if many else {}
        seen = dict(sim.step(others, dt)) if others else {}
        if not others:
            sim.step_physics(dt)
        own = {**(sim.get_sensor_observations(number) if number else sim.get_sensor_observations()), "collided": False}
        return self._noisy({**seen, number: own} if many else own)


def turned(rotation: Any, degrees: float) -> list[float]:
    """The rotation, turned to the left about the vertical: x, y, z and w, as Habitat takes them, of length 1."""
    half = math.radians(degrees) / 2
    x, y, z, w = (float(getattr(rotation, part)) for part in "xyzw")
    length = math.hypot(x, y, z, w)
    c, s = math.cos(half) / length, math.sin(half) / length
    return [c * x + s * z, c * y + s * w, c * z - s * x, c * w - s * y]


def place_near(old: Sequence[float], dice: NavigationDice, sim: Any, here: Sequence[float]) -> list[float] | None:
    """A place near an old one that can be reached from here; None where none was found, or there is no navmesh."""
    for _ in range(TRIES):
        away = cmath.rect(dice.at.within_m * math.sqrt(dice.places.random()), 2 * math.pi * dice.places.random())
        place = snapped(sim, [old[0] + away.real, old[1], old[2] + away.imag])
        if place is not None and math.isfinite(geodesic_m(sim, here, [place])):
            return place
    return None


def _of_others(action: Any, agent_id: int) -> Any:
    """An action of habitat-lab's without what this agent does; None where no other agent does anything.

    >>> both = {"action": ("agent_0_pick", "agent_1_base_velocity"), "action_args": {"agent_1_base_vel": [1.0, 0.0]}}
    >>> _of_others(both, 1), _of_others("turn_left", 0)
    ({'action': ('agent_0_pick',), 'action_args': {}}, None)
    """
    if not isinstance(action, Mapping) or not isinstance(action.get("action"), (tuple, list)):
        return None
    own = f"agent_{agent_id}_"
    names = tuple(name for name in action["action"] if not str(name).startswith(own))
    args = {name: value for name, value in (action.get("action_args") or {}).items() if not str(name).startswith(own)}
    if not names or len(names) == len(action["action"]):
        return None
    return {**action, "action": names, "action_args": args}

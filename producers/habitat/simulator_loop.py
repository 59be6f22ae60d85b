"""A bare `habitat_sim.Simulator` as a producer: it knows no episodes and no goals, so the agent's loop says them.

    loop = watch(simulator, emitter, family="navigation")
    loop.begin_episode(goals=[goal], scene="house_a.glb", episode="12")
    while (action := follower.next_action_along(goal)) != "stop":
        observations = loop.step(action)
    loop.stop_episode()

Distances are geodesic, by the simulator's own navmesh.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from springback.producers.errors import SignalError
from springback.producers.habitat.metrics import TaskReading
from springback.producers.habitat.proxy import NOTE_KEY, DisturbanceNote, WatchedEnv, note_of, own_action
from springback.producers.habitat.reporter import EpisodeStart, HabitatReporter
from springback.producers.habitat.signals import ActionWord, Pose, action_word
from springback.producers.habitat.world import (
    MissingNavmeshError,
    Surroundings,
    navmesh_of,
    pose_of,
    way_to,
)


class SimulatorLoop(WatchedEnv):
    """A simulator whose episodes are reported.

    A `reset` in the middle of an episode ends it as aborted; the step limit that `watch` was given ends it as timeout.
    """

    _own = WatchedEnv._own | {"_goals", "_surroundings", "_disturbed"}
    _goals: list[list[float]]

    def __init__(self, watched: Any, reporter: HabitatReporter, agent_id: int = 0) -> None:
        super().__init__(watched, reporter, agent_id)
        self._goals = []
        self._surroundings = Surroundings()
        self._disturbed = hasattr(watched, "perturbation_note")

    @property
    def goals(self) -> list[list[float]]:
        """The goals, m: any of them will do. Setting them moves them; the start's distance stays what it was."""
        return self._goals

    @goals.setter
    def goals(self, goals: Sequence[Sequence[float]]) -> None:
        if any(np.shape(goal) != (3,) for goal in goals):
            message = (
                f"goals are {goals!r}: expected a list of positions, each of x, y (up) and z in m; give a single one "
                "as [goal]"
            )
            raise SignalError(message)
        self._goals = [[float(part) for part in goal] for goal in goals]

    def begin_episode(
        self, *, goals: Sequence[Sequence[float]], episode: str, scene: str | None = None, **traits: Any
    ) -> None:
        """Begins an episode where the agent is now, after a `reset` for instance.

        Args:
            goals: positions, m; any of them will do.
            episode: id of the episode in its scene; that of a task, if it is taken more than once.
            scene: id of the scene; the simulator's by default.
            **traits: fields of `EpisodeHeader`, such as `instruction`, `stress` or `reference`.

        Raises:
            MissingHabitatError: habitat-sim is not installed.
            MissingNavmeshError: the simulator has no navmesh.
            SignalError: a goal is no position.
        """
        if navmesh_of(self._watched) is None:
            raise MissingNavmeshError
        self.goals = goals
        self._reporter.abort()
        where = getattr(self._watched, "curr_scene_name", "") if scene is None else scene
        pose = pose_of(self._watched, self._agent_id)
        way = way_to(self._watched, pose, self._goals, self._reporter.reading.success_distance_m, self._agent_id)
        distance_m, _ = self._look(pose)
        found = TaskReading(distance_m=distance_m, collided=False, success=False)
        start = EpisodeStart(scene=where, episode=episode, dataset=self._dataset(), found=found, pose=pose, **way)
        if hasattr(self._watched, "begin_disturbances"):
            self._watched.begin_disturbances(start.task)
        self._reporter.begin(start, {**self._note().traits, **traits})
        self._reporter.observed()

    def reset(self, *args: Any, **kwargs: Any) -> Any:
        """Resets the simulator; an episode that is running ends as aborted."""
        self._reporter.abort()
        return self._watched.reset(*args, **kwargs)

    def step(self, action: Any, *args: Any, **kwargs: Any) -> Any:
        """Takes a step and, where an episode is running, reports it.

        An action may be a mapping from agents to actions: that of the loop's own agent is reported. One that is no
        mapping is agent 0's.
        """
        reporter, sim = self._reporter, self._watched
        if not reporter.running:
            return sim.step(action, *args, **kwargs)
        reporter.acted()
        many = not isinstance(action, str) and isinstance(action, Mapping)
        word = self._word(own_action(action, self._agent_id))
        timed = reporter.reading.simulated_time
        began_s, before = sim.get_world_time() if timed else 0.0, pose_of(sim, self._agent_id)
        observations = sim.step(action, *args, **kwargs)
        if self._disturbed:
            self._goals = sim.moved_goals(self._goals, self._agent_id)
        by_agent = observations if many else {0: observations}
        passed_s = sim.get_world_time() - began_s if timed else None
        self._report(word, bool(by_agent.get(self._agent_id, {}).get("collided", False)), passed_s, before)
        if reporter.at_limit:
            reporter.finish("timeout")
        reporter.observed()
        return observations

    def stop_episode(self, success: bool | None = None) -> None:
        """Reports that the agent stops, a step that moves nothing, and ends the episode.

        Args:
            success: whether it has solved its task; by default, whether the goal is within `success_distance_m`.
        """
        if not self._reporter.running:
            return
        self._reporter.acted()
        self._report(ActionWord("stop", "stop", False), False, None, None, stopped=True, success=success)
        self._reporter.end()

    def end_episode(self, outcome: str) -> None:
        """Ends the episode with this outcome: success, failure, timeout or aborted."""
        self._reporter.finish(outcome)

    def _report(
        self,
        word: ActionWord,
        collided: bool,
        cycle_time_s: float | None,
        before: Pose | None,
        *,
        stopped: bool = False,
        success: bool | None = None,
    ) -> None:
        pose, note = pose_of(self._watched, self._agent_id), self._note()
        distance_m, near_m = self._look(pose)
        solved = stopped and distance_m < self._reporter.reading.success_distance_m
        self._reporter.step(
            TaskReading(
                distance_m=distance_m,
                collided=collided,
                stopped=stopped,
                success=solved if success is None else success,
            ),
            word,
            pose=pose,
            before=pose if before is None else before,
            clearance_m=near_m,
            cycle_time_s=cycle_time_s or None,  # a simulator without physics has no clock
            feedback=note.feedback,
            realised_magnitude=note.realised_magnitude,
            same_goal=True,  # the loop says its goals itself
        )

    def _look(self, pose: Pose) -> tuple[float, float | None]:
        """The way to the goals and the clearance, m."""
        return self._surroundings.look(self._watched, pose.position, self._goals, self._reporter.reading.clearance_m)

    def _note(self) -> DisturbanceNote:
        if not self._disturbed:
            return DisturbanceNote()
        return note_of({NOTE_KEY: self._watched.perturbation_note()}, self._agent_id)

    def _dataset(self) -> str:
        configuration = getattr(getattr(self._watched, "config", None), "sim_cfg", None)
        return str(getattr(configuration, "scene_dataset_config_file", ""))

    def _word(self, action: Any) -> ActionWord:
        """The action in words: the simulator's keys may be numbers, its agent knows the names."""
        known = self._watched.get_agent(self._agent_id).agent_config.action_space
        spec = known.get(action)
        return action_word(action if spec is None else spec.name, None, self._reporter.reading.mode)

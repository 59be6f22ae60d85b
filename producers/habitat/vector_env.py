"""habitat-lab's `VectorEnv` as a producer: one agent per environment.

It resets by itself: where a step is `done`, its info is the finished episode's, while its observation and
`current_episodes()` are already the next one's. So an episode is asked for its name before its first step, and its
last pose, which cannot be seen, is left out. An environment is asked for nothing but its episode: a call that fails
kills its process. Positions come from the `gps` or `localization_sensor` observations, if there are any. Environments
that are `instrumented` where they are made say all that their simulators know, the last pose too.

An episode is asked for twice. habitat-lab's Gym-style environments answer with its two ids alone, as a `BaseEpisode`;
then, and only then, they know the argument `all_info`, by which they tell the whole of it: its instruction, and the
distance at its start where the data set has it. Without that distance the start is recovered from the first step, less
what `distance_to_goal_reward` says that the step took off; without that measure too, progress counts from that step.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from springback.producers.habitat.metrics import read_metrics
from springback.producers.habitat.proxy import HabitatProxy, described, note_of, own_action, own_observations
from springback.producers.habitat.reporter import EpisodeStart, HabitatReport, HabitatReporter
from springback.producers.habitat.sight import Sight, report_step
from springback.producers.habitat.signals import NAVIGATION_ACTIONS, ActionWord, Pose, action_word, names_in_order
from springback.producers.habitat.world import bearing_by_sensors, pose_by_sensors

log = logging.getLogger(__name__)

DEAD_ERRORS = (EOFError, OSError)
"""What reading from, or writing to, an environment's process raises once it is dead."""


class _Slot:
    """One environment of the vector."""

    def __init__(self, reporter: HabitatReporter) -> None:
        self.reporter = reporter
        self.word = ActionWord("", None, False)
        self.pose: Pose | None = None
        self.bearing_rad: float | None = None
        self.start: EpisodeStart | None = None

    def see(self, observation: Any) -> None:
        """Takes in the observation that the agent gets next."""
        self.pose, self.bearing_rad = pose_by_sensors(observation), bearing_by_sensors(observation)
        self.reporter.observed()


class WatchedVectorEnv(HabitatProxy):
    """A `VectorEnv` whose episodes are reported.

    When an environment dies, its episode ends as aborted; the steps of the others are taken, read and reported before
    `step` or `wait_step` passes the error on.

    Args:
        watched: the `VectorEnv`.
        reporters: one for each environment.
        action_names: names by index; by default those of habitat-lab's navigation tasks, where the environments have
            those actions.
        agent_id: which of an environment's agents is reported.
    """

    _own = frozenset({"_watched", "_slots", "_paused", "_name_of", "_agent_id", "_told"})
    _slots: list[_Slot]
    _paused: list[tuple[int, _Slot]]
    _name_of: Callable[[int], str | None] | None
    _agent_id: int

    def __init__(
        self,
        watched: Any,
        reporters: Sequence[HabitatReporter],
        action_names: Sequence[str] = (),
        agent_id: int = 0,
    ) -> None:
        super().__init__(watched)
        self._agent_id = agent_id
        self._told = False
        self._slots = [_Slot(reporter) for reporter in reporters]
        self._paused = []
        names = action_names or _navigation_names(watched)
        self._name_of = names_in_order(names) if names else None

    @property
    def springback(self) -> list[HabitatReport]:
        """What became of the episodes so far, environment by environment; those that are paused stand last."""
        return [slot.reporter.report for slot in [*self._slots, *(slot for _, slot in self._paused)]]

    def describe_next_episode(self, index_env: int, **traits: Any) -> None:
        """Says what the next episode of an environment is: fields of `EpisodeHeader`."""
        self._slots[index_env].reporter.expect(traits)

    def report(self, index_env: int, **signals: Any) -> None:
        """Adds what the agent itself knows of the step that it is about to take there.

        Raises:
            SignalError: a signal is not known.
        """
        self._slots[index_env].reporter.add(signals)

    def reset(self) -> list[Any]:
        """Resets all environments; episodes that are running end as aborted."""
        self._abort()
        observations: list[Any] = self._watched.reset()
        for slot, observation in zip(self._slots, observations):
            slot.see(own_observations(observation, self._agent_id))
        return observations

    def reset_at(self, index_env: int) -> list[Any]:
        """Resets one environment; an episode that is running there ends as aborted."""
        slot = self._slots[index_env]
        slot.reporter.abort()
        observations: list[Any] = self._watched.reset_at(index_env)
        slot.see(own_observations(observations[0], self._agent_id))
        return observations

    def async_step_at(self, index_env: int, action: Any) -> None:
        """Has a step taken, which `wait_step_at` reports."""
        slot = self._slots[index_env]
        slot.reporter.acted()
        slot.word = action_word(own_action(action, self._agent_id), self._name_of, slot.reporter.reading.mode)
        try:
            if not slot.reporter.running:
                slot.start = described(self._episode(index_env), pose=slot.pose, bearing_rad=slot.bearing_rad)
            self._watched.async_step_at(index_env, action)
        except DEAD_ERRORS:
            slot.reporter.abort()
            raise

    def wait_step_at(self, index_env: int) -> Any:
        """Waits for a step and reports it."""
        slot = self._slots[index_env]
        try:
            result = self._watched.wait_step_at(index_env)
        except DEAD_ERRORS:
            slot.reporter.abort()
            raise
        self._report(slot, *result)
        return result

    def step_at(self, index_env: int, action: Any) -> Any:
        """Takes a step in one environment and reports it."""
        self.async_step_at(index_env, action)
        return self.wait_step_at(index_env)

    def async_step(self, data: Sequence[Any]) -> None:
        """Has a step taken in each environment, which `wait_step` reports."""
        for index_env, action in enumerate(data):
            self.async_step_at(index_env, action)

    def wait_step(self) -> list[Any]:
        """Waits for a step of each environment, and reports them."""
        return self._wait(range(len(self._slots)), {})

    def step(self, data: Sequence[Any]) -> list[Any]:
        """Takes a step in each environment and reports them."""
        deaths: dict[int, BaseException] = {}
        for index_env, action in enumerate(data):
            try:
                self.async_step_at(index_env, action)
            except DEAD_ERRORS as error:
                deaths[index_env] = error
        return self._wait([index_env for index_env in range(len(data)) if index_env not in deaths], deaths)

    def pause_at(self, index: int) -> None:
        """Pauses an environment: those after it move down by one. Its episode stays open."""
        self._watched.pause_at(index)
        self._paused.append((index, self._slots.pop(index)))

    def resume_all(self) -> None:
        """Resumes all paused environments at their old places."""
        self._watched.resume_all()
        for index, slot in reversed(self._paused):
            self._slots.insert(index, slot)
        self._paused = []

    def close(self) -> None:
        """Closes the environments; episodes that are running end as aborted."""
        for slot in [*self._slots, *(slot for _, slot in self._paused)]:
            slot.reporter.close()
        super().close()

    def _wait(self, asked: Iterable[int], deaths: dict[int, BaseException]) -> list[Any]:
        """Waits for those that were asked; passes on the first death, of them or before."""
        results = []
        for index_env in asked:
            try:
                results.append(self.wait_step_at(index_env))
            except DEAD_ERRORS as error:
                deaths[index_env] = error
        for index_env, death in deaths.items():
            said = f"environment {index_env} is dead; the steps of the others were taken and reported"
            if sys.version_info >= (3, 11):
                death.add_note(said)
            else:
                log.error(said)
            raise death
        return results

    def _episode(self, index_env: int) -> Any:
        """All that the environment says of the episode that it is in."""
        episode = self._watched.call_at(index_env, "current_episode")
        if type(episode).__name__ != "BaseEpisode":
            return episode
        return self._watched.call_at(index_env, "current_episode", {"all_info": True})

    def _abort(self) -> None:
        for slot in self._slots:
            slot.reporter.abort()

    def _report(self, slot: _Slot, observation: Any, reward: Any, done: bool, *rest: Any) -> None:
        info, observation = rest[-1], own_observations(observation, self._agent_id)
        truncated = len(rest) == 2 and bool(rest[0]) and not done
        note, over = note_of(info, self._agent_id), bool(done) or truncated
        sight = note.sight or Sight(self._agent_id, None if over else pose_by_sensors(observation))
        start, slot.start = slot.start, None
        if start is not None and sight.start is not None:
            start = sight.start
        found = read_metrics(info, slot.reporter.reading)
        if note.sight is None and found.collided is None and found.collisions is None and not self._told:
            self._told = True
            log.warning(
                "nothing tells of collisions in this VectorEnv, so none are reported: its environments neither measure "
                "them nor are they instrumented; make them with springback.instrumented(…), or measure `collisions`"
            )
        report_step(slot.reporter, start, found, slot.word, note, sight)
        if over:
            slot.reporter.end(True if truncated else sight.limited)
        slot.see(observation)


def _navigation_names(watched: Any) -> Sequence[str]:
    """The names by index, where the actions are those of habitat-lab's navigation tasks.

    The spaces tell which actions there are, but not in which order: habitat-lab sorts them by name.
    """
    spaces = getattr(watched, "orig_action_spaces", None) or [None]
    names = getattr(spaces[0], "spaces", None)
    if not isinstance(names, Mapping):
        return ()
    for count in (4, 6):
        if set(names) == set(NAVIGATION_ACTIONS[:count]):
            return NAVIGATION_ACTIONS[:count]
    return ()

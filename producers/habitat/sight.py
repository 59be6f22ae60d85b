"""What the simulator of a `habitat.Env` knows of an agent's step, and how it gets out of a vector's process.

In the process of the environment the simulator is asked: where the agent is, how near the next obstacle, whether it
has collided, and at the start the way to the goal. Around a `VectorEnv` there is no simulator to ask, and a call that
fails there ends the environment's process; so what makes its environments has to be `instrumented`, and each step's
info then carries the `Sight`:

    def make(config):
        return instrumented(make_gym_from_config(config))

    envs = watch(habitat.VectorEnv(make, [(config,) for config in configs]), emitter, family="pointnav")

Without it travel is known by sensors alone, the fewest actions are an estimate, and clearance and collisions that no
measure tells are not known at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from msgspec import Struct
from msgspec.structs import replace

from springback.producers.habitat.metrics import DEFAULT_READING, HabitatReading, TaskReading, read_metrics
from springback.producers.habitat.proxy import NOTE_KEY, DisturbanceNote, HabitatProxy, Note, described
from springback.producers.habitat.reporter import EpisodeStart, HabitatReporter
from springback.producers.habitat.signals import ActionWord, Pose, action_word
from springback.producers.habitat.world import clearance_m, core_env, pose_of, way_to


class Sight(Struct, frozen=True):
    """What is known of a step beside its metrics; None where it is not known.

    Attributes:
        agent_id: whose step it is.
        pose: where the agent is after the step.
        before: where it was when its action came.
        clearance_m: the distance to the nearest obstacle, m.
        collided: whether it ran against something.
        passed_s: how long the step took by the simulator's clock, s.
        limited: whether a limit ended the episode, where the step did.
        start: what was known before the episode's first step, where it is that one.
    """

    agent_id: int = 0
    pose: Pose | None = None
    before: Pose | None = None
    clearance_m: float | None = None
    collided: bool | None = None
    passed_s: float | None = None
    limited: bool | None = None
    start: EpisodeStart | None = None


class SightTaken:
    """Looks before a step and after it.

    Args:
        core: the `habitat.Env`.
        reading: how signals are read.
        agent_id: which agent.
        timed: whether to ask for the simulator's clock.
    """

    def __init__(self, core: Any, reading: HabitatReading, agent_id: int, *, timed: bool) -> None:
        self._core, self._reading, self._agent_id = core, reading, agent_id
        self._before = pose_of(core.sim, agent_id)
        self._began_s = float(core.sim.get_world_time()) if timed else None

    def after(self) -> Sight:
        """What is known once the action has been taken."""
        sim = self._core.sim
        pose = pose_of(sim, self._agent_id)
        return Sight(
            agent_id=self._agent_id,
            pose=pose,
            before=self._before,
            clearance_m=clearance_m(sim, pose.position, self._reading.clearance_m),
            collided=_collided(sim, self._agent_id),
            passed_s=None if self._began_s is None else float(sim.get_world_time()) - self._began_s,
            limited=limited(self._core),
        )


def start_of(core: Any, reading: HabitatReading, agent_id: int) -> EpisodeStart:
    """What a `habitat.Env` knows before an episode's first step."""
    found = read_metrics(core.get_metrics(), reading)
    pose, episode = pose_of(core.sim, agent_id), core.current_episode
    places = [getattr(goal, "position", None) for goal in getattr(episode, "goals", None) or ()]
    known = [place for place in places if place is not None]
    way = way_to(core.sim, pose, known, reading.success_distance_m, agent_id)
    return described(episode, found=found, pose=pose, **way)


def limited(core: Any) -> bool | None:
    """Whether a limit ended the episode: habitat-lab's task is still active then. None where it cannot be asked."""
    active = getattr(getattr(core, "task", None), "is_episode_active", None)
    return None if active is None else bool(active)


def word_of(
    action: Any, core: Any, reading: HabitatReading, name_of: Callable[[int], str | None] | None = None
) -> ActionWord:
    """The action in words, by the names that the task has for its actions."""
    task = getattr(core, "task", None)
    if name_of is None and hasattr(task, "get_action_name"):
        name_of = _names_of(task)
    return action_word(action, name_of, reading.mode)


def report_step(
    reporter: HabitatReporter,
    start: EpisodeStart | None,
    found: TaskReading,
    word: ActionWord,
    note: DisturbanceNote,
    sight: Sight,
) -> None:
    """Reports a step that has just been taken.

    Args:
        reporter: the agent's.
        start: that of an episode that begins with the step; None in the midst of one.
        found: what the metrics say after it.
        word: the action.
        note: what disturbances say of it.
        sight: what else is known of it.
    """
    if start is not None:
        reporter.begin(start, note.traits)
    if found.collided is None and found.collisions is None and sight.collided is not None:
        found = replace(found, collided=sight.collided)
    reporter.step(
        found,
        word,
        pose=sight.pose,
        before=sight.before,
        clearance_m=sight.clearance_m,
        cycle_time_s=sight.passed_s if reporter.reading.simulated_time and sight.passed_s else None,
        feedback=note.feedback,
        realised_magnitude=note.realised_magnitude,
        same_goal=note.goal_moved,
    )


class InstrumentedEnv(HabitatProxy):
    """A Gym-style environment of habitat-lab whose steps' infos carry what its simulator knows."""

    _own = HabitatProxy._own | {"_reading", "_agent_id", "_start"}
    _start: EpisodeStart | None

    def __init__(self, watched: Any, reading: HabitatReading, agent_id: int) -> None:
        super().__init__(watched)
        self._reading, self._agent_id = reading, agent_id
        self._start = None

    def reset(self, *args: Any, **kwargs: Any) -> Any:
        """Resets the environment, and looks where the episode begins."""
        result = self._watched.reset(*args, **kwargs)
        self._start = start_of(core_env(self._watched), self._reading, self._agent_id)
        return result

    def step(self, action: Any, **kwargs: Any) -> Any:
        """Takes a step; its info says what the simulator knows of it."""
        core = core_env(self._watched)
        look = SightTaken(core, self._reading, self._agent_id, timed=True)
        result = self._watched.step(action, **kwargs)
        sight, self._start = replace(look.after(), start=self._start), None
        note = result[-1].get(NOTE_KEY)
        said = note if isinstance(note, Mapping) else {}
        sights = {**said.get("sights", {}), self._agent_id: sight}
        return (*result[:-1], {**result[-1], NOTE_KEY: Note({**said, "sights": sights})})


def instrumented(env: Any, *, reading: HabitatReading = DEFAULT_READING, agent_id: int = 0) -> InstrumentedEnv:
    """The environment, whose steps' infos carry what its simulator knows, for a `watch` around a vector of such.

    It goes around `disturbed`, in the function that makes the vector's environments.

    Args:
        env: a Gym-style environment of habitat-lab.
        reading: how signals are read; `watch` is given the same.
        agent_id: which of several agents is meant; each takes an `instrumented` of its own, one around the other.

    Raises:
        TypeError: there is no `habitat.Env` behind it.
    """
    if core_env(env) is None:
        message = (
            f"cannot instrument a {type(env).__name__}: expected a Gym-style environment of habitat-lab, which has its "
            "habitat.Env as habitat_env; watch asks a habitat.Env or a simulator itself"
        )
        raise TypeError(message)
    return InstrumentedEnv(env, reading, agent_id)


def _collided(sim: Any, agent_id: int) -> bool | None:
    """Whether the agent ran against something, by habitat-lab's simulator; PointNav's own measures do not tell.

    It speaks of agent 0 alone; of the others it is not known.
    """
    said = getattr(sim, "previous_step_collided", None) if agent_id == 0 else None
    return None if said is None else bool(said)


def _names_of(task: Any) -> Callable[[int], str | None]:
    def name_of(index: int) -> str | None:
        try:
            return str(task.get_action_name(index))
        except ValueError:  # out of range: the step itself will say so
            return None

    return name_of

"""What springback puts around a Habitat environment: it passes everything on, and reports what goes by.

It is no subclass of Gym's or Habitat's classes, since it must work with every version of them, and without them; yet
`isinstance` holds for whatever the environment itself is an instance of, so that trainers and Gym's wrappers take it.
"""

from __future__ import annotations

import re
from collections import UserDict
from collections.abc import Mapping
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, TypeVar

from springback.producers.habitat.metrics import single_number
from springback.producers.habitat.reporter import EpisodeStart, HabitatReport, HabitatReporter

Proxy = TypeVar("Proxy", bound="HabitatProxy")

NOTE_KEY = "springback"
"""The key of a disturbance's note in a Gym-style step's info; see `DisturbanceNote`."""


_NUMBERED = re.compile(r"agent_(\d+)_(.+)")
"""What habitat-lab calls the actions and observations of several agents."""


class DisturbanceNote(NamedTuple):
    """What a disturbance says of itself after a step.

    Attributes:
        traits: fields of the episode's header.
        feedback: what acted on the step; None for nothing.
        realised_magnitude: how much of it there really was in the episode so far; None where that is not known.
        goal_moved: whether it moved the goal at this step.
        sight: what an instrumented environment has seen of the step, a `Sight`; None where it is not instrumented.
    """

    traits: Mapping[str, Any] = {}
    feedback: str | None = None
    realised_magnitude: float | None = None
    goal_moved: bool = False
    sight: Any = None


class Note(UserDict[str, Any]):
    """The note as it stands in an info; no dict, for trainers take each number in an info's dicts for a metric."""

    size = 0
    """By which numpy, and so habitat-baselines, takes it for no single number."""


class HabitatProxy:
    """Passes on what it does not know itself, reading and writing."""

    _own: ClassVar[frozenset[str]] = frozenset({"_watched", "_reporter"})
    _watched: Any

    def __init__(self, watched: Any) -> None:
        self._watched = watched

    def __getattr__(self, name: str) -> Any:
        """What the environment has under this name."""
        if name in self._own:
            raise AttributeError(name)
        return getattr(self._watched, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets it in the environment, such as `current_episode`."""
        if name in self._own or isinstance(getattr(type(self), name, None), property):
            object.__setattr__(self, name, value)
        else:
            setattr(self._watched, name, value)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The environment's class, for `isinstance`; `type` tells the proxy's own."""
        return self._watched.__class__ if "_watched" in self.__dict__ else type(self)

    def __enter__(self: Proxy) -> Proxy:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes."""
        self.close()

    def close(self) -> None:
        """Closes the environment."""
        self._watched.close()


class WatchedEnv(HabitatProxy):
    """An environment of one agent with a reporter. Its episodes go to the reporter's emitter."""

    _own = HabitatProxy._own | {"_agent_id"}
    _reporter: HabitatReporter
    _agent_id: int

    def __init__(self, watched: Any, reporter: HabitatReporter, agent_id: int = 0) -> None:
        super().__init__(watched)
        self._reporter = reporter
        self._agent_id = agent_id

    @property
    def springback(self) -> HabitatReport:
        """What became of the episodes so far."""
        return self._reporter.report

    def describe_next_episode(self, **traits: Any) -> None:
        """Says what the next episode is: fields of `EpisodeHeader`, such as `task`, `stress` or `reference`."""
        self._reporter.expect(traits)

    def report(self, **signals: Any) -> None:
        """Adds what the agent itself knows of the step that it is about to take; it overrides what is read.

        Raises:
            SignalError: a signal is not known.
        """
        self._reporter.add(signals)

    def close(self) -> None:
        """Closes the environment; an episode that is running ends as aborted."""
        self._reporter.close()
        super().close()


def described(episode: Any, **more: Any) -> EpisodeStart:
    """What an episode of habitat-lab or PARTNR says of itself; None reads like one without ids."""
    info = getattr(episode, "info", None)
    instruction = getattr(episode, "instruction", None)
    text = getattr(instruction, "instruction_text", instruction) or getattr(episode, "object_category", None)
    return EpisodeStart(
        scene=str(getattr(episode, "scene_id", None) or ""),
        episode=str(getattr(episode, "episode_id", "")),
        dataset=str(getattr(episode, "scene_dataset_config", None) or ""),
        instruction=text if isinstance(text, str) else "",
        distance_m=single_number(info.get("geodesic_distance")) if isinstance(info, Mapping) else None,
        **more,
    )


def own_action(action: Any, agent_id: int) -> Any:
    """What of an action is this agent's: by its number in a simulator, by names such as `agent_1_pick` in habitat-lab.

    >>> own_action({0: "turn_left", 1: "move_forward"}, 1), own_action("move_forward", 0), own_action("move_forward", 1)
    ('move_forward', 'move_forward', None)
    >>> both = {"action": ("agent_0_pick", "agent_1_base_velocity"), "action_args": {"agent_1_base_vel": [1.0, 0.0]}}
    >>> own_action(both, 0), own_action(both, 1)
    ({'action': ('pick',), 'action_args': {}}, {'action': ('base_velocity',), 'action_args': {'base_vel': [1.0, 0.0]}})

    Returns:
        None where the action has nothing for this agent; one that names no agents is agent 0's, whom Habitat has take
        it.
    """
    if isinstance(action, str) or not isinstance(action, Mapping):
        return action if agent_id == 0 else None
    if "action" not in action:
        return action.get(agent_id)
    given = action["action"]
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, (tuple, list)) or not any(_NUMBERED.fullmatch(str(name)) for name in names):
        return action if agent_id == 0 else None
    own = tuple(inner for name in names if (inner := _name_within(name, agent_id)) is not None)
    args = action.get("action_args")
    return {"action": own, "action_args": own_observations(args, agent_id) if args else {}} if own else None


def own_observations(observations: Any, agent_id: int) -> Any:
    """What of observations is this agent's, under the names that they have where there is one agent.

    >>> own_observations({"agent_0_gps": 1, "agent_1_gps": 2}, 1), own_observations({0: {"gps": 1}, 1: {"gps": 2}}, 1)
    ({'gps': 2}, {'gps': 2})
    >>> own_observations({"gps": 1}, 0)
    {'gps': 1}
    """
    if not isinstance(observations, Mapping):
        return observations
    if agent_id in observations:
        return observations[agent_id]
    if not any(isinstance(name, str) and _NUMBERED.fullmatch(name) for name in observations):
        return observations
    return {inner: value for name, value in observations.items() if (inner := _name_within(name, agent_id)) is not None}


def _name_within(name: Any, agent_id: int) -> str | None:
    """The name without the agent's number; None where it is another's, or nobody's."""
    found = _NUMBERED.fullmatch(str(name))
    return found[2] if found and int(found[1]) == agent_id else None


def note_of(info: Any, agent_id: int = 0) -> DisturbanceNote:
    """The note that a disturbance has left in an info; an empty one without it.

    Of the disturbances of another agent only this is left: whether they moved the goal, or are of severity 0.
    """
    note = info.get(NOTE_KEY) if isinstance(info, Mapping) else None
    if not isinstance(note, Mapping):
        return DisturbanceNote()
    sight = note.get("sights", {}).get(agent_id)
    traits = note.get("traits", {})
    if note.get("agent_id", agent_id) != agent_id:
        return DisturbanceNote(
            traits if traits.get("stress") == 0.0 else {}, goal_moved=bool(note.get("goal_moved")), sight=sight
        )
    return DisturbanceNote(
        traits=traits,
        feedback=note.get("feedback") or None,
        realised_magnitude=note.get("realised_magnitude"),
        goal_moved=bool(note.get("goal_moved")),
        sight=sight,
    )

"""What springback puts around a Habitat environment: it passes everything on, and reports what goes by.

It is no subclass of Gym's or Habitat's classes, since it must work with every version of them, and without them.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, Self

from springback.producers.habitat.metrics import single_number
from springback.producers.habitat.reporter import EpisodeStart, HabitatReport, HabitatReporter

NOTE_KEY = "springback"
"""The key of a disturbance's note in a Gym-style step's info; see `DisturbanceNote`."""


class DisturbanceNote(NamedTuple):
    """What a disturbance says of itself after a step.

    Attributes:
        traits: fields of the episode's header.
        feedback: what acted on the step; None for nothing.
        realised_magnitude: how much of it there really was in the episode so far; None where that is not known.
        goal_moved: whether it moved the goal at this step.
    """

    traits: Mapping[str, Any] = {}
    feedback: str | None = None
    realised_magnitude: float | None = None
    goal_moved: bool = False


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

    def __enter__(self) -> Self:
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

    _reporter: HabitatReporter

    def __init__(self, watched: Any, reporter: HabitatReporter) -> None:
        super().__init__(watched)
        self._reporter = reporter

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
        instruction=text if isinstance(text, str) else "",
        distance_m=single_number(info.get("geodesic_distance")) if isinstance(info, Mapping) else None,
        **more,
    )


def note_of(info: Any) -> DisturbanceNote:
    """The note that a disturbance has left in an info; an empty one without it."""
    note = info.get(NOTE_KEY) if isinstance(info, Mapping) else None
    if not isinstance(note, Mapping):
        return DisturbanceNote()
    return DisturbanceNote(
        traits=note.get("traits", {}),
        feedback=note.get("feedback") or None,
        realised_magnitude=note.get("realised_magnitude"),
        goal_moved=bool(note.get("goal_moved")),
    )

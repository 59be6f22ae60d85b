"""Reports the episodes of one agent in Habitat, one after the other: identity, steps, planning time, outcome.

An episode begins with its first step, since environments that reset themselves name episodes that are never taken.

An episode that is unfit (`EpisodeSignals.fault`: a distance of NaN or infinity, say) is quarantined. Its steps go out
with progress NaN and the fault as feedback, so that the worker rejects each of them with a reason, counts it and keeps
it with the dead letters. It is no reference, and it ends as aborted, so that no baseline learns from it and no mean
counts it. `HabitatReport` counts it here.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from springback.producers.contract.frame import MAX_IDENTIFIER
from springback.producers.emitter.step_emitter import EpisodeHandle, StepEmitter
from springback.producers.environments.signal_hooks import check_signal_names, plain_value
from springback.producers.errors import SignalError
from springback.producers.habitat.metrics import HabitatReading, TaskReading
from springback.producers.habitat.signals import NO_PROGRESS, ActionWord, EpisodeSignals, Pose

SCENE_FOLDER = "scene_datasets/"


@dataclass
class HabitatReport:
    """What became of the episodes.

    Attributes:
        episodes, steps: those that were reported.
        quarantined_episodes, quarantined_steps: those of them that are unfit.
        faults: how many episodes were quarantined, by fault.
        bridged_steps: steps at which a number was broken, alone, and was taken to be what it was before.
        next_goals: how often a goal was found and another one took its place.
    """

    episodes: int = 0
    steps: int = 0
    quarantined_episodes: int = 0
    quarantined_steps: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    bridged_steps: int = 0
    next_goals: int = 0


@dataclass(frozen=True)
class EpisodeStart:
    """What is known of an episode before its first step.

    Attributes:
        scene, episode: Habitat's ids; an episode's is unique only within its scene.
        dataset: the path of the scene data set's configuration; empty where there is none.
        instruction: what the agent was asked to do.
        distance_m: the geodesic distance that the data set gives, m.
        found: what the metrics say; None where they cannot be read before a step.
        pose: where the agent is; None where that is not known.
        follower_actions: how many actions the simulator's greedy follower needs, the stop among them; None where it
            cannot be asked.
        bearing_rad: how far the goal lies off the heading, rad; None where that is not known.
    """

    scene: str = ""
    episode: str = ""
    dataset: str = ""
    instruction: str = ""
    distance_m: float | None = None
    found: TaskReading | None = None
    pose: Pose | None = None
    follower_actions: int | None = None
    bearing_rad: float | None = None

    @property
    def task(self) -> str:
        """The name of its task, by which its disturbances are diced too."""
        return task_id(self.scene, self.episode, self.dataset)


class HabitatReporter:
    """Reports the episodes of one agent.

    Args:
        emitter: where the steps go.
        family: the task family.
        agent: id of the agent; the producer's by default.
        reading: how signals are read.
        clock: the instant of a step, s UTC epoch; the emitter's clock by default.
        timer: measures planning time, s.
        max_steps: the step limit, where it is known.
        lent: whether the agent's id is one that nobody chose, so that it must not be another's (`lend_agent`).
        **traits: other fields of `EpisodeHeader` that hold for every episode.
    """

    def __init__(
        self,
        emitter: StepEmitter,
        *,
        family: str,
        agent: str | None = None,
        reading: HabitatReading,
        clock: Callable[[], float] | None = None,
        timer: Callable[[], float] = time.perf_counter,
        max_steps: int | None = None,
        lent: bool = False,
        **traits: Any,
    ) -> None:
        self.report = HabitatReport()
        self.reading = reading
        self._emitter = emitter
        wanted = emitter.producer if agent is None else agent
        self._agent = emitter.lend_agent(wanted, self) if lent else wanted
        self._clock = emitter.now_s if clock is None else clock
        self._timer = timer
        self._max_steps = max_steps
        self._traits = {"family": family, **traits}
        self._next_traits: dict[str, Any] = {}
        self._own: dict[str, Any] = {}
        self._episode: EpisodeHandle | None = None
        self._signals: EpisodeSignals | None = None
        self._goals = reading.goals or 1
        self._word = ActionWord("", None, False)
        self._observed_s: float | None = None
        self._planning_s: float | None = None
        self._realised_magnitude: float | None = None

    @property
    def running(self) -> bool:
        """Whether an episode has begun and not ended."""
        return self._episode is not None

    @property
    def at_limit(self) -> bool:
        """Whether the running episode has taken as many steps as it may."""
        taken = 0 if self._signals is None else self._signals.steps
        return self._max_steps is not None and taken >= self._max_steps

    def expect(self, traits: Mapping[str, Any]) -> None:
        """Says what the next episode is: fields of `EpisodeHeader`."""
        self._next_traits = dict(traits)

    def add(self, signals: Mapping[str, Any]) -> None:
        """Adds what the agent itself knows of the step that it is about to take; it overrides what is read.

        Raises:
            SignalError: a signal is not known.
        """
        check_signal_names(signals)
        self._own.update({name: plain_value(value) for name, value in signals.items()})

    def observed(self) -> None:
        """Marks the instant at which the agent has got its observation."""
        self._observed_s = self._timer()

    def acted(self) -> None:
        """Marks the instant at which the agent's action has come: what lies between is planning."""
        self._planning_s = None if self._observed_s is None else max(0.0, self._timer() - self._observed_s)
        self._observed_s = None

    def begin(self, start: EpisodeStart, traits: Mapping[str, Any]) -> None:
        """Begins an episode; one that is running ends as aborted. What was added of its first step is kept."""
        self.finish("aborted")
        self._realised_magnitude = None
        self._signals = EpisodeSignals(
            self.reading,
            start.found,
            start.pose,
            start.distance_m,
            follower_actions=start.follower_actions,
            bearing_rad=start.bearing_rad,
            goals=self._goals,
        )
        known = {"task": start.task, "episode": start.task, "instruction": start.instruction}
        fields = {**known, **self._traits, **traits, **self._next_traits}
        self._next_traits = {}
        if self._signals.fault is not None:
            fields["reference"] = False
        self._episode = self._emitter.begin_episode(self._agent, may_repeat=True, **fields)
        self.report.episodes += 1
        self._count_fault(None)

    def step(
        self,
        found: TaskReading,
        word: ActionWord,
        *,
        pose: Pose | None = None,
        before: Pose | None = None,
        clearance_m: float | None = None,
        cycle_time_s: float | None = None,
        feedback: str | None = None,
        realised_magnitude: float | None = None,
        same_goal: bool = False,
    ) -> None:
        """Reports a step of the running episode; see `EpisodeSignals.step`.

        `realised_magnitude` is that of the whole episode up to this step; its end tells the last.

        Raises:
            SignalError: nothing says the progress, at the very first step: later it makes the episode unfit.
        """
        assert self._episode is not None
        assert self._signals is not None
        fault, bridged, found_before = self._signals.fault, self._signals.bridged, self._signals.goals.found
        signals = self._signals.step(found, word, pose, clearance_m, before, same_goal=same_goal)
        self.report.bridged_steps += self._signals.bridged - bridged
        self.report.next_goals += self._signals.goals.found - found_before
        if self._signals.fault == NO_PROGRESS and not self.report.steps:
            message = (
                "no progress at the first step: the metrics have no distance to the goal, no share of the task, no "
                "sub-goals and no success; add one of habitat-lab's measures to the task's measurements, or say how to "
                "read it, for instance HabitatReading(progress=lambda metrics: metrics['my_measure'])"
            )
            raise SignalError(message)
        self._count_fault(fault)
        signals |= {"planning_s": self._planning_s, "cycle_time_s": cycle_time_s, "feedback": feedback, **self._own}
        if self._signals.fault is not None:
            signals |= {"progress": math.nan, "feedback": f"quarantined: {self._signals.fault}"}
            self.report.quarantined_steps += 1
        self._own.clear()
        self._word = word
        self._realised_magnitude = realised_magnitude
        self._episode.step(step=self._signals.steps - 1, time_s=self._clock(), **signals)
        self.report.steps += 1

    def end(self, timed_out: bool | None = None) -> None:
        """Ends the running episode by what its last step said.

        Args:
            timed_out: whether a limit ended it; where it is None, the number of steps tells, or, without a known
                limit, whether anything else could have ended it.
        """
        if self._signals is not None:
            self.finish(self._outcome(self._signals, timed_out))

    def finish(self, outcome: str) -> None:
        """Ends the running episode, if there is one, with this outcome; a quarantined one as aborted."""
        episode, signals = self._episode, self._signals
        if episode is None or signals is None:
            return
        if signals.fault is not None or outcome == "aborted":
            episode.abort(self._clock())
        else:
            if outcome == "success" and self.reading.goals is None:
                self._goals = signals.goals.found + 1
            episode.end(outcome, signals.navigation(), self._clock(), realised_magnitude=self._realised_magnitude)
        self._episode = self._signals = None

    def abort(self) -> None:
        """Ends the running episode, if there is one, as aborted."""
        self._own.clear()
        self.finish("aborted")

    def close(self) -> None:
        """Aborts, and gives the agent's id back if it was lent."""
        self.abort()
        self._emitter.return_agents(self)

    def _outcome(self, signals: EpisodeSignals, timed_out: bool | None) -> str:
        last = signals.last
        if last.success:
            return "success"
        if timed_out is None:
            asked = last.stopped or last.broken_rules or self._word.mode == "stop"
            if self._max_steps is None:
                timed_out = not asked and self._word.mode is not None
            else:
                timed_out = not asked and self.at_limit
        return "timeout" if timed_out else "failure"

    def _count_fault(self, before: str | None) -> None:
        fault = None if self._signals is None else self._signals.fault
        if before is None and fault is not None:
            self.report.quarantined_episodes += 1
            self.report.faults[fault] += 1


def task_id(scene: str, episode: str, dataset: str = "") -> str:
    """Names a task alike on every machine: an episode's id is unique only within its scene, see `scene_name`.

    >>> task_id("data/scene_datasets/gibson/Adrian.glb", "7"), task_id("", "")
    ('gibson/Adrian.glb/7', 'episode')
    """
    parts = [part for part in (scene_name(scene, dataset), episode) if part]
    return shortened("/".join(parts) or "episode")


def scene_name(scene: str, dataset: str = "") -> str:
    r"""Names a scene alike on every machine, wherever its files lie there.

    That is its path within `scene_datasets/`, else within the data set's own folder, which the data set's configuration
    tells; of another path that is absolute only the file and its folder are left, and a relative one stays as it is.

    >>> scene_name("/home/ann/data/scene_datasets/hm3d/val/00800/x.basis.glb")
    'hm3d/val/00800/x.basis.glb'
    >>> scene_name("/srv/replica/stages/a.glb", "/srv/replica/replica.scene_dataset_config.json")
    'replica/stages/a.glb'
    >>> scene_name("/tmp/houses/a.glb"), scene_name("C:\\houses\\a.glb"), scene_name("../houses/a.glb")
    ('houses/a.glb', 'houses/a.glb', 'houses/a.glb')
    >>> scene_name("houses/a.glb"), scene_name("NONE")
    ('houses/a.glb', 'NONE')

    Args:
        scene: Habitat's id of it: a path, or a name within the data set.
        dataset: the path of the data set's configuration; empty, or habitat-lab's `default`, where there is none.
    """
    path, folder = scene.replace("\\", "/"), dataset.replace("\\", "/").rpartition("/")[0]
    if SCENE_FOLDER in path:
        return path.rpartition(SCENE_FOLDER)[2]
    if folder and path.startswith(f"{folder}/"):
        return f"{folder.rpartition('/')[2]}{path[len(folder) :]}"
    if path.startswith(("/", "../")) or path[1:3] == ":/":
        return "/".join([part for part in path.split("/") if part != ".."][-2:]).lstrip("/")
    return path


def shortened(name: str) -> str:
    """The name, or its end where it is longer than an id may be: what tells tasks apart stands there."""
    return name[-MAX_IDENTIFIER:]

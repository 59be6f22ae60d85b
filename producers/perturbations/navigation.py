"""What a severity from 0 to 1 does to a navigating robot, and the seeded dice that say when; without a simulator.

The probabilities and sizes are those of our recorded Habitat runs; there the sensors were noisy all the time, and here
in spells. They rise in proportion to the severity, and each kind has dice of its own that are thrown once a step. So of
two runs of one task, the harsher has all the drops, kicks and spells of the milder at the same steps, and more.

>>> dice = NavigationDice(1.0, seed=3)
>>> dice.begin("house_a/12")
>>> throws = [dice.throw() for _ in range(100)]
>>> sum(throw.dropped for throw in throws), [step for step, throw in enumerate(throws) if throw.kick_deg]
(19, [23, 74, 79, 87, 99])
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from springback.producers.perturbations.kinds import PerturbationKind, attack_of
from springback.producers.perturbations.severity import checked_severity

DisturbanceName = Literal["action_drop", "heading_kick", "goal_move", "sensor_noise", "paraphrase"]
DISTURBANCES: tuple[DisturbanceName, ...] = get_args(DisturbanceName)
KIND_OF: dict[DisturbanceName, PerturbationKind] = {
    "action_drop": "physical",
    "heading_kick": "physical",
    "goal_move": "object_state",
    "sensor_noise": "perception",
    "paraphrase": "semantic",
}
_DICED: tuple[DisturbanceName, ...] = ("action_drop", "heading_kick", "goal_move", "sensor_noise")
"""Those that are thrown for at each step; an instruction is changed once."""


@dataclass(frozen=True)
class NavigationSeverity:
    """Per step, at severity s.

    Attributes:
        drop: probability that the action is not carried out.
        kick: probability that the heading is kicked; kick_deg: by a normal angle of this deviation.
        move: probability that the goal moves; at most `most_moves` times, after step `move_after`, `within_m` far.
        noise: probability that a spell of sensor noise begins, which lasts `noise_steps` steps.
        drift_m, drift_deg: deviations by which the pose that the sensors tell drifts in a spell.
        relocalise: probability that the drift shrinks to `kept_drift` of what it was.
        depth_noise: relative deviation of a depth image's pixels in a spell.
    """

    drop: float
    kick: float
    kick_deg: float
    move: float
    noise: float
    drift_m: float
    drift_deg: float
    depth_noise: float
    most_moves: int = 2
    move_after: int = 5
    within_m: float = 4.0
    noise_steps: int = 40
    relocalise: float = 0.03
    kept_drift: float = 0.3

    @property
    def noisy(self) -> float:
        """The share of steps that are in a spell of noise: those that one began at, or within the steps before."""
        return 1.0 - (1.0 - self.noise) ** self.noise_steps


def navigation_severity(severity: float) -> NavigationSeverity:
    """The parameters of a severity.

    Raises:
        ValueError: the severity is outside [0, 1].
    """
    s = checked_severity(severity)
    return NavigationSeverity(
        drop=0.18 * s,
        kick=0.06 * s,
        kick_deg=60.0 * s,
        move=0.012 * s,
        noise=0.02 * s,
        drift_m=0.028 * s,
        drift_deg=1.2 * s,
        depth_noise=0.05 * s,
    )


@dataclass(frozen=True)
class StepDisturbance:
    """What disturbs a step.

    Attributes:
        dropped: whether the action is not carried out.
        kick_deg: how far the heading is kicked before it; 0 for not at all.
        goal_moves: whether the goal moves before it.
        drift_m, drift_deg: the drift so far in this spell of the pose that the sensors tell, along its axes, and of its
            heading.
        acting: the names of what acts.
    """

    dropped: bool = False
    kick_deg: float = 0.0
    goal_moves: bool = False
    drift_m: tuple[float, float] = (0.0, 0.0)
    drift_deg: float = 0.0
    acting: tuple[DisturbanceName, ...] = ()


@dataclass
class _Episode:
    """The dice of an episode, one generator for each disturbance and one for places and pixels."""

    dice: dict[str, np.random.Generator]
    steps: int = 0
    moves: int = 0
    noise_left: int = 0
    drift: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])


class NavigationDice:
    """Says what disturbs each step of an episode.

    Args:
        severity: in [0, 1]; at 0 nothing is disturbed.
        seed: the same seed, task and severity give the same disturbances.
        kinds: which disturbances there are; all of them by default.

    Raises:
        ValueError: the severity is outside [0, 1], or there is no such disturbance.
    """

    def __init__(self, severity: float, *, seed: int = 0, kinds: Sequence[DisturbanceName] = DISTURBANCES) -> None:
        unknown = sorted(set(kinds) - set(DISTURBANCES))
        if unknown or not kinds:
            message = (
                f"there is no disturbance {', '.join(unknown) or 'to choose'}; there are {', '.join(DISTURBANCES)}"
            )
            raise ValueError(message)
        self.at = navigation_severity(severity)
        self.severity = severity
        self.kinds = tuple(kinds)
        self.seed = seed
        self._episode = _Episode({})
        self.begin("")

    def begin(self, task: str) -> None:
        """Begins an episode of this task."""
        roots = np.random.SeedSequence([self.seed, zlib.crc32(task.encode())]).spawn(len(_DICED) + 1)
        names = [*_DICED, "places"]
        self._episode = _Episode({name: np.random.default_rng(root) for name, root in zip(names, roots)})

    @property
    def places(self) -> np.random.Generator:
        """The generator for places and pixels; how many numbers they take differs from run to run."""
        return self._episode.dice["places"]

    def traits(self) -> dict[str, Any]:
        """What an episode's header says of the disturbances."""
        if self.severity == 0.0:
            return {"stress": 0.0, "reference": True}
        kinds = {KIND_OF[name] for name in self.kinds}
        attack = attack_of(kinds)
        return {
            "stress": self.severity,
            "magnitude": self.severity,
            "reference": False,
            "perturbation": kinds.pop() if len(kinds) == 1 else "mixed",
            "perturbation_name": self.kinds[0] if len(self.kinds) == 1 else "mixed",
            "attack": attack,
        }

    def realised(self, acted: Mapping[DisturbanceName, int], steps: int, reworded: float | None) -> float | None:
        """How much of the disturbances an episode has really had, as a severity; None at severity 0.

        Drops, kicks and noise count by the share of the steps, over what it is at severity 1; goals that moved by how
        often, over the most; an instruction by the share of it that was changed. Several kinds together count as their
        mean.

        >>> NavigationDice(0.5, kinds=["action_drop"]).realised({"action_drop": 9}, steps=100, reworded=None)
        0.5

        Args:
            acted: on how many steps each has acted.
            steps: how many there were.
            reworded: the share of the instruction that was changed; None where there is none.
        """
        if self.severity == 0.0:
            return None
        most = navigation_severity(1.0)
        share = {name: acted.get(name, 0) / max(steps, 1) for name in _DICED}
        doses: dict[DisturbanceName, float | None] = {
            "action_drop": share["action_drop"] / most.drop,
            "heading_kick": share["heading_kick"] / most.kick,
            "goal_move": acted.get("goal_move", 0) / most.most_moves,
            "sensor_noise": share["sensor_noise"] / most.noisy,
            "paraphrase": reworded,
        }
        known = [dose for name in self.kinds if (dose := doses[name]) is not None]
        return sum(known) / len(known) if known else 0.0

    def throw(self) -> StepDisturbance:
        """What disturbs the next step."""
        episode, at = self._episode, self.at
        drop = episode.dice["action_drop"].random()
        kick = episode.dice["heading_kick"].random()
        angle = episode.dice["heading_kick"].standard_normal()
        move = episode.dice["goal_move"].random()
        begins, shrink = episode.dice["sensor_noise"].random(2)
        drift = episode.dice["sensor_noise"].standard_normal(3)
        dropped = "action_drop" in self.kinds and drop < at.drop
        kicked = "heading_kick" in self.kinds and kick < at.kick
        moves = "goal_move" in self.kinds and move < at.move
        moves = moves and episode.steps > at.move_after and episode.moves < at.most_moves
        if "sensor_noise" in self.kinds and begins < at.noise:
            episode.noise_left = at.noise_steps
        noisy = episode.noise_left > 0
        kept = (at.kept_drift if shrink < at.relocalise else 1.0) if noisy else 0.0
        sizes = (at.drift_m, at.drift_m, at.drift_deg) if noisy else (0.0, 0.0, 0.0)
        episode.drift = [kept * old + size * new for old, size, new in zip(episode.drift, sizes, drift)]
        episode.noise_left -= noisy
        episode.steps += 1
        episode.moves += moves
        x, z, heading = (float(part) for part in episode.drift)
        acting = zip(_DICED, (dropped, kicked, moves, noisy))
        return StepDisturbance(
            dropped=bool(dropped),
            kick_deg=float(angle * at.kick_deg) if kicked else 0.0,
            goal_moves=bool(moves),
            drift_m=(x, z),
            drift_deg=heading,
            acting=tuple(name for name, acts in acting if acts),
        )

"""Up to which stress a family, method and version holds (equation 10), and whether the live stress is beyond it.

Stress comes from outside (the episode's own severity and perturbation), or, where a family's contract lists versions
under `evolution`, from the agent itself: the paper treats both alike, how is ours. `stress_place` says under which
stress an episode ran, and to which group of its family it belongs.

An example: the margin falls from 0.5 to 0.1 and -0.3 as stress rises. The largest stress with a margin that is not
negative is 0.2, and the smallest with a negative one is 0.4; a bin with too few episodes decides nothing:

>>> from springback.stream_processors.resilience.readings import ExtensibilityRatios
>>> margins = [(0.0, 0.5, "kept"), (0.2, 0.1, "kept"), (0.4, -0.3, "broken"), (0.6, 2.0, "insufficient")]
>>> unknown = ExtensibilityRatios()
>>> curve = [
...     StressMargin(stress=stress, episodes=5, margin=margin, state=state, ratios=unknown)
...     for stress, margin, state in margins
... ]
>>> stress_capacity(curve)
StressCapacity(capacity=0.2, flag='ok', first_breach=0.4)
>>> beyond_capacity(0.4, curve, stress_capacity(curve)), beyond_capacity(0.6, curve, stress_capacity(curve))
(True, None)
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec

from springback.stream_processors.resilience.families.contract_config import FamilyContract
from springback.stream_processors.resilience.quantiles import quantile
from springback.stream_processors.resilience.readings import CapacityFlag, EpisodeTraits, StressMargin

EVOLUTION = "evolution"
UNPERTURBED = ("", "none")
PairRole = Literal["reference", "perturbed", "neither"]


class StressCapacity(NamedTuple):
    """What a stress-response curve shows; see `FamilyReading` for the three fields."""

    capacity: float | None
    flag: CapacityFlag
    first_breach: float | None


class BreachState(msgspec.Struct, kw_only=True):
    """Whether the live stress is beyond what the group withstands, with hysteresis (ours).

    Attributes:
        active: whether a breach is on.
        streak: evaluations in a row that say otherwise than `active`.
        beginnings: how many breaches have begun.
    """

    active: bool = False
    streak: int = 0
    beginnings: int = 0

    def advance(self, beyond: bool, needed: int) -> bool:
        """Takes in an evaluation, and says whether it begins or ends a breach: `needed` in a row do."""
        self.streak = self.streak + 1 if beyond != self.active else 0
        if self.streak < needed:
            return False
        self.active, self.streak = beyond, 0
        self.beginnings += beyond
        return True

    def end(self) -> bool:
        """Ends a breach, since nothing runs any more, and says whether there was one."""
        if not self.active:
            return False
        self.active, self.streak = False, 0
        return True


def nearest_point(stress: float, grid: Sequence[float]) -> float:
    """The point of the stress grid that an episode's severity goes to: the nearest, of two equally near the lower.

    >>> nearest_point(0.29, (0.0, 0.2, 0.4)), nearest_point(0.31, (0.0, 0.2, 0.4)), nearest_point(0.5, (0.0, 1.0))
    (0.2, 0.4, 0.0)
    """
    return min(grid, key=lambda point: (abs(point - stress), point))


def stress_capacity(curve: Iterable[StressMargin]) -> StressCapacity:
    """lambda*_f: the largest stress of a sufficient bin whose margin is not negative; 0 where none is.

    Source: equation 10; the flag, the first breach and what is sufficient are ours.
    """
    deciding = [(point.stress, point.margin) for point in curve if point.sufficient and point.margin is not None]
    if not deciding:
        return StressCapacity(None, "insufficient", None)
    held = [stress for stress, margin in deciding if margin >= 0]
    broken = [stress for stress, margin in deciding if margin < 0]
    return StressCapacity(max(held, default=0.0), "ok" if held else "none", min(broken, default=None))


def live_stress(stresses: Sequence[float], rank: float) -> float | None:
    """lambda_now: the quantile of stress over the active episodes; None without one. Source: ours."""
    return quantile(stresses, rank) if stresses else None


def beyond_capacity(live: float, curve: Sequence[StressMargin], capacity: StressCapacity) -> bool | None:
    """Whether the live stress is above the capacity, or in a bin with a negative margin.

    None where that bin, or every bin, has too few episodes to say. Source: ours.
    """
    nearest = nearest_point(live, [point.stress for point in curve])
    point = next(point for point in curve if point.stress == nearest)
    if capacity.capacity is None or not point.sufficient or point.margin is None:
        return None
    return live > capacity.capacity or point.margin < 0


class StressPlace(NamedTuple):
    """Where an episode stands in its family.

    Attributes:
        method: of the agent.
        version: of the agent; `evolution` where versions are the stress.
        stress: lambda, in [0, 1]; None is undeclared.
        role: its part in a pair of equation 6.
        magnitude: ||rho|| of a perturbed episode: the one realised, else its own, else its stress; 0 divides nothing.
        kind: of its perturbation.
    """

    method: str
    version: str
    stress: float | None
    role: PairRole
    magnitude: float
    kind: str

    @property
    def group(self) -> tuple[str, str]:
        """The method and version whose figures it goes into."""
        return self.method, self.version


def stress_place(
    traits: EpisodeTraits, contract: FamilyContract, realised_magnitude: float | None = None
) -> StressPlace:
    """Where an episode with these traits stands under its family's contract.

    An episode that is perturbed from outside takes no part in pairs of versions: it would differ by two things. The
    magnitude that was realised, where the producer knew it, goes before the one that was announced.
    """
    perturbed = traits.perturbation not in UNPERTURBED or traits.magnitude > 0 or (traits.stress or 0.0) > 0
    role: PairRole
    stress: float | None
    if traits.version in contract.evolution:
        update = contract.evolution.index(traits.version)
        stress = update / (len(contract.evolution) - 1)
        role = "neither" if perturbed else "perturbed" if update else "reference"
        return StressPlace(traits.method, EVOLUTION, stress, role, stress, EVOLUTION)
    role = "reference" if traits.reference else "perturbed" if perturbed else "neither"
    announced = traits.magnitude or traits.stress or 0.0
    magnitude = announced if realised_magnitude is None else realised_magnitude
    stress = traits.declared_stress
    return StressPlace(traits.method, traits.version, stress, role, magnitude, traits.perturbation or "none")

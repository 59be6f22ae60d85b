"""Up to which stress a family, method and version holds (equation 10).

Stress comes from outside (the episode's own severity and perturbation), or, where a family's contract lists versions
under `evolution`, from the agent itself: the paper treats both alike, how is ours. `stress_place` says under which
stress an episode ran, and to which group of its family it belongs. Stress that nobody declared is at no point of the
grid.

An example: the margin falls from 0.5 to 0.1 and -0.3 as stress rises, and the last level has too few episodes to decide
anything. The largest stress with a margin that is not negative is 0.2, and all below it hold; 0.4 is the smallest
with a negative margin, and the largest that can say anything:

>>> from springback.stream_processors.resilience.readings import ExtensibilityRatios
>>> margins = [(0.0, 0.5, "kept"), (0.2, 0.1, "kept"), (0.4, -0.3, "broken"), (0.6, 2.0, "insufficient")]
>>> curve = [
...     StressMargin(stress=stress, episodes=5, margin=margin, state=state, ratios=ExtensibilityRatios())
...     for stress, margin, state in margins
... ]
>>> stress_capacity(curve)
StressCapacity(capacity=0.2, flag='ok', dependable=0.2, tested_up_to=0.4, first_breach=0.4)

With the first two levels alone the capacity is at least 0.2, and open: nothing above was tested.

>>> stress_capacity(curve[:2])
StressCapacity(capacity=0.2, flag='open', dependable=0.2, tested_up_to=0.2, first_breach=None)
"""

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Literal, NamedTuple

from springback.stream_processors.resilience.families.contract_config import FamilyContract
from springback.stream_processors.resilience.readings import CapacityFlag, EpisodeTraits, StressMargin

EVOLUTION = "evolution"
UNPERTURBED = ("", "none")
PairRole = Literal["reference", "perturbed", "neither"]


class StressCapacity(NamedTuple):
    """What a stress-response curve shows; see `FamilyReading` for the fields."""

    capacity: float | None
    flag: CapacityFlag
    dependable: float | None
    tested_up_to: float | None
    first_breach: float | None


def nearest_point(stress: float, grid: Sequence[float]) -> float:
    """The point of the stress grid that an episode's severity goes to: the nearest, of two equally near the lower.

    >>> nearest_point(0.29, (0.0, 0.2, 0.4)), nearest_point(0.31, (0.0, 0.2, 0.4)), nearest_point(0.5, (0.0, 1.0))
    (0.2, 0.4, 0.0)
    """
    return min(grid, key=lambda point: (abs(point - stress), point))


def stress_capacity(curve: Iterable[StressMargin]) -> StressCapacity:
    """lambda*_f: the largest stress of a sufficient level whose margin is not negative; 0 where none is.

    Beside it `dependable`, the largest stress up to which every sufficient level is kept: where a curve is not
    monotone, a level that holds by itself does not make up for a lower one that does not. Nor is a level kept by its
    margin alone (too many of its episodes may break the contract), so this may be less than lambda* on any curve. None
    where the lowest sufficient level is not kept.

    Source: equation 10; the flag, what is dependable, tested, sufficient, and the first breach are ours.
    """
    deciding = sorted((p for p in curve if p.sufficient and p.margin is not None), key=lambda point: point.stress)
    if not deciding:
        return StressCapacity(None, "insufficient", None, None, None)
    held = [point.stress for point in deciding if point.margin is not None and point.margin >= 0]
    unbroken = [point.stress for point in takewhile(lambda point: point.state == "kept", deciding)]
    capacity, tested = max(held, default=0.0), deciding[-1].stress
    return StressCapacity(
        capacity=capacity,
        flag="none" if not held else "open" if capacity == tested < 1 else "ok",
        dependable=max(unbroken, default=None),
        tested_up_to=tested,
        first_breach=min((point.stress for point in deciding if point.stress not in held), default=None),
    )


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
    return StressPlace(
        traits.method, traits.version, traits.declared_stress, role, magnitude, traits.perturbation or "none"
    )

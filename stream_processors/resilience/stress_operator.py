"""Under which stress an episode ran, and to which group of its family it belongs.

Stress comes from outside (the episode's own severity and perturbation), or, where a family's contract lists versions
under `evolution`, from the agent itself: the paper treats both alike, how is ours.
"""

from typing import Literal, NamedTuple

from springback.stream_processors.resilience.aggregate_config import FamilyContract
from springback.stream_processors.resilience.readings import EpisodeTraits

EVOLUTION = "evolution"
UNPERTURBED = ("", "none")
PairRole = Literal["reference", "perturbed", "neither"]


class StressPlace(NamedTuple):
    """Where an episode stands in its family.

    Attributes:
        method: of the agent.
        version: of the agent; `evolution` where versions are the stress.
        stress: lambda, in [0, 1].
        role: its part in a pair of equation 6.
        magnitude: ||rho|| of a perturbed episode: its own magnitude, or its stress where it has none; 0 is unknown.
        kind: of its perturbation.
    """

    method: str
    version: str
    stress: float
    role: PairRole
    magnitude: float
    kind: str

    @property
    def group(self) -> tuple[str, str]:
        """The method and version whose figures it goes into."""
        return self.method, self.version


def stress_place(traits: EpisodeTraits, contract: FamilyContract) -> StressPlace:
    """Where an episode with these traits stands under its family's contract.

    An episode that is perturbed from outside takes no part in pairs of versions: it would differ by two things.
    """
    perturbed = traits.perturbation not in UNPERTURBED or traits.magnitude > 0 or traits.stress > 0
    role: PairRole
    if traits.version in contract.evolution:
        update = contract.evolution.index(traits.version)
        stress = update / (len(contract.evolution) - 1)
        role = "neither" if perturbed else "perturbed" if update else "reference"
        return StressPlace(traits.method, EVOLUTION, stress, role, stress, EVOLUTION)
    role = "reference" if traits.reference else "perturbed" if perturbed else "neither"
    magnitude = traits.magnitude or traits.stress
    return StressPlace(traits.method, traits.version, traits.stress, role, magnitude, traits.perturbation or "none")

"""Which stress, which group, which half of a pair."""

from typing import Any

import pytest

from springback.stream_processors.resilience.families.contract_config import FamilyContract
from springback.stream_processors.resilience.families.stress_capacity import StressPlace, stress_place
from tests.stream_processors.resilience.families.summary_builders import traits_of

OUTSIDE = FamilyContract()
UPDATES = FamilyContract(evolution=("1.0", "1.1", "1.2"))


@pytest.mark.parametrize(
    ("traits", "stress", "role", "magnitude"),
    [
        ({"reference": True}, 0.0, "reference", 0.0),
        ({}, None, "neither", 0.0),
        ({"stress": 0.0}, 0.0, "neither", 0.0),
        ({"perturbation": "physical", "stress": 0.4, "magnitude": 0.7}, 0.4, "perturbed", 0.7),
        ({"perturbation": "physical", "stress": 0.4}, 0.4, "perturbed", 0.4),
        ({"stress": 0.4}, 0.4, "perturbed", 0.4),
        ({"perturbation": "physical"}, None, "perturbed", 0.0),
        ({"perturbation": ""}, None, "neither", 0.0),
    ],
)
def test_stress_from_outside(traits: dict[str, Any], stress: float | None, role: str, magnitude: float) -> None:
    found = stress_place(traits_of(method="plan", version="3", **traits), OUTSIDE)
    assert found.group == ("plan", "3")
    assert (found.stress, found.role, found.magnitude) == (stress, role, magnitude)


@pytest.mark.parametrize(("realised", "magnitude"), [(None, 0.7), (0.25, 0.25), (0.0, 0.0)])
def test_the_magnitude_that_was_realised_goes_before_the_announced(realised: float | None, magnitude: float) -> None:
    traits = traits_of(perturbation="physical", stress=0.4, magnitude=0.7)
    found = stress_place(traits, OUTSIDE, realised)
    assert (found.stress, found.role, found.magnitude) == (0.4, "perturbed", magnitude)


def test_an_update_is_a_stress() -> None:
    def place(version: str, **traits: Any) -> StressPlace:
        return stress_place(traits_of(method="plan", version=version, **traits), UPDATES)

    assert place("1.0") == StressPlace("plan", "evolution", 0.0, "reference", 0.0, "evolution")
    assert place("1.1") == StressPlace("plan", "evolution", 0.5, "perturbed", 0.5, "evolution")
    assert place("1.2", reference=True) == StressPlace("plan", "evolution", 1.0, "perturbed", 1.0, "evolution")
    assert place("1.2", stress=0.3).role == "neither"
    assert place("0.9", stress=0.3) == StressPlace("plan", "0.9", 0.3, "perturbed", 0.3, "none")

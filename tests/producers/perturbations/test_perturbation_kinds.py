"""Every perturbation that comes with springback says what it is, and which attack."""

from springback.producers.perturbations import navigation, severity
from springback.producers.perturbations.kinds import ATTACK_OF


def test_every_disturbance_has_a_kind_and_an_attack() -> None:
    assert set(severity.KIND_OF) == set(severity.DISTURBANCES)
    assert set(navigation.KIND_OF) == set(navigation.DISTURBANCES)
    assert {*severity.KIND_OF.values(), *navigation.KIND_OF.values()} == set(ATTACK_OF)


def test_body_and_things_are_physical_and_what_is_believed_is_of_the_model() -> None:
    attacks = {name: ATTACK_OF[kind] for name, kind in [*severity.KIND_OF.items(), *navigation.KIND_OF.items()]}
    assert attacks == {
        "slip": "physical",
        "moved": "physical",
        "mis-grounding": "model",
        "paraphrase": "model",
        "action_drop": "physical",
        "heading_kick": "physical",
        "goal_move": "physical",
        "sensor_noise": "model",
    }

"""Collisions that no measure tells: habitat-lab's simulator knows of them."""

from typing import Any

import pytest

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.habitat.watch import watch
from springback.producers.perturbations.habitat import disturbed
from tests.producers.habitat.strict_habitat import POINTNAV_MEASURES, StrictEnv, StrictRLEnv
from tests.producers.habitat.trace_replay import rows_of

# From the middle of the room it is 3.9 m to the wall: 15 steps of 0.25 m, and the 16th runs against it.
TO_THE_WALL = 15
AWAY = ((0.0, 0.0, 3.0),)


def walked(env: Any, emitter: StepEmitter, publisher: MemoryPublisher, actions: list[Any]) -> list[dict[str, Any]]:
    """The rows of an episode of these actions."""
    watched = watch(env, emitter, family="nav")
    watched.reset()
    for action in actions:
        watched.step(action)
    assert emitter.flush()
    return [row for _, row in rows_of(publisher.frames)]


@pytest.mark.parametrize("make", [StrictEnv, lambda goals: StrictRLEnv(StrictEnv(goals))])
def test_pointnav_measures_no_collisions_and_the_simulator_knows_them(
    make: Any, emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    actions = [*["move_forward"] * (TO_THE_WALL + 4), "turn_left", "stop"]
    rows = walked(make(AWAY), emitter, publisher, actions)
    assert [row["violation"] for row in rows] == [0.0] * TO_THE_WALL + [1.0] * 4 + [0.0, 0.0]
    assert [row["retries"] for row in rows] == [row["violation"] for row in rows]
    assert rows[TO_THE_WALL]["risk"] == pytest.approx(2.0 + 0.2 / 0.3)  # a collision, and 0.1 m to the wall


def test_a_stop_takes_no_step_and_so_collides_with_nothing(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    rows = walked(StrictEnv(AWAY), emitter, publisher, [*["move_forward"] * (TO_THE_WALL + 1), "stop"])
    assert [row["violation"] for row in rows[-2:]] == [1.0, 0.0]


def test_a_dropped_action_runs_against_nothing(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    env = disturbed(StrictEnv(AWAY), 1.0, kinds=["action_drop"], seed=1)
    rows = walked(env, emitter, publisher, ["move_forward"] * 60)
    hits = {(bool(row["feedback"]), row["violation"]) for row in rows[-30:]}
    assert hits == {(True, 0.0), (False, 1.0)}


def test_a_measure_of_collisions_goes_before_the_simulator(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    class Measured(StrictEnv):
        """Measures collisions, in a way of its own."""

        def get_metrics(self) -> dict[str, Any]:
            return {**super().get_metrics(), "collisions": {"count": 0, "is_collision": False}}

    rows = walked(Measured(AWAY, POINTNAV_MEASURES), emitter, publisher, ["move_forward"] * (TO_THE_WALL + 3))
    assert {row["violation"] for row in rows} == {0.0}


def test_a_simulator_that_does_not_say_collides_with_nothing(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    bare = StrictEnv(AWAY)
    # As after a reconfiguration: asking raises AttributeError.
    type_of_sim = type(
        "Silent", (type(bare.sim),), {"previous_step_collided": property(lambda sim: sim._none.get("x"))}
    )
    bare.sim.__class__ = type_of_sim
    rows = walked(bare, emitter, publisher, ["move_forward"] * (TO_THE_WALL + 3))
    assert {row["violation"] for row in rows} == {0.0}
    assert [row["retries"] for row in rows[-2:]] == [1.0, 1.0]  # the pose tells that it did not move

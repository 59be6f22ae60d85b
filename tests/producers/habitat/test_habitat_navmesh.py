"""What Habitat cannot be asked ends the process: without a navmesh nothing asks one, wherever a question comes from."""

import ast
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.habitat.signals import Pose
from springback.producers.habitat.watch import watch
from springback.producers.habitat.world import MissingNavmeshError, clearance_m, geodesic_m, snapped, way_to
from springback.producers.perturbations.habitat import disturbed
from tests.house import ROOT
from tests.producers.habitat.strict_habitat import StrictEnv, StrictRLEnv, StrictSimulator
from tests.producers.habitat.trace_replay import ends_of, rows_of

GOAL = (0.0, 0.0, -3.0)
HERE = Pose((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))
NOWHERE = [(math.nan, 0.0, 0.0), (0.0, math.inf, 0.0), (0.0, 0.0)]


@pytest.mark.usefixtures("habitat_sim")
def test_an_episode_without_a_navmesh_is_refused_and_says_what_to_do(
    emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    loop: Any = watch(StrictSimulator(navmesh=False), emitter, family="nav")
    with pytest.raises(MissingNavmeshError, match=r"no navmesh.*load_nav_mesh\(path\).*recompute_navmesh"):
        loop.begin_episode(goals=[GOAL], episode="1")
    loop.step("move_forward")  # the loop goes on, and reports nothing
    assert not publisher.frames


@pytest.mark.usefixtures("habitat_sim")
def test_a_navmesh_that_is_lost_in_an_episode_makes_it_unfit(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    bare = StrictSimulator()
    loop: Any = watch(bare, emitter, family="nav")
    loop.begin_episode(goals=[GOAL], episode="1")
    loop.step("move_forward")
    bare.pathfinder.is_loaded = False
    for _ in range(3):
        loop.step("move_forward")
    loop.stop_episode()
    assert emitter.flush()
    progress = [row["progress"] for _, row in rows_of(publisher.frames)]
    # The first that is lost is bridged: 0.25 of 3 m. Nothing is known of those after it.
    assert progress[:2] == pytest.approx([0.25 / 3] * 2)
    assert all(math.isnan(value) for value in progress[2:])
    assert loop.springback.faults == {"the distance to the goal is nan": 1}
    assert [end.outcome for end in ends_of(publisher.frames).values()] == ["aborted"]


QUESTIONS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "the way": (lambda sim: math.isnan(geodesic_m(sim, HERE.position, [GOAL])), True),
    "clearance": (lambda sim: clearance_m(sim, HERE.position, 0.3), None),
    "a place": (lambda sim: snapped(sim, GOAL), None),
    "the follower": (lambda sim: way_to(sim, HERE, [GOAL], 0.2), {"follower_actions": None, "bearing_rad": 0.0}),
}


@pytest.mark.usefixtures("habitat_sim")
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("lab", [False, True])
def test_without_a_navmesh_nothing_is_asked(question: str, lab: bool) -> None:
    sim: Any = StrictEnv().sim if lab else StrictSimulator()
    sim.pathfinder.is_loaded = False
    ask, unknown = QUESTIONS[question]
    assert ask(sim) == unknown
    assert not {"find_path", "distance_to_closest_obstacle", "snap_point", "follower"} & set(sim.calls)


@pytest.mark.usefixtures("habitat_sim")
@pytest.mark.parametrize("place", NOWHERE)
def test_what_is_no_place_is_not_asked_for(place: Any) -> None:
    sim = StrictSimulator()
    assert geodesic_m(sim, HERE.position, [place]) == math.inf
    assert geodesic_m(sim, HERE.position, [place, GOAL]) == 3.0  # of several goals the one that is a place counts
    assert math.isnan(geodesic_m(sim, place, [GOAL]))
    assert (clearance_m(sim, place, 0.3), snapped(sim, place)) == (None, None)
    assert sim.calls == {"find_path": 1}


@pytest.mark.usefixtures("habitat_sim")
@pytest.mark.parametrize("kinds", [["goal_move"], ["action_drop", "heading_kick", "goal_move", "sensor_noise"]])
def test_disturbances_ask_no_navmesh_that_is_not_there(kinds: Any) -> None:
    bare = StrictSimulator(navmesh=False)
    simulator: Any = disturbed(bare, 1.0, kinds=kinds, seed=2)
    simulator.begin_disturbances("room/1")
    for _ in range(100):
        simulator.step("turn_left")
        assert simulator.moved_goals([list(GOAL)]) == [list(GOAL)]
        assert "goal_move" not in simulator.perturbation_note()["feedback"]
    core = StrictEnv(limit=200)
    for made in (core, StrictRLEnv(core)):
        env: Any = disturbed(made, 1.0, kinds=kinds, seed=2)
        env.reset()
        # The navmesh is needed by habitat-lab's own distance; where it is lost, our disturbances stop asking it.
        core.task.measurements.update_measures = lambda **_: None
        core.sim.pathfinder.is_loaded = False
        for _ in range(50):
            env.step("turn_left")
        core.sim.pathfinder.is_loaded = True
        del core.task.measurements.update_measures
        env.close()
        core.sim._closed = False


@pytest.mark.parametrize("amount", [0.0, -10.0, math.nan])
def test_a_follower_that_would_never_come_back_is_not_asked(amount: float) -> None:
    sim = StrictSimulator()
    spec = sim.agents[0].agent_config.action_space["turn_left"]
    spec.actuation = SimpleNamespace(amount=amount)
    assert way_to(sim, HERE, [GOAL], 0.2)["follower_actions"] is None
    assert "follower" not in sim.calls
    spec.actuation.amount = 10.0
    # Straight ahead: 11 steps of 0.25 m to 0.25 m off, a twelfth to the goal, and the stop.
    assert way_to(sim, HERE, [GOAL], 0.2)["follower_actions"] == 12 + 1


def test_only_one_module_asks_navmeshes() -> None:
    """Others that did would ask without the guard."""
    crashing = {
        "find_path", "snap_point", "distance_to_closest_obstacle", "closest_obstacle_surface_point", "is_navigable",
        "get_island", "island_radius", "try_step", "try_step_no_sliding", "get_random_navigable_point",
        "get_random_navigable_point_near", "geodesic_distance", "make_greedy_follower", "next_action_along",
        "get_topdown_view", "navigable_area",
    }  # fmt: skip
    asking = {
        path.name
        for room in ("habitat", "perturbations")
        for path in (ROOT / "producers" / room).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in crashing
    }
    assert asking == {"world.py"}

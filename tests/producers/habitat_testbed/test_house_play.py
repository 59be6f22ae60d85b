"""A house in habitat-sim, played in by its follower: on a fake of it, and on itself where it is installed."""

import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.habitat.world import MissingHabitatError
from springback.producers.habitat_testbed.house import HousePlan, plan_house
from springback.producers.habitat_testbed.house_play import (
    KINDS,
    MOST_STEPS,
    STEP_S,
    HouseRun,
    open_house,
    plan_runs,
    play_run,
    record_house,
)
from tests.producers.habitat.trace_replay import ends_of, rows_of
from tests.producers.habitat_testbed.fake_house_sim import HouseSimulator, fake_house_sim


@pytest.fixture
def plan() -> HousePlan:
    return plan_house(7)


def test_every_task_is_played_clean_and_then_at_every_stress_by_one_kind(plan: HousePlan) -> None:
    runs = plan_runs(plan, 4, [0.8, 0.0, 0.8, 0.4])
    assert [run.stress for run in runs] == [0.0] * 4 + [0.4] * 4 + [0.8] * 4
    kinds = defaultdict(set)
    for run in runs:
        kinds[run.task.episode].add(run.kind)
    assert dict(kinds) == {str(number): {None, KINDS[number % 3]} for number in range(4)}


@pytest.mark.usefixtures("habitat_sim")
def test_a_clean_walk_is_as_long_as_the_follower_says(plan: HousePlan) -> None:
    publisher = MemoryPublisher()
    with open_house(plan) as simulator, StepEmitter(publisher, producer="house", session="s") as emitter:
        for run in plan_runs(plan, 3, [0.0]):
            steps = list(play_run(run, simulator, plan, emitter))
            assert steps == list(range(len(steps)))
    ends = ends_of(publisher.frames)
    assert {end.outcome for end in ends.values()} == {"success"}
    lengths = Counter(episode for episode, _ in rows_of(publisher.frames))
    for episode, end in ends.items():
        assert end.navigation is not None
        assert end.navigation.shortest_actions is not None
        assert abs(end.navigation.shortest_actions - lengths[episode]) <= 2 + lengths[episode] / 10
        assert end.navigation.final_distance == pytest.approx(0.0, abs=0.2)
    cycles = [row["cycle_time_s"] for _, row in rows_of(publisher.frames) if row["action"] != "stop"]
    assert cycles == pytest.approx([STEP_S] * len(cycles), abs=0.02)


def test_the_house_is_the_plan_s_and_is_closed_with_its_context(plan: HousePlan, monkeypatch: Any) -> None:
    HouseSimulator.made.clear()
    monkeypatch.setitem(sys.modules, "habitat_sim", fake_house_sim())
    with open_house(plan) as simulator:
        built = [(tuple(cube.translation), cube.half) for cube in simulator.cubes]
        assert built == [(box.centre, box.half) for box in (plan.floor, *plan.obstacles)]
        assert simulator.pathfinder.is_loaded
    assert HouseSimulator.made[0]._closed


@pytest.mark.usefixtures("habitat_sim")
def test_a_walk_that_is_broken_off_ends_as_aborted_and_one_without_end_as_timeout(
    plan: HousePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = MemoryPublisher()
    [run] = plan_runs(plan, 1, [0.0])
    with open_house(plan) as simulator, StepEmitter(publisher, producer="house", session="s") as emitter:
        walk = play_run(run, simulator, plan, emitter)
        next(walk)
        walk.close()
        monkeypatch.setattr("springback.producers.habitat_testbed.house_play.MOST_STEPS", 3)
        assert list(play_run(run, simulator, plan, emitter)) == [0, 1, 2]
    outcomes = [end.outcome for end in ends_of(publisher.frames).values()]
    assert outcomes == ["aborted", "timeout"]
    assert MOST_STEPS == 400


def test_an_agent_that_sees_no_way_has_failed(plan: HousePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = fake_house_sim()
    monkeypatch.setitem(sys.modules, "habitat_sim", module)
    publisher = MemoryPublisher()
    [run] = plan_runs(plan, 1, [0.0])
    with open_house(plan) as simulator, StepEmitter(publisher, producer="house", session="s") as emitter:
        walk = play_run(HouseRun(run.task, 0.0, None), simulator, plan, emitter)
        next(walk)
        simulator.navmesh._fields = {cell: {} for cell in simulator.navmesh.cells}
        assert list(walk) == []
    assert [end.outcome for end in ends_of(publisher.frames).values()] == ["failure"]


def test_without_habitat_sim_it_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "habitat_sim", None)
    with pytest.raises(MissingHabitatError, match=r"install it with: .*habitat-sim"):
        record_house(tmp_path / "house.frames.jsonl")
    assert list(tmp_path.iterdir()) == []

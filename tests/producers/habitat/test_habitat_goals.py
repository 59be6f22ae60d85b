"""Several goals one after another, and single numbers that are broken: one sample decides nothing."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.producers.contract.frame import EpisodeEnd
from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.habitat.goals import GoalLegs
from springback.producers.habitat.metrics import HabitatReading, TaskReading, read_metrics
from springback.producers.habitat.signals import EpisodeSignals, action_word
from springback.producers.habitat.watch import watch
from tests.producers.habitat.fake_habitat import FakeEnv, Trace
from tests.producers.habitat.trace_replay import ends_of, rows_of

FORWARD, STOP = action_word("move_forward"), action_word("stop")
LEGS_M = (2.0, 4.0, 3.0)


def trace_of(name: str, distances: Sequence[float], start_m: float, success: bool = True) -> Trace:
    """An episode of steps of 0.25 m, that ends with a stop that moves nothing."""
    rows: Trace = []
    for step, distance_m in enumerate(distances):
        last = step == len(distances) - 1
        row = {"scene": "house.glb", "episode_id": name, "start_geodesic": start_m, "step": step, "done": last}
        row |= {"action": "stop" if last else "move_forward", "rotation_wxyz": [1, 0, 0, 0], "t_sim": 0.1 * step}
        row["position"] = [0.25 * (step + 1 - last), 0.0, 0.0]
        row["metrics"] = {"distance_to_goal": distance_m, "success": float(success and last), "spl": 0.0}
        rows.append(row)
    return rows


def legs(lengths_m: Sequence[float] = LEGS_M) -> list[float]:
    """The distances to goals that follow one another; a stop ends the last."""
    ways = [length_m - 0.25 * step for length_m in lengths_m for step in range(1, round(length_m / 0.25) + 1)]
    return [*ways, ways[-1]]


def played(
    emitter: StepEmitter, publisher: MemoryPublisher, traces: list[Trace], reading: HabitatReading
) -> tuple[list[list[float]], list[EpisodeEnd], Any]:
    env = watch(FakeEnv(traces), emitter, family="nav", reading=reading)
    for trace in traces:
        env.reset()
        for row in trace:
            env.step(row["action"])
    assert emitter.flush()
    found: dict[str, list[float]] = {}
    for episode, row in rows_of(publisher.frames):
        found.setdefault(episode, []).append(row["progress"])
    return list(found.values()), list(ends_of(publisher.frames).values()), env.springback


def test_progress_and_spl_are_over_all_goals(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    traces = [trace_of(name, legs(), LEGS_M[0]) for name in ("first", "second")]
    (first, second), ends, report = played(emitter, publisher, traces, HabitatReading())
    # The first success says how many there are; before it, each goal shows that there is one more.
    assert (first[7], first[23], first[-1]) == (1.0, 1.0, 1.0)
    assert [round(first[step], 3) for step in (8, 24)] == [0.531, 0.694]  # (1 + 1/16) / 2, (2 + 1/12) / 3
    assert (second[7], second[23], second[-1]) == (1 / 3, 2 / 3, 1.0)
    assert np.diff(second).min() >= 0.0
    for end in ends:
        way = end.navigation
        assert way is not None
        assert (end.outcome, way.path) == ("success", 9.0)
        assert way.shortest_path == 9.0
        assert (way.goals_met, way.goals_total) == (3, 3)
    assert report.next_goals == 4


def test_a_goal_that_a_disturbance_has_moved_is_no_other_goal(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    class Moved(FakeEnv):
        """Says of each step that the goal was moved in it."""

        def perturbation_note(self) -> dict[str, Any]:
            return {"goal_moved": True}

    trace = trace_of("only", legs(LEGS_M[:2]), LEGS_M[0])
    for made, next_goals in ((FakeEnv, 1), (Moved, 0)):
        env = watch(made([trace]), emitter, family="nav")
        env.reset()
        for row in trace:
            env.step(row["action"])
        assert env.springback.next_goals == next_goals


def test_the_number_of_goals_may_be_said(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    traces = [trace_of("only", legs(), LEGS_M[0]), trace_of("lost", legs()[:20], LEGS_M[0], success=False)]
    (first, lost), ends, _ = played(emitter, publisher, traces, HabitatReading(goals=3))
    assert first[7] == 1 / 3
    assert np.diff(first).min() >= 0.0
    assert max(lost) < 2 / 3
    assert ends[1].outcome == "failure"
    assert ends[1].navigation is not None
    assert (ends[1].navigation.goals_met, ends[1].navigation.goals_total) == (1, 3)


def test_a_measure_over_all_goals_goes_before_that_of_the_present_one() -> None:
    found = read_metrics({"distance_to_goal": 2.0, "distance_to_curr_goal": 2.0, "distance_to_multi_goal": 9.0})
    assert found.distance_m == 9.0
    assert read_metrics({"distance_to_curr_goal": 2.0}).distance_m == 2.0


@pytest.mark.parametrize(
    ("distances", "same_goal"),
    [
        ((2.0, 1.0, 2.2), True),  # a disturbance has moved the goal
        ((6.0, 4.0, 9.0), False),  # a detour far from the goal: a door was shut
        ((1.0, 0.75, 1.0), False),  # overshot
    ],
)
def test_not_every_rise_is_another_goal(distances: tuple[float, ...], same_goal: bool) -> None:
    way = GoalLegs(8.0)
    for distance_m in distances:
        way.see(distance_m, 0.25, same_goal=same_goal)
    assert (way.found, way.length_m) == (0, 8.0)


@given(st.lists(st.floats(0.0, 20.0), max_size=30), st.integers(1, 4))
def test_shares_of_several_goals_stay_in_bounds(distances: list[float], expected: int) -> None:
    way = GoalLegs(5.0, expected)
    for distance_m in distances:
        way.see(distance_m, 0.25)
        share = way.share()
        assert share is not None
        assert share <= 1.0
        assert way.total >= expected
        assert way.total == 1 or share >= way.found / way.total
        assert (way.length_m or 0.0) >= 0.0


@pytest.mark.parametrize("broken", [math.inf, math.nan])
@pytest.mark.parametrize("many", [1, 3])
def test_a_broken_distance_at_the_end_costs_no_success(
    emitter: StepEmitter, publisher: MemoryPublisher, broken: float, many: int
) -> None:
    distances = [2.0 - 0.25 * step for step in range(1, 8)]
    trace = trace_of("only", [*distances, broken], 2.0)
    for row in trace[-many:]:
        row["metrics"] |= {"distance_to_goal": broken, "success": 1.0}
    (progress,), (end,), report = played(emitter, publisher, [trace], HabitatReading())
    assert end.outcome == "success"
    assert end.navigation is not None
    assert end.navigation.final_distance == distances[7 - many]
    assert (progress[-1], report.bridged_steps, report.quarantined_episodes) == (1 - distances[7 - many] / 2, many, 0)


def test_one_broken_number_among_good_ones_is_bridged_and_two_are_not(
    emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    alone, row = ([2.0 - 0.25 * step for step in range(1, 9)] for _ in range(2))
    alone[2] = alone[5] = math.inf
    row[2] = row[3] = math.inf
    traces = [trace_of(name, distances, 2.0) for name, distances in (("alone", alone), ("row", row))]
    (first, second), ends, report = played(emitter, publisher, traces, HabitatReading())
    assert first == [0.125, 0.25, 0.25, 0.5, 0.625, 0.625, 0.875, 1.0]
    assert [math.isnan(value) for value in second] == [False] * 3 + [True] * 5
    assert [end.outcome for end in ends] == ["success", "aborted"]
    assert (report.bridged_steps, report.quarantined_episodes) == (3, 1)


def test_an_episode_that_begins_at_its_goal_is_done(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    (progress,), (end,), _ = played(emitter, publisher, [trace_of("only", [0.0], 0.0)], HabitatReading())
    assert (progress, end.outcome) == ([1.0], "success")
    assert end.navigation is not None
    assert (end.navigation.shortest_path, end.navigation.path) == (0.0, 0.0)


def test_a_share_that_is_broken_once_is_what_it_was() -> None:
    signals = EpisodeSignals(HabitatReading(), TaskReading(share=0.0))
    shares = (0.25, math.nan, 0.5)
    assert [signals.step(TaskReading(share=share), FORWARD)["progress"] for share in shares] == [0.25, 0.25, 0.5]
    assert signals.fault is None

"""The frames that the recorded episodes come to, against those that others made of the same recordings."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from springback.producers.contract.frame import StepFrame
from springback.producers.recordings.step_frames import read_frames
from springback.stream_processors.offline.evaluation import evaluate_frames
from springback.stream_processors.offline.tables import family_table
from springback.stream_processors.resilience.config import ResilienceConfig
from tests.house import DATA
from tests.producers.habitat.fake_habitat import Trace
from tests.producers.habitat.trace_replay import EPOCH_S, PLANNING_S, ends_of, replay_lab, replay_sim, rows_of

ALIKE = ("progress", "propositions", "risk", "violation", "retries")
Rows = dict[tuple[str, int], dict[str, Any]]


def given_frames(name: str, scene: str) -> list[StepFrame]:
    frames = [found.frame for found in read_frames([DATA / f"habitat_{name}.frames.jsonl.gz"])]
    return [frame for frame in frames if frame.episodes[0].episode.startswith(scene)]


def by_step(frames: Sequence[StepFrame]) -> Rows:
    return {(episode, row["step"]): row for episode, row in rows_of(frames)}


def check_columns(ours: Rows, given: Rows, columns: Sequence[str], *, within: float) -> None:
    for name in columns:
        wrong = {
            key: (row[name], given[key][name])
            for key, row in ours.items()
            if abs(row[name] - given[key][name]) > within
        }
        assert not wrong, name


def check_words(ours: Rows, given: Rows) -> None:
    """Modes are the same; the simulator's keys leave the first word out."""
    assert {key: row["mode"] for key, row in ours.items()} == {key: given[key]["mode"] for key in ours}
    assert all(row["action"].endswith(given[key]["action"]) for key, row in ours.items())


def test_pointnav_in_habitat_lab(lab_traces: list[Trace]) -> None:
    frames = replay_lab(lab_traces)
    ours, given = by_step(frames), by_step(given_frames("lab_pointnav", "house_a"))
    assert ours.keys() == given.keys()
    check_columns(ours, given, (*ALIKE, "cycle_time_s"), within=2e-6)
    check_words(ours, given)
    assert {row["planning_s"] for row in ours.values()} == {PLANNING_S}
    # The pose before the first step is not recorded: the given frames take the first travel as 0, the fake leads back.
    later = {key: row for key, row in ours.items() if key[1]}
    check_columns(later, given, ("travel",), within=1e-4)
    # The given clock goes on from episode to episode, the simulator's begins anew with each.
    first = {key: row for key, row in ours.items() if key[0] == "house_a.glb/0"}
    check_columns(first, given, ("time_s",), within=1e-6)
    assert min(row["time_s"] for row in ours.values()) >= EPOCH_S
    check_ends(
        frames, given_frames("lab_pointnav", "house_a"), {trace[0]["action"] == "move_forward" for trace in lab_traces}
    )


def check_ends(frames: Sequence[StepFrame], given_ones: Sequence[StepFrame], first_forward: set[bool]) -> None:
    ends, given = ends_of(frames), ends_of(given_ones)
    assert {key: end.outcome for key, end in ends.items()} == {key: end.outcome for key, end in given.items()}
    for key, end in ends.items():
        assert end.navigation is not None
        assert given[key].navigation is not None
        for name in ("shortest_path", "final_distance", "path"):
            slack = 0.26 if name == "path" and True in first_forward else 1e-3
            assert getattr(end.navigation, name) == pytest.approx(getattr(given[key].navigation, name), abs=slack)
        assert (end.navigation.goals_met, end.navigation.goals_total) == (int(end.outcome == "success"), 1)


@pytest.mark.usefixtures("habitat_sim")
def test_navigation_in_a_bare_simulator(sim_traces: list[Trace]) -> None:
    frames = replay_sim(sim_traces)
    given_ones = given_frames("sim_nav_depth", "house_a")
    ours, given = by_step(frames), by_step(given_ones)
    # A recording writes the time-out itself as a row of its own; here the last step that may be taken ends it.
    left_out = given.keys() - ours.keys()
    assert ours.keys() <= given.keys()
    assert {step for _, step in left_out} == {220}
    check_columns(ours, given, ALIKE, within=2e-6)
    check_words(ours, given)
    # Travel: the given frames have none for a first step. Cycle time: a stop takes none, and is given 1 ms there.
    check_columns({key: row for key, row in ours.items() if key[1]}, given, ("travel",), within=2e-4)
    moving = {key: row for key, row in ours.items() if row["mode"] != "stop"}
    check_columns(moving, given, ("cycle_time_s",), within=1e-6)
    ends, given_ends = ends_of(frames), ends_of(given_ones)
    assert {key: end.outcome for key, end in ends.items()} == {key: end.outcome for key, end in given_ends.items()}


@pytest.mark.usefixtures("habitat_sim")
@pytest.mark.parametrize(
    ("name", "scene", "replay"), [("lab_pointnav", "house_a", replay_lab), ("sim_nav_depth", "house_a", replay_sim)]
)
def test_recovery_cost_is_that_of_the_given_frames_and_rises_with_stress(
    lab_traces: list[Trace],
    sim_traces: list[Trace],
    name: str,
    scene: str,
    replay: Callable[[Sequence[Trace]], list[StepFrame]],
) -> None:
    traces = lab_traces if name == "lab_pointnav" else sim_traces
    costs = []
    for frames in (replay(traces), given_frames(name, scene)):
        evaluation = evaluate_frames(frames, ResilienceConfig())
        assert not evaluation.rejected
        costs.append(
            {row.stress: row.recovery_cost_mean for row in family_table(evaluation.summaries, evaluation.windows)}
        )
    ours, given = costs
    assert ours.keys() == given.keys()
    for stress, cost in ours.items():
        assert cost == pytest.approx(given[stress], rel=0.01, abs=1e-3)
    clean, harshest = ours[0.0], ours[1.0]
    assert clean is not None
    assert harshest is not None
    assert clean < 0.1
    assert harshest > 20.0 * clean
    assert harshest > 2.0

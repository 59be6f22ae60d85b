import sys
from typing import Any

import numpy as np
import pytest

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.errors import SignalError
from springback.producers.habitat.metrics import HabitatReading
from springback.producers.habitat.simulator_loop import SimulatorLoop
from springback.producers.habitat.watch import watch
from springback.producers.habitat.world import MissingHabitatError
from tests.producers.habitat.fake_habitat import Trace
from tests.producers.habitat.fake_simulator import FakeSimulator
from tests.producers.habitat.trace_replay import ends_of, rows_of

GOAL = [[1.0, 0.0, 2.0]]


@pytest.fixture
def trace(sim_traces: list[Trace]) -> Trace:
    return sim_traces[0]


def loop_of(bare: FakeSimulator, emitter: StepEmitter, **options: Any) -> SimulatorLoop:
    found = watch(bare, emitter, family="nav", **options)
    assert isinstance(found, SimulatorLoop)
    return found


def play(loop: Any, bare: FakeSimulator, trace: Trace, rows: int, **options: Any) -> None:
    bare.play(trace)
    loop.begin_episode(goals=GOAL, episode=trace[0]["episode_id"], **options)
    for row in trace[:rows]:
        loop.step(row["action"])


@pytest.mark.usefixtures("habitat_sim")
def test_a_stop_ends_by_the_distance_unless_the_loop_knows_better(
    trace: Trace, emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    bare = FakeSimulator()
    loop = loop_of(bare, emitter)
    for episode, (distance_m, success) in enumerate([(0.19, None), (0.2, None), (0.2, True), (0.1, False)]):
        play(loop, bare, [{**row, "episode_id": str(episode)} for row in trace], 2)
        bare.place(distance_m)
        loop.stop_episode(success)
        loop.stop_episode()  # there is none any more
    assert emitter.flush()
    assert [end.outcome for end in ends_of(publisher.frames).values()] == ["success", "failure", "success", "failure"]
    rows = [row for episode, row in rows_of(publisher.frames) if episode == "house_a/0"]
    assert [(row["mode"], row["step"]) for row in rows] == [("turn", 0), ("turn", 1), ("stop", 2)]
    navigation = next(iter(ends_of(publisher.frames).values())).navigation
    assert navigation is not None
    assert (navigation.shortest_path, navigation.final_distance) == (trace[0]["start_geodesic"], 0.19)


@pytest.mark.usefixtures("habitat_sim")
def test_the_limit_ends_as_timeout_a_reset_as_aborted_and_the_loop_as_it_says(
    trace: Trace, emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    bare = FakeSimulator()
    loop = loop_of(bare, emitter, max_steps=3)
    play(loop, bare, trace, 3)
    play(loop, bare, trace, 2)
    loop.reset()
    loop.report(perception_s=0.5)  # of a step that never comes: an episode begins
    play(loop, bare, trace, 1)
    with pytest.raises(SignalError, match="an episode's outcome is one of"):
        loop.end_episode("won")
    loop.end_episode("failure")
    bare.play(trace)
    assert loop.step(trace[0]["action"])["collided"] is False  # between episodes nothing is reported
    loop.close()
    assert bare.closed
    assert emitter.flush()
    assert [end.outcome for end in ends_of(publisher.frames).values()] == ["timeout", "aborted", "failure"]
    assert loop.springback.steps == 6
    assert not any("perception_s" in row for _, row in rows_of(publisher.frames))


@pytest.mark.usefixtures("habitat_sim")
@pytest.mark.parametrize("goals", [[1.0, 0.0, 2.0], [[1.0, 2.0]], "abc", np.zeros((1, 2, 3))])
def test_goals_that_are_no_positions_are_refused_and_the_episode_goes_on(
    trace: Trace, emitter: StepEmitter, publisher: MemoryPublisher, goals: Any
) -> None:
    bare = FakeSimulator()
    loop = loop_of(bare, emitter)
    play(loop, bare, trace, 1)
    with pytest.raises(SignalError, match=r"expected a list of positions, each of x, y \(up\) and z in m; .* \[goal\]"):
        loop.begin_episode(goals=goals, episode="1")
    loop.end_episode("failure")
    assert emitter.flush()
    assert [end.outcome for end in ends_of(publisher.frames).values()] == ["failure"]


@pytest.mark.usefixtures("habitat_sim")
def test_actions_by_number_have_the_names_of_the_agents_action_space(
    trace: Trace, emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    bare = FakeSimulator()
    bare.get_agent(0).agent_config.action_space[trace[0]["action"]].name = "turn_slowly"
    loop = loop_of(bare, emitter, reading=HabitatReading(clearance_m=0.0, mode=str.upper))
    play(loop, bare, trace, 1)
    assert emitter.flush()
    (row,) = [row for _, row in rows_of(publisher.frames)]
    assert (row["action"], row["mode"], row["risk"]) == ("turn_slowly", "TURN_SLOWLY", 0.0)


def test_without_habitat_sim_the_error_says_how_to_install_it(
    trace: Trace, emitter: StepEmitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "habitat_sim", None)
    loop = loop_of(FakeSimulator(), emitter)
    with pytest.raises(MissingHabitatError, match=r"habitat_sim cannot be imported .*: conda install habitat-sim"):
        loop.begin_episode(goals=GOAL, episode="0")

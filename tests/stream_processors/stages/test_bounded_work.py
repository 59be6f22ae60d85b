"""The work and the outputs of one frame are bounded, whatever it holds; what of it can be used is taken in."""

from collections import Counter
from typing import Any

import pytest

from springback.producers.contract.salvage import MAX_FRAME_EPISODES, MAX_FRAME_ROWS
from springback.stream_processors.exact.port import Output, StageEvent
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.stages.dead_letters import MOST_FAULTS
from springback.stream_processors.stages.track_steps import TrackSteps
from springback.stream_processors.topics import DEAD_LETTER, LARGEST_RECORD_BYTES
from tests.stream_processors.costly_frames import costly_frames, episode, frame, rows
from tests.stream_processors.frame_builders import START_S, nominal_baseline, nothing_learned, ready

CONFIG = ResilienceConfig()
OF_AN_EPISODE = 4
"""Outputs that one header can give rise to: it begins, it ends, its agent's status, steps that are not used."""


def taken_in(data: bytes, *, learned: bool = False) -> tuple[TrackSteps, Any, list[Output]]:
    baseline = ready(nominal_baseline(CONFIG, 12), CONFIG) if learned else nothing_learned(CONFIG)
    reducer = TrackSteps(CONFIG, baseline)
    state = reducer.blank()
    return reducer, state, reducer.apply([StageEvent("steps", 0, 0, b"p", data, START_S)], [state])


def dead(outputs: list[Output]) -> Counter[str]:
    return Counter(dict(each.headers)["reason"].decode() for each in outputs if each.topic == DEAD_LETTER)


COSTLY = costly_frames(MAX_FRAME_ROWS)


@pytest.mark.parametrize("data", COSTLY.values(), ids=COSTLY)
def test_a_costly_frame_has_few_outputs_and_small_ones(data: bytes) -> None:
    _, state, outputs = taken_in(data, learned=True)
    assert len(outputs) <= OF_AN_EPISODE * MAX_FRAME_EPISODES
    assert sum(dead(outputs).values()) <= MOST_FAULTS
    assert all(len(output.value or b"") < LARGEST_RECORD_BYTES for output in outputs)
    reference_state = [e.learning for agent in state.agents.values() for e in agent.open.values() if e.traits.reference]
    assert reference_state in ([], [None])  # it has passed through too many cells to teach anything


@pytest.mark.parametrize("faults", [MOST_FAULTS, MOST_FAULTS + 1])
def test_faulty_rows_go_one_by_one_up_to_a_bound_and_good_ones_are_taken_in(faults: int) -> None:
    data = frame([episode()], rows(faults + 7, progress=[2.0] * faults + [0.5] * 7))
    reducer, state, outputs = taken_in(data)
    assert reducer.steps == 7
    assert state.agents["robot-0"].counts.steps == 7
    if faults == MOST_FAULTS:
        assert dead(outputs) == {"out_of_range": MOST_FAULTS}
        return
    [letter] = [output for output in outputs if output.topic == DEAD_LETTER]
    assert letter.value == data
    headers = dict(letter.headers)
    assert headers["reason"] == b"too_many_faults"
    assert headers["detail"].startswith(b"101 of 108 rows and 0 other parts are faulty and left out, the first: out_of")


def test_an_episode_whose_first_step_is_one_of_very_many_faulty_rows_was_seen_from_its_beginning() -> None:
    many = MOST_FAULTS + 50
    steps = rows(many + 2, episode=[0] * many + [1, 1], step=[*range(many), 0, 1], progress=[2.0] * many + [2.0, 0.1])
    _, state, _ = taken_in(frame([episode(0), episode(1)], steps))
    [begun] = state.agents["robot-1"].open.values()
    assert (begun.steps, begun.joined) == (1, False)


def test_a_frame_of_too_many_agents_goes_whole_to_the_dead_letters() -> None:
    data = frame([episode(i) for i in range(20_000)], rows(20_000, episode=list(range(20_000)), step=[0] * 20_000))
    _, state, outputs = taken_in(data)
    assert (dead(outputs), outputs[0].value, len(outputs)) == ({"too_many_episodes": 1}, data, 1)
    assert not state.agents

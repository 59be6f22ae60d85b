"""The states of an agent: each by its own condition, and in their order where several hold."""

from collections.abc import Callable
from typing import Any

import pytest

from springback.sinks.fleet.agent_state import AgentActivity, StateTimes
from springback.sinks.fleet.sight import UnseenTime
from springback.stream_processors.metrics.spec import AGENT_STATES, AgentStateName

Make = Callable[..., Any]


def activity(**fields: Any) -> AgentActivity:
    """A calm agent at 1000 s."""
    return AgentActivity(**{"seen_s": 1000.0, "step_s": 1000.0, "progress_s": 1000.0, "running": True, **fields})


@pytest.mark.parametrize(
    ("now_s", "fields", "expected"),
    [
        (1060.0, {}, "calm"),
        (1060.5, {}, "silent"),
        (1060.0, {"step_s": 999.5}, "stale"),
        (1060.0, {"step_s": 1000.0}, "calm"),
        (1010.0, {"in_rebound": True}, "rebound"),
        (1060.0, {"contested_s": 1000.0}, "contested"),
        (1060.0, {"contested_s": 999.5}, "calm"),
        (1010.0, {"progress_s": 709.5}, "stalled"),
        (1010.0, {"progress_s": 710.0}, "calm"),
        (1010.0, {"scored": False}, "unknown"),
        (1010.0, {"running": False}, "ended"),
    ],
)
def test_each_state_by_its_own_condition(now_s: float, fields: dict[str, Any], expected: str) -> None:
    assert activity(**fields).state(now_s) == expected


def test_where_several_hold_the_first_of_the_order_is_it() -> None:
    everything = activity(seen_s=0.0, step_s=0.0, progress_s=0.0, running=False, in_rebound=True, scored=False)
    everything.contested_s = 1000.0
    steps: list[tuple[dict[str, Any], AgentStateName]] = [
        ({}, "ended"),
        ({"running": True}, "silent"),
        ({"seen_s": 1000.0}, "stale"),
        ({"step_s": 1000.0}, "contested"),
        ({"contested_s": 0.0}, "rebound"),
        ({"in_rebound": False}, "stalled"),
        ({"progress_s": 1000.0}, "unknown"),
        ({"scored": True}, "calm"),
    ]
    assert everything.state(1000.0, blind=True) == "unknown"
    for fields, expected in steps:
        for name, value in fields.items():
            setattr(everything, name, value)
        assert everything.state(1000.0) == expected
    assert {expected for _, expected in steps} == set(AGENT_STATES)


def test_whoever_is_blind_calls_nobody_silent_nor_ended() -> None:
    assert activity().state(5000.0, blind=True) == "unknown"
    assert activity(running=False).state(5000.0, blind=True) == "unknown"


def test_silence_while_nobody_could_see_is_not_the_agents() -> None:
    unseen = UnseenTime(1030.0, 4000.0)
    assert activity().state(4030.0, unseen=unseen) == "calm"
    assert activity().state(4030.5, unseen=unseen) == "silent"
    assert activity(seen_s=900.0).state(4001.0, unseen=unseen) == "silent"


def test_the_times_are_settings() -> None:
    times = StateTimes(silent_s=5.0, stalled_s=20.0)
    assert activity().state(1006.0, times=times) == "silent"
    assert activity(progress_s=979.0).state(1000.0, times=times) == "stalled"
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=r"silent_s is .*expected seconds above 0"):
            StateTimes(silent_s=wrong)


def test_the_latest_status_counts(status: Make, running: Make) -> None:
    found = AgentActivity.of(status(step_s=990.0, progress_s=980.0, episodes=(running(cost=1.0),)))
    assert found == activity(step_s=990.0, progress_s=980.0, in_rebound=True)
    found.fold(status(seen_s=999.0))
    assert found.running
    found.fold(status(seen_s=float("nan")))
    assert found.running
    found.fold(status(seen_s=1001.0))
    assert found == activity(seen_s=1001.0, step_s=1001.0, progress_s=1001.0, running=False)


def test_an_episode_that_silence_closed_has_not_ended(status: Make) -> None:
    assert AgentActivity.of(status(abandoned=True)).state(2000.0) == "silent"
    assert AgentActivity.of(status(abandoned=False)).state(2000.0) == "ended"


def test_unscored_is_where_no_step_of_any_open_episode_was_scored(status: Make, running: Make) -> None:
    blank, partly = running(steps=5, unscored_steps=5), running(episode="2", steps=5, unscored_steps=4)
    assert AgentActivity.of(status(episodes=(blank,))).state(1010.0) == "unknown"
    assert AgentActivity.of(status(episodes=(blank, partly))).state(1010.0) == "calm"

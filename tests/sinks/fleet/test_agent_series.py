"""What single agents show: where they stand, in which state they are, and what the lost leave behind."""

from collections.abc import Callable
from typing import Any

import pytest

from springback.stream_processors.resilience.readings import EpisodeTraits, OpenWindow
from tests.sinks.fleet.agent_page import AgentPage

Make = Callable[..., Any]

DAY_S = 86_400.0


def test_an_agent_shows_where_it_stands(status: Make, running: Make, window: Make) -> None:
    newest = running(episode="2", progress=0.25, propositions=0.75, intensity_by_channel=(0.5, 1.5, 0.0))
    page = AgentPage().after(status(progress_s=950.0, episodes=(running(progress=0.9), newest)))
    assert page.agents("agent_progress") == {"robot-7": 0.25}
    assert page.agents("agent_propositions") == {"robot-7": 0.75}
    assert page.series("agent_channel_intensity") == {
        ("robot-7", "cognitive"): 0.75,
        ("robot-7", "physical"): 1.5,
        ("robot-7", "debt"): 0.0,
    }
    assert page.agents("agent_last_progress_timestamp_seconds") == {"robot-7": 950}
    assert page.states() == {"robot-7": "calm"}
    assert page.counts() == {"calm": 1}


def test_the_oldest_open_window_says_when_it_departed_by_the_brokers_clock(
    status: Make, running: Make, window: Make
) -> None:
    late, early = (
        window(state="open", departure_time_s=990.0),
        window(episode="2", state="open", departure_time_s=980.0),
    )
    page = AgentPage().after(late, early, status(clock_skew_s=-5.0, episodes=(running(), running(episode="2"))))
    assert page.agents("agent_window_departed_timestamp_seconds") == {"robot-7": 985}
    assert page.states() == {"robot-7": "rebound"}
    page.after(window(episode="2"))
    assert page.agents("agent_window_departed_timestamp_seconds") == {"robot-7": 995}
    page.after(window())
    assert page.agents("agent_window_departed_timestamp_seconds") == {}
    assert page.states() == {"robot-7": "calm"}


def test_a_provisional_window_is_shown_and_has_no_departure_that_an_alert_could_go_by(
    status: Make, running: Make, window: Make
) -> None:
    learning = window(state="open", departure_time_s=980.0, provisional=True)
    page = AgentPage().after(learning, status(episodes=(running(), running(episode="2"))))
    assert page.states() == {"robot-7": "rebound"}
    assert page.agents("agent_in_rebound") == {"robot-7": 1}
    assert page.agents("agent_window_departed_timestamp_seconds") == {}
    page.after(window(episode="2", state="open", departure_time_s=990.0))
    assert page.agents("agent_window_departed_timestamp_seconds") == {"robot-7": 990}


def test_a_provisional_window_that_a_status_alone_tells_of_counts_no_more(status: Make, running: Make) -> None:
    told = OpenWindow(
        number=0, cause="delay", departure_step=2, departure_time_s=980.0, recovery_cost=0.5, provisional=True
    )
    page = AgentPage().after(status(episodes=(running(window=told),)))
    assert page.agents("agent_in_rebound") == {"robot-7": 1}
    assert page.agents("agent_window_departed_timestamp_seconds") == {}


def traits(version: str) -> EpisodeTraits:
    return EpisodeTraits(family="navigation", task="kitchen", version=version)


def test_what_an_agent_is_at_is_its_newest_open_episode_or_else_its_last(
    status: Make, running: Make, summary: Make
) -> None:
    ended = [summary(episode=str(number), ended_s=900.0 + number, traits=traits(f"{number}")) for number in range(3)]
    page = AgentPage().after(ended[1], ended[2], ended[0], status())
    assert set(page.series("agent_info")) == {("robot-7", "navigation", "default", "2")}
    page.after(status(seen_s=1001.0, episodes=(running(episode="8"), running(episode="9", traits=traits("9")))))
    assert set(page.series("agent_info")) == {("robot-7", "navigation", "default", "9")}
    page.after(status(seen_s=1002.0))
    assert set(page.series("agent_info")) == {("robot-7", "navigation", "default", "2")}


def test_the_rest_together_tell_the_worst_and_how_many_are_in_which_state(
    status: Make, running: Make, window: Make
) -> None:
    page = AgentPage(agents=1)
    for number in range(4):
        name = f"robot-{number}"
        channels = (float(number), 1.0, 0.0)
        episode = running(name, progress=number / 10, propositions=number / 10, intensity_by_channel=channels)
        page.after(status(name, progress_s=900.0 - number, episodes=(episode,)))
    page.after(window("robot-3", state="open"), status("robot-2", seen_s=1001.0))
    assert page.agents("agent_progress") == {"robot-0": 0, "other": 0.1}
    assert page.agents("agent_propositions") == {"robot-0": 0, "other": 0.1}
    assert page.agents("agent_last_progress_timestamp_seconds")["other"] == 897
    assert page.series("agent_channel_intensity")["other", "cognitive"] == 3
    assert page.agents("agent_window_departed_timestamp_seconds") == {"other": 100}
    others = {state: value for (agent, state), value in page.series("agent_state").items() if agent == "other"}
    assert others == {
        "calm": 1,
        "rebound": 1,
        "stalled": 0,
        "stale": 0,
        "silent": 0,
        "contested": 0,
        "ended": 1,
        "unknown": 0,
    }
    assert page.counts() == {"calm": 2, "rebound": 1, "ended": 1}
    assert {agent for agent, *_ in page.series("agent_info")} == {"robot-0"}


def test_an_agent_that_fell_silent_goes_on_being_silent_for_a_day(status: Make, running: Make) -> None:
    page = AgentPage().after(status(episodes=(running(),)))
    assert page.at(1061.0).states() == {"robot-7": "silent"}
    assert page.agents("agent_progress") == {"robot-7": 0.5}
    page.at(1000.0 + 901)
    assert page.agents("agent_progress") == {}
    assert page.agents("agent_last_progress_timestamp_seconds") == {}
    # The workers have closed its episode in the meantime.
    page.after(status(abandoned=True))
    for now_s in (1000.0 + 902, 1000.0 + DAY_S):
        page.at(now_s)
        assert page.states() == {"robot-7": "silent"}
        assert page.agents("agent_last_seen_timestamp_seconds") == {"robot-7": 1000}
        assert page.counts() == {"silent": 1}
    page.at(1000.5 + DAY_S)
    assert (page.states(), page.agents("agent_last_seen_timestamp_seconds"), page.counts()) == ({}, {}, {})


def test_of_the_lost_no_more_are_shown_than_of_the_live(status: Make, running: Make) -> None:
    page = AgentPage(agents=2).after(*(status(name, episodes=(running(name),)) for name in "dcba"))
    page.at(2000.0).after(status("z", seen_s=2000.0))
    assert page.agents("agent_last_seen_timestamp_seconds") == {"a": 1000, "b": 1000, "z": 2000}
    assert page.counts() == {"silent": 4, "ended": 1}


def test_whoever_cannot_see_calls_nobody_silent_and_lets_nobody_go(status: Make, running: Make) -> None:
    page = AgentPage().after(status(episodes=(running(),)))
    page.sink.show_frames_behind({0: 0})
    page.at(1015.0).sink.show_broker_away()
    assert (page.states(), page.counts()) == ({"robot-7": "unknown"}, {"unknown": 1})
    page.at(9000.0).sink.show_broker_away()
    assert (page.states(), page.counts()) == ({"robot-7": "unknown"}, {"unknown": 1})
    assert page.agents("agent_progress") == {"robot-7": 0.5}
    page.at(9002.0).sink.show_frames_behind({0: 0})
    assert page.states() == {"robot-7": "calm"}
    assert page.at(9060.0).states() == {"robot-7": "silent"}


def test_while_the_workers_leave_input_unread_nobody_is_silent(status: Make, running: Make) -> None:
    page = AgentPage().after(status(episodes=(running(),)))
    for now_s in range(1010, 1070, 2):
        page.at(now_s).sink.show_frames_behind({0: 3, 1: 0})
    assert page.states() == {"robot-7": "unknown"}
    page.at(1080.0).after(status(seen_s=1079.0, episodes=(running(),))).sink.show_frames_behind({0: 1, 1: 0})
    assert page.states() == {"robot-7": "calm"}


@pytest.mark.parametrize("hostile", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_times_that_cannot_be_are_those_of_the_last_event(status: Make, running: Make, hostile: float) -> None:
    page = AgentPage().after(status(step_s=hostile, progress_s=hostile, episodes=(running(),)))
    assert page.agents("agent_last_progress_timestamp_seconds") == {"robot-7": 1000}
    assert page.states() == {"robot-7": "calm"}


def test_partitions_beyond_the_bound_are_summed() -> None:
    page = AgentPage(partitions=2)
    page.sink.show_frames_behind({2: 5, 0: 1, 3: 7, 1: 2})
    assert page.series("frames_behind") == {("0",): 1, ("1",): 2, ("other",): 12}

from collections.abc import Callable
from typing import Any

from tests.sinks.fleet.agent_page import AgentPage

Make = Callable[..., Any]


def test_an_agent_shows_how_it_is_doing(status: Make, running: Make, window: Make) -> None:
    board = AgentPage().after(
        window(state="open"), status(clock_skew_s=-2.5, episodes=(running(intensity=1.25, cost=0.5),))
    )
    assert board.agents("agent_in_rebound") == {"robot-7": 1}
    assert board.agents("agent_recovery_intensity") == {"robot-7": 1.25}
    assert board.agents("agent_open_window_recovery_cost") == {"robot-7": 0.5}
    assert board.agents("agent_clock_skew_seconds") == {"robot-7": -2.5}
    assert board.agents("agent_last_seen_timestamp_seconds") == {"robot-7": 1000}
    assert board("last_event_age_seconds") == 10


def test_the_running_cost_ends_with_the_window(status: Make, running: Make, window: Make) -> None:
    board = AgentPage().after(window(state="open"), status(episodes=(running(cost=0.5),)), window())
    assert board.agents("agent_open_window_recovery_cost") == {"robot-7": 0}


def test_an_agent_without_a_scored_step_has_no_intensity(status: Make, running: Make) -> None:
    board = AgentPage().after(status(episodes=(running(intensity=None),)))
    assert board.agents("agent_recovery_intensity") == {}
    assert board.agents("agent_in_rebound") == {"robot-7": 0}


def test_an_agent_without_values_has_no_beta_step(status: Make, running: Make) -> None:
    board = AgentPage().after(
        status("a", episodes=(running("a", beta_step=0.5), running("a", episode="2", beta_step=0.75))),
        status("b", episodes=(running("b", beta_step=None),)),
    )
    assert board.agents("agent_beta_step") == {"a": 0.75}
    board.after(status("a", seen_s=1001.0))
    assert board.agents("agent_beta_step") == {}


def test_agents_beyond_the_cap_share_one_series(status: Make, running: Make, window: Make) -> None:
    board = AgentPage(agents=2)
    for number in (3, 1, 4, 0, 2):
        name = f"robot-{number}"
        board.after(
            status(
                name,
                seen_s=1000.0 + number,
                clock_skew_s=-float(number),
                episodes=(running(name, intensity=float(number), beta_step=number / 10),),
            ),
            window(name, state="open"),
        )
    assert board.agents("agent_in_rebound") == {"robot-0": 1, "robot-1": 1, "other": 3}
    assert board.agents("agent_recovery_intensity") == {"robot-0": 0, "robot-1": 1, "other": 4}
    assert board.agents("agent_beta_step") == {"robot-0": 0, "robot-1": 0.1, "other": 0.4}
    assert board.agents("agent_last_seen_timestamp_seconds")["other"] == 1004
    assert board.agents("agent_clock_skew_seconds")["other"] == -4
    assert board("exporter_overflow_agents_total") == 3
    assert board("agents", state="rebound") == 5


def test_an_agent_named_other_is_not_the_rest(status: Make) -> None:
    board = AgentPage().after(status("other"))
    (label,) = board.agents("agent_in_rebound")
    assert label.startswith("other~")


def test_an_agent_that_ended_leaves_and_makes_room(status: Make, window: Make) -> None:
    board = AgentPage(agents=1, agent_ttl_s=60.0).after(status("a"), window("a", state="open"))
    board.now_s = 1060.0
    assert board.agents("agent_in_rebound") == {"a": 1}
    assert board("agents", state="ended") == 1
    board.now_s = 1060.5
    assert board.agents("agent_in_rebound") == {}
    assert board.agents("agent_last_seen_timestamp_seconds") == {}
    assert board("agents", state="ended") == 1
    assert board("open_rebound_windows", family="navigation", method="default", version="0") == 0
    board.after(status("b", seen_s=1060.0))
    assert board.agents("agent_in_rebound") == {"b": 0}
    assert board("exporter_overflow_agents_total") == 0


def test_an_agent_that_returns_is_not_counted_again(status: Make, running: Make) -> None:
    board = AgentPage(agent_ttl_s=60.0).after(status(episodes=(running(steps=5),)))
    board.now_s = 5000.0
    assert board.agents("agent_in_rebound") == {}
    board.after(status(seen_s=4999.0, episodes=(running(steps=6),)))
    assert board.agents("agent_in_rebound") == {"robot-7": 0}
    assert board("steps_total", family="navigation", method="default", version="0") == 6


def test_a_long_gone_agent_of_the_compacted_topic_is_neither_live_nor_silent(status: Make) -> None:
    board = AgentPage()
    board.now_s = 1_000_000.0
    board.after(status())
    assert board.counts() == {}
    assert board("last_event_age_seconds") == 999_000


def test_a_new_session_ends_the_windows_of_the_one_before(status: Make, window: Make) -> None:
    board = AgentPage().after(status(), window(state="open"))
    board.after(status(session="boot-2", seen_s=1001.0))
    assert board.agents("agent_in_rebound") == {"robot-7": 0}


def test_a_time_that_cannot_be_is_refused(status: Make) -> None:
    board = AgentPage().after(status("a", seen_s=float("nan")), status("b", seen_s=1e12), status("c"))
    assert board.agents("agent_last_seen_timestamp_seconds") == {"c": 1000}
    assert board("last_event_age_seconds") == 10
    assert board("exporter_refused_values_total", metric="springback_agent_last_seen_timestamp_seconds") == 2


def test_values_that_are_not_finite_are_refused_once_not_at_every_scrape(status: Make, running: Make) -> None:
    board = AgentPage().after(
        status(clock_skew_s=float("inf"), episodes=(running(intensity=float("nan"), beta_step=float("inf")),))
    )
    for _ in range(3):
        assert board.agents("agent_clock_skew_seconds") == {}
        assert board.agents("agent_recovery_intensity") == {}
        assert board.agents("agent_beta_step") == {}
    assert board("exporter_refused_values_total", metric="springback_agent_clock_skew_seconds") == 1


def test_a_broker_clock_ahead_of_ours_makes_no_negative_age(status: Make) -> None:
    board = AgentPage().after(status(seen_s=1012.0))
    assert board("last_event_age_seconds") == 0

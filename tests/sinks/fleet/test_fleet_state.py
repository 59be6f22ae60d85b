"""The state that exporter and live page share: what a reading brings, and which windows are open."""

from collections.abc import Callable
from typing import Any

from springback.sinks.fleet.fleet_state import (
    AgentState,
    BegunNews,
    EndNews,
    FamilyNews,
    FleetBounds,
    FleetState,
    RefusedStatus,
    StatusNews,
    WindowNews,
)
from springback.sinks.sink import DeadLetter
from springback.stream_processors.resilience.readings import AgentCounts

Make = Callable[..., Any]
NOW_S = 1010.0


def fleet(agents: int = 100) -> FleetState[AgentState]:
    return FleetState(AgentState, FleetBounds(agents=agents, families=10, reasons=1, identities=100))


def test_each_reading_is_answered_by_what_it_brought_and_a_repetition_by_none(
    window: Make, begun: Make, summary: Make, status: Make, running: Make, family: Make
) -> None:
    state = fleet()
    for reading, news in (
        (begun(), BegunNews),
        (window(state="open"), WindowNews),
        (window(), WindowNews),
        (status(seen_s=1001.0, episodes=(running(),)), StatusNews),
        (summary(), EndNews),
        (family(), FamilyNews),
    ):
        assert isinstance(state.take(reading, NOW_S), news)
    for repeated in (begun(), window(state="open"), window(), status(), summary(), family()):
        assert state.take(repeated, NOW_S) is None


def test_steps_are_new_once_whether_a_status_or_the_summary_tells(summary: Make, status: Make, running: Make) -> None:
    state = fleet()
    first = state.take(status(episodes=(running(steps=5, unscored_steps=2),)), NOW_S)
    assert isinstance(first, StatusNews)
    assert [(told.steps, told.unscored) for told in first.steps] == [(5, 2)]
    end = state.take(summary(steps=20, unscored_steps=2), NOW_S)
    assert isinstance(end, EndNews)
    assert (end.begins, end.steps.steps, end.steps.unscored) == (True, 15, 0)
    late = state.take(status(seen_s=1001.0, episodes=(running(steps=18),)), NOW_S)
    assert isinstance(late, StatusNews)
    assert list(late.steps) == []


def test_what_a_producer_said_before_comes_with_its_news(status: Make) -> None:
    state = fleet()
    state.take(status(producer="one", counts=AgentCounts(steps=5)), NOW_S)
    state.take(status(producer="two", seen_s=1005.0, counts=AgentCounts(steps=50)), NOW_S)
    news = state.take(status(producer="one", seen_s=1001.0, counts=AgentCounts(steps=7)), NOW_S)
    assert isinstance(news, StatusNews)
    assert (news.before.counts.steps, news.status.counts.steps, news.newest) == (5, 7, False)


def test_a_window_whose_opening_was_lost_is_open_while_the_status_tells_of_it(
    window: Make, summary: Make, status: Make, running: Make
) -> None:
    in_window = status(episodes=(running(cost=0.5),))
    state = fleet()
    state.take(in_window, NOW_S)
    (agent,) = state.agents()
    assert (state.state_of(agent, NOW_S), agent.running_cost, agent.departed_s) == ("rebound", 0.5, 100)
    state.take(status(seen_s=1001.0, episodes=(running(),)), NOW_S)
    assert (state.state_of(agent, NOW_S), agent.running_cost) == ("calm", 0)
    for ended in (window(), summary()):  # a status may be older than the end of what it tells of
        for readings in ((in_window, ended), (ended, in_window)):
            state = fleet()
            for reading in readings:
                state.take(reading, NOW_S)
            (agent,) = state.agents()
            assert (state.state_of(agent, NOW_S), agent.running_cost) == ("calm", 0)


def test_a_status_whose_time_cannot_be_changes_nothing(status: Make) -> None:
    state = fleet()
    for seen_s in (float("nan"), float("inf"), 0.0, NOW_S + 90_000):
        assert isinstance(state.take(status(seen_s=seen_s), NOW_S), RefusedStatus)
    assert list(state.agents()) == []
    assert state.sight.newest_s is None


def test_who_finds_no_room_is_counted(status: Make) -> None:
    state = fleet(agents=2)
    for name in "abca":
        state.take(status(name), NOW_S)
    assert [agent.label for agent in state.agents()] == ["c", "a"]
    assert state.agents_forgotten == 2


def test_dead_letters_count_once_by_a_bounded_number_of_reasons() -> None:
    state = fleet()
    letters = [("nan", b"1"), ("nan", b"1"), ("late", b"2"), ("odd", b"3")]
    assert [state.take_dead_letter(DeadLetter(*letter)) for letter in letters] == ["nan", None, "other", "other"]
    assert state.dead_letters == {"nan": 1, "other": 2}


def test_an_episode_that_goes_on_after_a_silence_is_one_episode_with_its_outcome_corrected(
    window: Make, begun: Make, summary: Make, status: Make, running: Make
) -> None:
    state = fleet()
    state.take(begun(), NOW_S)
    state.take(window(state="open"), NOW_S)
    state.take(window(state="censored"), NOW_S)
    assert isinstance(state.take(summary(outcome="aborted", steps=8), NOW_S), EndNews)
    # The status may come before what says that the episode goes on.
    told = state.take(status(seen_s=1001.0, episodes=(running(steps=12, revision=1),)), NOW_S)
    assert isinstance(told, StatusNews)
    assert [steps.steps for steps in told.steps] == [4]
    assert state.take(begun(revision=1), NOW_S) == BegunNews(begun().key, begun().traits, goes_on=True)
    assert state.take(summary(outcome="aborted", steps=8), NOW_S) is None  # sent again; it stays taken back
    assert isinstance(state.take(window(revision=1), NOW_S), WindowNews)
    end = state.take(summary(steps=20, revision=1), NOW_S)
    assert isinstance(end, EndNews)
    assert (end.begins, end.corrects, end.steps.steps, end.summary.outcome) == (False, False, 8, "success")
    for repeated in (begun(), begun(revision=1), summary(outcome="aborted"), summary(revision=1), window(revision=1)):
        assert state.take(repeated, NOW_S) is None


def test_an_end_corrects_another_where_what_came_between_was_lost(summary: Make) -> None:
    state = fleet()
    state.take(summary(outcome="aborted", steps=8), NOW_S)
    end = state.take(summary(steps=20, revision=1), NOW_S)
    assert isinstance(end, EndNews)
    assert (end.begins, end.corrects, end.steps.steps) == (False, True, 12)


def test_two_producers_that_take_turns_under_one_name_contest_it(status: Make, running: Make) -> None:
    state = fleet()

    def told(producer: str, seen_s: float, step_s: float) -> str:
        reading = status(producer=producer, seen_s=seen_s, step_s=step_s, progress_s=seen_s, episodes=(running(),))
        news = state.take(reading, NOW_S)
        assert isinstance(news, StatusNews)
        return state.state_of(news.agent, seen_s)

    assert told("one", 1000.0, 1000.0) != "contested"
    assert told("two", 1001.0, 1001.0) != "contested"  # a program that calls itself by another name at each start
    assert told("one", 1002.0, 1000.0) != "contested"  # the end of what it left open, and nothing new
    assert told("two", 1003.0, 1003.0) == told("one", 1004.0, 1004.0) == "contested"
    assert told("one", 1064.5, 1064.5) != "contested"

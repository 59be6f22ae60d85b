"""The fold behind the live page: order, repetitions, bounds, states."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from springback.dashboards.live_page.fleet_rows import (
    RowOrder,
    count_states,
    filter_rows,
    fleet_rows,
    page_of,
    sort_rows,
)
from springback.dashboards.live_page.fleet_view import EventRate, FleetView, ViewBounds
from springback.sinks.fleet.fleet_state import agent_key
from springback.sinks.fleet.labels import clean_label_value
from springback.sinks.sink import DeadLetter
from springback.stream_processors.resilience.readings import AgentCounts, EpisodeKey, Reading
from springback.stream_processors.resilience.window_evidence import WindowEvidence
from tests.dashboards.live_page.fake_fleet import family, status, summary, window
from tests.reading_builders import episode_begun

NOW_S = 10_000.0


def folded(readings: list[Reading], bounds: ViewBounds | None = None) -> FleetView:
    view = FleetView(bounds)
    view.sight.caught_up = True
    for reading in readings:
        view.take(reading, NOW_S)
    view.sight.show_frames_behind({0: 0}, NOW_S)
    return view


def shown(view: FleetView) -> Any:
    """All that a page can tell of it, but for the rates."""
    agents = {
        agent.label: (
            *(agent.history.series("total"), agent.history.series("cost"), agent.window_spans()),
            *(agent.episodes, list(agent.windows.values())),
        )
        for agent in view.agents()
    }
    rows = sorted(fleet_rows(view, NOW_S))
    return rows, agents, view.windows(), view.episodes(), view.families(), view.episodes_ended


PARTITIONS: list[list[Reading]] = [
    [status("robot-1", step, seen_s=9_900.0 + step, departed=20 if step > 25 else None) for step in range(10, 60)],
    [status("robot-2", step, seen_s=9_950.0 + step, ended=step == 39) for step in range(30, 40)],
    [window("robot-1", state="open"), window("robot-1"), window("robot-1", 1, departure_step=53, state="open")],
    [window("robot-2", state="unrecovered"), window("robot-3", state="censored")],
    [
        *(summary("robot-1", "0"), summary("robot-2", "0", outcome="aborted")),
        episode_begun("robot-2", episode="0", revision=1),
        summary("robot-2", "0", outcome="failure", revision=1),
        summary("robot-2", "1", outcome="aborted"),
        episode_begun("robot-2", episode="1", revision=1),
    ],
    [replace(summary("robot-1", str(number)), ended_s=61.0 + number) for number in range(2, 12)],
    [family("navigation", 1), family("navigation", 2, success_rate=0.5), family("assembly", 7)],
]


@given(st.randoms(use_true_random=False), st.data())
def test_neither_the_order_between_partitions_nor_repetitions_matter(
    shuffled: random.Random, data: st.DataObject
) -> None:
    queues = [list(partition) for partition in PARTITIONS]
    # A worker that starts anew sends some of it once more, and may fall again before it has sent all.
    for queue in queues:
        start = data.draw(st.integers(0, len(queue) - 1))
        queue.extend(queue[start : start + data.draw(st.integers(0, 3))])
    mixed = []
    while queues:
        queue = shuffled.choice(queues)
        mixed.append(queue.pop(0))
        queues = [queue for queue in queues if queue]
    assert shown(folded(mixed)) == shown(folded([reading for partition in PARTITIONS for reading in partition]))


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), max_size=300))
def test_memory_is_bounded_however_many_come_and_go(steps: list[tuple[int, int]]) -> None:
    bounds = ViewBounds(agents=7, windows=5, episodes=4, families=3, reasons=2, identities=10)
    view = FleetView(bounds)
    for number, (agent, kind) in enumerate(steps):
        name = f"robot-{agent}"
        reading = (
            status(name, number, seen_s=NOW_S + number),
            window(name, number),
            family(name),
            summary(name, str(number)),
        )[kind]
        view.take(reading, NOW_S + number)
        view.take_dead_letter(DeadLetter(f"reason-{agent}", str(number).encode()))
    agents = list(view.agents())
    assert len(agents) <= 7
    assert len(view.windows()) <= 5
    assert len(view.families()) <= 3
    assert len(view.dead_letters) <= 3  # the third is `other`
    assert view.dead_letters.total() == len(steps)
    assert len(view.episodes()) <= 4
    assert all(len(agent.windows) <= 8 and len(agent.episodes) <= 8 for agent in agents)
    named = {f"robot-{agent}" for agent, kind in steps if kind < 2}
    assert view.agents_forgotten >= len(named) - len(agents)


def test_history_keeps_the_newest_samples() -> None:
    view = folded([status("robot-1", step, seen_s=1000.0 + step) for step in range(1, 1001)])
    agent = next(iter(view.agents()))
    progress = agent.history.series("progress")
    assert len(agent.history) == len(progress) == 240
    assert progress[0][0] == 1761.0
    assert progress[-1][0] == 2000.0
    assert agent.history.extent == (1761.0, 2000.0)


def test_the_lines_of_two_episodes_are_not_joined() -> None:
    view = FleetView()
    first, second = status("robot-1", 5, seen_s=1000.0), status("robot-1", 0, seen_s=1001.0, intensity=None)
    second = replace(second, episodes=(replace(second.episodes[0], key=EpisodeKey("robot-1", "boot", "2")),))
    view.take(first, NOW_S)
    view.take(second, NOW_S)
    history = next(iter(view.agents())).history
    assert history.series("progress") == [(1000.0, pytest.approx(5 / 60)), (1001.0, None), (1001.0, 0.0)]
    assert history.series("total")[-1] == (1001.0, None)  # not known is not 0


def test_windows_are_shaded_by_the_steps_that_samples_know() -> None:
    steps = [status("robot-1", step, seen_s=1000.0 + step / 2) for step in range(30, 80, 10)]
    view = folded(
        [*steps, window("robot-1", 1, departure_step=35, reentry_step=55), window("robot-1", 2, reentry_step=9)]
    )
    (agent,) = view.agents()
    assert agent.window_spans() == [(1017.5, 1027.5)]
    view.take(status("robot-1", 80, seen_s=1040.0, departed=75), NOW_S)
    assert agent.window_spans() == [(1017.5, 1027.5), (1037.5, 1040.0)]
    # Its end is known before a status says so.
    view.take(window("robot-1", 0, departure_step=75, reentry_step=78), NOW_S)
    assert agent.window_spans() == [(1017.5, 1027.5), (1037.5, 1039.0)]


def test_a_window_stays_shaded_when_its_reading_is_no_longer_remembered() -> None:
    departures = {50: 41, 60: 41}
    steps = [status("robot-1", step, seen_s=1000.0 + step, departed=departures.get(step)) for step in range(30, 90, 10)]
    (agent,) = folded([*steps]).agents()
    assert agent.window_spans() == [(1041.0, 1060.0)]


def test_where_nothing_can_be_seen_agents_are_unknown() -> None:
    view = FleetView()
    view.take(status("robot-1", seen_s=NOW_S), NOW_S)

    def state() -> str:
        return fleet_rows(view, NOW_S)[0].state

    assert (view.sight.blindness, state()) == ("catching up", "unknown")  # nobody knows yet whether a broker is there
    view.sight.caught_up = True
    assert (view.sight.blindness, state()) == ("catching up", "unknown")
    view.sight.caught_up = False
    view.sight.show_broker_away(NOW_S)
    assert (view.sight.blindness, state()) == ("no broker", "unknown")
    view.sight.show_frames_behind({0: 0}, NOW_S)
    assert (view.sight.blindness, state()) == ("catching up", "unknown")
    view.sight.caught_up = True
    assert (view.sight.blindness, state()) == (None, "calm")
    view.sight.show_broker_away(NOW_S + 1)
    assert state() == "unknown"
    view.sight.show_frames_behind({0: 5}, NOW_S + 2)
    view.sight.show_frames_behind({0: 5}, NOW_S + 70)
    assert (view.sight.blindness, state()) == ("no worker", "unknown")


def test_an_agent_of_the_far_future_is_not_believed() -> None:
    view = folded([status("robot-1", seen_s=NOW_S + 90_000), status("robot-2", seen_s=float("nan"))])
    assert list(view.agents()) == []


def test_a_token_leads_to_its_agent_and_nothing_else_does() -> None:
    view = folded([status("robot-1", seen_s=NOW_S)])
    found = view.agent(agent_key(clean_label_value("robot-1")).hex())
    assert found is not None
    assert found.label == "robot-1"
    assert [view.agent(token) for token in ("", "none", "ab" * 16, "../etc", "\u00e9" * 32)] == [None] * 5


def test_rows_are_sorted_filtered_and_paged() -> None:
    view = folded(
        [
            status("robot-2", 30, seen_s=NOW_S, family="assembly", intensity=0.25),
            status("robot-10", 10, seen_s=NOW_S, intensity=0.75),
            status("robot-9", 50, seen_s=NOW_S, departed=41, cost=3.0, intensity=4.0),
            status("drone-1", 20, seen_s=NOW_S, intensity=None, ended=True),
            status("robot-3", 20, seen_s=NOW_S - 61),
        ]
    )
    rows = fleet_rows(view, NOW_S)
    assert count_states(rows) == {"calm": 2, "rebound": 1, "ended": 1, "silent": 1}

    def order(column: str, descending: bool = False) -> list[str]:
        return [row.name for row in sort_rows(rows, RowOrder(column, descending))]

    assert order("state") == ["robot-9", "robot-3", "robot-2", "robot-10", "drone-1"]
    assert order("name", True) == ["robot-10", "robot-9", "robot-3", "robot-2", "drone-1"]
    assert order("intensity") == ["robot-2", "robot-3", "robot-10", "robot-9", "drone-1"]
    assert order("intensity", True)[-1] == order("progress", True)[-1] == "drone-1"
    assert order("nonsense") == order("state")
    assert [row.name for row in filter_rows(rows, {"ended"}, "")] == ["drone-1"]
    assert [row.name for row in filter_rows(rows, set(), "REFLEX assembly")] == ["robot-2"]
    assert [page_of(rows, page, 2).told() for page in (0, 1, 2, 3, 99)] == [
        *("1\u20132 of 5", "1\u20132 of 5", "3\u20134 of 5", "5\u20135 of 5", "5\u20135 of 5")
    ]
    assert page_of([], 1, 50).told() == "0 of 0"


def test_an_agent_of_two_producers_takes_the_steps_of_each_once() -> None:
    view = FleetView()
    for second in range(10):
        for producer, before in (("gateway", 5000), ("robot", 100)):
            counts = AgentCounts(steps=before + 2 * second)
            view.take(status("robot-7", seen_s=NOW_S + second, producer=producer, counts=counts), NOW_S + second)
    assert view.steps_per_second(NOW_S + 10) == 2 * 2 * 9 / 10
    started = status("robot-7", seen_s=NOW_S + 10, producer="robot", session="again", counts=AgentCounts(steps=9000))
    view.take(started, NOW_S + 10)
    assert view.steps_per_second(NOW_S + 11) == 2 * 2 * 9 / 10  # another start counts from where it is


def test_a_window_of_an_older_episode_is_told_with_its_cost() -> None:
    (older,) = status("robot-7", 50, departed=41, cost=3.0).episodes
    (newest,) = status("robot-7", 10).episodes
    view = FleetView()
    view.sight.caught_up = True
    view.sight.show_frames_behind({0: 0}, NOW_S)
    view.take(status("robot-7", seen_s=NOW_S, episodes=(older, newest)), NOW_S)
    (row,) = fleet_rows(view, NOW_S)
    assert (row.state, row.departure_step, row.cost, row.progress) == ("rebound", 41, 3.0, newest.progress)


def test_a_family_whose_worker_lost_its_state_is_believed_when_it_counts_anew() -> None:
    view = FleetView()
    for sequence, updated_s, success in ((42, 1000.0, 0.5), (41, 999.0, 0.1), (1, 2000.0, 0.75), (42, 1000.0, 0.5)):
        view.take(family("navigation", sequence, updated_s=updated_s, success_rate=success), NOW_S)
    assert [known.success_rate for known in view.families()] == [0.5]  # the old count was sent again, and is higher
    view.take(family("navigation", 2, updated_s=2001.0, success_rate=1.0), NOW_S)
    assert [known.success_rate for known in view.families()] == [1.0]


def test_while_the_broker_was_away_nobody_was_silent() -> None:
    view = folded([status("robot-7", seen_s=NOW_S)])
    view.sight.show_broker_away(NOW_S + 10)
    view.sight.show_frames_behind({0: 0}, NOW_S + 100)
    (agent,) = view.agents()
    assert view.state_of(agent, NOW_S + 130) == "calm"
    assert view.state_of(agent, NOW_S + 170) == "silent"


def test_how_a_window_closed_first_stays() -> None:
    view = folded([window("robot-7"), window("robot-7", state="censored"), window("robot-7", state="open")])
    assert [known.state for known in view.windows()] == ["recovered"]


def test_the_table_of_windows_is_in_the_order_of_one_clock() -> None:
    # robot-2's clock is two hours ahead: its window is the older one all the same.
    ahead = replace(status("robot-2", seen_s=NOW_S), clock_skew_s=7200.0)
    view = folded(
        [
            status("robot-1", seen_s=NOW_S),
            ahead,
            window("robot-1", departure_time_s=9_000.0),
            window("robot-2", departure_time_s=8_900.0 + 7200.0),
        ]
    )
    assert [known.key.agent for known in view.windows()] == ["robot-1", "robot-2"]


def test_the_last_episode_is_shown_with_its_corrected_end() -> None:
    # The end by silence is of the time of the last step, and so may be the one that comes after all.
    ends = [summary("robot-1", outcome="aborted"), summary("robot-1", outcome="success", revision=1)]
    view = folded([status("robot-1", seen_s=NOW_S), *ends])
    (agent,) = view.agents()
    assert agent.ended is not None
    assert (agent.ended.outcome, view.episodes_ended) == ("success", 1)
    earlier = summary("robot-1", "0", outcome="failure", revision=1)
    view.take(replace(earlier, ended_s=agent.ended.ended_s - 1.0), NOW_S)
    assert agent.ended.outcome == "success"


def test_an_episode_that_goes_on_has_not_ended() -> None:
    view = folded([status("robot-1", seen_s=NOW_S), summary("robot-1", outcome="aborted"), summary("robot-1", "0")])
    (agent,) = view.agents()
    assert [known.key.episode for known in agent.episodes] == [known.key.episode for known in view.episodes()]
    assert [known.key.episode for known in view.episodes()] == ["1", "0"]
    view.take(episode_begun("robot-1", revision=1), NOW_S)
    assert [known.key.episode for known in agent.episodes] == ["0"]
    assert [known.key.episode for known in view.episodes()] == ["0"]
    assert view.episodes_ended == 1


def test_recent_is_what_the_broker_got_last_whatever_the_clocks_of_agents_say() -> None:
    view = FleetView(ViewBounds(windows=2, episodes=2))
    # robot-9's clock is years behind.
    for number, agent in enumerate(("robot-1", "robot-2", "robot-9")):
        time_s = 5.0 if agent == "robot-9" else 9_000.0
        view.take(window(agent, departure_time_s=time_s), NOW_S, sent_s=9_000.0 + number)
        view.take(replace(summary(agent), ended_s=time_s), NOW_S, sent_s=9_000.0 + number)
    assert {known.key.agent for known in view.windows()} == {"robot-2", "robot-9"}
    assert {known.key.agent for known in view.episodes()} == {"robot-2", "robot-9"}


def test_after_a_clock_was_put_back_rates_go_on() -> None:
    rate = EventRate(window_s=10)
    rate.count(5, 5000.0, 5000.0)
    for second in range(100):
        rate.count(5, 90.0 + second, 90.0 + second)
    assert rate.per_second(190.0) == 5.0


def test_what_is_read_back_came_when_the_broker_got_it() -> None:
    view = FleetView()
    # A minute of one agent, read back in a moment, and a second of another one's past.
    for second in range(60):
        told = status("robot-1", seen_s=NOW_S - 60 + second, counts=AgentCounts(steps=4 * second))
        view.take(told, NOW_S, sent_s=NOW_S - 60 + second)
    view.take(status("robot-2", seen_s=NOW_S - 3600), NOW_S, sent_s=NOW_S - 3600)
    assert view.readings_per_second(NOW_S) == 1.0
    assert view.steps_per_second(NOW_S) == 4.0
    # From then on by our own clock, whatever the broker's says.
    view.sight.caught_up = True
    for second in range(10):
        view.take(window("robot-1", second), NOW_S + second, sent_s=NOW_S + second - 500)
    assert view.readings_per_second(NOW_S + 10) == 1.0


def test_the_evidence_of_old_windows_is_not_kept_for_each_agent() -> None:
    view = FleetView(ViewBounds(windows=4))
    for number in range(8):
        view.take(replace(window("robot-1", number), evidence=WindowEvidence(steps=(), before=0)), NOW_S + number)
    (agent,) = view.agents()
    assert [known.evidence for known in agent.windows.values()] == [None] * 8
    kept = view.windows_of(window("robot-1").key)
    assert [(known.number, known.evidence is not None) for known in kept] == [(n, n >= 4) for n in range(8)]
    assert view.windows_of(window("robot-2").key) == []

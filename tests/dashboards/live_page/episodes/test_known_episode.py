"""What is remembered of an episode that an address asks for."""

from springback.dashboards.live_page.episodes.known_episode import find_episode
from springback.dashboards.live_page.fleet_view import FleetView, ViewBounds
from springback.dashboards.live_page.links import agent_token, episode_token
from springback.stream_processors.resilience.readings import EpisodeKey, OpenWindow
from tests.reading_builders import agent_status, episode_status, window_reading

KEY = EpisodeKey("robot-7", "boot", "1")


def test_windows_that_are_forgotten_count_too_while_an_episode_runs() -> None:
    view = FleetView(ViewBounds(windows=4))
    opened = OpenWindow(number=12, cause="effort", departure_step=90, departure_time_s=990.0, recovery_cost=1.0)
    running = episode_status("robot-7", window=opened)
    for number in range(12):
        view.take(window_reading("robot-7", number=number), 1000.0 + number)
    view.take(agent_status("robot-7", episodes=(running,)), 1020.0)
    known = find_episode(view, agent_token("robot-7"), episode_token(KEY))
    assert known is not None
    assert (len(known.windows), known.seen_windows) == (8, 13)


def test_an_episode_without_a_window_has_none() -> None:
    view = FleetView()
    view.take(agent_status("robot-7", episodes=(episode_status("robot-7"),)), 1000.0)
    known = find_episode(view, agent_token("robot-7"), episode_token(KEY))
    assert known is not None
    assert known.seen_windows == 0

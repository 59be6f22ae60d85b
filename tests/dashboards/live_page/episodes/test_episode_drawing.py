"""What the page of an episode is made from: what is remembered of it, its charts, and the rows of its evidence."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from springback.dashboards.live_page.episodes.episode_charts import (
    ModeBand,
    channel_chart,
    detector_chart,
    drawn,
    episode_progress_chart,
    mode_bands,
    mode_chart,
)
from springback.dashboards.live_page.episodes.known_episode import find_episode
from springback.dashboards.live_page.fleet_view import FleetView
from springback.dashboards.live_page.links import agent_token, episode_token
from springback.dashboards.live_page.pages.episode_page import evidence_rows
from springback.stream_processors.resilience.tracking.step_trace import StepFigures, TracedStep
from springback.stream_processors.resilience.window_evidence import EvidenceStep, WindowEvidence
from tests.dashboards.live_page.fake_fleet import status, summary, window
from tests.examples import examples

NOW_S = 5000.0
HOSTILE = "<img src=x onerror=alert(1)>"


def figures_of(intensity: float) -> StepFigures:
    return StepFigures(
        intensity=intensity,
        cognitive=0.0,
        physical=intensity,
        debt=0.0,
        lost_cycles=0.0,
        effort=2.0,
        delay=None,
        effort_bound=8.0,
        delay_bound=None,
    )


def traced(step: int, mode: str = "run", intensity: float | None = 0.5) -> TracedStep:
    figures = None if intensity is None else figures_of(intensity)
    return TracedStep(step, 100.0 + step, mode, "", "", progress=0.25, propositions=0.5, figures=figures)


def evidence(step: int, **fields: Any) -> EvidenceStep:
    base: dict[str, Any] = {
        **{"time_s": 100.0, "mode": "run", "action": "", "feedback": "", "progress": 0.5, "propositions": 0.25},
        **{"intensity": 3.0, "cognitive": 0.0, "physical": 3.0, "debt": 0.0, "lost_cycles": 1.0},
    }
    return EvidenceStep(step=step, **(base | fields))


@pytest.mark.parametrize(
    ("state", "alarm", "places"),
    [
        ("recovered", 3, ["", "departure", "alarm", "", "re-entry"]),
        ("recovered", 2, ["", "departure, alarm", "", "", "re-entry"]),
        ("recovered", 5, ["", "departure", "", "", "alarm, re-entry"]),
        ("unrecovered", 2, ["", "departure, alarm", "", "", ""]),
        ("open", 4, ["", "departure", "", "alarm", ""]),
    ],
)
def test_a_row_says_all_that_happened_at_its_step(state: Any, alarm: int, places: list[str]) -> None:
    seen = window("robot-1", state=state, departure_step=2, alarm_step=alarm, reentry_step=5)
    rows = evidence_rows(seen, WindowEvidence(steps=tuple(evidence(step) for step in range(1, 6)), before=1))
    assert [row["place"] for row in rows] == places


def test_a_row_has_p_and_q_and_its_texts_are_text() -> None:
    step = evidence(1, mode=HOSTILE, action="x" * 500, feedback="a\u202eb")
    [row] = evidence_rows(window("robot-1"), WindowEvidence(steps=(step,), before=0))
    assert (row["progress"], row["propositions"], row["g"]) == ("50\u202f%", "25\u202f%", "3.00")
    assert row["mode"] == HOSTILE  # the table shows text, never HTML
    assert len(row["action"]) < 500
    assert "\u202e" not in row["feedback"]


def test_modes_are_bands_each_up_to_the_next_over_a_gap_too() -> None:
    steps = [traced(step, "run" if step < 3 or step > 8 else "grip") for step in (0, 1, 2, 5, 6, 9)]
    assert list(mode_bands(steps)) == [ModeBand("run", 0, 5), ModeBand("grip", 5, 9), ModeBand("run", 9, 10)]
    assert list(mode_bands([])) == []


@settings(max_examples=examples(60))
@given(modes=st.lists(st.sampled_from("ab"), max_size=60), most=st.integers(1, 20))
def test_however_often_the_mode_changes_few_bands_cover_all_steps(modes: list[str], most: int) -> None:
    bands = list(mode_bands([traced(step, mode) for step, mode in enumerate(modes)], most))
    assert len(bands) <= most
    edges = [0, *(band.stop for band in bands)] if modes else []
    assert edges[:-1] == [band.first for band in bands]
    assert edges[-1:] == [len(modes)][: len(edges)]
    if len(modes) <= most:
        assert [mode for band in bands for mode in (band.stop - band.first) * band.mode] == modes


@settings(max_examples=examples(60))
@given(heights=st.lists(st.none() | st.floats(0.0, 90.0), min_size=1, max_size=60), most=st.integers(1, 20))
def test_of_a_long_episode_the_largest_g_is_drawn(heights: list[float | None], most: int) -> None:
    steps = [traced(step, intensity=g) for step, g in enumerate(heights)]
    found = drawn(steps, most)
    assert len(found) <= most
    assert [step.step for step in found] == sorted(step.step for step in found)
    highest = max((g for g in heights if g is not None), default=None)
    assert highest in [None if step.figures is None else step.figures.intensity for step in found]
    assert len(steps) > most or found == steps


def test_windows_are_shaded_in_each_chart_and_their_cause_is_named_once() -> None:
    steps = [traced(step, intensity=None if step < 2 else 4.0) for step in range(10)]
    seen = [window("robot-1", departure_step=3, reentry_step=6, cause="effort+delay")]
    charts = [episode_progress_chart(steps, seen), channel_chart(steps, seen, 1.0), detector_chart(steps, seen)]
    shades = [chart["series"][0]["markArea"]["data"] for chart in charts]
    assert [[(a["xAxis"], b["xAxis"]) for a, b in areas] for areas in shades] == [[(3, 6)]] * 3
    assert [areas[0][0]["name"] for areas in shades] == ["effort and delay", "", ""]
    # What has not been scored has no height, and a detector that stands still none either.
    assert charts[1]["series"][0]["data"][:3] == [[0, None], [1, None], [2, pytest.approx(0.699)]]
    assert {name for name, *_ in (series["data"][5][1:] for series in charts[2]["series"])} == {2.0, None, 8.0}


def test_a_mode_has_its_name_where_there_is_room() -> None:
    steps = [traced(step, "run" if step != 50 else "slip") for step in range(100)]
    [series] = mode_chart(steps)["series"]
    assert [area[0]["name"] for area in series["markArea"]["data"]] == ["run", "", "run"]


def test_what_is_remembered_of_an_episode_says_where_its_steps_are() -> None:
    view = FleetView()
    view.take(status("robot-1", 5, seen_s=1000.0, clock_skew_s=60.0, producer="gateway"), NOW_S)
    opened = status("robot-1", 5).episodes[0].key
    token = agent_token("robot-1")
    known = find_episode(view, token, episode_token(opened))
    assert known is not None
    assert known.wanted == (opened, "gateway", "navigation", 1000.0, False)
    ended = replace(summary("robot-1", "9"), started_s=760.0, ended_s=900.0)
    view.take(ended, NOW_S)
    view.take(replace(window("robot-1", departure_time_s=800.0), key=ended.key), NOW_S)
    known = find_episode(view, token, episode_token(ended.key))
    assert known is not None
    assert known.wanted == (ended.key, "gateway", "navigation", 700.0, True)  # by the broker's clock
    assert list(known.windows) == [0]
    for wrong in (("robot-2", ended.key), ("robot-1", replace(ended.key, session="other"))):
        assert find_episode(view, agent_token(wrong[0]), episode_token(wrong[1])) is None
    assert find_episode(view, token, "no token") is None

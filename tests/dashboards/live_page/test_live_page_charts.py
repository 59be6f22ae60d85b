"""What is in the charts, and what is said beside them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from springback.dashboards.live_page.agent_memory import AgentHistory, Span
from springback.dashboards.live_page.charts import (
    cost_chart,
    curve_words,
    intensity_chart,
    intensity_height,
    intensity_ticks,
    progress_chart,
    stress_chart,
)
from tests.dashboards.live_page.fake_fleet import NOTHING_KNOWN, family, level, moments, status
from tests.examples import examples
from tests.reading_builders import failed_level


def history(seconds: int) -> AgentHistory:
    taken = AgentHistory()
    for step in range(seconds):
        taken.add(1000.0 + step, status("robot-1", step, departed=2, cost=0.5 * step).episodes[0])
    return taken


def test_g_is_drawn_with_its_channels_the_shaded_windows_and_the_level_of_re_entry() -> None:
    options = intensity_chart(history(5), [Span(1002.0, 1004.0), Span(900.0, 910.0)], 1.0, 3.0)
    assert [series["name"] for series in options["series"]] == ["g", "cognitive", "physical", "debt"]
    assert len({series["lineStyle"]["type"] for series in options["series"]}) == 3  # told apart without colour
    first = options["series"][0]
    assert first["data"][-1] == [1004_000, 0.1761]  # log10(1 + 0.5)
    assert first["markArea"]["data"] == [[{"xAxis": 1002_000}, {"xAxis": 1004_000}]]
    heights = [line["yAxis"] for line in first["markLine"]["data"]]
    assert heights == pytest.approx([0.30103, 0.60206])  # log10 of 1 + 1 and of 1 + 3
    assert (options["xAxis"]["min"], options["xAxis"]["max"]) == (944_000, 1004_000)


def test_on_the_scale_of_g_1_and_80_can_both_be_read() -> None:
    assert intensity_ticks(80.0) == [0, 1, 3, 10, 30, 100]
    assert intensity_ticks(0.0) == [0, 1, 3]
    assert intensity_ticks(30.0) == [0, 1, 3, 10, 30]
    assert intensity_ticks(30.1) == [0, 1, 3, 10, 30, 100]
    top = intensity_height(100.0)
    assert 0.14 < intensity_height(1.0) / top < 0.16  # a seventh of the height
    assert 0.94 < intensity_height(80.0) / top < 0.96
    taken = AgentHistory()
    for step, intensity in enumerate((0.5, 61.0, 1.0)):  # its physical channel is 1.3 times as large: 79.3
        taken.add(1000.0 + step, status("robot-1", step, intensity=intensity).episodes[0])
    axis = intensity_chart(taken, [], 1.0, None)["yAxis"]
    assert axis["axisLabel"]["customValues"] == axis["axisTick"]["customValues"]
    assert [round(10**height - 1) for height in axis["axisLabel"]["customValues"]] == [0, 1, 3, 10, 30, 100]
    assert (axis["min"], axis["max"]) == (0, intensity_height(100.0))


@settings(max_examples=examples(60))
@given(st.floats(0, 1e9))
def test_the_scale_of_g_holds_what_is_shown_in_order(intensity: float) -> None:
    ticks = intensity_ticks(intensity)
    assert ticks[-1] >= intensity
    assert len(ticks) == 3 or ticks[-2] < intensity
    assert ticks == sorted(set(ticks))
    assert 10 ** intensity_height(intensity) - 1 == pytest.approx(intensity, rel=1e-9, abs=1e-9)


def test_no_more_is_drawn_than_is_asked_for() -> None:
    options = intensity_chart(history(200), [], 1.0, None, last_s=30.0)
    assert [len(series["data"]) for series in options["series"]] == [31] * 4
    assert (options["xAxis"]["min"], options["xAxis"]["max"]) == (1169_000, 1199_000)
    assert len(cost_chart(history(200), [], last_s=120.0)["series"][0]["data"]) == 121
    assert len(progress_chart(history(20), [], last_s=120.0)["series"][0]["data"]) == 20


def test_a_window_that_began_before_the_samples_is_shaded_from_the_edge() -> None:
    options = cost_chart(history(100), [Span(990.0, 1010.0)])
    assert options["series"][0]["markArea"]["data"] == [[{"xAxis": 990_000}, {"xAxis": 1010_000}]]
    assert options["xAxis"]["min"] == 1000_000
    assert options["series"][0]["data"][-1] == [1099_000, 49.5]


def test_the_curve_marks_what_is_dependable_and_the_live_stress_and_shades_what_was_not_tested() -> None:
    (series,) = stress_chart(family(stress_state="breach", live_stress=0.8))["series"]
    assert [point["value"] for point in series["data"]] == [
        [0.0, 0.5],
        [0.2, 0.4],
        [0.4, 0.25],
        [0.6, -0.25],
        [0.8, -0.6],
    ]
    assert [point["symbol"] for point in series["data"]] == ["circle", "circle", "circle", "rect", "circle"]
    fills = [point["itemStyle"]["color"] for point in series["data"]]
    assert fills[-1] != fills[0]  # too few episodes to decide anything: hollow
    assert marks_of(series) == {
        "contract": (None, 0),
        "dependable: 0.4": (0.4, None),
        "live 0.8: breach": (0.8, None),
    }
    assert series["markArea"]["data"] == [[{"xAxis": 0.6}, {"xAxis": 1.0}]]


def marks_of(series: Any) -> dict[str, tuple[float | None, float | None]]:
    return {line["label"]["formatter"]: (line.get("xAxis"), line.get("yAxis")) for line in series["markLine"]["data"]}


def test_what_is_not_known_is_not_drawn() -> None:
    (series,) = stress_chart(family(**(NOTHING_KNOWN | {"live_stress": None, "stress_state": None})))["series"]
    assert series["data"] == []
    assert list(marks_of(series)) == ["contract"]
    assert series["markArea"]["data"] == [[{"xAxis": 0.0}, {"xAxis": 1.0}]]
    (series,) = stress_chart(family(tested_up_to=1.0))["series"]
    assert series["markArea"]["data"] == []  # said, for a chart keeps what it is not told anew
    # Nothing declared runs: not even what it is at is drawn. Nothing is dependable: no line is at 0.
    none = family(capacity=0.0, capacity_flag="none", dependable=None, live_stress=None, stress_state=None)
    assert list(marks_of(stress_chart(none)["series"][0])) == ["contract"]


def test_what_is_dependable_up_to_the_hardest_stress_is_not_at_least_that() -> None:
    (series,) = stress_chart(family(dependable=1.0, tested_up_to=1.0))["series"]
    assert "dependable: 1.0" in marks_of(series)


@pytest.mark.parametrize(("margin", "top"), [(-0.9, 0.5), (0.5, 0.5), (0.51, 1.0), (1.0, 1.0)])
def test_the_axis_of_margins_ends_at_whole_ticks(margin: float, top: float) -> None:
    axis = stress_chart(family(margins=(level(0.2, margin, "kept", 0),)))["yAxis"]
    assert (axis["min"], axis["max"], axis["interval"]) == (-1, top, 0.5)


def test_a_point_of_an_undecided_level_has_a_shape_of_its_own() -> None:
    (series,) = stress_chart(family(margins=(level(0.2, -0.1, "undecided", 3),)))["series"]
    assert [point["symbol"] for point in series["data"]] == ["triangle"]


def test_the_curve_is_told_in_words() -> None:
    assert curve_words(family()) == (
        "Every tested level up to 0.4 is kept; the first with a negative margin is 0.6. Above 0.6 "
        "there are too few episodes to tell. Its agents work at 0.2 now: within. Contract violated: under stress 0.6 "
        "8 of 12 (39 to 86 %) episodes broke it."
    )
    assert "Its agents work at 0.8 now: breach." in curve_words(family(stress_state="breach", live_stress=0.8))
    assert curve_words(family(capacity=0.0, capacity_flag="none", dependable=None)).startswith(
        "Not even its lowest tested level is kept"
    )
    assert curve_words(family(**NOTHING_KNOWN)).startswith("Too few episodes at any declared stress")
    # Fifty of sixty episodes at 0.4 were broken off: the level is kept by the other ten, which is not all there is.
    assert curve_words(family(contract_violated=False, episodes=10, censored=50)).endswith(
        "now: within. Aborted, and in none of these figures: 50 of 60 episodes."
    )


def test_what_is_said_at_moments_of_a_demo() -> None:
    """Situations 2 and 10: while clean episodes run, as stress rises, at the end. Nothing says more than is known."""
    told = {moment: curve_words(reading) for moment, reading in moments().items()}
    assert told == {
        "learning": (
            "Too few episodes at any declared stress to say what it withstands. Its agents work at 0.0 now: untested. "
            "Learning: 12 of 20 references; its windows are provisional. Provisional, and in no margin: 12 episodes."
        ),
        "clean": (
            "The level without stress is kept. Above 0.0 there are too few episodes to tell. Its agents work at "
            "0.0 now: within."
        ),
        "rising": (
            "Every tested level up to 0.2 is kept. Above 0.2 there are too few episodes to tell. Its "
            "agents work at 0.6 now: untested."
        ),
        "ended": (
            "Every tested level up to 0.4 is kept; the first with a negative margin is 0.6. Above 0.6 "
            "there are too few episodes to tell. No declared stress running. Contract violated: under stress 0.6 8 of "
            "12 (39 to 86 %) episodes broke it."
        ),
    }
    assert marks_of(stress_chart(moments()["clean"])["series"][0]) == {
        "contract": (None, 0),
        "dependable: at least 0.0": (0.0, None),
        "live 0.0: within": (0.0, None),
    }


def test_robots_that_declare_no_stress_have_no_live_stress() -> None:
    """Situation 4: nothing is said of 0.0."""
    field = family(
        **(NOTHING_KNOWN | {"live_stress": None, "stress_state": None, "active_episodes": 3, "active_undeclared": 3}),
        undeclared=failed_level(),
    )
    assert curve_words(replace(field, contract_violated=True)) == (
        "Too few episodes at any declared stress to say what it withstands. No declared stress running (3 episodes "
        "undeclared). Contract violated: under undeclared stress 20 of 20 (84 to 100 %) episodes broke it."
    )

"""What is in the charts, and what is said beside them."""

from springback.dashboards.live_page.agent_memory import AgentHistory, Span
from springback.dashboards.live_page.charts import cost_chart, curve_words, intensity_chart, stress_chart
from tests.dashboards.live_page.fake_fleet import family, status


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
    assert first["data"][-1] == [1004_000, 0.5]
    assert first["markArea"]["data"] == [[{"xAxis": 1002_000}, {"xAxis": 1004_000}]]
    assert [line["yAxis"] for line in first["markLine"]["data"]] == [1.0, 3.0]
    assert (options["xAxis"]["min"], options["xAxis"]["max"]) == (944_000, 1004_000)


def test_a_window_that_began_before_the_samples_is_shaded_from_the_edge() -> None:
    options = cost_chart(history(100), [Span(990.0, 1010.0)])
    assert options["series"][0]["markArea"]["data"] == [[{"xAxis": 990_000}, {"xAxis": 1010_000}]]
    assert options["xAxis"]["min"] == 1000_000
    assert options["series"][0]["data"][-1] == [1099_000, 49.5]


def test_the_curve_marks_the_capacity_and_the_live_stress() -> None:
    (series,) = stress_chart(family(stress_state="breach", live_stress=0.8, capacity=0.4))["series"]
    assert [point["value"] for point in series["data"]] == [
        [0.0, 1.1],
        [0.2, 0.8],
        [0.4, 0.3],
        [0.6, -0.25],
        [0.8, -0.6],
    ]
    fills = [point["itemStyle"]["color"] for point in series["data"]]
    assert fills[-1] != fills[0]  # too few episodes to decide anything: hollow
    marks = {line["label"]["formatter"]: (line.get("xAxis"), line.get("yAxis")) for line in series["markLine"]["data"]}
    assert marks == {"contract": (None, 0), "\u03bb* 0.4": (0.4, None), "live 0.8": (0.8, None)}


def test_what_is_not_known_is_not_drawn() -> None:
    (series,) = stress_chart(family(capacity=None, capacity_flag="insufficient", live_stress=None, margins=()))[
        "series"
    ]
    assert series["data"] == []
    assert len(series["markLine"]["data"]) == 1
    (series,) = stress_chart(family(capacity=0.0, capacity_flag="none"))["series"]
    assert [line.get("xAxis") for line in series["markLine"]["data"]] == [None, 0.2]


def test_the_curve_is_told_in_words() -> None:
    assert curve_words(family()) == (
        "It keeps its contract up to stress 0.4, and first breaks it at 0.6. Its agents work at 0.2 now."
    )
    assert "more than it withstands" in curve_words(family(stress_state="breach", live_stress=0.8))
    assert "When last seen at work they were beyond it." in curve_words(family(stress_state="breach", live_stress=None))
    assert "no stress" in curve_words(family(capacity=0.0, capacity_flag="none"))
    assert "Too few" in curve_words(family(capacity=None, capacity_flag="insufficient"))

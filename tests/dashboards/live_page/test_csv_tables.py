"""The tables as CSV: whole, with nothing that a spreadsheet would run, and empty where nothing is known."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from springback.dashboards.live_page.comparing.comparison import SeenGroup, compare_groups
from springback.dashboards.live_page.csv_tables import TABLES, compare_csv, csv_text
from springback.dashboards.live_page.fleet_view import FleetView
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.readings import EpisodeKey, EpisodeTraits, Reading
from tests.dashboards.live_page.fake_fleet import family, status, summary, window

NOW_S = 10_000.0
FORMULA = "=HYPERLINK(0)"


def fleet() -> FleetView:
    view = FleetView()
    view.sight.caught_up = True
    view.sight.show_frames_behind({0: 0}, NOW_S)
    traits = EpisodeTraits(family=FORMULA, task="@task\nline", method="a,b", version='"1"', stress=0.4)
    readings: list[Reading] = [
        status("robot-10", 40, seen_s=NOW_S, departed=20, cost=1.5),
        status("robot-9", 10, seen_s=NOW_S, intensity=None),
        status("=1+1", 10, seen_s=NOW_S, clock_skew_s=60.0),
        replace(window("=1+1", departure_time_s=1060.0), traits=traits, lost_cycles=-2.5, departure_mode="+go"),
        replace(summary("=1+1"), traits=traits, recovery_cost=None),
        family("navigation"),
        family(FORMULA, success_rate=None, undeclared=None),
    ]
    for reading in readings:
        view.take(reading, NOW_S)
    return view


def rows_of(text: str) -> list[dict[str, str]]:
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert all(None not in row and None not in row.values() for row in rows)
    return rows


def test_the_fleet_is_there_by_name_with_its_states() -> None:
    rows = rows_of(TABLES["fleet"](fleet(), NOW_S))
    assert [row["name"] for row in rows] == ["'=1+1", "robot-9", "robot-10"]
    shown = [rows[2][name] for name in ("state", "family", "cost", "departure_step", "seen", "provisional")]
    assert shown == ["rebound", "navigation", "1.5", "20", "1970-01-01T02:46:40.000+00:00", "no"]
    assert rows[1]["intensity"] == ""  # not known is not 0


@pytest.mark.parametrize("start", [*"=+-@\t\r\n", "\N{FULLWIDTH EQUALS SIGN}", "\N{FULLWIDTH COMMERCIAL AT}"])
def test_no_text_is_a_formula(start: str) -> None:
    [row] = rows_of(csv_text([{"name": f"{start}1+1", "cost": -1.5}], ("name", "cost")))
    assert row == {"name": f"'{start}1+1", "cost": "-1.5"}


def test_windows_and_episodes_have_their_names_and_the_broker_time() -> None:
    (found,) = rows_of(TABLES["windows"](fleet(), NOW_S))
    # Its agent's clock is a minute ahead.
    assert found["departed"] == "1970-01-01T00:16:40.000+00:00"
    assert [found[name] for name in ("agent", "family", "method", "version", "departure_mode")] == [
        *("'=1+1", "'=HYPERLINK(0)", "a,b", '"1"', "'+go")
    ]
    assert found["task"].startswith("'@task\N{REPLACEMENT CHARACTER}line~")
    assert (found["lost_cycles"], found["stress"], found["window"]) == ("-2.5", "0.4", "0")  # a number stays one
    (ended,) = rows_of(TABLES["episodes"](fleet(), NOW_S))
    assert (ended["outcome"], ended["recovery_cost"], ended["steps"]) == ("success", "", "60")


def test_families_have_all_their_levels() -> None:
    rows = rows_of(TABLES["families"](fleet(), NOW_S))
    assert [(row["family"], row["success_rate"]) for row in rows] == [("'=HYPERLINK(0)", ""), ("navigation", "0.97")]
    levels = rows_of(TABLES["levels"](fleet(), NOW_S))
    assert [(row["stress"], row["state"]) for row in levels if row["family"] == "navigation"] == [
        *(("0.0", "kept"), ("0.2", "kept"), ("0.4", "kept"), ("0.6", "broken")),
        *(("0.8", "insufficient"), ("1.0", "insufficient")),
    ]


def test_what_is_compared_is_there_with_what_it_rests_on() -> None:
    groups = [
        SeenGroup(
            ("navigation", method, "1.4"),
            [
                replace(
                    summary(method, str(n)),
                    traits=EpisodeTraits(family="navigation", task=f"t{n}", method=method, version="1.4", stress=0.4),
                    recovery_cost=cost + n,
                )
                for n in range(4)
            ],
            family(method=method) if method == "=cmd" else None,
        )
        for method, cost in (("=cmd", 1.0), ("plain", 3.0))
    ]
    first, second = rows_of(compare_csv(compare_groups(groups, None, AggregateConfig())))
    assert [first[name] for name in ("method", "ended", "tasks", "stress_mix", "cost_value", "beta", "pairs")] == [
        *("'=cmd", "4", "4", "0.4: 4", "2.5", "4.48", "120")
    ]
    assert [second[name] for name in ("beta", "cost_value", "cost_difference", "shared_tasks")] == [
        "",
        "4.5",
        "2.0",
        "4",
    ]


CELL = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just("=1+1"))


@given(st.lists(st.lists(CELL, min_size=2, max_size=2), max_size=4))
def test_no_text_begins_like_a_formula_and_no_cell_moves(cells: list[list[object]]) -> None:
    text = csv_text([dict(zip(("a", "b"), row, strict=True)) for row in cells], ("a", "b"))
    read = list(csv.reader(io.StringIO(text, newline="")))
    assert [len(row) for row in read] == [2] * (1 + len(cells))
    for row, sent in zip(read[1:], cells, strict=True):
        for told, value in zip(row, sent, strict=True):
            if isinstance(value, str):
                assert told.removeprefix("'") == value.removeprefix("'")
                assert told[:1] not in ("=", "+", "-", "@", "\t", "\r", "\n")


def test_a_time_that_there_cannot_be_is_not_known() -> None:
    view = FleetView()
    view.take(replace(window("robot-1", departure_time_s=1e300), key=EpisodeKey("robot-1", "s", "1")), NOW_S)
    (found,) = rows_of(TABLES["windows"](view, NOW_S))
    assert found["departed"] == ""

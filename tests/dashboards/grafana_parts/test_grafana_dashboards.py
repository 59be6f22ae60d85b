"""What the dashboards are made of: places, uids, links, variables, descriptions; and that the kept files are fresh."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from springback.dashboards.grafana_dashboards import DASHBOARD_FOLDER, dashboard_files, write_dashboards
from springback.dashboards.grafana_parts.board_layout import GRID_COLUMNS
from springback.dashboards.grafana_parts.colour_scheme import STATE_COLOURS, STATE_NUMBERS
from springback.dashboards.grafana_parts.panel_kinds import DATA_SOURCE_UID
from springback.sinks.grafana.annotations_sink import BREACH_TAG, CONTRACT_TAG, WINDOW_TAG
from springback.stream_processors.metrics.spec import AGENT_STATES
from tests.dashboards.grafana_parts.panel_queries import boards, panels_of

UIDS = ["springback-fleet", "springback-resilience", "springback-agent", "springback-pipeline"]
GRAFANA_STORE = "-- Grafana --"


@pytest.fixture(params=UIDS)
def board(request: pytest.FixtureRequest) -> dict[str, Any]:
    return boards()[request.param]


def test_the_kept_files_are_fresh() -> None:
    kept = {file.name: file.read_text(encoding="utf-8") for file in DASHBOARD_FOLDER.iterdir()}

    assert kept == dashboard_files(), "run `springback dashboards build` and commit what it wrote"


def test_there_are_four_and_each_build_gives_the_same(tmp_path: Path) -> None:
    assert list(boards()) == UIDS
    assert dashboard_files() == dashboard_files()
    assert [file.name for file in write_dashboards(tmp_path / "new")] == [f"{uid}.json" for uid in UIDS]


def test_panels_fill_the_grid_and_lie_on_no_other(board: dict[str, Any]) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        assert place["x"] >= 0, panel["title"]
        assert place["x"] + place["w"] <= GRID_COLUMNS, panel["title"]
        cells = set(
            itertools.product(range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"]))
        )
        assert not cells & taken, panel["title"]
        taken |= cells
    lines = {row for _, row in taken}
    assert lines == set(range(max(lines) + 1))


def test_lines_of_panels_are_full(board: dict[str, Any]) -> None:
    widths: dict[int, int] = {}
    for panel in board["panels"]:
        widths[panel["gridPos"]["y"]] = widths.get(panel["gridPos"]["y"], 0) + panel["gridPos"]["w"]
    assert set(widths.values()) == {GRID_COLUMNS}


def test_nothing_in_them_would_change_by_itself(board: dict[str, Any]) -> None:
    assert not {"id", "version", "iteration", "gnetId"} & board.keys()
    assert [panel["id"] for panel in board["panels"]] == list(range(1, len(board["panels"]) + 1))


def test_every_panel_asks_our_data_source_and_says_what_it_shows(board: dict[str, Any]) -> None:
    for panel in panels_of(board):
        assert panel["datasource"]["uid"] == DATA_SOURCE_UID, panel["title"]
        assert len(panel["description"]) > 30, panel["title"]
        assert "springback_" in panel["description"] or "`up`" in panel["description"], panel["title"]
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == sorted(set(letters)), panel["title"]
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {DATA_SOURCE_UID}, panel["title"]


def test_another_data_source_may_be_named() -> None:
    for name, text in dashboard_files("my-prometheus").items():
        assert DATA_SOURCE_UID not in text, name
        assert '"my-prometheus"' in text, name


def test_titles_are_told_apart(board: dict[str, Any]) -> None:
    titles = [panel["title"] for panel in panels_of(board)]
    assert len(titles) == len(set(titles))


def test_variables(board: dict[str, Any]) -> None:
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    assert ["family", "method", "version"] == list(variables)[:3]
    assert ("agent" in variables) == (board["uid"] in ("springback-fleet", "springback-agent"))
    for name, variable in variables.items():
        one = board["uid"] == "springback-agent" and name == "agent"
        assert variable["multi"] is not one
        assert variable.get("allValue") == (None if one else ".*")
        assert variable["datasource"]["uid"] == DATA_SOURCE_UID


def test_links_keep_variables_and_time(board: dict[str, Any]) -> None:
    (link,) = board["links"]
    assert (link["type"], link["includeVars"], link["keepTime"]) == ("dashboards", True, True)
    assert set(link["tags"]) <= set(board["tags"])


def test_an_agent_in_the_fleet_table_leads_to_its_dashboard() -> None:
    table = next(panel for panel in panels_of(boards()["springback-fleet"]) if panel["type"] == "table")
    agent = next(o for o in table["fieldConfig"]["overrides"] if o["matcher"]["options"] == "agent")
    (link,) = next(p["value"] for p in agent["properties"] if p["id"] == "links")
    assert link["url"].startswith("/d/springback-agent?${family:queryparam}")
    assert "var-agent=${__value.raw:percentencode}" in link["url"]
    assert "${__url_time_range}" in link["url"]


def test_marks_come_from_grafanas_own_store() -> None:
    tags: dict[str, list[list[str]]] = {}
    for uid, board in boards().items():
        for mark in board["annotations"]["list"]:
            assert mark["datasource"] == {"type": "grafana", "uid": GRAFANA_STORE}
            assert mark["target"]["matchAny"] is False
            tags.setdefault(uid, []).append(mark["target"]["tags"])
    assert tags == {
        "springback-fleet": [[WINDOW_TAG], [BREACH_TAG], [CONTRACT_TAG]],
        "springback-resilience": [[BREACH_TAG], [CONTRACT_TAG]],
        "springback-agent": [[WINDOW_TAG, "agent:$agent"]],
    }


def test_every_state_has_a_number_and_a_colour_of_its_own() -> None:
    assert list(STATE_NUMBERS) == list(AGENT_STATES)
    assert STATE_COLOURS.keys() == set(AGENT_STATES)
    assert len(set(STATE_COLOURS.values())) == len(AGENT_STATES)


def test_a_table_shows_the_columns_that_its_queries_bring() -> None:
    for board in boards().values():
        for panel in panels_of(board):
            if panel["type"] != "table":
                continue
            kept = next(t for t in panel["transformations"] if t["id"] == "filterFieldsByName")
            names = kept["options"]["include"]["names"]
            letters = {f"Value #{target['refId']}" for target in panel["targets"]}
            assert {name for name in names if name.startswith("Value")} <= letters
            assert all(target["format"] == "table" and target["instant"] for target in panel["targets"])


def test_a_broken_margin_is_red_in_the_heat_map() -> None:
    """Grafana draws the scheme with low values blue unless it is reversed; 0 is in the middle."""
    panels = panels_of(boards()["springback-resilience"])
    colour = next(panel for panel in panels if panel["title"] == "Stress response M_f")["options"]["color"]
    assert (colour["scheme"], colour["reverse"], colour["min"], colour["max"]) == ("RdBu", True, -1.0, 1.0)


def test_json_is_what_json_allows(board: dict[str, Any]) -> None:
    assert json.loads(json.dumps(board, allow_nan=False)) == board

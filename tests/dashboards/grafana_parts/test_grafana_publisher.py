"""Publishing, against a stand-in for Grafana's HTTP API that checks each dashboard against our description of it."""

import json
from collections.abc import Iterator

import jsonschema  # type: ignore[import-untyped]
import pytest

from springback.dashboards.grafana_dashboards import dashboard_files
from springback.dashboards.grafana_parts.panel_kinds import DATA_SOURCE_UID
from springback.dashboards.grafana_publisher import publish_dashboards
from springback.sinks.errors import GrafanaRefusedError
from springback.sinks.grafana.connection import GrafanaConnection
from tests.dashboards.grafana_parts.dashboard_schema import DASHBOARD
from tests.sinks.grafana.grafana_stub import TOKEN, GrafanaStub, serve

PROMETHEUS = "http://prometheus:9090"
FLEET = "springback-fleet"
TAKEN = jsonschema.Draft202012Validator(DASHBOARD)
"""What Grafana takes."""


@pytest.fixture
def stub() -> Iterator[GrafanaStub]:
    with serve(GrafanaStub(TAKEN.validate)) as served:
        yield served


@pytest.fixture
def grafana(stub: GrafanaStub) -> Iterator[GrafanaConnection]:
    with GrafanaConnection(stub.url, TOKEN) as connection:
        yield connection


def outcomes(grafana: GrafanaConnection, folder: str | None = None, prometheus: str | None = None) -> list[str]:
    return [f"{p.outcome} {p.kind}" for p in publish_dashboards(grafana, folder=folder, prometheus=prometheus)]


@pytest.mark.parametrize("name", list(dashboard_files()))
def test_each_dashboard_is_one_that_grafana_takes(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(DASHBOARD)
    TAKEN.validate(json.loads(dashboard_files()[name]))


def test_the_description_of_dashboards_finds_slips() -> None:
    board = json.loads(dashboard_files()[f"{FLEET}.json"])
    board["panels"][1]["gridPos"]["w"] = 25
    with pytest.raises(jsonschema.ValidationError):
        TAKEN.validate(board)


def test_all_is_made_once_and_then_left_alone(stub: GrafanaStub, grafana: GrafanaConnection) -> None:
    made = list(publish_dashboards(grafana, folder="Robots", prometheus=PROMETHEUS))

    assert [(p.kind, p.outcome) for p in made] == [
        ("data source", "created"),
        ("folder", "created"),
        *[("dashboard", "created")] * 4,
    ]
    assert made[2].address == f"{stub.url}/d/{FLEET}/x"
    assert stub.sources[DATA_SOURCE_UID]["url"] == PROMETHEUS
    assert {kept["folder"] for kept in stub.dashboards.values()} == set(stub.folders)
    assert {uid: kept["dashboard"] for uid, kept in stub.dashboards.items()} == {
        name.removesuffix(".json"): json.loads(text) for name, text in dashboard_files().items()
    }

    before = len([r for r in stub.requests if not r.startswith("GET")])
    assert set(outcomes(grafana, "Robots", PROMETHEUS)) == {
        "unchanged data source",
        "unchanged folder",
        "unchanged dashboard",
    }
    assert len([r for r in stub.requests if not r.startswith("GET")]) == before


def test_what_was_changed_by_hand_is_put_back_where_it_is(stub: GrafanaStub, grafana: GrafanaConnection) -> None:
    outcomes(grafana, "Robots", PROMETHEUS)
    kept = stub.dashboards[FLEET]
    right = kept["dashboard"]
    kept["dashboard"] = {**right, "refresh": "1h"}
    kept["messages"].append("made it slower")
    stub.sources[DATA_SOURCE_UID]["url"] = "http://elsewhere:9090"

    assert outcomes(grafana, None, PROMETHEUS) == [
        "updated data source",
        "updated dashboard",
        *["unchanged dashboard"] * 3,
    ]
    assert kept["dashboard"] == right
    assert kept["folder"] in stub.folders
    assert stub.sources[DATA_SOURCE_UID]["url"] == PROMETHEUS
    assert stub.sources[DATA_SOURCE_UID]["jsonData"]["timeInterval"] == "15s"


def test_another_folder_moves_the_dashboards(stub: GrafanaStub, grafana: GrafanaConnection) -> None:
    outcomes(grafana, "Robots")
    assert outcomes(grafana, "Labs")[1:] == ["created folder", *["updated dashboard"] * 4]
    assert {stub.folders[kept["folder"]] for kept in stub.dashboards.values()} == {"Labs"}


def test_a_grafana_that_gives_dashboards_back_in_other_words(stub: GrafanaStub, grafana: GrafanaConnection) -> None:
    stub.rewrites = True
    outcomes(grafana)
    assert outcomes(grafana)[1:] == ["unchanged dashboard"] * 4

    stub.dashboards[FLEET]["messages"].append("changed by hand")
    assert outcomes(grafana)[1:] == ["updated dashboard", *["unchanged dashboard"] * 3]


def test_a_data_source_that_is_missing_is_told(stub: GrafanaStub, grafana: GrafanaConnection) -> None:
    assert outcomes(grafana)[0] == "missing data source"
    stub.sources[DATA_SOURCE_UID] = {"uid": DATA_SOURCE_UID, "name": "mine", "type": "prometheus"}
    assert outcomes(grafana) == ["unchanged dashboard"] * 4


def test_an_editor_that_may_not_see_data_sources_publishes(stub: GrafanaStub, grafana: GrafanaConnection) -> None:
    stub.refusals["GET", "/api/datasources/"] = 403, {"message": "You'll need additional permissions"}
    assert outcomes(grafana) == ["created dashboard"] * 4


@pytest.mark.parametrize("field", ["dashboard", "data source"])
def test_what_is_provisioned_is_told_where_to_change(stub: GrafanaStub, grafana: GrafanaConnection, field: str) -> None:
    outcomes(grafana, None, PROMETHEUS)
    if field == "dashboard":
        stub.dashboards[FLEET].update(provisioned=True, dashboard={"uid": FLEET, "panels": []})
        stub.dashboards[FLEET]["messages"].append("")
    else:
        stub.sources[DATA_SOURCE_UID] |= {"readOnly": True, "url": "http://elsewhere:9090"}

    with pytest.raises(GrafanaRefusedError, match=f"The {field} .* is provisioned from a file"):
        outcomes(grafana, None, PROMETHEUS)


def test_a_dashboard_that_grafana_does_not_take_is_told(stub: GrafanaStub, grafana: GrafanaConnection) -> None:
    stub.refusals["POST", "/api/dashboards/db"] = 412, {"status": "name-exists", "message": "A dashboard of that name"}
    with pytest.raises(GrafanaRefusedError, match=r"to save a dashboard \(HTTP 412\)\. It says: A dashboard of that"):
        outcomes(grafana)


def test_a_name_that_is_taken_is_told(stub: GrafanaStub, grafana: GrafanaConnection) -> None:
    stub.sources["other"] = {"uid": "other", "name": "springback", "type": "loki"}
    with pytest.raises(GrafanaRefusedError, match=r"HTTP 409.*rename or remove it there"):
        outcomes(grafana, None, PROMETHEUS)

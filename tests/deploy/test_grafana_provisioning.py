"""The provisioning files are those that the dashboards and their documents rely on."""

from typing import Any

import yaml  # type: ignore[import-untyped]

from springback.dashboards.grafana_parts.panel_kinds import DATA_SOURCE, DATA_SOURCE_UID
from springback.dashboards.grafana_publisher import DATA_SOURCE_NAME
from tests.house import ROOT

FOLDER = ROOT / "deploy" / "grafana"


def read(name: str) -> Any:
    return yaml.safe_load((FOLDER / "provisioning" / name / "springback.yaml").read_text(encoding="utf-8"))


def test_the_data_source_is_the_one_that_every_panel_asks() -> None:
    content = read("datasources")
    (source,) = content["datasources"]

    assert content["apiVersion"] == 1
    assert (source["uid"], source["type"], source["name"]) == (DATA_SOURCE_UID, DATA_SOURCE.type_val, DATA_SOURCE_NAME)
    assert source["access"] == "proxy"
    assert source["url"] == "http://127.0.0.1:9090"


def test_rates_are_asked_over_as_many_scrapes_as_prometheus_makes() -> None:
    prometheus = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    (source,) = read("datasources")["datasources"]

    assert source["jsonData"]["timeInterval"] == prometheus["global"]["scrape_interval"]


def test_the_pipeline_dashboard_asks_for_the_jobs_that_prometheus_has() -> None:
    prometheus = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    assert {job["job_name"] for job in prometheus["scrape_configs"]} >= {"springback-exporter", "springback-worker"}


def test_the_dashboards_are_looked_for_where_the_document_puts_them() -> None:
    content = read("dashboards")
    (provider,) = content["providers"]

    assert content["apiVersion"] == 1
    assert provider["type"] == "file"
    path = provider["options"]["path"]
    assert path.startswith("/")
    document = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert document.count(path) >= 2  # by package, and in a container
    assert sorted((ROOT / "dashboards" / "grafana").glob("*.json"))

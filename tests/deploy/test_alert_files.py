import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from springback.deploy import cli
from springback.deploy.alert_files import AlertFiles, AlertFilesError
from tests.deploy.monitoring.monitoring_tools import output_of
from tests.house import PACKAGE, ROOT

HOUSE = PACKAGE / "deploy"
RULES = ["fleet_alerts.yml", "pipeline_alerts.yml"]
NAMES = ["prometheus.yml", "recording_rules.yml", *RULES, "runbook.md", "alertmanager.yml"]


def content(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def alerts(directory: Path) -> list[dict[str, Any]]:
    groups = [group for name in RULES for group in content(directory / name)["groups"]]
    return [rule for group in groups for rule in group["rules"]]


def test_what_is_not_asked_for_stays_as_it_is(tmp_path: Path) -> None:
    written = AlertFiles(runbook="deploy/prometheus/runbook.md").write(tmp_path / "new")
    assert [path.name for path in written] == NAMES
    for path in written:
        folder = "alertmanager" if path.name == "alertmanager.yml" else "prometheus"
        assert path.read_text() == (HOUSE / folder / path.name).read_text()


def test_the_command_puts_addresses_and_the_runbook_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--exporter", "a:1", "--worker", "b:2", "--worker", "[::1]:3", "--alertmanager", "c.example:4"]
    options += ["--judge", "d:5", "--gateway", "e:6", "--gateway", "f:7"]
    assert cli.main(["alerts", "export", str(tmp_path), *options]) == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / name) for name in NAMES]
    config = content(tmp_path / "prometheus.yml")
    assert {job["job_name"]: job["static_configs"] for job in config["scrape_configs"]} == {
        "springback-exporter": [{"targets": ["a:1"]}],
        "springback-worker": [{"targets": ["b:2", "[::1]:3"]}],
        "springback-judge": [{"targets": ["d:5"]}],
        "springback-gateway": [{"targets": ["e:6", "f:7"]}],
    }
    assert config["alerting"]["alertmanagers"] == [{"static_configs": [{"targets": ["c.example:4"]}]}]
    prefix = (tmp_path / "runbook.md").as_uri() + "#springback"
    assert all(rule["annotations"]["runbook_url"].startswith(prefix) for rule in alerts(tmp_path))


def test_the_runbook_may_be_elsewhere(tmp_path: Path) -> None:
    AlertFiles(runbook="https://wiki.example/robots").write(tmp_path)
    assert alerts(tmp_path)[0]["annotations"]["runbook_url"] == (
        "https://wiki.example/robots#springbackstresscapacitybreach"
    )


def test_hastening_divides_every_time_and_leaves_the_expressions(tmp_path: Path) -> None:
    AlertFiles().write(tmp_path / "shipped")
    AlertFiles(hasten=60.0).write(tmp_path / "drill")
    shipped, drill = alerts(tmp_path / "shipped"), alerts(tmp_path / "drill")
    assert [rule["expr"] for rule in shipped] == [rule["expr"] for rule in drill]
    assert (shipped[0]["for"], shipped[0]["keep_firing_for"]) == ("30s", "5m")
    assert (drill[0]["for"], drill[0]["keep_firing_for"]) == ("500ms", "5000ms")
    assert content(tmp_path / "drill" / "prometheus.yml")["global"] == {
        "scrape_interval": "1000ms",  # a quarter of a second would be a flood of scrapes
        "evaluation_interval": "1000ms",
    }
    route = content(tmp_path / "drill" / "alertmanager.yml")["route"]
    assert (route["group_wait"], route["group_interval"], route["repeat_interval"]) == ("500ms", "5000ms", "720000ms")
    assert route["routes"][0]["group_wait"] == "167ms"
    kept = (tmp_path / "drill" / "recording_rules.yml").read_text()
    assert kept == (tmp_path / "shipped" / "recording_rules.yml").read_text()


@pytest.mark.parametrize("hasten", [1.0, 7.0, 1000.0])
def test_the_tools_take_what_is_written(hasten: float, tmp_path: Path) -> None:
    AlertFiles(exporters=("a:1", "b:2"), hasten=hasten).write(tmp_path)
    assert "SUCCESS" in output_of("promtool", "check", "config", str(tmp_path / "prometheus.yml"))
    assert "SUCCESS" in output_of("amtool", "check-config", str(tmp_path / "alertmanager.yml"))


@pytest.mark.parametrize("address", ["robots-1", "http://robots-1:9464", "robots-1:0", "robots-1:65536", 'a"]:1', ":1"])
def test_what_is_no_address_is_told(address: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["alerts", "export", str(tmp_path / "new"), "--worker", address]) == 2
    assert "expected HOST:PORT" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("hasten", [0.5, 1001.0, float("nan")])
def test_times_are_divided_by_sane_numbers_only(hasten: float) -> None:
    with pytest.raises(AlertFilesError, match="from 1 to 1000"):
        AlertFiles(hasten=hasten)


def test_files_changed_by_hand_are_kept_unless_told_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["alerts", "export", str(tmp_path)]
    assert cli.main(command) == 0
    assert cli.main(command) == 0
    rules, runbook = tmp_path / "fleet_alerts.yml", tmp_path / "runbook.md"
    rules.write_text("groups: []\n")
    runbook.unlink()
    assert cli.main(command) == 1
    assert f"{rules}. Choose another directory, or give --force" in capsys.readouterr().err
    assert not runbook.exists()
    assert cli.main([*command, "--force"]) == 0
    assert alerts(tmp_path)
    assert runbook.exists()


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert cli.main(["alerts", "export", str(tmp_path / "file" / "inside")]) == 2
    assert "Not a directory" in capsys.readouterr().err


def test_a_wheel_takes_the_files_with_it() -> None:
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    patterns = setuptools["package-data"]["*"]
    assert all(any(fnmatch(name, pattern) for pattern in patterns) for name in NAMES)

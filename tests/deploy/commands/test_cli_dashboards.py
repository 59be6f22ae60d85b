"""`springback dashboards`: what it prints, where the token comes from, and its exit codes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from springback.dashboards import grafana_dashboards
from springback.dashboards.grafana_dashboards import dashboard_files
from springback.deploy.cli import main
from springback.sinks.grafana.connection import TOKEN_VARIABLE
from tests.sinks.grafana.grafana_stub import TOKEN, GrafanaStub, serve


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[GrafanaStub]:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    monkeypatch.setenv("COLUMNS", "400")
    with serve(GrafanaStub()) as served:
        yield served


def publish(stub: GrafanaStub, *options: str) -> int:
    return main(["dashboards", "publish", "--url", stub.url, *options])


def test_build_writes_what_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dashboards", "build", "--out", str(tmp_path / "new")]) == 0

    assert {f.name: f.read_text(encoding="utf-8") for f in (tmp_path / "new").iterdir()} == dashboard_files()
    assert capsys.readouterr().out.splitlines()[0] == f"Wrote {tmp_path / 'new' / 'springback-fleet.json'}"


def test_build_by_itself_writes_where_they_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(grafana_dashboards, "DASHBOARD_FOLDER", tmp_path)
    assert main(["dashboards", "build"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"Wrote {tmp_path / 'springback-fleet.json'}"

    monkeypatch.setattr(grafana_dashboards, "DASHBOARD_FOLDER", tmp_path / "installed")
    assert main(["dashboards", "build"]) == 2
    assert "--out DIR" in capsys.readouterr().err
    assert not (tmp_path / "installed").exists()


def test_publish_tells_of_each_thing(
    stub: GrafanaStub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)

    assert publish(stub, "--folder", "Robots", "--prometheus", "http://p:9090") == 0
    assert capsys.readouterr().out.splitlines()[:3] == [
        "created   data source springback-prometheus: http://p:9090",
        "created   folder Robots",
        f"created   dashboard Springback / Fleet: {stub.url}/d/springback-fleet/x",
    ]
    assert publish(stub, "--folder", "Robots", "--prometheus", "http://p:9090") == 0
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()} == {"unchanged"}


def test_a_token_from_a_file(stub: GrafanaStub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")

    assert publish(stub, "--token-file", str(file)) == 0
    assert "has no data source 'springback-prometheus', so all panels will stay empty" in capsys.readouterr().err


@pytest.mark.parametrize("token", ["", " \n", "two words", "schlüssel"])
def test_without_a_token_nothing_is_asked(
    stub: GrafanaStub, token: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, token)

    assert publish(stub) == 2
    assert "SPRINGBACK_GRAFANA_TOKEN holds" in capsys.readouterr().err
    assert stub.requests == []


def test_a_refusal_is_one_line(
    stub: GrafanaStub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "glsa_wrong")

    assert publish(stub) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"springback: Grafana at {stub.url} refuses to look up a data source (HTTP 401).")
    assert "glsa_wrong" not in error
    assert error.count("\n") == 1


def test_nobody_there_and_no_address(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)

    assert main(["dashboards", "publish", "--url", "http://127.0.0.1:1"]) == 1
    assert "does not answer at http://127.0.0.1:1" in capsys.readouterr().err
    assert main(["dashboards", "publish", "--url", "grafana"]) == 2
    assert "expected http://HOST:PORT" in capsys.readouterr().err
    assert main(["annotate", "--url", "grafana"]) == 2

"""The frame of the command line: help, version, exit codes, and errors as one line."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from springback.deploy import cli
from springback.deploy.broker_process import free_port
from springback.deploy.command_app import build_app
from springback.deploy.errors import BrokerUnavailableError
from springback.producers.install_hints import EXTRA_OF_PACKAGE
from springback.stream_processors.errors import SettingsError
from springback.stream_processors.resilience.baseline.codec import BaselineFormatError
from tests.house import PACKAGE

COMMANDS = (
    "demo",
    "up",
    "worker",
    "judge",
    "bridge",
    "gateway",
    "export",
    "live",
    "topics",
    "annotate",
    "record",
    "replay",
    "check",
    "evaluate",
    "compare",
    "fit-value",
    "sources",
    "schema",
)
GROUPS = (
    ("alerts", "export"),
    ("dashboards", "build"),
    ("dashboards", "publish"),
    ("baseline", "export"),
    ("dead-letters", "list"),
    ("dead-letters", "show"),
    ("dead-letters", "resend"),
    ("baseline", "import"),
    ("baseline", "unfreeze"),
)


def raised_in_a_command(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr("springback.producers.contract.schema.frame_schema", fail)


def test_help_names_every_command_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    out = capsys.readouterr().out
    assert {*COMMANDS, "baseline"} <= set(out.split())
    assert "Exit codes: 0" in out


@pytest.mark.parametrize("command", [*((command,) for command in COMMANDS), *GROUPS])
def test_every_command_has_help_with_an_example(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*command, "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert re.search(rf"Examples?: springback {' '.join(command)}", shown), shown


def test_every_command_is_tested_here() -> None:
    names = {
        command.name or getattr(command.callback, "__name__", "").replace("_", "-")
        for command in build_app().registered_commands
    }
    assert names == set(COMMANDS)


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("springback ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["replay"],
        ["evaluate", "no-such-file.jsonl"],
        ["evaluate", os.curdir],
        ["replay", "--speed", "fast", os.devnull],
        ["replay", "--speed", "-1", os.devnull],
        ["topics", "--broker", "no-port"],
        ["up", "--broker", "rabbit"],
        ["demo", "--source", "chess"],
        ["topics", "--partitions", "0"],
        ["record", "--stresses", "0,2", "none.jsonl"],
        ["record", "--family", "gardening", "none.jsonl"],
        ["record", __file__],
        ["evaluate", "--baseline", __file__, __file__],
        ["baseline", "import", "no-such-file"],
        ["baseline", "import", "--broker", "127.0.0.1:1", __file__],
    ],
)
def test_wrong_usage_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    streams = capsys.readouterr()
    assert "Traceback" not in streams.err
    assert streams.err


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (BrokerUnavailableError("No broker at 127.0.0.1:1; start one."), 1, "No broker at 127.0.0.1:1; start one."),
        (BaselineFormatError("not a baseline"), 2, "not a baseline"),
        (PermissionError(13, "Permission denied", "/etc/shadow"), 2, "/etc/shadow: Permission denied"),
        (ModuleNotFoundError("No module named 'faust'", name="faust.app"), 2, "pip install "),
    ],
)
def test_an_error_of_ours_is_one_line(
    error: Exception, code: int, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raised_in_a_command(monkeypatch, error)
    assert cli.main(["schema"]) == code
    err = capsys.readouterr().err
    assert err.startswith("springback: ")
    assert line in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "extras"),
    [
        ("up", "embedded,live"),
        ("demo --source habitat", "demo"),
        ("record never.frames.jsonl", "babyai,cli"),
        ("baseline export never.baseline", "worker"),
        ("evaluate --report never never.jsonl", "report"),
        ("evaluate -m robot.toml RECORDINGS", "cli,recordings,ulog"),
        ("bridge mqtt --record never.jsonl", "cli,mqtt"),
        ("--help", "cli"),
    ],
)
def test_a_command_is_told_once_of_all_that_it_lacks(
    command: str, extras: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "flight").write_bytes(b"ULog\x01\x12\x35" + bytes(20))
    (tmp_path / "run").write_bytes(b"\x89MCAP0\r\n" + bytes(20))
    arguments = command.replace("RECORDINGS", f"{tmp_path / 'flight'} {tmp_path / 'run'}").split()
    absent = {*EXTRA_OF_PACKAGE, "pyulog"}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in absent else object())
    told, code = cli.explain(ModuleNotFoundError("No module named 'typer'", name="typer"), arguments) or ("", 0)
    assert code == 2
    hint = re.search(r"install .*\[([\w,]+)\]'", told)
    assert hint, told
    assert ",".join(sorted(hint[1].split(","))) == extras
    assert "schema" in told


def test_the_traceback_is_there_for_the_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    raised_in_a_command(monkeypatch, SettingsError("wrong"))
    monkeypatch.setenv(cli.DEBUG_VARIABLE, "1")
    with pytest.raises(SettingsError):
        cli.main(["schema"])


def test_a_fault_of_our_own_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    raised_in_a_command(monkeypatch, ZeroDivisionError("ours"))
    with pytest.raises(ZeroDivisionError):
        cli.main(["schema"])


def test_ctrl_c_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    raised_in_a_command(monkeypatch, KeyboardInterrupt())
    assert cli.main(["schema"]) == 130


def test_without_a_broker_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    # Port 1 of the loopback interface has no listener that a user could have started.
    assert cli.main(["topics", "--broker", "127.0.0.1:1"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "Kafka cannot be used (address: no broker can be reached at 127.0.0.1:" in line


def test_an_export_without_a_broker_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "clean.baseline"
    assert cli.main(["baseline", "export", "--broker", f"127.0.0.1:{free_port()}", str(file)]) == 1
    streams = capsys.readouterr()
    assert "springback: Kafka cannot be used (address: no broker can be reached" in streams.err
    assert not file.exists()


def test_up_looks_at_the_baseline_before_it_starts_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "part.frames.jsonl"
    other.write_text("not a baseline\n", encoding="utf-8")
    assert cli.main(["up", "--baseline", str(other)]) == 2
    streams = capsys.readouterr()
    assert "not a baseline file" in streams.err
    assert "Starting" not in streams.out


def test_it_runs_as_a_module(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "springback", "schema"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert done.stdout.startswith("{")

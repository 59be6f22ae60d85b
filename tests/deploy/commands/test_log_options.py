"""`--log-level` and `--log-format`: every service has them, and hands them on to the parts that it starts."""

import json
import logging
import os
from collections.abc import Iterator

import pytest

from springback.deploy import cli
from springback.deploy.command_app import build_app
from springback.deploy.commands.log_options import with_log
from springback.stream_processors.service.log import FORMAT_VARIABLE, LEVEL_VARIABLE

LOGGED = {*cli.SERVICES, "demo"}


@pytest.fixture(autouse=True)
def log_of_the_tests() -> Iterator[None]:
    """Gives the root logger back what it has: a command takes it for itself."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    for handler in list(root.handlers):
        root.removeHandler(handler)
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(level)


def test_every_service_has_both_options() -> None:
    for command in build_app().registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__
        assert hasattr(command.callback, "__wrapped__") == (name in LOGGED), name


@pytest.mark.parametrize("command", sorted(LOGGED))
def test_its_help_tells_of_them(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--log-level" in shown
    assert "--log-format" in shown
    assert LEVEL_VARIABLE in shown


def test_what_is_chosen_is_chosen_for_the_parts_too_and_forgotten_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LEVEL_VARIABLE, raising=False)
    monkeypatch.setenv(FORMAT_VARIABLE, "text")
    seen: list[tuple[str | None, str | None, int]] = []

    def service() -> None:
        seen.append((os.environ.get(LEVEL_VARIABLE), os.environ.get(FORMAT_VARIABLE), logging.getLogger().level))

    with_log(service)(log_level="debug", log_format="json")
    with_log(service)(log_level=None, log_format=None)
    with_log(service, quiet=True)(log_level=None, log_format=None)
    assert seen == [
        ("debug", "json", logging.DEBUG),
        (None, "text", logging.INFO),
        (None, "text", logging.WARNING),
    ]
    assert LEVEL_VARIABLE not in os.environ
    assert os.environ[FORMAT_VARIABLE] == "text"


def test_the_reason_of_its_end_is_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", "--log-format", "json", "--sink", "nowhere"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    told = json.loads(line)
    assert (told["level"], told["logger"]) == ("error", "springback")
    assert "nowhere" in told["message"]


def test_a_fault_of_ours_is_one_line_of_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        message = "of ours"
        raise ZeroDivisionError(message)

    monkeypatch.setattr("springback.sinks.third_party.make_sinks", fail)
    assert cli.main(["export", "--log-format", "json"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["traceback"].endswith("ZeroDivisionError: of ours")


def test_a_level_keeps_the_rest_silent(capsys: pytest.CaptureFixture[str]) -> None:
    def service() -> None:
        logging.getLogger("springback.of.this.test").warning("heard=no")
        logging.getLogger("aiokafka").warning("heard=no")
        logging.getLogger("springback.of.this.test").error("heard=yes")

    with_log(service)(log_level="error", log_format="text")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("heard=yes")

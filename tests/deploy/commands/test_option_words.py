"""Every option of every command says in our words what it expected."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from springback.deploy import cli
from springback.deploy.command_app import build_app
from springback.deploy.commands.option_words import declared_options, expected_value

# How validation libraries talk; none of it says what to do.
LIBRARY_WORDS = re.compile(r"Input should be|Value error|pydantic|unable to parse|Expected `|got `|at `\$")


class Given(NamedTuple):
    command: tuple[str, ...]
    option: str
    value: str
    expected: str


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    app = build_app()
    groups = [(str(part.info.name), part) for group in app.registered_groups if (part := group.typer_instance)]
    for path, each in [((), app), *(((name,), part) for name, part in groups)]:
        for command in each.registered_commands:
            assert command.callback is not None
            yield (*path, command.name or command.callback.__name__.replace("_", "-")), command.callback


def wrong_values() -> Iterator[Given]:
    """One for each option: in turn no number, one that is too large and one that is too small."""
    for number, (path, name, kind, info) in enumerate(
        (path, name, kind, info)
        for path, callback in commands()
        for name, (kind, info) in declared_options(callback).items()
    ):
        expected = expected_value(kind, info)
        if expected is None or getattr(info, "parser", None):
            continue
        beyond = ((info.max, 1), (info.min, -1))
        values = ["much", *(str(bound + more) for bound, more in beyond if bound is not None)]
        declared = (info.default, *(getattr(info, "param_decls", None) or ()), f"--{name.replace('_', '-')}")
        option = next(each for each in declared if isinstance(each, str) and each.startswith("--"))
        yield Given(path, option, values[number % len(values)], expected)


ALL = list(wrong_values())


@pytest.mark.parametrize("given", ALL, ids=lambda given: " ".join([*given.command, given.option, given.value]))
def test_a_wrong_value_is_told_in_our_words(given: Given, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*given.command, f"{given.option}={given.value}"]) == 2
    told = " ".join(re.sub("[│╭╮╰╯─]", " ", capsys.readouterr().err).split())
    assert f"Invalid value for '{given.option}'" in told
    assert f"got '{given.value}', expected {given.expected}" in told
    assert not LIBRARY_WORDS.search(told)


def test_the_options_that_were_tried_are_many() -> None:
    assert {"much"} < {given.value for given in ALL}
    assert len(ALL) > 40
    assert {"export", "demo", "topics", "annotate"} <= {given.command[0] for given in ALL}


def test_a_wrong_value_of_the_environment_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPRINGBACK_LOG_FORMAT", "xml")
    assert cli.main(["worker"]) == 2
    told = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert "(env var: 'SPRINGBACK_LOG_FORMAT'): got 'xml', expected text or json" in told

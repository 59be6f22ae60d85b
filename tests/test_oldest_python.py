"""What runs on Python 3.9 and 3.10: the agent's side, with its tests; of the rest, a sentence that says so.

`make test-oldest` runs this file on such a Python. On a newer one it takes itself for 3.9 where that matters.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from springback.producers.habitat.world import HABITAT_LAB_BY_PIP, HABITAT_SIM_BY_CONDA
from springback.producers.mapping.values import seconds_of
from springback.producers.plugins import load_plugins
from springback.producers.sources import find_source
from tests.bare_install import BASE, run_with
from tests.house import ROOT
from tests.oldest_python import runs_on_the_oldest

TAKEN_FOR_3_9 = "import sys\nif sys.version_info >= (3, 11):\n    sys.version_info = (3, 9, 18)\n"
SAID = "needs Python 3.11 or newer, and this is 3."

COMMAND = """
from springback.deploy.cli import main
sys.exit(main(sys.argv[1:]))
"""

ASK_FOR_EACH = """
import springback
print(sorted(dir(springback)))
for name in sys.argv[1:]:
    try:
        getattr(springback, name)
    except ImportError as error:
        print(type(error).__name__, error)
"""

IMPORT_ALL = """
import importlib
from springback.producers.install_hints import MissingExtraError
for name in sys.argv[2:]:
    try:
        importlib.import_module(name)
    except MissingExtraError:
        pass
import springback
for name in springback.__all__:
    try:
        getattr(springback, name)
    except ImportError as error:
        print(name, type(error).__name__)
"""
OF_OTHER_FOLDERS = {
    "AgentStatus",
    "DeadLetter",
    "EpisodeBegun",
    "EpisodeSummary",
    "FamilyReading",
    "Reading",
    "Sink",
    "SinkUnavailableError",
    "StateFeatures",
    "ValueModel",
    "WindowReading",
    "evaluate",
}
OF_GYMNASIUM = {"VectorWrapper", "Wrapper", "isolated"}


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", TAKEN_FOR_3_9 + script, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("arguments", [["--help"], ["evaluate", "own.frames.jsonl"], []])
def test_the_command_says_what_it_needs(arguments: list[str]) -> None:
    done = run(COMMAND, *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(f"springback: this command {SAID}")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_names_that_need_more_say_so_and_are_not_listed() -> None:
    done = run(ASK_FOR_EACH, *OF_OTHER_FOLDERS)
    assert done.returncode == 0, done.stderr
    listed, *said = done.stdout.splitlines()
    assert OF_OTHER_FOLDERS.isdisjoint(ast.literal_eval(listed))
    assert {"StepEmitter", "watch"} <= set(ast.literal_eval(listed))
    assert sorted(said) == sorted(said_of(name, done.stdout) for name in OF_OTHER_FOLDERS)


def said_of(name: str, said: str) -> str:
    return next(line for line in said.splitlines() if line.startswith(f"OlderPythonError springback.{name} {SAID}"))


def test_a_base_install_has_what_an_agent_needs() -> None:
    """Every module of `producers` imports, or names its extra; so does every public name on a newer Python."""
    paths = sorted((ROOT / "producers").rglob("*.py"))
    done = run_with(BASE, IMPORT_ALL, *(module_of(path) for path in paths))
    assert done.returncode == 0, done.stderr
    missing = dict(line.split() for line in done.stdout.splitlines())
    older = {name for name, kind in missing.items() if kind == "OlderPythonError"}
    assert older == (OF_OTHER_FOLDERS if sys.version_info < (3, 11) else set())
    assert missing.keys() - OF_OTHER_FOLDERS == OF_GYMNASIUM


def module_of(path: Path) -> str:
    return ".".join(("springback", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


@pytest.mark.parametrize(
    ("room", "files"),
    [("contract", 2), ("emitter", 8), ("environments", 8), ("habitat", 9), ("mapping", 8), ("perturbations", 3)],
)
def test_each_room_of_the_agents_side_is_tested_there(room: str, files: int) -> None:
    found = [file for file in (ROOT / "tests" / "producers" / room).rglob("test_*.py") if runs_on_the_oldest(file)]
    assert len(found) >= files, sorted(file.name for file in found)


def test_plugins_are_found_with_their_distributions() -> None:
    """`importlib.metadata` of 3.9 knows neither groups nor whose an entry point is."""
    plugins, faults = load_plugins("pytest11", lambda plugin: None)
    assert ("hypothesispytest", "hypothesis") in [(plugin.name, plugin.distribution) for plugin in plugins]
    assert faults == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-01-01", 1_767_225_600.0),
        ("2026-01-01T00:00:00Z", 1_767_225_600.0),
        ("2026-01-01 00:00:00,5", 1_767_225_600.5),
        ("2026-01-01T00:00:00.1234567", 1_767_225_600.123456),
        ("2026-01-01T00:00+02", 1_767_218_400.0),
        ("2026-01-01T00:00:00.25+0200", 1_767_218_400.25),
        ("2026-01-01T00:00:00-05:30", 1_767_245_400.0),
        ("2026-01-01T00:00:00z", None),
        ("dock", None),
    ],
)
def test_times_are_read_alike(text: str, seconds: float | None) -> None:
    """Until 3.11 `datetime.fromisoformat` reads no Z, no zone of hours alone, and fractions of 3 or 6 digits only."""
    assert seconds_of(text) == seconds


def test_the_readme_and_the_messages_install_alike() -> None:
    readme = (ROOT / "producers" / "README.md").read_text(encoding="utf-8").splitlines()
    command, channels = HABITAT_SIM_BY_CONDA.split(" -c aihabitat (Python 3.9) or ")
    assert channels.startswith("-c aihabitat-nightly (Python 3.10 and 3.11)")
    assert [line for line in readme if line.startswith("conda install")] == [
        f"{command} -c aihabitat",
        f"{command} -c aihabitat-nightly",
    ]
    assert readme.count(HABITAT_LAB_BY_PIP) == 2
    assert find_source("habitat", "wrapper").install == f"{HABITAT_SIM_BY_CONDA}; {HABITAT_LAB_BY_PIP}"


def test_the_oldest_python_is_the_same_everywhere() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'requires-python = ">=3.9"' in project
    assert '"producers/**" = "py39"' in project
    assert "(3, 9) <= sys.version_info" in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "make test-oldest" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("imported", "runs"),
    [
        ("import gymnasium, time", True),
        ("from springback.producers.emitter.step_emitter import StepEmitter", True),
        ("from tests.house import ROOT", True),
        ("from springback.stream_processors.offline.evaluation import evaluate", False),
        ("def test() -> None:\n    from springback.deploy import cli", False),
        ("from springback import deploy", False),
        ("from springback.producers.recordings.rows import read_csv", False),
        ("from tests.reading_builders import window_reading", False),
        ("import aiohttp.web", False),
    ],
)
def test_a_test_is_left_out_for_what_it_imports(tmp_path: Path, imported: str, runs: bool) -> None:
    file = tmp_path / "test_one.py"
    file.write_text(imported)
    assert runs_on_the_oldest(file) is runs

"""What is installed: every module imports, and an install without an extra says which one a part needs."""

import ast
import importlib
import json
import re
import sys
import tomllib
from typing import Any

import pytest

from springback.producers.install_hints import EXTRA_OF_PACKAGE, packages_of
from springback.producers.install_hints import EXTRAS as KNOWN_EXTRAS
from springback.producers.sources import SOURCES
from tests.bare_install import BASE, OF_THE_COMMAND_LINE, run_with
from tests.house import ROOT

FOLDERS = ("producers", "stream_processors", "sinks", "dashboards", "deploy")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RECORDING = "producers/recordings/habitat_twins.frames.jsonl.gz"
EXTRAS = EXTRA_OF_PACKAGE | {need: source.extra for source in SOURCES if source.extra for need in source.needs.split()}
IMPORT_ALL = """
import importlib
said = {}
for name in sys.argv[2:]:
    try:
        importlib.import_module(name)
    except ImportError as error:
        said[name] = f"{type(error).__name__}: {error}"
print(json.dumps(said))
"""

RUN_COMMAND = """
from springback.deploy.cli import main
sys.exit(main(sys.argv[2:]))
"""


def modules(folder: str) -> list[str]:
    paths = sorted((ROOT / folder).rglob("*.py"))
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    return [f"springback.{name}" for name in names]


@pytest.mark.parametrize("module", [module for folder in FOLDERS for module in modules(folder)])
def test_every_module_imports(module: str) -> None:
    try:
        importlib.import_module(module)
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRAS:
            raise
        pytest.skip(f"the extra {EXTRAS[missing]} is not installed")


def test_the_producer_side_imports_without_any_extra() -> None:
    done = run_with(BASE, IMPORT_ALL, *modules("producers"))
    assert done.returncode == 0, done.stderr
    said: dict[str, str] = json.loads(done.stdout)
    for name, message in said.items():
        extra = re.search(r"pip install .*\[(\w+)\]'$", message)
        assert extra, f"{name} names no extra: {message}"
        assert "install springback" not in message
        assert extra[1] in PROJECT["optional-dependencies"]
    assert said["springback.producers.environments.wrapper"].endswith("[gymnasium]'")
    assert "MissingExtraError" in said["springback.producers.environments.wrapper"]


def test_without_the_command_line_extra_it_says_what_to_install() -> None:
    done = run_with(BASE, RUN_COMMAND, "--help")
    assert done.returncode == 2
    assert done.stderr.startswith("springback: ")
    assert re.search(r"pip install .*\[cli\]'\. Without that there are `springback schema`", done.stderr)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("argument", "begins"), [("schema", '{\n  "$'), ("--version", "springback ")])
def test_the_base_install_tells_the_schema_and_its_version(argument: str, begins: str) -> None:
    small = run_with(BASE, RUN_COMMAND, argument)
    assert (small.returncode, small.stderr) == (0, "")
    assert small.stdout.startswith(begins)
    assert small.stdout == run_with((*BASE, *OF_THE_COMMAND_LINE), RUN_COMMAND, argument).stdout


@pytest.mark.parametrize("arguments", [["--help"], ["schema"], ["worker", "--help"]])
def test_the_command_line_needs_no_other_extra(arguments: list[str]) -> None:
    done = run_with((*BASE, *OF_THE_COMMAND_LINE), RUN_COMMAND, *arguments)
    assert done.returncode == 0, done.stderr


def test_recordings_are_evaluated_with_the_command_line_extra_alone() -> None:
    done = run_with((*BASE, *OF_THE_COMMAND_LINE), RUN_COMMAND, "evaluate", RECORDING)
    assert done.returncode == 0, done.stderr
    assert "navigation" in done.stdout


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("worker", "worker"),
        ("export", "sinks"),
        ("topics", "sinks"),
        ("live", "live"),
        ("up", "embedded,live"),
        ("bridge mqtt --broker 127.0.0.1:1", "mqtt"),
        (f"fit-value --out never.value {RECORDING}", "fit"),
    ],
)
def test_a_part_without_its_extra_says_what_to_install(command: str, extra: str) -> None:
    says_what_to_install((*BASE, *OF_THE_COMMAND_LINE), command, extra)


def test_an_evaluation_without_scipy_says_what_to_install() -> None:
    older = tuple(package for package in OF_THE_COMMAND_LINE if package != "scipy")
    says_what_to_install((*BASE, *older), f"evaluate {RECORDING}", "cli")


def says_what_to_install(packages: tuple[str, ...], command: str, extra: str) -> None:
    done = run_with(packages, RUN_COMMAND, *command.split())
    assert done.returncode == 2
    hint = re.search(r"pip install (.*)\[([\w,]+)\]'", done.stderr)
    assert hint, done.stderr
    assert hint[2] == extra
    assert not hint[1].endswith("springback") or "/" in hint[1]  # a name alone may be somebody else's in an index
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1


def imported_packages(folder: str) -> set[str]:
    names: set[str] = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                names.add(node.module)
    return {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names) - {"springback"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_package_that_is_imported_is_known_by_its_extra(folder: str) -> None:
    assert imported_packages(folder) <= {*BASE, *EXTRAS}


def test_the_extras_that_are_named_exist() -> None:
    extras = PROJECT["optional-dependencies"]
    assert set(EXTRAS.values()) <= set(extras)
    assert set(KNOWN_EXTRAS) == set(extras) - {"all", "dev"}
    (everything,) = extras["all"]
    named = everything.removeprefix("springback[").removesuffix("]").split(",")
    assert set(named) == set(extras) - {"all", "dev", "cli", "demo"}


def requirements(extra: str) -> set[str]:
    """The distributions that an extra names, itself and by those that it includes."""
    found: set[str] = set()
    for need in PROJECT["optional-dependencies"][extra]:
        ours = re.fullmatch(r"springback\[(.*)\]", need)
        found |= set().union(*map(requirements, ours[1].split(","))) if ours else {re.split(r"[<>=!; ]", need)[0]}
    return found


@pytest.mark.parametrize("extra", KNOWN_EXTRAS)
def test_what_an_extra_brings_is_what_the_project_says(extra: str) -> None:
    names = {"faust": "faust-streaming", "sklearn": "scikit-learn"}
    brought_along = {"fastapi", "mode", "niquests", "starlette", "uvicorn"}  # by nicegui, faust and grafana-client
    packages = set(packages_of([extra])) - brought_along
    assert {names.get(package, package).replace("_", "-") for package in packages} == requirements(extra)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_folder_is_typed_and_a_plain_package(folder: str) -> None:
    assert (ROOT / folder / "py.typed").is_file()
    assert (ROOT / folder / "__init__.py").is_file()


def test_no_test_file_shares_its_name() -> None:
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
    assert not list((ROOT / "tests").rglob("__init__.py"))

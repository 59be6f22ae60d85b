"""Setting up an environment: the script on a machine of stand-ins, and when `make` calls it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.house import ROOT

SCRIPT = ROOT / "deploy" / "set_up_venv.sh"
NEEDED = ("bash", "cat", "chmod", "env", "grep", "mkdir", "sh", "touch")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="a shell script")

# Notes how it was called; makes an environment that holds itself.
PYTHON = """#!/bin/sh
echo "python $*" >>"$CALLS"
case "$*" in
"-m venv "*) mkdir -p "$3/bin" && cat "$0" >"$3/bin/python" && chmod +x "$3/bin/python" ;;
*"pip config list") [ -z "$INDEX" ] || echo "global.index-url='https://packages.example.org/simple'" ;;
esac
"""


class Machine:
    """A folder of programs that is all the script sees, and another to work in."""

    def __init__(self, folder: Path) -> None:
        self.programs, self.work, self.calls = folder / "bin", folder / "work", folder / "calls"
        for made in (self.programs, self.work):
            made.mkdir()
        for name in NEEDED:
            path = shutil.which(name)
            assert path is not None
            (self.programs / name).symlink_to(path)
        self.add("python3", PYTHON)

    def add(self, name: str, text: str) -> None:
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)

    def set_up(self, python: str = "python3", **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.programs / "bash"), str(SCRIPT), python, ".venv", "demo"],
            cwd=self.work,
            env={"PATH": str(self.programs), "CALLS": str(self.calls), "INDEX": "", **variables},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    @property
    def called(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_it_says_first_what_it_does_and_how_long_that_takes(machine: Machine) -> None:
    done = machine.set_up()
    assert done.returncode == 0, done.stderr
    first, last = done.stdout.splitlines()
    assert first.startswith("Setting up .venv with the extras demo: about ")
    assert last.startswith(".venv is set up, in ")


def test_without_uv_it_is_pip_which_compiles_nothing(machine: Machine) -> None:
    machine.set_up()
    assert machine.called[0] == "python -m venv .venv"
    assert machine.called[-1].startswith("python -m pip install ")
    assert machine.called[-1].endswith("--no-compile --editable .[demo]")


def test_an_environment_that_is_there_is_kept(machine: Machine) -> None:
    machine.set_up()
    machine.set_up()
    assert len([call for call in machine.called if "venv .venv" in call]) == 1
    assert len([call for call in machine.called if "pip install" in call]) == 2


def test_uv_takes_the_place_of_pip(machine: Machine) -> None:
    machine.add("uv", '#!/bin/sh\necho "uv $*" >>"$CALLS"\n')
    assert machine.set_up().returncode == 0
    assert machine.called[-1] == "uv pip install --quiet --python .venv/bin/python --editable .[demo]"


def test_a_uv_that_does_not_work_is_told_and_pip_goes_on(machine: Machine) -> None:
    machine.add("uv", '#!/bin/sh\necho "uv $*" >>"$CALLS"\nexit 2\n')
    done = machine.set_up()
    assert done.returncode == 0
    assert "going on with pip" in done.stderr
    assert "pip install" in machine.called[-1]
    assert machine.called[-1].startswith("python ")


def test_uv_is_not_sent_to_another_index_than_pip(machine: Machine) -> None:
    machine.add("uv", '#!/bin/sh\necho "uv $*" >>"$CALLS"\n')
    machine.set_up(INDEX="own")
    assert not [call for call in machine.called if call.startswith("uv ")]
    machine.set_up(INDEX="own", UV_DEFAULT_INDEX="https://packages.example.org/simple")
    assert machine.called[-1].startswith("uv ")


def test_without_a_new_enough_python_it_says_which_it_needs(machine: Machine) -> None:
    done = machine.set_up(python="")
    assert done.returncode == 1
    assert "needs Python 3.11 or newer" in done.stderr
    assert "make PYTHON=" in done.stderr


class Clone:
    """A folder with our Makefile, whose set-up only notes that it was called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copy(ROOT / "Makefile", folder)
        (folder / "pyproject.toml").touch()
        for name, text in (
            ("deploy/set_up_venv.sh", 'echo "$3" >>calls'),
            ("deploy/ensure_tools.sh", ":"),
            (".venv/bin/springback", 'echo "springback $*" >>calls'),
            (".venv/bin/python", ":"),
        ):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)

    def make(self, *targets: str) -> list[str]:
        """What was set up or run on the way."""
        calls = self.folder / "calls"
        calls.write_text("")
        left_out = ("MAKE", "MFLAGS")
        variables = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
        subprocess.run(["make", *targets], cwd=self.folder, env=variables, check=True, timeout=300)
        return calls.read_text().splitlines()

    def change_requirements(self) -> None:
        """As if all had been installed a while before `pyproject.toml` was written."""
        before_s = (self.folder / "pyproject.toml").stat().st_mtime - 10.0
        for stamp in (self.folder / ".venv").glob(".springback*"):
            os.utime(stamp, (before_s, before_s))


DEMO = "springback demo --broker embedded --source babyai"


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_demo_installs_what_it_needs_and_nothing_is_installed_twice(tmp_path: Path) -> None:
    clone = Clone(tmp_path)
    assert clone.make("demo") == ["demo", DEMO]
    assert clone.make("demo") == [DEMO]
    assert clone.make("test") == ["all,dev"]
    assert clone.make("test") == []
    assert clone.make("demo") == [DEMO]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_where_all_is_installed_the_demo_adds_nothing(tmp_path: Path) -> None:
    clone = Clone(tmp_path)
    assert clone.make("venv") == ["all,dev"]
    assert clone.make("demo", "ARGS=--no-keep") == [f"{DEMO} --no-keep"]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_changed_requirements_are_installed_once_more(tmp_path: Path) -> None:
    clone = Clone(tmp_path)
    clone.make("venv")
    clone.change_requirements()
    assert clone.make("demo") == ["demo", DEMO]
    assert clone.make("venv") == ["all,dev"]
    assert clone.make("demo") == [DEMO]

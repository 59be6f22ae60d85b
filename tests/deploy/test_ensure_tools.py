"""The script that installs what is no Python package, on a machine of stand-ins."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.house import ROOT

SCRIPT = ROOT / "deploy" / "ensure_tools.sh"
NEEDED = ("bash", "sed", "cut", "paste", "grep", "head")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="a shell script")


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A directory of programs that is all the script sees: none of those that it looks for."""
    for name in NEEDED:
        path = shutil.which(name)
        assert path is not None
        (tmp_path / name).symlink_to(path)
    program(tmp_path / "id", "echo 1000")
    return tmp_path


def ensure(machine: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(machine / "bash"), str(SCRIPT), *arguments],
        env={"PATH": str(machine)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_what_is_missing_is_told_where_it_may_not_be_installed(machine: Path) -> None:
    program(machine / "prometheus", "")
    program(machine / "promtool", "")
    run = ensure(machine, "monitoring")
    assert run.returncode == 1
    assert "lacks: Alertmanager (with amtool), Chromium." in run.stderr
    assert "sudo apt-get install prometheus-alertmanager chromium" in run.stderr
    run = ensure(machine, "java")
    assert run.returncode == 1
    assert "lacks: Java 17 or newer, Maven (mvn)." in run.stderr


def test_nothing_is_done_where_all_is_there(machine: Path) -> None:
    for name in ("prometheus", "promtool", "alertmanager", "amtool", "google-chrome", "mvn"):
        program(machine / name, "")
    program(machine / "java", "echo 'openjdk version \"21.0.2\" 2024-01-16' >&2")
    program(machine / "apt-get", "exit 9")
    for group in ("monitoring", "java"):
        run = ensure(machine, group)
        assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_java_that_is_too_old_does_not_do(machine: Path) -> None:
    program(machine / "mvn", "")
    program(machine / "java", "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2")
    assert "lacks: Java 17 or newer." in ensure(machine, "java").stderr


@pytest.mark.skipif(not Path("/usr/sbin/policy-rc.d").exists(), reason="would write to this machine's /usr/sbin")
def test_root_installs_what_is_missing_and_keeps_services_from_starting(machine: Path) -> None:
    for name in ("promtool", "amtool"):
        program(machine / name, "")
    program(machine / "prometheus", "")
    program(machine / "id", "echo 0")
    for name in ("touch", "chmod", "rm"):
        (machine / name).symlink_to(str(shutil.which(name)))
    log = machine / "log"
    program(machine / "systemctl", f'echo "systemctl $*" >>{log}')
    installed = f"touch {machine}/chromium {machine}/alertmanager; chmod 755 {machine}/chromium {machine}/alertmanager"
    program(machine / "apt-get", f'echo "apt-get $*" >>{log}\ncase "$1" in install) {installed};; esac')
    run = ensure(machine, "monitoring")
    assert run.returncode == 0, run.stderr
    assert log.read_text().splitlines() == [
        "apt-get update -qq",
        "apt-get install -y -qq --no-install-recommends prometheus-alertmanager chromium",
        "systemctl disable --quiet prometheus-alertmanager",
    ]


@pytest.mark.parametrize("arguments", [(), ("python",)])
def test_what_it_cannot_do_is_told(arguments: tuple[str, ...], machine: Path) -> None:
    run = ensure(machine, *arguments)
    assert run.returncode == 2
    assert "Usage: ensure_tools.sh java|monitoring" in run.stderr

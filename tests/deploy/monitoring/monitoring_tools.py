"""The programs that tests of the monitoring need, and what happens where they are missing."""

import os
import shutil
import subprocess

import pytest

DEBIAN_PACKAGES = {
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "prometheus-alertmanager": "prometheus-alertmanager",
    "amtool": "prometheus-alertmanager",
}
_UPSTREAM_NAMES = {"prometheus-alertmanager": "alertmanager"}


def needed_tool(name: str) -> str:
    """The path of a program; without it the test is skipped, which CI does not accept."""
    path = shutil.which(name) or shutil.which(_UPSTREAM_NAMES.get(name, name))
    if path is None:
        message = f"{name} is missing: make test installs it as root, or: apt-get install {DEBIAN_PACKAGES[name]}"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return path


def output_of(name: str, *arguments: str, given: str | None = None) -> str:
    """What the program says; fails the test, with that, if it does not end well."""
    run = subprocess.run(
        [needed_tool(name), *arguments], input=given, capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout + run.stderr

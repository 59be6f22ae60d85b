"""`make check` asks for known vulnerabilities: it fails on one, and says so where nobody can be asked."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import ROOT

BAD = {"id": "PYSEC-2026-1", "fix_versions": ["2.0"]}
AUDITED = {"name": "good", "version": "1.0", "vulns": []}
UNKNOWN = {"name": "unknown", "skip_reason": "Dependency not found on PyPI"}


def audited(tmp_path: Path, program: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """The audit, with this shell script for pip-audit."""
    fake = tmp_path / "pip-audit"
    fake.write_text(f"#!/bin/sh\n{program}\n")
    fake.chmod(0o755)
    return subprocess.run(
        [sys.executable, ROOT / ".ci" / "audit_dependencies.py"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", **environment},
    )


def says(*dependencies: object) -> str:
    return f"echo '{json.dumps({'dependencies': dependencies})}'"


def test_a_vulnerability_is_named_and_ends_with_1(tmp_path: Path) -> None:
    found = audited(tmp_path, f"{says(AUDITED, {**AUDITED, 'name': 'bad', 'vulns': [BAD]})}; exit 1")
    assert found.returncode == 1
    assert "bad 1.0 has PYSEC-2026-1, mended in 2.0" in found.stderr


def test_without_one_it_says_how_many_were_audited(tmp_path: Path) -> None:
    found = audited(tmp_path, says(AUDITED, UNKNOWN))
    assert (found.returncode, found.stdout) == (0, "1 of 2 packages were audited: no known vulnerability.\n")


def test_what_is_to_be_passed_over_is_passed_on(tmp_path: Path) -> None:
    found = audited(tmp_path, f'echo "$@" > {tmp_path}/given; {says(AUDITED)}', AUDIT_IGNORE="A-1 B-2")
    assert found.returncode == 0
    assert (tmp_path / "given").read_text().endswith("--ignore-vuln A-1 --ignore-vuln B-2\n")


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (says(UNKNOWN), "knows none of 1 packages"),
        ("echo no network >&2; exit 1", "no network"),
        ("exec sleep 60", "within 0.2 s"),
    ],
)
def test_where_nobody_can_be_asked_it_says_so(tmp_path: Path, program: str, why: str) -> None:
    found = audited(tmp_path, program, AUDIT_TIMEOUT_S="0.2" if "sleep" in program else "60")
    assert found.returncode == 0
    assert found.stdout.startswith("Dependencies were not audited: ")
    assert why in found.stdout

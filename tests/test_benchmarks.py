"""The benchmark runs and finds figures; what they are is not tested."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def bench(*options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.benchmarks", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.broker
def test_a_quick_run_finds_figures(tmp_path: Path) -> None:
    written = tmp_path / "speed.json"
    ran = bench("--quick", "--sizes", "16", "--json", str(written))
    assert ran.returncode == 0, ran.stderr
    assert "One worker, through Kafka" in ran.stdout
    found = json.loads(written.read_text())
    (worker,) = found["worker"]
    assert worker["size"] == 16
    assert worker["steps_per_s"] == pytest.approx(16 * worker["frames_per_s"])
    assert worker["ratio"] == pytest.approx(worker["frames_per_s"] / worker["bare_frames_per_s"])
    assert [part["part"] for part in found["core"]] == ["decode and tabulate", "track", "copy of the columns"]
    assert all(part["rows_per_s"] > 0 for part in found["core"])


def test_a_frame_size_that_is_none_is_wrong_usage() -> None:
    ran = bench("--sizes", "1,0")
    assert ran.returncode == 2
    assert "expected numbers from 1 to" in ran.stderr

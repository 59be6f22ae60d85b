"""The benchmark runs and finds figures; what they are is not tested."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.benchmarks.__main__ import bench as make_bench
from tests.benchmarks.alert_rates import Bounds, Rates, alert_rates
from tests.benchmarks.calibration import calibration
from tests.benchmarks.exporter_load import Minute, broken_bounds
from tests.house import ROOT
from tests.program import run_program


def bench(*options: str, program: str = "tests.benchmarks") -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", program, *options]
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


@pytest.mark.broker
def test_the_latency_of_a_step_is_found_in_all_states_of_kafka() -> None:
    ran = bench("--steps", "40", program="tests.benchmarks.emitter_latency")
    assert ran.returncode == 0, ran.stderr
    rows = [line.split()[:2] for line in ran.stdout.splitlines()[1:]]
    assert rows == [[state, spool] for state in ("up", "away", "dying") for spool in ("no", "yes")]
    assert "0 dropped" in ran.stdout


def test_a_frame_size_that_is_none_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_program(make_bench, "make bench", ["--sizes", "1,0"]) == 2
    assert "expected numbers from 1 to" in capsys.readouterr().err


@pytest.mark.broker
def test_the_exporter_under_a_short_load_keeps_its_bounds(tmp_path: Path) -> None:
    written = tmp_path / "load.json"
    ran = bench("--quick", "--json", str(written), program="tests.benchmarks.exporter_load")
    found = json.loads(written.read_text())
    assert (ran.returncode, found["broken"]) == (0, []), ran.stdout + ran.stderr
    (minute,) = found["minutes"]
    assert 0 < minute["series"] <= found["cap"]
    assert minute["agents"] > 200
    assert found["ratio"] > 0


def test_calibration_says_how_often_clean_episodes_and_costly_disturbances_alarm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "shares.json"
    recording = ROOT / "tests/data/habitat_sim_nav_depth.whole.frames.jsonl.gz"
    options = ("--draws", "1", "--references", "10,400", "--json", str(written), str(recording))
    assert run_program(calibration, "calibration", options) == 0
    assert "Clean episodes with a window" in capsys.readouterr().out
    found = {shares["bounds"]: shares for shares in json.loads(written.read_text())}
    assert {shares["references"] for shares in found.values()} == {10}  # there are no 400 to draw
    assert {shares["clean"] for shares in found.values()} == {26}  # the others of 36
    assert [found[name]["behind"] for name in ("fixed", "in sample", "folds", "live")] == [0, 10, 10, 0]
    assert all(0 <= shares["costly_found"] <= shares["costly"] for shares in found.values())


def test_alert_rates_keep_their_bounds_and_tell_of_those_they_do_not(tmp_path: Path) -> None:
    written = tmp_path / "rates.json"
    options = ("--repeats", "60", "--most", "30", "--rates", "", "--json", str(written))
    assert run_program(alert_rates, "alert_rates", options) == 0
    assert json.loads(written.read_text())["broken"] == []
    rates = [Rates(**entry) for entry in json.loads(written.read_text())["rates"]]
    assert {(entry.rate, len(entry.at), entry.first) for entry in rates} == {(0.05, 26, 5), (0.4, 26, 5)}
    assert all(now <= ever for entry in rates for now, ever in zip(entry.at, entry.by, strict=True))
    # A single bad run takes the margin of five to ten episodes below 0: one in four to one in two levels.
    (naive,) = (e for e in rates if (e.trouble, e.rate, e.alert) == ("nothing reached", 0.05, "margin < 0"))
    assert naive.share(8, by=False) > 0.15
    assert [words.split()[0] for words in Bounds(0.06, 0.89).broken] == ["6.0%", "89.0%"]
    assert Bounds(0.05, 0.9).broken == []


def test_a_bound_that_does_not_hold_is_told() -> None:
    times = {"page_s": 0.1, "slowest_page_s": 1.5, "wall_s": 2.0, "ratio": 1.0}
    minute = Minute(minute=1, agents=1, readings=1, series=101, memory_mb=116.0, **times)
    told = broken_bounds([minute], start_mb=100.0, cap=100)
    assert [words.split()[0] for words in told] == ["101", "a", "memory"]
    held = replace(minute, series=100, slowest_page_s=0.9, memory_mb=114.0)
    assert broken_bounds([held], start_mb=100.0, cap=100) == []

"""The fault harness in short, both baseline modes on a real Kafka; and that its faults do what they say."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.faults import __main__ as program
from tests.faults.fault_kinds import FAULT_KINDS, KIND_NAMES, kinds_of
from tests.faults.fault_run import RunPlan, RunReport
from tests.faults.worker_process import shift_clock, write_offset
from tests.house import ROOT
from tests.program import run_program

RUN_S = 600
SHORT = "worker_stopped,broker_killed,producer_killed,wire_shaken"


@pytest.mark.kafka
@pytest.mark.timeout(RUN_S + 60)
def test_faults_lose_double_and_change_nothing(kafka_process: object, tmp_path: Path) -> None:
    del kafka_process  # only for its skip where there is no Kafka; the harness has one of its own
    command = [
        *(sys.executable, "-m", "tests.faults", "--modes", "all", "--parallel", "2", "--kinds", SHORT),
        *("--episodes", "150", "--folder", str(tmp_path)),
    ]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=RUN_S, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [["--kinds", "earthquake"], ["--modes", "melted"], ["--kinds", ""], ["--broker", "rabbit"]]
)
def test_a_choice_that_there_is_not_is_told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_program(program.faults, "make faults", arguments) == 2
    assert arguments[1] in capsys.readouterr().err


def test_the_folder_for_runs_is_made_where_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[Path] = []

    def note(plans: Sequence[RunPlan], *_: object) -> list[RunReport]:
        places.extend(Path(plan.directory).parent for plan in plans)
        assert all(place.is_dir() for place in places)
        return []

    monkeypatch.setattr(program, "_with_progress", note)
    program.faults(folder=tmp_path / "new" / "deep")
    assert {place.parent for place in places} == {tmp_path / "new" / "deep"}


def test_kinds_have_names_of_their_own_and_are_found_by_them() -> None:
    assert len(set(KIND_NAMES)) == len(FAULT_KINDS)
    assert [kind.name for kind in kinds_of(("broker_killed", "worker_killed"))] == ["worker_killed", "broker_killed"]


def test_a_worker_that_is_asked_says_where_its_tasks_are() -> None:
    program = """
import asyncio, os, signal
from tests.faults.fault_run import RunPlan, RunReport
from tests.faults.worker_process import tell_waits

async def waits_for_nothing():
    await asyncio.Event().wait()

async def main():
    waiting = asyncio.ensure_future(waits_for_nothing())
    signal.signal(signal.SIGUSR1, tell_waits)
    await asyncio.sleep(0)
    os.kill(os.getpid(), signal.SIGUSR1)
    await asyncio.sleep(0)

asyncio.run(main())
"""
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "in waits_for_nothing" in run.stderr


def test_a_clock_goes_on_from_where_it_is_set_and_can_be_set_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    clock = tmp_path / "clock"
    write_offset(clock, 0.0)
    shift_clock(clock)
    assert time.time() == 1000.0
    write_offset(clock, -3600.0)
    assert time.time() == -2600.0
    write_offset(clock, 0.0)
    assert time.time() == 1000.0

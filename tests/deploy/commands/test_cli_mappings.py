"""Mappings on the command line: sources listed, recordings of every format evaluated and replayed, bridges run."""

import asyncio
import json
import re
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]

from springback.deploy import cli
from springback.producers.contract.codec import decode_frame
from springback.producers.contract.frame import StepFrame
from tests.producers.recordings import robot_logs
from tests.producers.recordings.recording_writers import MISSIONS, SAID, STEPS


@pytest.fixture
def mapping(tmp_path: Path) -> Path:
    path = tmp_path / "robot.toml"
    path.write_text(robot_logs.MAPPING, encoding="utf-8")
    return path


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """An MCAP file; its name does not say so."""
    path = tmp_path / "monday"
    robot_logs.write_ros2_mcap(path, SAID)
    return path


def test_sources_says_what_there_is_and_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in ("pyarrow", "pyulog") else find(name))
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["sources"]) == 0
    shown = capsys.readouterr().out
    (parquet,) = [line for line in shown.splitlines() if line.startswith("│ parquet")]
    assert "no: pyarrow" in parquet
    (hint,) = [line for line in shown.splitlines() if "pip install" in line and "lerobot" in line]
    assert hint.startswith("To install what lerobot, parquet, ulog need: ")
    assert hint.endswith("[recordings,ulog]'")
    (csv,) = [line for line in shown.splitlines() if line.startswith("│ csv")]
    assert "yes" in csv
    assert "lerobot, move_base, nav2" in shown


def test_evaluate_takes_a_mixture_by_a_mapping(
    recording: Path, mapping: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bag = tmp_path / "tuesday.bag"
    robot_logs.write_bag1(bag, SAID)
    bag.write_bytes(bag.read_bytes()[:-5000])
    out = tmp_path / "out.json"
    assert cli.main(["evaluate", "--mapping", str(mapping), "--json", str(out), str(recording), str(bag)]) == 0
    streams = capsys.readouterr()
    assert "C_rec" in streams.out
    assert f"left out  {bag}:" in streams.err
    episodes = json.loads(out.read_text(encoding="utf-8"))["episodes"]
    assert len([episode for episode in episodes if episode["session"].startswith("monday-")]) == MISSIONS
    calm = [episode["recovery_cost"] or 0.0 for episode in episodes if episode["stress"] == 0.0]
    assert max(calm) < max(episode["recovery_cost"] for episode in episodes if episode["stress"] > 0.0)


def test_a_recording_that_needs_a_mapping_says_so(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["evaluate"], ["replay", "--broker", "127.0.0.1:1"]):
        assert cli.main([*command, str(recording)]) == 2
        assert "is a recording of the format mcap: say with --mapping which field" in capsys.readouterr().err


def test_a_mapping_that_is_wrong_says_where(recording: Path, mapping: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mapping.write_text(robot_logs.MAPPING.replace("progress_from_remaining", "progress"), encoding="utf-8")
    assert cli.main(["evaluate", "--mapping", str(mapping), str(recording)]) == 2
    assert f"{mapping}: signals.progress.transform[0]: got 'progress'" in capsys.readouterr().err
    assert cli.main(["evaluate", "--mapping", "nav3", str(recording)]) == 2
    assert "there is no mapping file 'nav3'" in capsys.readouterr().err


def test_a_format_without_its_package_says_what_to_install(
    tmp_path: Path, mapping: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    path = tmp_path / "table"
    robot_logs.write_parquet(path, robot_logs.rows(SAID))
    monkeypatch.delitem(sys.modules, "springback.producers.recordings.parquet_rows", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert cli.main(["evaluate", "--mapping", str(mapping), str(path)]) == 2
    assert re.search(r"pip install .*\[recordings\]'$", capsys.readouterr().err.strip())


def test_an_unknown_bridge_and_a_bad_option_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = ["--record", str(tmp_path / "out.jsonl")]
    assert cli.main(["bridge", "carrier-pigeon", *record]) == 2
    assert "there is no bridge 'carrier-pigeon'; there are " in capsys.readouterr().err
    assert cli.main(["bridge", "mqtt", "--option", "host", *record]) == 2
    assert "'host' is not KEY=VALUE" in capsys.readouterr().err


def test_settings_of_no_bridge_are_refused(mapping: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mapping.write_text(robot_logs.MAPPING + '\n[source.mqqt]\nhost = "10.0.0.2"\n', encoding="utf-8")
    assert cli.main(["bridge", "mqtt", "-m", str(mapping), "--record", str(tmp_path / "out.jsonl")]) == 2
    said = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert "[source.mqqt]" in said
    assert "names no bridge; there are mqtt, ros" in said


def test_versions_of_a_robot_are_compared_and_learned_from(
    mapping: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    files = []
    said = robot_logs.missions(clean=20, stressed=5)  # with fewer, the family would be learning, or a level too small
    for version in ("1", "2"):
        files.append(tmp_path / f"{version}.csv")
        rows = [row | {"version": version} for row in robot_logs.rows(said)]
        robot_logs.write_csv(files[-1], rows)
    text = robot_logs.ROWS_MAPPING.replace('"distance_travelled"', '"difference"')
    mapping.write_text(text.replace("[header]", '[header]\nversion = { field = "version" }'), encoding="utf-8")
    given = ["-m", str(mapping), *map(str, files)]
    assert cli.main(["compare", "--baseline", "1", "--candidate", "2", *given]) == 0
    assert "navigation · default: passed" in capsys.readouterr().out
    assert cli.main(["fit-value", "--epochs", "2", "--hidden", "4", "--out", str(tmp_path / "value"), *given]) == 0
    assert (tmp_path / "value").is_file()


def test_recordings_of_other_kinds_are_said_to_need_a_mapping(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    robot_logs.write_csv(tmp_path / "run.csv", robot_logs.rows(SAID)[:3])
    assert cli.main(["evaluate", str(tmp_path / "run.csv")]) == 2
    assert "recordings of other kinds need a mapping (--mapping)" in capsys.readouterr().err


async def arrived(broker: str, topic: str, steps: int) -> list[StepFrame]:
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=broker, auto_offset_reset="earliest")
    await consumer.start()
    frames: list[StepFrame] = []
    try:
        async with asyncio.timeout(150):
            while sum(frame.n_steps for frame in frames) < steps:
                frames.append(decode_frame((await consumer.getone()).value))
    finally:
        await consumer.stop()
    return frames


def test_replay_sends_what_a_mapping_makes(
    recording: Path, mapping: Path, embedded_broker: str, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--broker", embedded_broker, "--prefix", "test-cli-mappings."]
    assert cli.main(["topics", *where]) == 0
    assert cli.main(["replay", "--speed", "max", *where, "--mapping", str(mapping), str(recording)]) == 0
    assert f"({STEPS} steps" in capsys.readouterr().out
    frames = asyncio.run(arrived(embedded_broker, "test-cli-mappings.steps", STEPS))
    assert {frame.producer for frame in frames} == {"robot-7"}
    assert sum(frame.n_steps for frame in frames) == STEPS
    assert [end.outcome for frame in frames for end in frame.ends][-1] == "success"

"""The same robot's log as a file of each format, and what is read of it."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from pathlib import Path

import mcap.writer

from springback.producers.contract.frame import StepFrame, TextColumn
from springback.producers.mapping.signal_mapping import SignalMapping, parse_mapping
from springback.producers.recordings.any_format import read_recordings
from springback.producers.recordings.step_frames import UnreadablePart
from tests.producers.recordings import robot_logs

Written = tuple[Path, SignalMapping]


def frames_of(
    paths: Iterable[Path | str], mapping: SignalMapping | None
) -> tuple[list[StepFrame], list[UnreadablePart]]:
    unreadable: list[UnreadablePart] = []
    frames = [recorded.frame for recorded in read_recordings(paths, mapping, unreadable.append)]
    return frames, unreadable


def steps_in(frames: list[StepFrame]) -> int:
    return sum(frame.n_steps for frame in frames)


def cells_of(frames: list[StepFrame], name: str) -> list[float]:
    columns = [frame.steps[name] for frame in frames if frame.n_steps]
    return [cell for column in columns if not isinstance(column, TextColumn) for cell in column.tolist()]


def ends_in(frames: list[StepFrame]) -> list[str]:
    return [end.outcome for frame in frames for end in frame.ends]


SAID = robot_logs.missions()
STEPS = len(robot_logs.rows(SAID))
MISSIONS = robot_logs.CLEAN + robot_logs.STRESSED


def ros2_mcap(folder: Path, said: list[robot_logs.Said]) -> Written:
    robot_logs.write_ros2_mcap(folder / "run", said)
    return folder / "run", robot_logs.mapping()


def lz4_mcap(folder: Path, said: list[robot_logs.Said]) -> Written:
    robot_logs.write_ros2_mcap(folder / "run", said, compression="LZ4")
    return folder / "run", robot_logs.mapping()


def json_mcap(folder: Path, said: list[robot_logs.Said]) -> Written:
    robot_logs.write_json_mcap(folder / "run", said, chunk_size=4096)
    return folder / "run", robot_logs.mapping()


def unindexed_mcap(folder: Path, said: list[robot_logs.Said]) -> Written:
    robot_logs.write_json_mcap(
        folder / "run",
        said,
        index_types=mcap.writer.IndexType.NONE,
        use_chunking=False,
        use_summary_offsets=False,
        use_statistics=False,
        repeat_channels=False,
        repeat_schemas=False,
    )
    return folder / "run", robot_logs.mapping()


def bag1(folder: Path, said: list[robot_logs.Said]) -> Written:
    robot_logs.write_bag1(folder / "run", said)
    return folder / "run", robot_logs.mapping()


def bz2_bag1(folder: Path, said: list[robot_logs.Said]) -> Written:
    robot_logs.write_bag1(folder / "run", said, "BZ2")
    return folder / "run", robot_logs.mapping()


def lz4_bag1(folder: Path, said: list[robot_logs.Said]) -> Written:
    robot_logs.write_bag1(folder / "run", said, "LZ4")
    return folder / "run", robot_logs.mapping()


def bag2(folder: Path, said: list[robot_logs.Said]) -> Written:
    return robot_logs.write_bag2(folder / "bag", said), robot_logs.mapping()


def bag2_folder(folder: Path, said: list[robot_logs.Said]) -> Written:
    robot_logs.write_bag2(folder / "bag", said)
    return folder / "bag", robot_logs.mapping()


def old_bag2(folder: Path, said: list[robot_logs.Said]) -> Written:
    file = robot_logs.write_bag2(folder / "bag", said)
    robot_logs.forget_definitions(file)
    return file, robot_logs.mapping()


def json_lines(folder: Path, said: list[robot_logs.Said]) -> Written:
    robot_logs.write_json_lines(folder / "run", robot_logs.rows(said))
    return folder / "run", robot_logs.rows_mapping()


def gzip_csv(folder: Path, said: list[robot_logs.Said]) -> Written:
    robot_logs.write_csv(folder / "plain", robot_logs.rows(said))
    (folder / "run").write_bytes(gzip.compress((folder / "plain").read_bytes()))
    mapping = robot_logs.ROWS_MAPPING.replace(
        '"point", transform = "distance_travelled"', '"point", transform = "difference"'
    )
    return folder / "run", parse_mapping(mapping, "rows.toml")


def parquet(folder: Path, said: list[robot_logs.Said]) -> Written:
    robot_logs.write_parquet(folder / "run", robot_logs.rows(said))
    return folder / "run", robot_logs.rows_mapping()


MESSAGES = [ros2_mcap, lz4_mcap, json_mcap, unindexed_mcap, bag1, bz2_bag1, lz4_bag1, bag2, bag2_folder, old_bag2]
TABLES = [json_lines, gzip_csv, parquet]
Write = Callable[[Path, list[robot_logs.Said]], Written]

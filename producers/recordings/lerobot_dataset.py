"""Frames of a LeRobot dataset, versions 2 and 3: the folder that has `meta/info.json`.

Each row of `data/…/*.parquet` is a message, in the order of the files. It gets a few more fields, which the files of
`meta/` hold: `task_text`, `episode_length`, `share_done` (the share of the episode's frames up to and including this
one), `robot_type`, `dataset` (the folder's name) and `fps`; and `reward_progress`, the reward where it is the progress
(see `lerobot_reward`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from springback.producers.mapping.signal_mapping import TimedMessage
from springback.producers.recordings.lerobot_reward import REWARD, RewardCheck, reward_of
from springback.producers.recordings.opening import OpenRecording, json_value
from springback.producers.recordings.parquet_rows import file_rows
from springback.producers.recordings.rows import row_message

INFO: Final = Path("meta") / "info.json"
REWARD_PROGRESS: Final = "reward_progress"
_META_COLUMNS: Final = ("task_index", "task", "__index_level_0__", "episode_index", "length")
_JOINED_BY: Final = frozenset({"task_index", "episode_index", "frame_index"})


def read_messages(recording: OpenRecording) -> Iterator[TimedMessage]:
    """The frames of all episodes; a damaged file is left out."""
    folder = recording.path
    info = _info(recording)
    tasks = _tasks(recording)
    lengths = _lengths(recording)
    shared = {"dataset": folder.resolve().name, "robot_type": info.get("robot_type") or "robot", "fps": info.get("fps")}
    files = sorted((folder / "data").rglob("*.parquet"))
    if not files:
        recording.unreadable(0, "no_data", "there is no Parquet file under data/")
    rewarded = _rewarded(recording, files)
    also = _JOINED_BY | {REWARD} if rewarded else _JOINED_BY
    frames = 0
    for place, file in enumerate(files):
        for _, row, share in file_rows(recording, file, also):
            frames += 1
            recording.read_share = (place + share) / len(files)
            joined = _joined(row, tasks, lengths)
            if rewarded and (reward := reward_of(row)) is not None:
                joined[REWARD_PROGRESS] = reward
            yield row_message(recording, frames, row | shared | joined)


def _rewarded(recording: OpenRecording, files: list[Path]) -> bool:
    """Whether the reward is the progress; says which of the two is, to a mapping that wants to know."""
    wanted = recording.mapping.columns
    if not files or (wanted is not None and REWARD_PROGRESS not in wanted):
        return False
    check = RewardCheck()
    for file in files:
        for row in _parquet_rows(file, (REWARD, "episode_index"), None):
            check.take(row.get("episode_index"), reward_of(row))
    rewarded, told = check.finish()
    recording.note("progress_by_reward" if rewarded else "progress_by_length", told)
    return rewarded


def _joined(row: dict[str, Any], tasks: dict[int, str], lengths: dict[int, int]) -> dict[str, Any]:
    joined: dict[str, Any] = {}
    task = tasks.get(row.get("task_index", -1))
    if task is not None:
        joined["task_text"] = task
    length = lengths.get(row.get("episode_index", -1))
    if length:
        joined["episode_length"] = length
        if isinstance(frame := row.get("frame_index"), int):
            joined["share_done"] = (frame + 1) / length
    return joined


def _info(recording: OpenRecording) -> dict[str, Any]:
    try:
        info = json_value((recording.path / INFO).read_bytes())
    except (OSError, ValueError) as error:
        recording.unreadable(0, "damaged_file", f"{INFO}: {error}")
        return {}
    return info if isinstance(info, dict) else {}


def _meta_rows(recording: OpenRecording, name: str) -> Iterator[dict[str, Any]]:
    """The rows on tasks or episodes: `meta/NAME.jsonl` of version 2, `meta/NAME…/*.parquet` of version 3."""
    meta = recording.path / "meta"
    lines = meta / f"{name}.jsonl"
    if lines.is_file():
        for number, line in enumerate(lines.read_bytes().splitlines(), 1):
            try:
                yield json.loads(line)
            except ValueError as error:
                recording.unreadable(number, "not_json", f"{lines.name}: {error}")
    for file in [*meta.glob(f"{name}.parquet"), *sorted((meta / name).rglob("*.parquet"))]:
        yield from _parquet_rows(file, _META_COLUMNS, recording)


def _parquet_rows(file: Path, wanted: Iterable[str], told: OpenRecording | None) -> Iterator[dict[str, Any]]:
    """These columns of a file, as far as it has them.

    Args:
        file: the file.
        wanted: the columns' names.
        told: the recording that a damaged file is told to; None where that is done when the whole of it is read.
    """
    import pyarrow.parquet  # type: ignore[import-untyped]

    try:
        names = pyarrow.parquet.read_schema(file).names
        table = pyarrow.parquet.read_table(file, columns=[name for name in wanted if name in names])
    except (pyarrow.ArrowException, OSError) as error:
        if told is not None:
            told.unreadable(0, "damaged_file", f"{file.name}: {error}")
    else:
        yield from table.to_pylist()


def _tasks(recording: OpenRecording) -> dict[int, str]:
    # Version 3 keeps the task's text as the index of a data frame.
    rows = list(_meta_rows(recording, "tasks"))
    texts = ((row.get("task_index"), row.get("task", row.get("__index_level_0__"))) for row in rows)
    return {index: text for index, text in texts if isinstance(index, int) and isinstance(text, str)}


def _lengths(recording: OpenRecording) -> dict[int, int]:
    numbers = ((row.get("episode_index"), row.get("length")) for row in _meta_rows(recording, "episodes"))
    return {index: length for index, length in numbers if isinstance(index, int) and isinstance(length, int)}

"""Recordings as the field leaves them: cut off, without an index, damaged in the middle."""

import io
from pathlib import Path

import pyarrow.parquet  # type: ignore[import-untyped]
import pytest

from springback.producers.recordings.opening import MOST_TOPICS_NAMED, OpenRecording
from springback.producers.recordings.rosbag2_messages import bag_files
from tests.producers.recordings import robot_logs
from tests.producers.recordings.recording_writers import (
    SAID,
    STEPS,
    Write,
    bag1,
    bag2,
    bag2_folder,
    ends_in,
    frames_of,
    gzip_csv,
    json_mcap,
    lz4_bag1,
    lz4_mcap,
    parquet,
    ros2_mcap,
    steps_in,
    unindexed_mcap,
)


@pytest.mark.parametrize("write", [ros2_mcap, lz4_mcap, json_mcap, unindexed_mcap, bag1, lz4_bag1, bag2])
def test_a_file_that_was_cut_off_gives_what_is_there(write: Write, tmp_path: Path) -> None:
    path, mapping = write(tmp_path, SAID)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 6 // 10])
    frames, unreadable = frames_of([path], mapping)
    assert STEPS * 0.4 < steps_in(frames) < STEPS * 0.8
    assert ends_in(frames)[:-1] == ["success"] * (len(ends_in(frames)) - 1)
    assert ends_in(frames)[-1] == "aborted"
    assert {part.reason for part in unreadable} & {"not_closed", "damaged_database"}


def test_a_crashed_recorder_leaves_a_bag_without_an_index(tmp_path: Path) -> None:
    path, mapping = bag1(tmp_path, SAID)
    data = bytearray(path.read_bytes())
    place = data.index(b"index_pos=") + len(b"index_pos=")
    (index,) = [int.from_bytes(data[place : place + 8], "little")]
    data[place : place + 8] = bytes(8)
    path.write_bytes(data[:index])
    frames, unreadable = frames_of([path], mapping)
    assert steps_in(frames) == STEPS
    assert [part.reason for part in unreadable] == ["not_closed"]


def test_a_bag_folder_without_metadata_is_read(tmp_path: Path) -> None:
    path, mapping = bag2_folder(tmp_path, SAID)
    (path / "metadata.yaml").unlink()
    frames, unreadable = frames_of([path], mapping)
    assert steps_in(frames) == STEPS
    assert [part.reason for part in unreadable] == ["not_closed"]


def damage_a_chunk(path: Path, share: float) -> None:
    """Spoil the first chunk after this share of the file; the first of all is the one that names the topics."""
    data = bytearray(path.read_bytes())
    after = int(share * len(data))
    place = min(at for magic in (b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18") if (at := data.find(magic, after)) >= 0)
    data[place + 8 : place + 24] = b"\xff" * 16
    path.write_bytes(data)


@pytest.mark.parametrize("write", [ros2_mcap, lz4_mcap, json_mcap, lz4_bag1])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_chunk_that_is_damaged_costs_itself_alone(write: Write, share: float, tmp_path: Path) -> None:
    path, mapping = write(tmp_path, SAID)
    damage_a_chunk(path, share)
    frames, unreadable = frames_of([path], mapping)
    assert STEPS * 0.9 < steps_in(frames) < STEPS
    assert {part.reason for part in unreadable} - {"no_progress"} == {"damaged_chunk"}


@pytest.mark.parametrize("write", [ros2_mcap, lz4_bag1])
def test_topics_that_are_lost_are_told_once_each(write: Write, tmp_path: Path) -> None:
    path, mapping = write(tmp_path, SAID)
    damage_a_chunk(path, 0.0)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])  # and without an end, nothing else names them
    frames, unreadable = frames_of([path], mapping)
    assert not frames
    assert 1 <= [part.reason for part in unreadable].count("unknown_channel") <= 5


def test_the_files_of_a_bag_come_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    names = [f"run_{number}.db3" for number in range(12)]
    for name in reversed(names):
        (tmp_path / name).touch()
    assert [file.name for file in bag_files(tmp_path)] == names


def test_topics_that_nobody_reads_are_not_all_kept() -> None:
    recording = OpenRecording(Path("run"), "run", io.BytesIO(), robot_logs.mapping(), lambda part: None)
    assert not any(recording.wants(f"camera/{number}") for number in range(1000))
    assert recording.wants("position")
    assert len(recording.topics) == MOST_TOPICS_NAMED + 1
    assert len(recording.others) == 1000 - MOST_TOPICS_NAMED
    assert not recording.wants("camera/999")  # asked again, of those that are kept


def test_a_table_that_was_cut_off(tmp_path: Path) -> None:
    path, mapping = parquet(tmp_path, SAID)
    path.write_bytes(path.read_bytes()[:-20])
    frames, unreadable = frames_of([path], mapping)
    assert not frames
    assert "damaged_file" in {part.reason for part in unreadable}
    path, mapping = gzip_csv(tmp_path, SAID)
    path.write_bytes(path.read_bytes()[:-2000])
    frames, unreadable = frames_of([path], mapping)
    assert 0 < steps_in(frames) < STEPS
    assert "damaged_gzip" in {part.reason for part in unreadable}


def test_a_row_group_that_is_damaged_costs_itself_alone(tmp_path: Path) -> None:
    path, mapping = parquet(tmp_path, SAID)
    data = bytearray(path.read_bytes())
    column = pyarrow.parquet.read_metadata(path).row_group(3).column(3)
    place = column.dictionary_page_offset or column.data_page_offset
    data[place : place + 40] = b"\xff" * 40
    path.write_bytes(data)
    frames, unreadable = frames_of([path], mapping)
    assert steps_in(frames) >= STEPS - 200
    assert "damaged_rows" in {part.reason for part in unreadable}

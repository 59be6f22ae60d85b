"""Tables as people write them: blanks in headings, cells that are empty, times of every kind."""

import csv
import datetime
from pathlib import Path

import pyarrow  # type: ignore[import-untyped]
import pyarrow.parquet  # type: ignore[import-untyped]
import pytest

from springback.producers.contract.frame import StepFrame
from springback.producers.errors import MappingError
from springback.producers.mapping.signal_mapping import parse_mapping
from tests.producers.recordings.recording_writers import cells_of, ends_in, frames_of, steps_in

T0_S = 1_790_000_000
MAPPING = """
agent = { field = "robot" }
time = "header"
header_time = "at"
header_unit = "UNIT"
header = { family = "f" }
step = { trigger = "#" }
[signals]
progress = { field = "done" }
risk = { field = "risk" }
[episode]
end = { field = "result", outcomes = { ok = "success" } }
"""


def read(path: Path, unit: str = "s") -> tuple[list[StepFrame], list[str]]:
    frames, unreadable = frames_of([path], parse_mapping(MAPPING.replace("UNIT", unit), "mine.toml"))
    return frames, [part.reason for part in unreadable]


@pytest.mark.parametrize("joint", [",", ", ", "; ", "\t"])
def test_csv_by_hand(joint: str, tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    rows = [["at", "robot", "done", "result"], *([str(T0_S + n), '"arm, left"', str(n / 4), ""] for n in range(4))]
    path.write_text("\n".join(joint.join(row) for row in rows) + joint.join(["", f"{T0_S + 5}"]) + "\n")
    frames, told = read(path)
    assert steps_in(frames) == 3  # the last row has a cell too many
    assert {frame.producer for frame in frames} == {"arm, left"}
    assert "wrong_number_of_cells" in told


def test_csv_with_a_mark_of_byte_order_and_a_cell_that_never_ends(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    rows = [f"{T0_S + n},a,0.5" for n in range(4)]
    rows[1] = f"{T0_S + 1},{'x' * (csv.field_size_limit() + 1)},0.5"
    path.write_text("\n".join(["at,robot,done", *rows]) + "\n", encoding="utf-8-sig")
    frames, told = read(path)
    assert cells_of(frames, "time_s") == [T0_S, T0_S + 2, T0_S + 3]
    assert told[0] == "unreadable_row"


NS = pyarrow.array([(T0_S + n) * 10**9 + 7 for n in range(4)], pyarrow.timestamp("ns"))
TIMES = [
    (NS, "s"),
    (NS.cast(pyarrow.timestamp("ns", "UTC")), "s"),
    (NS.cast(pyarrow.int64()), "ns"),
    (NS.cast(pyarrow.timestamp("ms"), safe=False), "s"),
    (pyarrow.array([datetime.datetime.fromtimestamp(T0_S + n, datetime.UTC).isoformat() for n in range(4)]), "s"),
    (pyarrow.array([1000 * (T0_S + n) for n in range(4)]), "ms"),
]


@pytest.mark.parametrize(("times", "unit"), TIMES)
def test_parquet_has_times_of_every_kind(times: pyarrow.Array, unit: str, tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    columns = {"at": times, "robot": ["a"] * 4, "done": [0.1, 0.2, 0.3, 0.4]}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    frames, told = read(path, unit)
    assert cells_of(frames, "time_s") == pytest.approx([T0_S + n for n in range(4)], abs=2e-6)
    assert set(told) == {"missing_field"}


def test_a_cell_that_is_empty_is_the_same_in_every_table(tmp_path: Path) -> None:
    done, risk, result = [0.5, 1.0, 0.5, 1.0], [0.25, None, None, 0.75], [None, "ok", None, "ok"]
    columns = {"at": [T0_S + n for n in range(4)], "robot": ["a"] * 4, "done": done, "risk": risk, "result": result}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "run.parquet")
    rows = [",".join("" if cell is None else str(cell) for cell in row) for row in zip(*columns.values(), strict=True)]
    (tmp_path / "run.csv").write_text("\n".join([",".join(columns), *rows]) + "\n")
    for name in ("run.parquet", "run.csv"):
        frames, _ = read(tmp_path / name)
        assert ends_in(frames) == ["success", "success"]
        assert cells_of(frames, "risk")[:2] == [0.25, 0.25]  # held until it is told anew


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"\x1f\x8b\x08\x00", "is empty, or nothing of it can be unpacked"),
        (b'[\n {"at": 1},\n {"at": 2}\n]\n', r"JSON Lines have one value a line"),
        (b"\x89PNG\r\n\x1a\n" + bytes(99), "is neither step frames nor of a format"),
    ],
)
def test_what_is_no_recording_says_so(content: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(content)
    with pytest.raises(MappingError, match=told):
        read(tmp_path / "run")


def test_a_recording_of_which_nothing_is_of_use_says_why(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("at,robot,done\n")
    assert read(path)[1] == ["no_messages"]
    path.write_text(f"at,robot,done\n{T0_S},a,0.5\n")
    mapping = MAPPING.replace("UNIT", "s").replace('trigger = "#"', 'trigger = "state"')
    _, (part, *_) = frames_of([path], parse_mapping(mapping, "mine.toml"))
    assert str(part).endswith("no_such_topic: mine.toml also reads 'state'; topics in it: rows without one")

"""Which format a recording has, by its content; its name plays no part."""

import re
from pathlib import Path
from typing import Final

from springback.producers.recording_formats.open_recording import json_value
from springback.producers.sources import SOURCES

NATIVE: Final = "frames"
"""Step frames as JSON Lines: what springback itself writes."""

_FRAME_KEYS: Final = frozenset({"producer", "session"})
_FRAME_PARTS: Final = frozenset({"episodes", "steps", "ends"})
_CELLS: Final = re.compile(rb"[^\x00-\x08\x0e-\x1f]+[,;\t][^\x00-\x08\x0e-\x1f]*")


def folder_format(folder: Path) -> str | None:
    """The format of a folder: `lerobot`, `rosbag2`, or None."""
    if (folder / "meta" / "info.json").is_file():
        return "lerobot"
    bag = any(file.suffix in (".db3", ".mcap") for file in folder.iterdir()) or (folder / "metadata.yaml").is_file()
    return "rosbag2" if bag else None


def magic_format(start: bytes) -> str | None:
    """The format that the first 16 bytes of a file tell; None where they tell none."""
    return next((source.name for source in SOURCES if source.magic and start.startswith(source.magic)), None)


def file_format(start: bytes) -> str | None:
    r"""The format of a file that begins so (its first line at least, where it is of lines); None if it is none of ours.

    >>> file_format(b"#ROSBAG V2.0\n"), file_format(b'{"x": 1}'), file_format(b"time,x\n0,1")
    ('rosbag1', 'jsonl', 'csv')
    """
    known = magic_format(start)
    if known is not None:
        return known
    line = start.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0].strip()
    if line in (b"{", b"["):
        return None  # JSON, but one value over many lines
    if line[:1] in (b"{", b"["):
        try:
            record = json_value(line)
        except ValueError:
            return "jsonl"
        return NATIVE if is_frame(record) else "jsonl"
    return "csv" if _CELLS.fullmatch(line) else None


def is_frame(record: object) -> bool:
    """Whether a JSON value is meant as a step frame."""
    return isinstance(record, dict) and record.keys() >= _FRAME_KEYS and bool(record.keys() & _FRAME_PARTS)

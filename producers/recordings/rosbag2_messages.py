"""Messages of ROS 2 bags in SQLite, a file or a folder of files; the MCAP files of a folder are read as MCAP."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import quote

from springback.producers.mapping.signal_mapping import TimedMessage
from springback.producers.recordings.opening import OpenRecording
from springback.producers.recordings.ros_types import RecordedTopic, cdr_decoder

SUFFIXES: Final = (".db3", ".mcap")
METADATA: Final = "metadata.yaml"


def read_messages(recording: OpenRecording) -> Iterator[TimedMessage]:
    """The messages file by file, in the order in which they were written."""
    if not recording.path.is_dir():
        yield from _SqliteReading(recording, recording.path, (0.0, 1.0)).messages()
        return
    if not (recording.path / METADATA).is_file():
        recording.unreadable(0, "not_closed", f"{METADATA} is missing: the recorder was stopped; its files are read")
    files = bag_files(recording.path)
    for place, file in enumerate(files):
        shares = (place / len(files), (place + 1) / len(files))
        if file.suffix == ".mcap":
            yield from _mcap_messages(recording, file, shares)
        else:
            yield from _SqliteReading(recording, file, shares).messages()


def bag_files(folder: Path) -> list[Path]:
    """The files of a bag, in the order in which they were written: `…_2.db3` comes before `…_10.db3`."""
    files = [file for file in folder.iterdir() if file.suffix in SUFFIXES]
    return sorted(
        files, key=lambda file: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", file.name)]
    )


def _mcap_messages(recording: OpenRecording, file: Path, shares: tuple[float, float]) -> Iterator[TimedMessage]:
    from springback.producers.recordings.mcap_messages import read_messages as read_mcap

    with file.open("rb") as stream:
        one = replace(recording, path=file, source=str(file), stream=stream, raw=stream, read_share=None)
        one.size_bytes = file.stat().st_size
        for message in read_mcap(one):
            yield message
            recording.read_share = shares[0] + (shares[1] - shares[0]) * (one.share() or 0.0)


class _SqliteReading:
    def __init__(self, recording: OpenRecording, file: Path, shares: tuple[float, float]) -> None:
        self._recording = recording
        self._file = file
        self._from, self._to = shares
        self._messages = 0

    def messages(self) -> Iterator[TimedMessage]:
        try:
            with closing(sqlite3.connect(f"file:{quote(str(self._file))}?mode=ro", uri=True)) as database:
                # Otherwise SQLite refuses a file that is shorter than it says; this way it reads what is there.
                database.execute("PRAGMA writable_schema = ON")
                yield from self._rows(database)
        except sqlite3.Error as error:
            self._tell("damaged_database", f"nothing can be read from here on ({error})")

    def _rows(self, database: sqlite3.Connection) -> Iterator[TimedMessage]:
        topics = self._topics(database)
        total = self._total(database)
        for topic_id, time_ns, data in database.execute("SELECT topic_id, timestamp, data FROM messages ORDER BY id"):
            self._messages += 1
            if total:
                share = min(self._messages / total, 1.0)
                self._recording.read_share = self._from + (self._to - self._from) * share
            topic = topics.get(topic_id)
            if topic is None or topic.decode is None:
                continue
            try:
                value = topic.decode(data)
            except Exception as error:  # rosbags raises whatever its generated code runs into
                self._tell("unreadable_message", f"{topic.name}: {type(error).__name__}: {error}")
            else:
                yield TimedMessage(topic.name, time_ns * 1e-9, value)

    def _total(self, database: sqlite3.Connection) -> int:
        try:
            return int(database.execute("SELECT max(id) FROM messages").fetchone()[0] or 0)
        except sqlite3.Error:
            return 0  # the last pages are missing; what is before them can be read

    def _topics(self, database: sqlite3.Connection) -> dict[int, RecordedTopic]:
        definitions = _definitions(database)
        topics: dict[int, RecordedTopic] = {}
        for topic_id, name, kind, form in database.execute("SELECT id, name, type, serialization_format FROM topics"):
            if not self._recording.wants(name):
                continue
            decode = cdr_decoder(kind, *definitions.get(kind, ("", "")))
            if form != "cdr" or decode is None:
                self._tell("unknown_type", f"{name} is {kind} in {form}, without a definition that can be read")
            else:
                topics[topic_id] = RecordedTopic(name, decode)
        return topics

    def _tell(self, reason: str, detail: str) -> None:
        self._recording.unreadable(self._messages, reason, f"{self._file.name}: {detail}")


def _definitions(database: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    """Encoding and text of each type's definition; bags older than ROS 2 Iron have none."""
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "message_definitions" not in tables:
        return {}
    rows = database.execute("SELECT topic_type, encoding, encoded_message_definition FROM message_definitions")
    return {kind: (encoding, text) for kind, encoding, text in rows}

"""A third party's package: a source (a recording format), a sink and a value model, as small as can be."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from springback import DeadLetter, EpisodeSummary, OpenRecording, Reading, Source, StateFeatures, TimedMessage

TOYLOG = Source("toylog", "recording", "acme_toys:read_messages", None, "", "logs of toys", magic=b"TOYLOG")


def read_messages(recording: OpenRecording) -> Iterator[TimedMessage]:
    """A message from each line after the first."""
    recording.stream.readline()
    for line in recording.stream:
        record = json.loads(line)
        if recording.wants(""):
            yield TimedMessage("", record["time"], record)


class LinesSink:
    """Writes a line for each episode that has ended.

    Args:
        path: the file.
    """

    name = "lines"

    def __init__(self, path: str) -> None:
        self._file = Path(path).open("a", encoding="utf-8")
        self._seen: set[object] = set()

    def write(self, reading: Reading) -> None:
        """Takes a reading, which may come more than once."""
        if isinstance(reading, EpisodeSummary) and reading.identity not in self._seen:
            self._seen.add(reading.identity)
            self._file.write(f"{reading.traits.family} {reading.outcome}\n")

    def write_dead_letter(self, letter: DeadLetter) -> None:
        """Leaves out what could not be used."""

    def flush(self) -> None:
        """Brings the lines to the file."""
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


class Hopeful:
    """Every state is worth what is left to be done."""

    def values(self, states: StateFeatures) -> npt.NDArray[np.float64]:
        """V of each state (n,)."""
        return states.progress - 1.0

"""A third party's package: a source (the recording format TOYLOG) and a value model (Hopeful), as small as can be."""

import json
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from springback.producers.mapping.signal_mapping import TimedMessage
from springback.producers.recordings.opening import OpenRecording
from springback.producers.sources import Source
from springback.stream_processors.resilience.stability.value_function import StateFeatures

TOYLOG = Source("toylog", "recording", "acme_toys:read_messages", None, "", "logs of toys", magic=b"TOYLOG")


def read_messages(recording: OpenRecording) -> Iterator[TimedMessage]:
    """A message from each line after the first."""
    recording.stream.readline()
    for line in recording.stream:
        record = json.loads(line)
        if recording.wants(""):
            yield TimedMessage("", record["time"], record)


class Hopeful:
    """Every state is worth what is left to be done."""

    def values(self, states: StateFeatures) -> npt.NDArray[np.float64]:
        """V of each state (n,)."""
        return states.progress - 1.0

"""The wire contract: one Kafka message is a `StepFrame`, a columnar batch of steps of one producer.

Frames are self-describing: each carries the headers of the episodes that its steps belong to, so a worker that joins
late understands the first frame that it sees. Our emitter writes MessagePack (`encode_msgpack`); any other client may
write the same structure as JSON; `decode_frame` tells them apart by the first byte. The columns are listed in
`step_columns`, the JSON Schema is built in `frame_schema`, and values are checked in `frame_validation`.

Unknown fields are ignored, and missing optional ones take their defaults. The message's key is the producer's id, so
that the steps of one producer stay in order on one partition.

>>> import numpy as np
>>> header = EpisodeHeader(agent="robot-7", episode="12", family="transportation")
>>> steps = {"episode": np.array([0, 0]), "step": np.array([17, 18]), "progress": np.array([0.41, 0.43])}
>>> frame = StepFrame(producer="robot-7", session="2026-11-30T08:00:00Z-3f2a", episodes=(header,), steps=steps)
>>> decode_frame(encode_msgpack(frame)).steps["step"].tolist()
[17, 18]
>>> encode_json(frame)[:60]
b'{"schema_version":1,"producer":"robot-7","session":"2026-11-'
"""

from springback.producers.column_reading import MAX_FRAME_ROWS
from springback.producers.errors import UnreadableFrameError
from springback.producers.frame_decoding import MAX_FRAME_BYTES, decode_frame
from springback.producers.frame_encoding import encode_json, encode_msgpack
from springback.producers.frame_parts import (
    SCHEMA_VERSION,
    EpisodeEnd,
    EpisodeHeader,
    NavigationOutcome,
    Outcome,
    PartFault,
    StepColumn,
    StepFrame,
    TextColumn,
)
from springback.producers.step_columns import ABSENT

__all__ = [
    "ABSENT",
    "MAX_FRAME_BYTES",
    "MAX_FRAME_ROWS",
    "SCHEMA_VERSION",
    "EpisodeEnd",
    "EpisodeHeader",
    "NavigationOutcome",
    "Outcome",
    "PartFault",
    "StepColumn",
    "StepFrame",
    "TextColumn",
    "UnreadableFrameError",
    "decode_frame",
    "encode_json",
    "encode_msgpack",
]

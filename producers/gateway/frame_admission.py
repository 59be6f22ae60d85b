"""Which frames of a request may go to Kafka, and what is told of those that may not."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from springback.producers.errors import UnreadableFrameError
from springback.producers.frame_decoding import decode_frame
from springback.producers.text_repair import without_lone_surrogates

RECORD_OVERHEAD = 128
"""What a record adds to its key and value at most: the head of a batch, and its own."""
LONGEST_DETAIL = 300


class AdmittedFrame(NamedTuple):
    """A frame that may go: its place in the request, its key, its bytes as they came, and its rows."""

    place: int
    key: bytes
    value: bytes
    steps: int


class FrameNote(NamedTuple):
    """What is told of a frame by its place: why it was not taken, or what of it will be left out."""

    place: int
    reason: str
    detail: str

    def as_answer(self) -> dict[str, Any]:
        """The note as the answer has it."""
        return {
            "index": self.place,
            "reason": self.reason,
            "detail": without_lone_surrogates(self.detail[:LONGEST_DETAIL]),
        }


class Admission(NamedTuple):
    """What became of the frames of a request before Kafka.

    Attributes:
        admitted: those that may go.
        refused: those that never will be taken, and why.
        faulty: of those that may go, the ones with parts that the worker will leave out: the first of each.
    """

    admitted: list[AdmittedFrame]
    refused: list[FrameNote]
    faulty: list[FrameNote]


def admit(frames: Iterable[bytes], largest_record: int) -> Admission:
    """Looks at each frame as the worker will.

    Args:
        frames: the frames of a request, in order.
        largest_record: what the topic takes, bytes (`max.message.bytes`).
    """
    admission = Admission([], [], [])
    for place, data in enumerate(frames):
        if len(data) + RECORD_OVERHEAD > largest_record:  # it is not worth a look
            admission.refused.append(_too_large(place, len(data) + RECORD_OVERHEAD, largest_record))
            continue
        try:
            frame = decode_frame(data)
        except UnreadableFrameError as error:
            detail = str(error).removeprefix(f"{error.reason}: ")
            admission.refused.append(FrameNote(place, error.reason, detail))
            continue
        key = without_lone_surrogates(frame.producer).encode()
        size = len(key) + len(data) + RECORD_OVERHEAD
        if size > largest_record:
            admission.refused.append(_too_large(place, size, largest_record))
            continue
        if frame.faults:
            first = frame.faults[0]
            detail = f"{len(frame.faults)} parts, the first: {first.part}[{first.index}]: {first.detail}"
            admission.faulty.append(FrameNote(place, first.reason, detail))
        admission.admitted.append(AdmittedFrame(place, key, data, frame.n_steps))
    return admission


def _too_large(place: int, size: int, largest_record: int) -> FrameNote:
    detail = f"{size} bytes as a record, the topic takes {largest_record}; send smaller frames"
    return FrameNote(place, "frame_too_large", detail)

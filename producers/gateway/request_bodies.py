"""From the bytes of a request's body to its frames, and which of those may go to Kafka.

A body is bounded while it is unpacked, not afterwards, and so is what all requests hold in memory at a time.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Annotated, Any, NamedTuple

import msgspec

from springback.producers.contract.codec import decode_frame
from springback.producers.contract.columns import without_lone_surrogates
from springback.producers.contract.suspicions import signs_of_frame
from springback.producers.errors import UnreadableFrameError
from springback.producers.gateway.errors import RequestRefusedError

JSON, JSON_LINES, MESSAGE_PACK = "application/json", "application/x-ndjson", "application/msgpack"

KIND_OF_TYPE = {
    JSON: JSON,
    JSON_LINES: JSON_LINES,
    "application/ndjson": JSON_LINES,
    "application/jsonl": JSON_LINES,
    MESSAGE_PACK: MESSAGE_PACK,
    "application/x-msgpack": MESSAGE_PACK,
    "application/vnd.msgpack": MESSAGE_PACK,
}

MOST_MEMBERS = 1000
"""gzip members in a body at most: an empty one costs its sender 20 bytes and the gateway a new decompressor."""

RECORD_OVERHEAD = 128
"""What a record adds to its key and value at most: the head of a batch, and its own."""

LONGEST_DETAIL = 300
MOST_WARNINGS = 16
"""Signs of mistakes that an answer tells of."""
_GZIP = 31
_MESSAGE_PACK_ARRAYS = frozenset([*range(0x90, 0xA0), 0xDC, 0xDD])


class ByteBudget:
    """Bytes that may be held at a time, over all requests; a request that finds no room is refused.

    >>> budget = ByteBudget(10)
    >>> budget.take(6), budget.take(6), budget.held
    (True, False, 6)
    >>> budget.give_back(6); budget.take(10)
    True
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.held = 0

    def take(self, size: int) -> bool:
        """Takes so many bytes, if there is room."""
        if self.held + size > self.most_bytes:
            return False
        self.held += size
        return True

    def give_back(self, size: int) -> None:
        """Gives bytes back."""
        self.held -= size


class BodyReader:
    """Takes a body in piece by piece, and unpacks it as it comes.

    Args:
        packed: whether it is gzip.
        most_bytes: the largest body, unpacked.
    """

    def __init__(self, *, packed: bool, most_bytes: int) -> None:
        self._packed = packed
        self._most_bytes = most_bytes
        self._pieces: list[bytes] = []
        self._packed_size, self._members = 0, 1
        self._member = zlib.decompressobj(_GZIP) if packed else None
        self.size = 0

    def feed(self, piece: bytes) -> int:
        """Takes a piece in.

        Returns:
            By how many bytes the body has grown.

        Raises:
            RequestRefusedError: the body is too large, packed or unpacked, or no gzip.
        """
        before = self.size
        if not self._packed:
            self._add(piece)
            return self.size - before
        self._packed_size += len(piece)
        self._check(self._packed_size)
        while piece:
            if self._member is None:  # a body may be several gzip members one after the other
                self._members += 1
                if self._members > MOST_MEMBERS:
                    message = f"the body has more than {MOST_MEMBERS} gzip members; pack it as one"
                    raise RequestRefusedError(400, "not_gzip", message)
                self._member = zlib.decompressobj(_GZIP)
            try:
                self._add(self._member.decompress(piece, self._most_bytes - self.size + 1))
            except zlib.error as error:
                raise RequestRefusedError(400, "not_gzip", f"the body is not gzip: {error}") from error
            piece = b""
            if self._member.eof:
                piece, self._member = self._member.unused_data, None
        return self.size - before

    def finish(self) -> bytes:
        """The whole body; the reader does not keep it.

        Raises:
            RequestRefusedError: it was cut off.
        """
        if self._member is not None:
            raise RequestRefusedError(400, "not_gzip", "the gzip body is cut off")
        body = b"".join(self._pieces)
        self._pieces.clear()
        return body

    def _add(self, piece: bytes) -> None:
        self.size += len(piece)
        self._check(self.size)
        self._pieces.append(piece)

    def _check(self, size: int) -> None:
        if size > self._most_bytes:
            message = f"the body is larger than {self._most_bytes} bytes, unpacked; send fewer frames at a time"
            raise RequestRefusedError(413, "body_too_large", message)


def frames_in(kind: str, body: bytes, most_frames: int) -> list[bytes]:
    r"""The frames in a body, each as its own bytes; whether they are frames is not looked at yet.

    >>> frames_in(JSON, b' [{"a": NaN}, {}]', 9), frames_in(JSON_LINES, b'{}\n\n{"b": 2}', 9)
    ([b'{"a": NaN}', b'{}'], [b'{}', b'{"b": 2}'])

    Raises:
        RequestRefusedError: it is empty, or has too many frames, or is an array that cannot be taken apart.
    """
    found: list[bytes]
    if kind == MESSAGE_PACK:
        is_array = bool(body) and body[0] in _MESSAGE_PACK_ARRAYS
        found = [bytes(item) for item in _items(body, most_frames, msgspec.msgpack.decode)] if is_array else [body]
    elif kind == JSON_LINES:
        found = list(islice(filter(None, map(bytes.strip, io.BytesIO(body))), most_frames + 1))
        if len(found) > most_frames:
            raise _too_many(most_frames)
    else:
        body = body.strip().removeprefix(b"\xef\xbb\xbf")
        found = _json_items(body, most_frames) if body.startswith(b"[") else [body]
    if not any(found):
        raise RequestRefusedError(400, "empty", "the body holds no frame")
    return found


def _json_items(body: bytes, most_frames: int) -> list[bytes]:
    # Python clients write NaN and Infinity, which JSON does not have. In a lone frame they cost a row, and so they do
    # here: numbers of the same length stand for them while the frames are separated.
    plain = body.replace(b"NaN", b"0.0").replace(b"Infinity", b"0.000000")
    found, place = [], 0
    for item in map(bytes, _items(plain, most_frames, msgspec.json.decode)):
        place = plain.index(item, place + 1)
        found.append(body[place : place + len(item)])
        place += len(item) - 1
    return found


def _items(body: bytes, most_frames: int, decode: Callable[..., Any]) -> list[msgspec.Raw]:
    try:
        items: list[msgspec.Raw] = decode(body, type=Annotated[list[msgspec.Raw], msgspec.Meta(max_length=most_frames)])
    except msgspec.ValidationError as error:  # it is an array: only its length can be wrong
        raise _too_many(most_frames) from error
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RequestRefusedError(400, "not_an_array", f"the array of frames cannot be read: {error}") from error
    return items


def _too_many(most_frames: int) -> RequestRefusedError:
    return RequestRefusedError(413, "too_many_frames", f"more than {most_frames} frames in one request; send fewer")


class AdmittedFrame(NamedTuple):
    """A frame that may go: its place in the request, its key, its bytes as they came, and its rows."""

    place: int
    key: bytes
    value: bytes
    steps: int


class FrameNote(NamedTuple):
    """What the answer says of the frame at a place: why it was not taken, or what of it will be left out."""

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
        warnings: what looks like a mistake in those that may go: each kind of each subject once, with the first frame
            that shows it; `MOST_WARNINGS` at most.
    """

    admitted: list[AdmittedFrame]
    refused: list[FrameNote]
    faulty: list[FrameNote]
    warnings: list[FrameNote]


def admit(frames: Iterable[bytes], largest_record: int) -> Admission:
    """Looks at each frame as the worker will.

    Args:
        frames: the frames of a request, in order.
        largest_record: what the topic takes, bytes (`max.message.bytes`).
    """
    admission = Admission([], [], [], [])
    warned: set[tuple[str, str]] = set()
    for place, data in enumerate(frames):
        if len(data) + RECORD_OVERHEAD > largest_record:  # too large whatever is in it
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
        if len(warned) < MOST_WARNINGS:
            for sign in signs_of_frame(data, frame):
                if (sign.kind, sign.subject) not in warned and len(warned) < MOST_WARNINGS:
                    warned.add((sign.kind, sign.subject))
                    admission.warnings.append(FrameNote(place, sign.kind, sign.text))
    return admission


def _too_large(place: int, size: int, largest_record: int) -> FrameNote:
    detail = f"{size} bytes as a record, the topic takes {largest_record}; send smaller frames"
    return FrameNote(place, "frame_too_large", detail)

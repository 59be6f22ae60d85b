"""From the bytes of a request's body to the frames in it. A body is bounded while it is unpacked, not afterwards."""

import json
import zlib
from collections.abc import Callable

import msgspec

from producers.errors import UnreadableFrameError
from producers.gateway.gateway_errors import RequestRefusedError

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
_GZIP = 31
_MESSAGE_PACK_ARRAYS = frozenset([*range(0x90, 0xA0), 0xDC, 0xDD])


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
        self._member = zlib.decompressobj(_GZIP) if packed else None
        self.size = 0

    def feed(self, piece: bytes) -> int:
        """Takes a piece; by how many bytes the body has grown.

        Raises:
            RequestRefusedError: the body is too large, or no gzip.
        """
        before = self.size
        if not self._packed:
            self._add(piece)
        while self._packed and piece:
            if self._member is None:  # a body may be several gzip members one after the other
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
        """The whole body.

        Raises:
            RequestRefusedError: it was cut off.
        """
        if self._member is not None:
            raise RequestRefusedError(400, "not_gzip", "the gzip body is cut off")
        return b"".join(self._pieces)

    def _add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self._most_bytes:
            message = f"the body is larger than {self._most_bytes} bytes, unpacked; send fewer frames at a time"
            raise RequestRefusedError(413, "body_too_large", message)
        self._pieces.append(piece)


def frames_in(kind: str, body: bytes) -> list[bytes]:
    r"""The frames in a body, each as its own bytes; whether they are frames is not looked at yet.

    >>> frames_in(JSON, b' [{"a": 1}, {}]'), frames_in(JSON_LINES, b'{}\n\n{"b": 2}')
    ([b'{"a": 1}', b'{}'], [b'{}', b'{"b": 2}'])

    Raises:
        RequestRefusedError: it is empty, or an array that cannot be taken apart.
    """
    if kind == MESSAGE_PACK:
        is_array = bool(body) and body[0] in _MESSAGE_PACK_ARRAYS
        found = _items(body, msgspec.msgpack.decode) if is_array else [body]
    elif kind == JSON_LINES:
        found = [line for line in map(bytes.strip, body.split(b"\n")) if line]
    else:
        body = body.strip().removeprefix(b"\xef\xbb\xbf")
        found = _json_items(body) if body.startswith(b"[") else [body]
    if not any(found):
        raise RequestRefusedError(400, "empty", "the body holds no frame")
    return found


def _json_items(body: bytes) -> list[bytes]:
    try:
        return _items(body, msgspec.json.decode)
    except RequestRefusedError:
        # Python clients write NaN and Infinity, which JSON has not. In a lone frame they cost a row; so they do here.
        try:
            items = json.loads(body)
        except (ValueError, RecursionError):
            items = None
        if not isinstance(items, list):
            raise
        return [json.dumps(item, separators=(",", ":")).encode() for item in items]


def _items(body: bytes, decode: Callable[..., list[msgspec.Raw]]) -> list[bytes]:
    try:
        return [bytes(item) for item in decode(body, type=list[msgspec.Raw])]
    except (msgspec.MsgspecError, RecursionError, UnreadableFrameError) as error:
        raise RequestRefusedError(400, "not_an_array", f"the array of frames cannot be read: {error}") from error

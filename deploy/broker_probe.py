"""Ask a broker whether it serves: one Kafka Metadata request over a socket of its own, without a Kafka client."""

import socket
import struct

_METADATA = 3
_VERSION = 4  # the oldest that Apache Kafka 4 and Tansu both answer, and one without tagged fields
_CORRELATION_ID = 20_260
_CLIENT_ID = b"springback-probe"
_TIMEOUT_S = 2.0
_ANSWER_LIMIT_BYTES = 1_000_000


def cluster_id(address: str) -> str | None:
    """The id of the cluster that is served at ``address``; None while no Kafka broker serves there.

    Args:
        address: HOST:PORT of a listener without TLS and SASL.
    """
    try:
        with socket.create_connection(split_address(address), timeout=_TIMEOUT_S) as connection:
            connection.sendall(_metadata_request())
            (size,) = struct.unpack(">i", _receive(connection, 4))
            if not 0 <= size <= _ANSWER_LIMIT_BYTES:
                return None
            return _read_cluster_id(_receive(connection, size))
    except (OSError, EOFError, ValueError, struct.error):
        return None  # nobody there, or not a Kafka broker


def split_address(address: str) -> tuple[str, int]:
    """The host and the port of HOST:PORT; an IPv6 host stands in brackets.

    Raises:
        ValueError: It is not of that form.

    >>> split_address("127.0.0.1:9092"), split_address("[::1]:9092")
    (('127.0.0.1', 9092), ('::1', 9092))
    """
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        message = f"{address!r} is not an address of the form HOST:PORT, such as 127.0.0.1:9092"
        raise ValueError(message)
    return host, int(port)


def _metadata_request() -> bytes:
    header = struct.pack(">hhih", _METADATA, _VERSION, _CORRELATION_ID, len(_CLIENT_ID)) + _CLIENT_ID
    body = struct.pack(">i?", 0, False)  # about no topic, and create none
    return struct.pack(">i", len(header) + len(body)) + header + body


def _read_cluster_id(answer: bytes) -> str | None:
    correlation_id, _throttle_ms, brokers = struct.unpack_from(">iii", answer)
    if correlation_id != _CORRELATION_ID or brokers < 1:
        return None
    position = 12
    for _ in range(brokers):
        _host, position = _read_text(answer, position + 4)
        _rack, position = _read_text(answer, position + 4)
    return _read_text(answer, position)[0]


def _read_text(answer: bytes, position: int) -> tuple[str, int]:
    """The text that begins at ``position`` with its length, -1 for none, and the position after it."""
    (length,) = struct.unpack_from(">h", answer, position)
    end = position + 2 + max(length, 0)
    return answer[position + 2 : end].decode("utf-8"), end


def _receive(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            message = f"the connection was closed after {len(received)} of {size} bytes"
            raise EOFError(message)
        received += part
    return bytes(received)

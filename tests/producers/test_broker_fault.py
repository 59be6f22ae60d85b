"""What is told of addresses where no Kafka broker is, or one that hangs; logins are tried on a real Kafka elsewhere."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from springback.producers.broker_fault import BrokerFault, FaultLog, access_fault, find_fault

PLAIN = {"security_protocol": "PLAINTEXT"}


@contextlib.contextmanager
def answering(*answers: bytes) -> Iterator[str]:
    """A server that answers each thing that comes over a connection with the next of these, then closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with connection, contextlib.suppress(OSError):
                        for answer in answers:
                            connection.recv(65536)
                            connection.sendall(answer)
                        connection.recv(65536)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def kafka_answer(correlation: int, body: bytes) -> bytes:
    content = struct.pack(">i", correlation) + body
    return struct.pack(">i", len(content)) + content


# ApiVersions, version 0: no error, no versions. Metadata, version 1: one broker, no rack, no topics.
VERSIONS = kafka_answer(1, struct.pack(">hi", 0, 0))


def metadata(host: str, port: int) -> bytes:
    broker = struct.pack(">ih", 1, len(host)) + host.encode() + struct.pack(">ih", port, -1)
    return kafka_answer(2, struct.pack(">i", 1) + broker + struct.pack(">ii", 1, 0))


def kind_of(address: str, timeout_s: float = 20.0) -> str | None:
    fault = find_fault(address, PLAIN, timeout_s)
    return None if fault is None else fault.kind


def test_nobody_there_is_a_fault_of_the_address() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        fault = find_fault(address, PLAIN)
    assert fault is not None
    assert str(fault).startswith(f"address: no broker can be reached at {address} (Connection refused)")
    for wrong in ("broker", "broker:port", ":", "127.0.0.1:99999999"):
        assert kind_of(wrong) == "address", wrong
    fault = find_fault("nowhere.invalid:9092", PLAIN)
    assert fault is not None
    assert "the name 'nowhere.invalid' is not known" in fault.detail


def test_one_that_takes_connections_and_says_nothing_is_unanswered_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert kind_of(f"127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.3) == "unanswered"


def test_another_program_is_a_fault_of_the_protocol() -> None:
    for answer in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff" * 40, b"\x00\x00\x00\x08\x00\x00\x00\x63rest"):
        with answering(answer) as address:
            assert kind_of(address) == "protocol", answer


def test_tls_where_none_was_expected_is_told() -> None:
    with answering(b"\x15\x03\x03\x00\x02\x02\x46") as address:
        assert kind_of(address) == "tls"


def test_an_encrypted_key_is_told_and_nobody_is_asked_for_its_password(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    encrypted = ("-newkey", "rsa:2048", "-passout", "pass:secret", "-keyout", str(key))
    request = ("req", "-x509", *encrypted, "-days", "1", "-subj", "/CN=fleet", "-out", str(certificate))
    subprocess.run(["openssl", *request], check=True, capture_output=True)
    options = {"security_protocol": "SSL", "ssl_certfile": str(certificate), "ssl_keyfile": str(key)}
    terminal, shown = os.openpty()
    try:
        with answering() as address:
            look = f"find_fault({address!r}, {options!r}, 20.0)"
            asked = subprocess.run(
                [sys.executable, "-c", f"from springback.producers.broker_fault import find_fault; print({look})"],
                stdin=shown, stdout=subprocess.PIPE, stderr=shown, check=True, text=True, start_new_session=True,
            )  # fmt: skip
    finally:
        os.close(terminal)
        os.close(shown)
    assert asked.stdout.startswith("tls: the files of ssl_cafile, ssl_certfile and ssl_keyfile cannot be used")
    assert "needs its ssl_password" in asked.stdout
    assert "secret" not in asked.stdout


def test_a_broker_that_wants_to_be_called_where_nobody_is_has_a_wrong_address() -> None:
    with socket.socket() as bound, answering() as there:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        with answering(VERSIONS, metadata("127.0.0.1", port)) as address:
            fault = find_fault(address, PLAIN)
        assert fault is not None
        assert fault.kind == "address"
        assert f"127.0.0.1:{port}: Connection refused" in fault.detail
        assert "advertised.listeners" in fault.detail
        with answering(VERSIONS, metadata("127.0.0.1", int(there.rpartition(":")[2]))) as address:
            assert find_fault(address, PLAIN) is None


def test_of_several_addresses_one_will_do_and_else_the_furthest_fault_is_told() -> None:
    with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as web, answering() as there:
        assert kind_of(f"127.0.0.1:1, {web}") == "protocol"
        with answering(VERSIONS, metadata("127.0.0.1", int(there.rpartition(":")[2]))) as address:
            assert kind_of(f"127.0.0.1:1,{web},{address}") is None


def test_what_the_broker_refuses_is_a_matter_of_rights() -> None:
    class Refusal(Exception):
        errno = 29

    fault = access_fault(Refusal("steps"))
    assert fault is not None
    assert fault.kind == "authorization"
    assert "a topic" in fault.detail
    assert "springback topics --acls" in fault.detail
    assert access_fault(OSError(30, "read-only")) is access_fault(None) is access_fault(ValueError()) is None


def test_a_fault_is_told_when_it_changes_and_its_end_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    faults = FaultLog("the test")
    faults.note(None)
    faults.clear()
    assert not caplog.records
    for _ in range(3):
        faults.note(BrokerFault("tls", "one"))
        faults.note(None)  # that a look found nothing is no success
    faults.note(BrokerFault("authentication", "two"))
    assert faults.text == "authentication: two"
    faults.clear()
    assert faults.text is None
    assert [record.getMessage() for record in caplog.records] == [
        "broker_fault kind=tls waits=the test reason=one",
        "broker_fault kind=authentication waits=the test reason=two",
        "broker_works goes_on=the test",
    ]

"""What a broker that is started needs to know: which ports are free, and whether it answers."""

import socket
import struct
import threading

import pytest

from springback.deploy.broker_process import cluster_id, free_port, is_free, split_address


@pytest.mark.parametrize(
    "address", ["localhost", "localhost:", ":9092", "localhost:0", "localhost:65536", "localhost:9o92", "a:²", ""]
)
def test_what_is_no_address_is_told(address: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        split_address(address)


def test_nobody_listening_is_no_broker_which_is_said_quietly(capfd: pytest.CaptureFixture[str]) -> None:
    assert cluster_id(f"127.0.0.1:{free_port()}") is None
    assert capfd.readouterr() == ("", "")


def test_a_server_that_never_answers_is_no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("springback.deploy.broker_process._ANSWER_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert cluster_id(f"127.0.0.1:{server.getsockname()[1]}") is None


@pytest.mark.parametrize(
    "answer",
    [
        struct.pack(">iiiih", 14, 20_260, 0, 1, 0),
        b"",
        b"\0\0",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        bytes(16),
        b"\0\0\0\0",
        b"\0\0\0\x0c" + bytes(12),
    ],
)
def test_another_kind_of_server_is_no_broker(answer: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        assert cluster_id(f"127.0.0.1:{server.getsockname()[1]}") is None
        thread.join()
    assert capfd.readouterr() == ("", "")


def test_a_free_port_is_free_and_not_ephemeral() -> None:
    port = free_port()
    assert port < 32_768
    with socket.create_server(("127.0.0.1", port)):
        assert not is_free(port)
    assert is_free(port)


def test_a_port_is_free_again_right_after_its_server_ended() -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)) as server:
        client = socket.create_connection(("127.0.0.1", port))
        connection, _ = server.accept()
        connection.close()  # the server's side closes first, so its end of the connection waits
        with client:
            assert client.recv(1) == b""
    assert is_free(port)


def test_no_free_port_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("springback.deploy.broker_process.is_free", lambda _: False)
    with pytest.raises(OSError, match="none of 200 ports"):
        free_port()

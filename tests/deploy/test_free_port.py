import socket

import pytest

from springback.deploy.broker_process import free_port, is_free


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

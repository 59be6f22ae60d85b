"""Files with secrets: whoever reads one warns of it if others can read it, once, and never says what is in it."""

from __future__ import annotations

import base64
import logging
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from springback.dashboards.live_page.access import read_password
from springback.deploy.commands.shared_options import grafana_connection
from springback.producers.bridges.settings import MqttSettings
from springback.producers.gateway.options import read_token
from springback.producers.secret_files import read_secret, warn_of_readers
from springback.producers.serving import tls_context
from springback.sinks.basic_auth import BasicAuth
from springback.stream_processors.judging.endpoint import read_api_key
from springback.stream_processors.judging.settings import JudgeSettings
from springback.stream_processors.service.kafka_connection import KafkaConnection
from tests.sinks.certificates import self_signed

SECRET = "a-secret-of-20-letters"


def kafka_password(file: Path) -> str:
    return KafkaConnection(security_protocol="SASL_SSL", sasl_password_file=str(file)).password()


def kafka_token(file: Path) -> str:
    return KafkaConnection(
        security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER", sasl_token_file=str(file)
    ).token()


def auth_file(file: Path) -> str:
    file.write_text(f"ops:{SECRET}\n")
    given = base64.b64encode(f"ops:{SECRET}".encode()).decode()
    return SECRET if BasicAuth.of_file(file).admits(f"Basic {given}") else ""


def grafana_token(file: Path) -> str:
    with grafana_connection("http://127.0.0.1:1", file, None):
        return SECRET  # it is held by the client alone


READERS: dict[str, Callable[[Path], str | None]] = {
    "kafka's password": kafka_password,
    "kafka's token": kafka_token,
    "gateway": read_token,
    "mqtt": lambda file: MqttSettings(client_id="c", password_file=str(file)).password,
    "judge": lambda file: read_api_key(JudgeSettings(api_key_file=str(file))),
    "live page": lambda file: read_password("127.0.0.1", file),
    "metrics page": auth_file,
    "grafana": grafana_token,
}


@pytest.mark.parametrize("reader", READERS)
def test_every_part_warns_of_a_secret_that_others_can_read(
    reader: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    file.chmod(0o600)
    with caplog.at_level(logging.WARNING):
        assert READERS[reader](file) == SECRET
        assert not caplog.records
        file.chmod(0o640)
        assert READERS[reader](file) == SECRET
    assert f"others can read or change {file} (mode 0640); chmod 600" in caplog.text
    assert SECRET not in caplog.text


def test_every_key_of_a_certificate_is_looked_at(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    certificate, key = self_signed(tmp_path)
    key.chmod(0o600)
    kafka = KafkaConnection(
        security_protocol="SSL",
        tls_ca_file=str(certificate),
        tls_certificate_file=str(certificate),
        tls_key_file=str(key),
    )
    for context in (lambda: tls_context(certificate, key), kafka.tls_context):
        caplog.clear()
        key.chmod(0o600)
        assert context() is not None
        assert not caplog.records
        key.chmod(0o604 if context == kafka.tls_context else 0o644)
        assert context() is not None
        assert "others can read" in caplog.text


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_the_owner_alone_is_no_matter(mode: int, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.touch(mode)
    file.chmod(mode)
    assert not warn_of_readers(file, "a secret")


@pytest.mark.parametrize("bit", [stat.S_IRGRP, stat.S_IWGRP, stat.S_IROTH, stat.S_IWOTH])
def test_every_way_for_others_is_seen_and_told_once(bit: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "secret"
    file.touch()
    file.chmod(0o600 | bit)
    for _ in range(3):
        assert warn_of_readers(file, "a secret")
    assert len(caplog.records) == 1


def test_the_newline_of_an_editor_is_no_part_of_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b" a b \r\n")
    assert read_secret(file, "a secret") == " a b "
    assert not warn_of_readers(tmp_path / "none", "a secret")

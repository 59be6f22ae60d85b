"""`springback export` says what it cannot do, before it asks for a broker, and quotes no secret."""

from pathlib import Path

import pytest

from springback.deploy import cli


def test_a_key_wants_its_certificate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", "--tls-key", str(tmp_path / "key.pem")]) == 2
    assert "--tls-cert" in capsys.readouterr().err


def test_a_certificate_that_is_missing_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", "--port", "0", "--tls-cert", str(tmp_path / "cert.pem")]) == 2
    told = capsys.readouterr().err
    assert "cert.pem" in told
    assert "Traceback" not in told


def test_an_auth_file_that_is_wrong_is_told_without_its_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    users = tmp_path / "users"
    users.write_text("s3cret\n")
    assert cli.main(["export", "--port", "0", "--auth-file", str(users)]) == 2
    told = capsys.readouterr().err
    assert "Line 1" in told
    assert "s3cret" not in told

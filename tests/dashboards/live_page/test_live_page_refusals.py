"""What the live page refuses to serve, and what it says; apart from the browser, whose loop runs in this process."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from springback.deploy.cli import main
from springback.deploy.commands import log_options

Live = Callable[..., "Ended"]
DEADLINE_S = 60.0


class Ended(NamedTuple):
    code: int
    stderr: str


@pytest.fixture
def springback_live(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Live:
    """Runs `springback live`, which shall refuse to serve, in this process; the log stays the tests'."""
    monkeypatch.setattr(log_options, "configure_logging", lambda *_: None)

    def run(*options: str) -> Ended:
        return Ended(main(["live", *options]), capsys.readouterr().err)

    return run


def test_a_certificate_that_cannot_be_used_is_told(tmp_path: Path, springback_live: Live) -> None:
    (tmp_path / "cert.pem").write_text("none")
    refused = springback_live("--port", "0", "--tls-cert", str(tmp_path / "cert.pem"))
    assert refused.code == 2
    assert "Expected two PEM files" in refused.stderr.splitlines()[-1]
    lonely = springback_live("--port", "0", "--tls-key", str(tmp_path / "cert.pem"))
    assert lonely.code == 2
    assert "--tls-cert" in lonely.stderr


def test_beyond_this_machine_a_password_is_demanded(tmp_path: Path, springback_live: Live) -> None:
    refused = springback_live("--host", "0.0.0.0", "--port", "0")
    assert refused.code == 2
    assert refused.stderr.splitlines()[-1].startswith("springback: Other machines could see the live page at 0.0.0.0: ")
    assert "--password-file" in refused.stderr
    empty = tmp_path / "empty"
    empty.write_text("\n")
    for file, why in ((empty, "is empty"), (tmp_path / "none", "No such file")):
        refused = springback_live("--host", "0.0.0.0", "--port", "0", "--password-file", str(file))
        assert refused.code == 2
        assert why in refused.stderr


def test_a_port_that_is_taken_is_told(springback_live: Live) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = springback_live("--port", str(port))
    assert refused.code == 1
    told = f"springback: The live page cannot be served at 127.0.0.1:{port} (Address already in use). Choose another"
    assert refused.stderr.splitlines()[-1].startswith(told)


def test_without_its_extra_the_command_says_which_to_install() -> None:
    program = (
        "import sys; sys.modules['nicegui'] = None; from springback.deploy.cli import main; sys.exit(main(['live']))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ended.returncode == 2
    assert re.search(r"pip install .*\[live\]'$", ended.stderr.strip())

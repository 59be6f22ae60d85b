import asyncio
import json
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]

from springback.deploy import cli
from springback.deploy.broker_process import free_port
from tests.deploy.process_checks import becomes_true
from tests.house import ROOT
from tests.producers.gateway.gateway_checks import frame_of

EXAMPLE = ROOT / "producers" / "gateway" / "send_frames.cpp"
TOKEN = "a-token-of-this-test-0001"
DEADLINE_S = 150.0
Start = Callable[..., str]


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "gateway.token"
    file.write_text(TOKEN + "\n")
    file.chmod(0o600)
    return file


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def start(tmp_path: Path, embedded_broker: str, processes: list[subprocess.Popen[str]]) -> Start:
    """Starts `springback gateway` on topics of its own, and gives its address once it listens."""

    def started(*options: str) -> str:
        ready = tmp_path / f"ready-{uuid.uuid4().hex}"
        prefix = f"t{uuid.uuid4().hex[:8]}."
        command = [
            "gateway",
            "--broker",
            embedded_broker,
            "--prefix",
            prefix,
            "--port",
            "0",
            "--ready-file",
            str(ready),
        ]
        processes.append(
            subprocess.Popen(
                [sys.executable, "-m", "springback", *command, *options],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        assert becomes_true(lambda: ready.exists() or processes[-1].poll() is not None, DEADLINE_S)
        assert ready.exists(), processes[-1].communicate()
        return str(json.loads(ready.read_bytes())["gateway"])

    return started


def is_ready(address: str) -> bool:
    try:
        return bool(urllib.request.urlopen(f"{address}/readyz", timeout=5).status == 200)
    except OSError:
        return False


def curl(*arguments: str) -> str:
    done = subprocess.run(["curl", "-sS", *arguments], capture_output=True, text=True, timeout=300, check=True)
    return done.stdout


def test_a_port_that_is_taken_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert cli.main(["gateway", "--broker", "127.0.0.1:1", "--port", port]) == 1
    told = capsys.readouterr().err
    assert f"The gateway cannot be served at 127.0.0.1:{port} (Address already in use). Choose another port" in told


@pytest.mark.broker
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_sends_a_frame_and_sigterm_ends_it(
    start: Start, processes: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    address = start()
    assert becomes_true(lambda: is_ready(address), DEADLINE_S)
    frame = tmp_path / "frame.json"
    frame.write_bytes(frame_of("robot-1", 0))
    said = curl("-H", "Content-Type: application/json", "--data-binary", f"@{frame}", f"{address}/v1/frames")
    assert json.loads(said) == {"accepted": 1, "refused": [], "failed": [], "faulty": []}
    processes[0].send_signal(signal.SIGTERM)
    out, error = processes[0].communicate(timeout=DEADLINE_S)
    assert processes[0].returncode == 0, error
    assert f"Gateway: {address}/v1/frames" in out
    assert "Traceback" not in error


@pytest.mark.broker
def test_what_was_accepted_while_kafka_was_away_outlives_a_kill(
    start: Start, processes: list[subprocess.Popen[str]], tmp_path: Path, embedded_broker: str
) -> None:
    topic = ("--prefix", f"t{uuid.uuid4().hex[:8]}.", "--spool", str(tmp_path / "spool"))
    address = start("--broker", f"127.0.0.1:{free_port()}", *topic)
    assert posted(address, frame_of("robot-1", 0)) == 1
    processes[-1].kill()
    processes[-1].wait()
    start("--broker", embedded_broker, *topic)
    with pytest.raises(AssertionError, match=r"Give|give each one a folder of its own"):
        start("--broker", embedded_broker, *topic)
    read = asyncio.run(first_record(embedded_broker, f"{topic[1]}steps"))
    assert read == (b"robot-1", frame_of("robot-1", 0))


def posted(address: str, frame: bytes) -> int:
    """How many frames the gateway says it has accepted."""
    request = urllib.request.Request(f"{address}/v1/frames", frame, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
        return int(json.loads(answer.read())["accepted"])


async def first_record(address: str, topic: str) -> tuple[bytes, bytes]:
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest")
    async with consumer:
        record = await asyncio.wait_for(consumer.getone(), DEADLINE_S)
        return record.key, record.value


@pytest.mark.broker
@pytest.mark.skipif(shutil.which("openssl") is None or shutil.which("curl") is None, reason="needs openssl and curl")
def test_https_with_a_token(start: Start, token_file: Path, tmp_path: Path) -> None:
    certificate = tmp_path / "both.pem"
    files = ["-keyout", str(certificate), "-out", str(tmp_path / "c.pem")]
    name = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *name, *files],
        capture_output=True,
        check=True,
    )
    with certificate.open("a") as file:
        file.write((tmp_path / "c.pem").read_text())
    address = start("--tls-certificate", str(certificate), "--token-file", str(token_file))
    assert address.startswith("https://")
    trust = ("--cacert", str(tmp_path / "c.pem"))
    assert becomes_true(lambda: '"ready"' in curl(*trust, f"{address}/readyz"), DEADLINE_S)
    body = ("-H", "Content-Type: application/json", "--data-binary", frame_of("robot-1", 0).decode())
    status = ("-o", str(tmp_path / "answer"), "-w", "%{http_code}")
    assert curl(*trust, *body, *status, f"{address}/v1/frames") == "401"
    bearer = ("-H", f"Authorization: Bearer {TOKEN}")
    assert curl(*trust, *body, *bearer, *status, f"{address}/v1/frames") == "200"


@pytest.mark.broker
@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_the_cpp_example_sends_its_steps(start: Start, token_file: Path, tmp_path: Path) -> None:
    program = tmp_path / "send_frames"
    warnings = ["-Wall", "-Wextra", "-Werror"]
    subprocess.run(["g++", "-std=c++17", *warnings, "-o", str(program), str(EXAMPLE)], check=True, timeout=300)
    address = start("--token-file", str(token_file))
    assert becomes_true(lambda: is_ready(address), DEADLINE_S)
    host, _, port = address.removeprefix("http://").rpartition(":")

    def sent(token: str) -> subprocess.CompletedProcess[str]:
        command = [str(program), host, port, "robot-7"]
        environment = {"SPRINGBACK_TOKEN": token}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)

    done = sent(TOKEN)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('200 {"accepted":10,"refused":[],"failed":[],"faulty":[]}')
    wrong = sent("another-token-altogether")
    assert (wrong.returncode, wrong.stdout[:4]) == (1, "401 ")


def test_beyond_this_machine_it_wants_a_token(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["gateway", "--host", "0.0.0.0", "--broker", "127.0.0.1:1"]) == 2
    said = capsys.readouterr().err
    assert "so a token is needed" in said
    assert "--token-file" in said


@pytest.mark.parametrize("content", ["", "short", "with a blank in the midst of it", "ünlesbar-ünlesbar"])
def test_a_token_that_is_none_is_refused(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "token"
    file.write_text(content, encoding="utf-8")
    assert cli.main(["gateway", "--token-file", str(file), "--broker", "127.0.0.1:1"]) == 2
    said = capsys.readouterr().err
    assert str(file) in said
    assert not content or content not in said


def test_certificates_that_do_not_fit_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "nothing.pem"
    file.write_text("no certificate")
    assert cli.main(["gateway", "--tls-certificate", str(file), "--broker", "127.0.0.1:1"]) == 2
    assert "nothing.pem" in capsys.readouterr().err
    assert cli.main(["gateway", "--tls-key", str(file), "--broker", "127.0.0.1:1"]) == 2
    assert "--tls-key needs --tls-certificate" in capsys.readouterr().err

"""A wrong address, CA or password, and rights that are missing: every part says which of them it is."""

import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from springback.deploy.broker_process import free_port
from springback.producers.broker_fault import find_fault
from springback.stream_processors.service.kafka_connection import KafkaConnection, SaslMechanism
from tests.deploy.security.secured_parts import Part, Parts
from tests.house import DATA
from tests.secure_kafka import SecureKafka

RECORDING = DATA / "habitat_lab_pointnav.frames.jsonl.gz"
Wrong = Callable[[SecureKafka, Path, str], KafkaConnection]


def changed(kafka: KafkaConnection, **others: str) -> KafkaConnection:
    return msgspec.structs.replace(kafka, **others)


def secret(folder: Path, content: str) -> str:
    file = folder / f"secret-{uuid.uuid4().hex[:6]}"
    file.write_text(content)
    file.chmod(0o600)
    return str(file)


def wrong_password(kafka: SecureKafka, folder: Path, part: str) -> KafkaConnection:
    return changed(kafka.by_login(part), sasl_password_file=secret(folder, "a-guess-of-mine"))


def wrong_ca(kafka: SecureKafka, folder: Path, part: str) -> KafkaConnection:
    return changed(kafka.by_login(part), tls_ca_file=str(kafka.another_ca()))


def wrong_address(kafka: SecureKafka, folder: Path, part: str) -> KafkaConnection:
    return changed(kafka.by_login(part), bootstrap=f"127.0.0.1:{free_port()}")


FAULTS: dict[str, Wrong] = {"authentication": wrong_password, "tls": wrong_ca, "address": wrong_address}
SERVICES = ("worker", "judge", "export", "live", "gateway", "annotate")


@pytest.mark.kafka
@pytest.mark.parametrize("kind", FAULTS)
def test_every_service_says_what_is_wrong_and_goes_on_trying(
    secure_kafka: SecureKafka, kind: str, tmp_path: Path
) -> None:
    with Parts(tmp_path, "f.") as parts:
        ports = {name: str(free_port()) for name in SERVICES}
        started: dict[str, Part] = {}
        for name in SERVICES:
            started[name] = parts.start(
                name,
                FAULTS[kind](secure_kafka, tmp_path, name),
                name,
                *(() if name in ("worker", "judge", "annotate") else ("--port", ports[name])),
                environment={"SPRINGBACK_HEALTH_PORT": ports[name], "SPRINGBACK_GRAFANA_TOKEN": "a-token"},
            )
        for name, part in started.items():
            part.wait_for(lambda part=part: f"{kind}: " in part.log or f"kind={kind} " in part.log, kind)  # type: ignore[misc]
            assert "a-guess-of-mine" not in part.log
            told = {"worker": "live", "judge": "live", "export": "-/ready", "gateway": "readyz"}.get(name)
            if told is not None:
                part.wait_for(
                    lambda name=name, told=told: f"{kind}: " in page(f"http://127.0.0.1:{ports[name]}/{told}"),  # type: ignore[misc]
                    f"{kind} on the health page",
                )
            assert part.process.poll() is None, part.log


def page(address: str) -> str:
    try:
        with urllib.request.urlopen(address, timeout=20) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return error.read().decode()


@pytest.mark.kafka
@pytest.mark.parametrize("kind", FAULTS)
def test_every_command_that_runs_once_ends_with_what_is_wrong(
    secure_kafka: SecureKafka, kind: str, tmp_path: Path
) -> None:
    commands = {
        "topics": ["topics"],
        "baseline": ["baseline", "export", str(tmp_path / "none")],
        "producer": ["replay", "--speed", "max", str(RECORDING)],
        "all": ["up", "--broker", ""],
    }
    with Parts(tmp_path, "f.") as parts:
        started = []
        for user, command in commands.items():
            kafka = FAULTS[kind](secure_kafka, tmp_path, user)
            # The address of `up` is no setting: it could start a broker of its own.
            told = [word or kafka.bootstrap for word in command]
            started.append((user, parts.start(user, kafka, *told)))
        for user, part in started:
            assert part.wait_for_end() == 1, (user, part.log)
            last = part.log.strip().splitlines()[-1]
            assert last.startswith("springback: "), part.log
            if user != "all" or kind != "address":  # there it says which brokers it could start in its place
                assert f"{kind}: " in last, part.log
            assert "Traceback" not in part.log


@pytest.mark.kafka
def test_whoever_may_nothing_is_told_so(secure_kafka: SecureKafka, tmp_path: Path) -> None:
    prefix = f"n{uuid.uuid4().hex[:6]}."
    nobody = secure_kafka.by_login("nobody")
    with Parts(tmp_path, prefix) as parts:
        environment = {"SPRINGBACK_GRAFANA_TOKEN": "a-token"}
        assert parts.start("topics", nobody, "topics").wait_for_end() == 1
        started = {
            name: parts.start(name, nobody, name, *options, environment=environment)
            for name, options in {
                "worker": [],
                "judge": [],
                "export": ["--port", "0"],
                "live": ["--port", "0"],
                "annotate": [],
                "gateway": ["--port", "0"],
            }.items()
        }
        for name, part in started.items():
            if name in ("worker", "judge"):
                assert part.wait_for_end() == 1, part.log
                assert "This user may not" in part.log, part.log
            elif name == "gateway":
                part.wait_for(lambda part=part: "authorization: " in part.log, "authorization")  # type: ignore[misc]
            else:
                part.wait_for(lambda part=part: "may not see them" in part.log, "authorization")  # type: ignore[misc]


@pytest.mark.kafka
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_every_mechanism_lets_in_and_keeps_out(
    secure_kafka: SecureKafka, mechanism: SaslMechanism, tmp_path: Path
) -> None:
    right = secure_kafka.by_login("worker", mechanism)
    for options in (right.client_options(), right.producer_options()):
        assert find_fault(right.bootstrap, options) is None
    bad = secret(tmp_path, "rubbish")
    wrong = changed(right, sasl_password_file=bad, sasl_token_file=bad)
    for options in (wrong.client_options(), wrong.producer_options()):
        fault = find_fault(wrong.bootstrap, options)
        assert fault is not None
        assert fault.kind == "authentication", fault
        assert "rubbish" not in fault.detail


@pytest.mark.kafka
def test_each_mistake_of_the_security_settings_is_named(secure_kafka: SecureKafka) -> None:
    login, admin = secure_kafka.by_login("worker"), secure_kafka.address
    mutual = secure_kafka.by_certificate("worker")
    by_scram = changed(login, bootstrap=secure_kafka.plain_login_address, security_protocol="SASL_PLAINTEXT")
    cases = [
        (mutual, None, ""),
        (changed(by_scram, sasl_mechanism="SCRAM-SHA-256"), None, ""),
        (by_scram, "authentication", "sasl_mechanism must be one of SCRAM-SHA-256"),
        (changed(mutual, tls_certificate_file=""), "tls", "wants a client's certificate"),
        (changed(login, security_protocol="PLAINTEXT"), "tls", "security_protocol must be SSL or SASL_SSL"),
        (changed(login, bootstrap=admin), "tls", "does it speak TLS"),
        (changed(login, security_protocol="SSL"), "authentication", "must it be SASL_PLAINTEXT or SASL_SSL?"),
        (changed(by_scram, bootstrap=admin), "authentication", "must be without SASL_"),
        (changed(login, sasl_username="who"), "authentication", "does not admit the user 'who'"),
        (changed(login, tls_ca_file=""), "tls", "signed by the CA in tls_ca_file"),
        (changed(login, bootstrap="nowhere.invalid:9092"), "address", "the name 'nowhere.invalid' is not known"),
        (changed(login, bootstrap=f"127.0.0.1:{free_port()},{login.bootstrap}"), None, ""),
    ]
    for kafka, kind, told in cases:
        fault = find_fault(kafka.bootstrap, kafka.client_options())
        assert (None if fault is None else fault.kind) == kind, (kafka, fault)
        assert told in str(fault), (kafka, fault)

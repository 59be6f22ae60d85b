"""The shipped configuration of Alertmanager, in a real one: what comes in one message, and what silences what."""

import datetime
import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from springback.deploy.alert_files import AlertFiles
from tests.deploy.monitoring.monitoring_servers import AlertmanagerServer, Labels
from tests.deploy.monitoring.monitoring_tools import output_of
from tests.deploy.monitoring.rule_reading import alerts
from tests.deploy.monitoring.webhook_receiver import WebhookReceiver
from tests.house import ROOT

CONFIG = ROOT / "deploy" / "alertmanager" / "alertmanager.yml"
DEADLINE_S = 150.0
ABOUT = {(rule["alert"], rule["labels"]["severity"]): rule["labels"]["about"] for rule in alerts()}
GROUP = {"family": "navigation", "method": "m", "version": "1"}
WORKER, EXPORTER = {"job": "springback-worker"}, {"job": "springback-exporter"}


@pytest.fixture(scope="module")
def receiver() -> Iterator[WebhookReceiver]:
    with WebhookReceiver() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory, receiver: WebhookReceiver) -> Iterator[AlertmanagerServer]:
    """With the shipped file, its waits shortened and its receiver filled in."""
    directory = tmp_path_factory.mktemp("alertmanager")
    AlertFiles(hasten=100.0).write(directory)
    config = directory / "alertmanager.yml"
    content = yaml.safe_load(config.read_text())
    content["receivers"][0]["webhook_configs"] = [{"url": receiver.url}]
    config.write_text(yaml.safe_dump(content))
    with AlertmanagerServer(config) as server:
        server.wait_until_ready()
        yield server


def alert(name: str, severity: str = "", **labels: str) -> Labels:
    """Its labels as our rules give them."""
    severity = severity or next(severity for known, severity in ABOUT if known == name)
    return {"alertname": name, "severity": severity, "about": ABOUT[name, severity], **labels}


def post(server: AlertmanagerServer, *firing: Labels) -> None:
    """Tell it what fires."""
    ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=5)
    body = json.dumps([{"labels": labels, "endsAt": ends.isoformat()} for labels in firing]).encode()
    request = urllib.request.Request(
        f"http://{server.address}/api/v2/alerts", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200


def silenced(server: AlertmanagerServer) -> dict[tuple[str, str], bool]:
    """By name and severity, whether another alert silences it."""
    return {
        (known["labels"]["alertname"], known["labels"]["severity"]): bool(known["status"]["inhibitedBy"])
        for known in server.alerts()
    }


def test_amtool_finds_no_fault() -> None:
    assert "SUCCESS" in output_of("amtool", "check-config", str(CONFIG))


def test_the_examples_of_receivers_are_good_and_keep_secrets_in_files(tmp_path: Path) -> None:
    text = CONFIG.read_text()
    head, examples = text.split("  - name: springback\n")
    filled = tmp_path / "alertmanager.yml"
    filled.write_text(head + "  - name: springback\n" + examples.replace("    #", "   ").replace("\n    \n", "\n"))
    assert "SUCCESS" in output_of("amtool", "check-config", str(filled))
    (receiver,) = yaml.safe_load(filled.read_text())["receivers"]
    assert receiver.keys() == {"name", "webhook_configs", "email_configs"}
    secrets = [line.strip() for line in examples.splitlines() if "password" in line or "credentials" in line]
    assert len(secrets) == 2
    assert all("_file: /" in line for line in secrets)


def test_every_target_and_source_of_a_silence_is_an_alert_of_ours() -> None:
    known = {rule["alert"] for rule in alerts()}
    for rule in yaml.safe_load(CONFIG.read_text())["inhibit_rules"]:
        for matcher in (*rule["source_matchers"], *rule["target_matchers"]):
            if matcher.startswith("alertname"):
                names = matcher.split('"')[1].replace("(Worker|Exporter)Down", "WorkerDown|SpringbackExporterDown")
                assert set(names.split("|")) <= known, matcher


CAUSES: list[tuple[str, Labels, list[Labels], list[Labels]]] = [
    (
        "no exporter",
        alert("SpringbackExporterDown", "critical", **EXPORTER),
        [
            alert("SpringbackAgentSilent", agent="robot"),
            alert("SpringbackStressCapacityBreach", **GROUP),
            alert("SpringbackPipelineBehind"),
            alert("SpringbackExporterBlind", **EXPORTER),
        ],
        [alert("SpringbackWorkerDown", "critical", **WORKER)],
    ),
    (
        "one exporter of two",
        alert("SpringbackExporterDown", "warning", **EXPORTER, instance="a"),
        [alert("SpringbackMarginNegative", **GROUP)],  # by the breach
        [alert("SpringbackAgentSilent", agent="robot"), alert("SpringbackStressCapacityBreach", **GROUP)],
    ),
    (
        "blind",
        alert("SpringbackExporterBlind", **EXPORTER),
        [
            alert("SpringbackAgentStale", agent="robot"),
            alert("SpringbackMarginNegative", **GROUP),
            alert("SpringbackWorkerStuck", instance="a", stage="track_steps"),
        ],
        [alert("SpringbackSeriesOverflow"), alert("SpringbackInputLost", stage="track_steps")],
    ),
    (
        "no worker",
        alert("SpringbackWorkerDown", "critical", **WORKER),
        [
            alert("SpringbackAgentSilent", agent="robot"),
            alert("SpringbackPipelineBehind"),
            alert("SpringbackWorkerDown", "warning", **WORKER, instance="a"),
        ],
        [alert("SpringbackStressCapacityBreach", **GROUP)],
    ),
    (
        "steps wait",
        alert("SpringbackPipelineBehind"),
        [alert("SpringbackAgentSilent", agent="robot"), alert("SpringbackAgentStalled", agent="robot")],
        [alert("SpringbackDeadLetters", reason="out_of_range")],
    ),
    (
        "a worker hangs",
        alert("SpringbackWorkerStuck", instance="a", stage="track_steps"),
        [alert("SpringbackPipelineBehind")],
        [alert("SpringbackDeadLetters", reason="out_of_range")],
    ),
    (
        "beyond capacity",
        alert("SpringbackStressCapacityBreach", **GROUP),
        [alert("SpringbackMarginNegative", **GROUP), alert("SpringbackBetaAboveContract", **GROUP)],
        [alert("SpringbackRecoveryCostAboveContract", **(GROUP | {"family": "manipulation"}))],
    ),
    (
        "contract violated",
        alert("SpringbackContractViolated", **GROUP),
        [alert("SpringbackMarginNegative", **GROUP)],
        [alert("SpringbackBetaAboveContract", **GROUP), alert("SpringbackStressUntested", **GROUP)],
    ),
    (
        "silent",
        alert("SpringbackAgentSilent", agent="robot"),
        [alert("SpringbackReboundWindowOpenTooLong", agent="robot")],
        [alert("SpringbackAgentStalled", agent="another")],
    ),
]


@pytest.mark.parametrize(
    ("cause", "symptoms", "others"), [pytest.param(*case[1:], id=case[0].replace(" ", "-")) for case in CAUSES]
)
def test_a_cause_silences_its_symptoms_and_nothing_else(
    cause: Labels, symptoms: list[Labels], others: list[Labels], tmp_path: Path
) -> None:
    AlertFiles().write(tmp_path)
    keys = [[(labels["alertname"], labels["severity"]) for labels in group] for group in (symptoms, [cause, *others])]
    expected = dict.fromkeys(keys[0], True) | dict.fromkeys(keys[1], False)
    with AlertmanagerServer(tmp_path / "alertmanager.yml") as server:
        server.wait_until_ready()
        post(server, cause, *others, *symptoms)
        # It takes them in one after the other: the symptoms are the last, so then nothing else can change.
        end_s = time.monotonic() + DEADLINE_S
        while silenced(server) != expected and time.monotonic() < end_s:
            time.sleep(0.05)
        assert silenced(server) == expected


def test_alerts_of_a_family_and_method_come_in_one_message(
    alertmanager: AlertmanagerServer, receiver: WebhookReceiver
) -> None:
    wanted = [
        alert("SpringbackAgentStalled", agent="one", family="navigation", method="m", version="1"),
        alert("SpringbackAgentStalled", agent="two", family="navigation", method="m", version="2"),
        alert("SpringbackAgentStalled", agent="three", family="manipulation", method="m", version="1"),
        alert("SpringbackDeadLetters", reason="out_of_range"),
    ]
    post(alertmanager, *wanted)
    end_s = time.monotonic() + DEADLINE_S
    while sum(len(message["alerts"]) for message in receiver.messages) < len(wanted):
        assert time.monotonic() < end_s
        time.sleep(0.05)
    groups: list[Any] = [(message["groupLabels"], len(message["alerts"])) for message in receiver.messages]
    assert sorted(groups, key=str) == [
        ({"family": "manipulation", "method": "m"}, 1),
        ({"family": "navigation", "method": "m"}, 2),
        ({}, 1),
    ]

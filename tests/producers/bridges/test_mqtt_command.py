"""`springback bridge mqtt` between a real mosquitto and the embedded broker, and what it does when it is killed."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest

from springback.deploy import cli
from springback.producers.contract.codec import decode_frame, encode_json
from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.stream_processors.topics import STEPS, declare_topics
from tests.producers.bridges.bridge_command import BridgeCommand, arriving_frames
from tests.producers.bridges.mosquitto_server import Mosquitto
from tests.producers.bridges.mqtt_robot import START_S, robot, time_of
from tests.producers.fleet_episodes import (
    EPISODES,
    REFERENCES,
    assert_departed_and_recovered,
    cycles,
    evaluated,
)

pytestmark = [pytest.mark.mqtt, pytest.mark.timeout(180)]
DEADLINE_S = 30.0

MAPPING = """
agent = { segment = "robot" }
time = "header"
header_time = "at"
[header]
family = "delivery"
reference = { topic = "fleet/{robot}/state", field = "disturbed", transform = "one_minus" }
[step]
trigger = "fleet/{robot}/state"
[signals]
progress = { topic = "fleet/{robot}/state", field = "done" }
planning_s = { topic = "fleet/{robot}/state", field = "thinking" }
risk = { topic = "fleet/{robot}/state", field = "danger" }
[episode]
id = { topic = "fleet/{robot}/state", field = "order" }
end = { topic = "fleet/{robot}/state", field = "done", outcomes = { 1 = "success" } }
"""


def states(episode: int) -> list[dict[str, Any]]:
    return [
        {**cycle, "order": f"o{episode}", "at": time_of(episode, number)}
        for number, cycle in enumerate(cycles(episode))
    ]


def frames() -> list[bytes]:
    """All episodes as JSON frames of a few steps each."""
    publisher = MemoryPublisher()
    with StepEmitter(publisher, producer="r7", max_steps=3, clock=lambda: START_S + 500.0) as emitter:
        for number in range(EPISODES):
            episode = emitter.begin_episode(episode=str(number), family="delivery", reference=number < REFERENCES)
            for place, cycle in enumerate(cycles(number)):
                time_s = time_of(number, place)
                episode.step(
                    progress=cycle["done"],
                    planning_s=cycle["thinking"],
                    risk=cycle["danger"],
                    time_s=time_s,
                    mode="drive",
                )
            episode.end("success", time_s=time_s)
    return [encode_json(decode_frame(data)) for _, data in publisher.published]


def installation(broker: str) -> str:
    prefix = f"mqtt-{uuid.uuid4().hex[:8]}-"
    asyncio.run(declare_topics(broker, prefix=prefix))
    return prefix


@pytest.mark.broker
def test_states_become_windows_through_kafka(tmp_path: Path, embedded_broker: str) -> None:
    prefix = installation(embedded_broker)
    mapping = tmp_path / "fleet.toml"
    mapping.write_text(MAPPING)
    with Mosquitto(tmp_path) as mosquitto:
        arguments = ("mqtt", "--mapping", str(mapping), "-o", f"port={mosquitto.port}", "-o", "client_id=fleet-bridge")
        with BridgeCommand(tmp_path, *arguments, "--broker", embedded_broker, "--prefix", prefix) as bridge:
            bridge.wait_until(lambda: "connected to the MQTT broker" in bridge.said, DEADLINE_S, "connection")
            with robot(mosquitto) as say:
                for episode in range(EPISODES):
                    for state in states(episode):
                        say("fleet/r7/state", state)
            arrived = arriving_frames(embedded_broker, f"{prefix}{STEPS}", EPISODES)
            assert "132 steps and 6 ends" in bridge.end()
    assert_departed_and_recovered(evaluated(arrived))


@pytest.mark.broker
def test_a_bridge_that_is_killed_in_the_midst_loses_no_frame(tmp_path: Path, embedded_broker: str) -> None:
    prefix = installation(embedded_broker)
    sent = frames()
    with Mosquitto(tmp_path) as mosquitto, robot(mosquitto) as say:
        arguments = ("mqtt", "-o", "frames=fleet/+/frames", "-o", f"port={mosquitto.port}", "-o", "client_id=bridge")
        place = ("--broker", embedded_broker, "--prefix", prefix)
        with BridgeCommand(tmp_path, *arguments, *place) as first:
            first.wait_until(lambda: "connected to the MQTT broker" in first.said, DEADLINE_S, "connection")
            for data in sent[: len(sent) // 2]:
                say("fleet/r7/frames", data)
            first.kill()
        for data in sent[len(sent) // 2 :]:
            say("fleet/r7/frames", data)
        with BridgeCommand(tmp_path, *arguments, *place) as second:
            arrived = arriving_frames(embedded_broker, f"{prefix}{STEPS}", EPISODES)
            second.end()
    assert_departed_and_recovered(evaluated(arrived))


def test_a_broker_that_refuses_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("springback.deploy.commands.log_options.configure_logging", lambda *_: None)
    (tmp_path / "nobody").write_text("")
    with Mosquitto(tmp_path, "allow_anonymous false", f"password_file {tmp_path / 'nobody'}") as mosquitto:
        recording = str(tmp_path / "out.jsonl")
        arguments = ["bridge", "mqtt", "-o", "frames=a", "-o", f"port={mosquitto.port}", "--record", recording]
        assert cli.main(arguments) == 1
    assert "springback: the MQTT broker at 127.0.0.1:" in capsys.readouterr().err

"""Robots on a real mosquitto, through the bridge: mapped payloads and whole frames, and what goes wrong on the way."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from springback.producers.bridges.mqtt_bridge import MqttBridge, PendingWills, payload_value, run_mqtt_bridge
from springback.producers.bridges.mqtt_session import LARGEST_PAYLOAD_BYTES
from springback.producers.bridges.settings import BridgeOptionError, MqttBridgeSettings
from springback.producers.contract.codec import encode_json
from springback.producers.contract.frame import EpisodeEnd, EpisodeHeader, StepFrame
from springback.producers.emitter.publishers import FramePublisher, MemoryPublisher
from springback.producers.errors import PublishError
from springback.producers.mapping.signal_mapping import SignalMapping, parse_mapping
from tests.deploy.process_checks import becomes_true
from tests.producers.bridges.mosquitto_server import QUICKLY, Mosquitto
from tests.producers.bridges.mqtt_robot import START_S, robot, time_of
from tests.producers.fleet_episodes import (
    EPISODES,
    REFERENCES,
    assert_departed_and_recovered,
    cycles,
    evaluated,
)

pytestmark = pytest.mark.mqtt
DEADLINE_S = 60.0

MAPPING = """
agent = { segment = "robot" }
time = "header"
header_time = "at"
message_id = "id"
session_end = { topic = "fleet/{robot}/link", equals = "gone", field = "" }
[header]
family = "delivery"
reference = { topic = "fleet/{robot}/state", field = "disturbed", transform = "one_minus" }
[step]
trigger = "fleet/{robot}/state"
[signals]
progress = { topic = "fleet/{robot}/state", field = "done" }
planning_s = { topic = "fleet/{robot}/state", field = "thinking" }
risk = { topic = "fleet/{robot}/danger" }
mode = { topic = "fleet/{robot}/mode" }
[episode]
id = { topic = "fleet/{robot}/state", field = "order" }
end = { topic = "fleet/{robot}/result", field = "", each = true, outcomes = { delivered = "success", "*" = "failure" } }
"""


@pytest.fixture(autouse=True)
def reconnections_are_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("springback.producers.bridges.mqtt_session.BACKOFF", QUICKLY)


@contextmanager
def bridge(
    broker: Mosquitto, publisher: FramePublisher, mapping: str | None = MAPPING, **settings: Any
) -> Iterator[MqttBridge]:
    """A bridge that runs."""
    chosen: SignalMapping | None = None if mapping is None else parse_mapping(mapping, "fleet.toml")
    running = MqttBridge(MqttBridgeSettings(port=broker.port, client_id="bridge", **settings), chosen, publisher)
    stop = threading.Event()
    thread = threading.Thread(target=running.run, args=(stop,))
    thread.start()
    try:
        assert becomes_true(lambda: running.session.connected, DEADLINE_S)
        yield running
    finally:
        stop.set()
        thread.join(DEADLINE_S)
        assert not thread.is_alive()


def drive(say: Callable[..., None], episode: int, robot: str = "7") -> None:
    for number, cycle in enumerate(cycles(episode)):
        say(f"fleet/{robot}/danger", str(cycle["danger"]), wait=False)
        say(f"fleet/{robot}/mode", cycle["mode"], wait=False)
        told = {**cycle, "order": f"o{episode}", "id": f"{episode}.{number}"}
        say(f"fleet/{robot}/state", {**told, "at": time_of(episode, number)}, wait=False)
    say(f"fleet/{robot}/result", "delivered")


def step_count(publisher: MemoryPublisher) -> int:
    return sum(frame.n_steps for frame in publisher.frames)


def ends(publisher: MemoryPublisher) -> list[str]:
    return [end.outcome for frame in publisher.frames for end in frame.ends]


def test_mapped_payloads_become_windows(tmp_path: Path) -> None:
    publisher = MemoryPublisher()
    with Mosquitto(tmp_path) as broker, robot(broker) as say, bridge(broker, publisher):
        for episode in range(EPISODES):
            drive(say, episode)
        assert becomes_true(lambda: len(ends(publisher)) == EPISODES, DEADLINE_S)
    evaluation = evaluated(publisher.frames)
    assert_departed_and_recovered(evaluation)
    assert {summary.key.agent for summary in evaluation.summaries} == {"7"}


def test_a_broker_that_restarts_in_the_midst_changes_nothing(tmp_path: Path) -> None:
    publisher = MemoryPublisher()
    with Mosquitto(tmp_path) as broker, bridge(broker, publisher) as running:
        for episode in range(EPISODES):
            with robot(broker) as say:
                drive(say, episode)
            if episode == REFERENCES:
                broker.stop()
                broker.start()
                assert becomes_true(lambda: running.session.connections > 1, DEADLINE_S)
        assert becomes_true(lambda: len(ends(publisher)) == EPISODES, DEADLINE_S)
    assert_departed_and_recovered(evaluated(publisher.frames))


def test_what_came_twice_counts_once_and_what_was_retained_is_no_step(tmp_path: Path) -> None:
    publisher = MemoryPublisher()
    state = {"done": 0.5, "thinking": 0.1, "order": "o1", "disturbed": True}
    with Mosquitto(tmp_path) as broker, robot(broker) as say:
        say("fleet/7/state", {**state, "id": 0, "at": START_S - 3600.0}, retain=True)
        with bridge(broker, publisher) as running:
            for number in range(3):
                for _ in range(2):  # as a robot does that did not see the acknowledgement
                    say("fleet/7/state", {**state, "id": number + 1, "at": START_S + number})
            say("fleet/7/result", "dropped")
            assert becomes_true(lambda: ends(publisher) == ["failure"], DEADLINE_S)
    assert step_count(publisher) == 3
    assert "1 retained" in str(running)
    assert "3 repeated" in str(running)


def test_a_will_ends_the_session(tmp_path: Path) -> None:
    publisher = MemoryPublisher()
    state = {"thinking": 0.1, "order": "o1", "disturbed": True}
    with Mosquitto(tmp_path) as broker, bridge(broker, publisher), robot(broker) as say:
        say("fleet/7/state", {**state, "done": 0.5, "id": 1, "at": START_S})
        say("fleet/7/link", "gone")  # what a will is on the wire; see test_mqtt_session
        assert becomes_true(lambda: ends(publisher) == ["aborted"], DEADLINE_S)
        say("fleet/7/state", {**state, "done": 0.1, "id": 2, "at": START_S + 9.0})
        assert becomes_true(lambda: step_count(publisher) == 2, DEADLINE_S)
    assert len({frame.session for frame in publisher.frames}) == 2


def frame_of(steps: list[int], *ending: str, session: str = "s1") -> bytes:
    header = EpisodeHeader(agent="7", episode="1", family="delivery")
    columns: Any = {"episode": [0] * len(steps), "step": steps, "progress": [step / 10 for step in steps]}
    document = json.loads(
        encode_json(
            StepFrame(
                producer="7",
                session=session,
                episodes=(header,),
                steps={},
                ends=tuple(EpisodeEnd(episode=0, outcome=outcome) for outcome in ending),  # type: ignore[arg-type]
            )
        )
    )
    return json.dumps({**document, "steps": columns}).encode()


def test_frames_are_checked_and_passed_on_as_they_are(tmp_path: Path) -> None:
    publisher = MemoryPublisher()
    sent = [frame_of([0, 1]), frame_of([2], "success")]
    with Mosquitto(tmp_path) as broker, robot(broker) as say:
        say("fleet/7/frames", frame_of([9]), retain=True)
        with bridge(broker, publisher, None, frames="fleet/+/frames") as running:
            say("fleet/7/frames", sent[0])
            say("fleet/7/frames", b"\x00 no frame")
            say("fleet/7/frames", sent[1])
            assert becomes_true(lambda: len(publisher.published) == 2, DEADLINE_S)
    assert publisher.published == [(b"7", sent[0]), (b"7", sent[1])]
    assert "2 frames passed on, 0 refused by Kafka; left out: 1 retained, 1 unknown_encoding" in str(running)


def test_what_is_too_large_is_not_looked_into_and_does_not_come_again(tmp_path: Path) -> None:
    publisher, large = MemoryPublisher(), b'{"x": "' + b"x" * LARGEST_PAYLOAD_BYTES + b'"}'
    with Mosquitto(tmp_path) as broker, robot(broker) as say:
        with bridge(broker, publisher, None, frames="fleet/+/frames") as running:
            say("fleet/7/frames", large)
            say("fleet/7/frames", frame_of([0, 1]))
            assert becomes_true(lambda: len(publisher.published) == 1, DEADLINE_S)
        assert "1 frames passed on, 0 refused by Kafka; left out: 1 too_large" in str(running)
        with bridge(broker, publisher, None, frames="fleet/+/frames") as again:
            say("fleet/7/frames", frame_of([2], "success"))
            assert becomes_true(lambda: len(publisher.published) == 2, DEADLINE_S)
        assert "left out" not in str(again)


def test_a_will_aborts_the_episodes_that_frames_have_left_open(tmp_path: Path) -> None:
    publisher = MemoryPublisher()
    settings = {"frames": "fleet/+/frames", "wills": "fleet/{producer}/link", "will_text": "gone"}
    with Mosquitto(tmp_path) as broker, robot(broker) as say, bridge(broker, publisher, None, **settings):
        say("fleet/7/frames", frame_of([0, 1]))
        say("fleet/7/link", "here")
        say("fleet/7/link", "gone")
        assert becomes_true(lambda: ends(publisher) == ["aborted"], DEADLINE_S)
    last = publisher.frames[-1]
    assert (last.producer, last.session, last.episodes[0].episode) == ("7", "s1", "1")


def test_a_robot_that_goes_on_after_its_will_has_not_ended(tmp_path: Path) -> None:
    publisher = MemoryPublisher()
    settings = {"frames": "fleet/+/frames", "wills": "fleet/{producer}/link", "will_grace_s": "3600"}
    with Mosquitto(tmp_path) as broker, robot(broker) as say, bridge(broker, publisher, None, **settings):
        say("fleet/7/frames", frame_of([0, 1]))
        say("fleet/7/link", "gone")
        say("fleet/7/frames", frame_of([2], "success"))
        assert becomes_true(lambda: ends(publisher) == ["success"], DEADLINE_S)


def test_wills_of_robots_that_are_heard_again_come_to_nothing() -> None:
    wills = PendingWills(5.0)
    for producer, at_s in (("a", 0.0), ("b", 0.0), ("b", 4.0), ("c", 3.0)):
        wills.note(producer, at_s)
    wills.heard("a")
    assert wills.due(4.9) == []
    assert wills.due(5.0) == ["b"]  # its second will takes no time away from the first
    wills.note("a", 6.0)
    assert wills.due(11.0) == ["c", "a"]


def test_while_kafka_is_away_frames_wait_and_are_not_acknowledged(tmp_path: Path) -> None:
    publisher = MemoryPublisher()
    publisher.failure = PublishError("away")
    sent = [frame_of([number]) for number in range(30)]
    with Mosquitto(tmp_path) as broker, robot(broker) as say:
        with bridge(broker, publisher, None, frames="fleet/+/frames") as running:
            for data in sent:
                say("fleet/7/frames", data)
            publisher.failure = None
            assert becomes_true(lambda: len(publisher.published) == 30, DEADLINE_S)
        assert [data for _, data in publisher.published] == sent
        with bridge(broker, publisher, None, frames="fleet/+/frames"):  # all were acknowledged: none comes again
            say("fleet/7/frames", frame_of([99], "success"))
            assert becomes_true(lambda: ends(publisher) == ["success"], DEADLINE_S)
        assert len(publisher.published) == 31
    assert "30 frames passed on" in str(running)


@pytest.mark.parametrize(
    ("payload", "value"),
    [(b"true", True), (b" 7 ", 7), (b'"x"', "x"), (b"not json", "not json"), (b"\xff\x00", b"\xff\x00"), (b"", None)],
)
def test_payloads_of_every_kind_have_a_value(payload: bytes, value: object) -> None:
    assert payload_value(payload) == value


def test_hostile_payloads_do_no_harm() -> None:
    assert payload_value(b"[" * 100_000) == "[" * 100_000
    assert payload_value(b'{"x": NaN}')["x"] != 0.0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "listens to nothing"),
        ({"frames": "a//b"}, "frames: 'a//b' is not a topic pattern"),
        ({"frames": "a", "wills": "b"}, r"expected a topic with a level \{producer\}"),
        ({"hots": "x"}, "has no setting hots; it has host, port"),
        ({"port": "many"}, "a setting of the bridge mqtt"),
    ],
)
def test_settings_that_cannot_be_are_told(options: dict[str, str], said: str) -> None:
    started = time.monotonic()
    with pytest.raises(BridgeOptionError, match=said):
        run_mqtt_bridge(None, MemoryPublisher(), options, threading.Event())
    assert time.monotonic() - started < DEADLINE_S

"""The session against a real mosquitto: what is lost, what comes twice, and what comes back."""

import asyncio
import contextlib
import gc
import os
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiomqtt
import pytest

from springback.producers.bridges.mqtt_session import Delivery, MqttRefusedError, MqttSession
from springback.producers.bridges.settings import BridgeOptionError, MqttSettings
from tests.producers.bridges.mosquitto_server import QUICKLY, Mosquitto

pytestmark = pytest.mark.mqtt
DEADLINE_S = 60.0


@pytest.fixture(autouse=True)
def reconnections_are_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("springback.producers.bridges.mqtt_session.BACKOFF", QUICKLY)


DOOMED_ROBOT = """
import asyncio, aiomqtt, sys
async def main():
    will = aiomqtt.Will("fleet/7/connection", b"BROKEN", qos=1)
    async with aiomqtt.Client("127.0.0.1", int(sys.argv[1]), will=will, keepalive=5):
        print("connected", flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


class Listener:
    """A session that runs in the test's loop, and what it has got; `hold` keeps it from settling."""

    def __init__(self, broker: Mosquitto, *topics: str, **settings: object) -> None:
        given = {"port": broker.port, "client_id": "springback-test", **settings}
        self.session = MqttSession(MqttSettings(**given), topics or ("#",))  # type: ignore[arg-type]
        self.deliveries: list[Delivery] = []
        self.hold = False
        self.room = True
        self.ticks = 0
        self.stop = threading.Event()

    @property
    def payloads(self) -> list[bytes]:
        return [delivery.payload for delivery in self.deliveries]

    async def run(self) -> None:
        await self.session.run(self._handle, self._tick, lambda: self.room, lambda: None, self.stop)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.run())
        try:
            await self.until(lambda: self.session.connected or task.done())
            yield
        finally:
            self.stop.set()
            await asyncio.wait_for(task, DEADLINE_S)
            self.stop.clear()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not condition():
                await asyncio.sleep(0.01)

    def _handle(self, delivery: Delivery) -> None:
        self.deliveries.append(delivery)
        if not self.hold:
            delivery.settle()

    def _tick(self) -> None:
        self.ticks += 1


async def publish(broker: Mosquitto, topic: str, *payloads: bytes, qos: int = 1, retain: bool = False) -> None:
    async with aiomqtt.Client("127.0.0.1", broker.port) as client:
        for payload in payloads:
            await client.publish(topic, payload, qos=qos, retain=retain)


def test_what_was_sent_while_nobody_listened_arrives_when_it_comes_back(tmp_path: Path) -> None:
    async def check() -> None:
        with Mosquitto(tmp_path) as broker:
            listener = Listener(broker)
            async with listener.running():
                await publish(broker, "fleet/1", b"1")
                await listener.until(lambda: listener.payloads == [b"1"])
            await publish(broker, "fleet/1", b"2", b"3")
            async with listener.running():
                await listener.until(lambda: listener.payloads == [b"1", b"2", b"3"])

    asyncio.run(check())


def test_a_message_that_is_delivered_again_is_known(tmp_path: Path) -> None:
    async def check() -> None:
        with Mosquitto(tmp_path) as broker:
            listener = Listener(broker)
            listener.hold = True
            async with listener.running():
                await publish(broker, "fleet/1", b"same", b"same")
                await listener.until(lambda: len(listener.payloads) == 2)
                broker.stop()
                broker.start()
                await listener.until(lambda: listener.session.duplicates == 2)
                for delivery in listener.deliveries:
                    delivery.settle()
                await publish(broker, "fleet/1", b"later")
                await listener.until(lambda: len(listener.payloads) == 3)
                assert listener.payloads == [b"same", b"same", b"later"]
                listener.deliveries[2].settle()
            listener.hold = False
            async with listener.running():  # all were acknowledged: nothing is left to come again
                await publish(broker, "fleet/1", b"last")
                await listener.until(lambda: listener.payloads[-1] == b"last")
                assert len(listener.payloads) == 4

    asyncio.run(check())


def test_what_was_not_dealt_with_comes_again_to_the_next_process_and_says_so(tmp_path: Path) -> None:
    async def check() -> None:
        with Mosquitto(tmp_path) as broker:
            first, second = Listener(broker), Listener(broker)
            first.hold = True
            async with first.running():
                await publish(broker, "fleet/1", b"x")
                await first.until(lambda: first.payloads == [b"x"])
            async with second.running():
                await second.until(lambda: second.payloads == [b"x"])
            assert [delivery.redelivered for delivery in (*first.deliveries, *second.deliveries)] == [False, True]

    asyncio.run(check())


def test_a_retained_message_says_that_it_is_one(tmp_path: Path) -> None:
    async def check() -> None:
        with Mosquitto(tmp_path) as broker:
            await publish(broker, "fleet/1", b"old", retain=True)
            listener = Listener(broker)
            async with listener.running():
                await publish(broker, "fleet/1", b"new", retain=True)
                await listener.until(lambda: listener.payloads == [b"old", b"new"])
            assert [delivery.retained for delivery in listener.deliveries] == [True, False]

    asyncio.run(check())


def test_the_will_of_a_client_that_is_killed_arrives(tmp_path: Path) -> None:
    async def check() -> None:
        with Mosquitto(tmp_path) as broker:
            listener = Listener(broker)
            async with listener.running():
                robot = subprocess.Popen(
                    [sys.executable, "-c", DOOMED_ROBOT, str(broker.port)], stdout=subprocess.PIPE, text=True
                )
                assert robot.stdout is not None
                with robot.stdout:
                    assert await asyncio.to_thread(robot.stdout.readline) == "connected\n"
                    os.kill(robot.pid, 9)
                    robot.wait()
                await listener.until(lambda: listener.payloads == [b"BROKEN"])

    asyncio.run(check())


def test_without_room_nothing_is_taken_and_nothing_is_lost(tmp_path: Path) -> None:
    async def check() -> None:
        with Mosquitto(tmp_path) as broker:
            listener = Listener(broker)
            async with listener.running():
                listener.room = False
                await publish(broker, "fleet/1", *(b"%d" % number for number in range(100)))
                ticks = listener.ticks
                await listener.until(lambda: listener.ticks >= ticks + 3)
                assert listener.payloads == []
                listener.room = True
                await listener.until(lambda: len(listener.payloads) == 100)
            assert listener.payloads == [b"%d" % number for number in range(100)]

    asyncio.run(check())


def test_a_full_queue_drops_what_was_promised_to_nobody_and_has_the_rest_sent_again(tmp_path: Path) -> None:
    async def check() -> None:
        with Mosquitto(tmp_path, "allow_anonymous true", "max_inflight_messages 0") as broker:
            listener = Listener(broker, queue=5)
            async with listener.running():
                listener.room = False
                await publish(broker, "fleet/1", *(b"q0" for _ in range(20)), qos=0)
                await listener.until(lambda: listener.session.dropped > 10)
                await publish(broker, "fleet/1", *(b"%d" % number for number in range(20)))
                listener.room = True
                await listener.until(lambda: len(set(listener.payloads) - {b"q0"}) == 20)
            assert len([payload for payload in listener.payloads if payload != b"q0"]) == 20

    asyncio.run(check())


def test_it_waits_for_a_broker_that_is_not_there_yet(tmp_path: Path) -> None:
    async def check() -> None:
        broker = Mosquitto(tmp_path)
        listener = Listener(broker)
        task = asyncio.create_task(listener.run())
        await listener.until(lambda: listener.ticks > 2)
        with broker:
            await listener.until(lambda: listener.session.connected)
            listener.stop.set()
            await task

    asyncio.run(check())


def test_a_wrong_password_is_told_at_once_and_stays_secret(tmp_path: Path) -> None:
    passwords, secret = tmp_path / "passwords", tmp_path / "secret"
    passwords.write_text("fleet:" + "x" * 8 + "\n")
    subprocess.run(["mosquitto_passwd", "-U", str(passwords)], check=True)
    secret.write_text("open sesame\n")

    async def check() -> None:
        with Mosquitto(tmp_path, "allow_anonymous false", f"password_file {passwords}") as broker:
            wrong = Listener(broker, username="fleet", password_file=str(secret))
            with pytest.raises(MqttRefusedError, match="refuses 'springback-test'") as caught:
                await wrong.run()
            assert "sesame" not in str(caught.value)
            secret.write_text("x" * 8 + "\n")
            right = Listener(broker, username="fleet", password_file=str(secret))
            async with right.running():
                pass

    asyncio.run(check())


def test_a_subscription_that_is_not_allowed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(client: aiomqtt.Client, topic: str, qos: int) -> tuple[int, ...]:
        return (128,)

    async def check() -> None:
        with Mosquitto(tmp_path) as broker:
            with pytest.raises(MqttRefusedError, match="subscription to 'fleet/#'"):
                await Listener(broker, "fleet/#").run()

    monkeypatch.setattr(aiomqtt.Client, "subscribe", refused)
    asyncio.run(check())


def test_a_connection_that_is_lost_before_the_first_subscription_is_no_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribe = aiomqtt.Client.subscribe
    lost: list[str] = []

    async def lost_once(client: aiomqtt.Client, topic: str, qos: int) -> Any:
        if not lost:
            lost.append(topic)
            raise aiomqtt.MqttCodeError(4, "Could not subscribe to topic")  # paho's "not connected"
        return await subscribe(client, topic, qos=qos)

    async def check() -> None:
        with Mosquitto(tmp_path) as broker:
            async with Listener(broker).running():
                assert lost

    monkeypatch.setattr(aiomqtt.Client, "subscribe", lost_once)
    asyncio.run(check())


@pytest.mark.parametrize(
    ("host", "kind", "told"),
    [("127.0.0.1", "address", "Connection refused"), ("no-such-host.invalid", "address", "name is not known")],
)
def test_where_no_broker_is_is_told_as_that(
    host: str, kind: str, told: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def check() -> None:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))  # and nobody listens
            listener = Listener(Mosquitto(tmp_path), host=host, port=closed.getsockname()[1])
            task = asyncio.create_task(listener.run())
            await listener.until(lambda: "broker_fault" in caplog.text)
            listener.stop.set()
            await task

    asyncio.run(check())
    assert f"broker_fault kind={kind}" in caplog.text
    assert told in caplog.text


def test_files_that_are_no_certificates_are_told(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    encrypted = ("genpkey", "-algorithm", "RSA", "-aes256", "-pass", "pass:secret", "-out", str(key))
    subprocess.run(["openssl", *encrypted], check=True, capture_output=True)
    certificate = tmp_path / "certificate.pem"
    request = ("req", "-x509", "-key", str(key), "-passin", "pass:secret", "-days", "1", "-subj", "/CN=fleet")
    subprocess.run(["openssl", *request, "-out", str(certificate)], check=True, capture_output=True)
    for files in ({"ca_file": str(tmp_path / "absent.pem")}, {"cert_file": str(certificate), "key_file": str(key)}):
        with pytest.raises(BridgeOptionError, match="the key without a password"):
            asyncio.run(Listener(Mosquitto(tmp_path), **files).run())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # paho leaves a refused socket unclosed
def test_tls_trusts_whom_it_is_told_to(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
    request = ("req", "-x509", *curve, "-nodes", "-days", "1", "-subj", "/CN=fleet")
    names = ("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate))
    subprocess.run(["openssl", *request, *names], check=True, capture_output=True)

    async def check() -> None:
        tls = ("allow_anonymous true", f"certfile {certificate}", f"keyfile {key}")
        with Mosquitto(tmp_path, *tls) as broker:
            trusting = Listener(broker, ca_file=str(certificate))
            async with trusting.running():
                pass
            wary = Listener(broker, tls=True)  # the system's authorities do not know it
            task = asyncio.create_task(wary.run())
            await wary.until(lambda: wary.ticks > 3)
            wary.stop.set()
            await task
            assert wary.session.connections == 0
            assert "broker_fault kind=tls" in caplog.text
            assert "is not accepted" in caplog.text
            caplog.clear()
            plain = Listener(broker)
            task = asyncio.create_task(plain.run())
            await plain.until(lambda: "broker_fault" in caplog.text)
            plain.stop.set()
            await task
            assert "kind=unanswered" in caplog.text

    asyncio.run(check())
    gc.collect()

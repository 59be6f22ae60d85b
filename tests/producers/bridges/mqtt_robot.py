"""A robot on MQTT: a client that publishes, and when the cycles of its episodes are."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from tests.producers.bridges.mosquitto_server import Mosquitto
from tests.producers.fleet_episodes import CYCLE_S

ACKNOWLEDGED_S = 60.0
START_S = 1_790_000_000.0


def time_of(episode: int, cycle: int) -> float:
    """When a cycle is, s: an episode begins every minute."""
    return START_S + 60.0 * episode + CYCLE_S * cycle


@contextmanager
def robot(broker: Mosquitto) -> Iterator[Callable[..., None]]:
    """A client; what it gives publishes, in order, and waits for the broker's acknowledgement unless told not to."""
    client = paho.Client(CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", broker.port)
    client.loop_start()

    def say(topic: str, payload: object, *, retain: bool = False, wait: bool = True) -> None:
        text = payload if isinstance(payload, str | bytes) else json.dumps(payload)
        sent = client.publish(topic, text, qos=1, retain=retain)
        if wait:
            sent.wait_for_publish(ACKNOWLEDGED_S)

    try:
        yield say
    finally:
        client.disconnect()
        client.loop_stop()

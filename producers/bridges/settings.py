"""The settings of bridges: what each can be told, on the command line or in `[source.NAME]` of its mapping."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, Optional, TypeVar

import msgspec

from springback.producers.errors import ProducerError
from springback.producers.mapping.signal_mapping import SignalMapping
from springback.producers.secret_files import read_secret
from springback.producers.setting_words import setting_fault

Settings = TypeVar("Settings", bound=msgspec.Struct)
_MAY_BE_SECRET = re.compile("password")


class BridgeOptionError(ProducerError, ValueError):
    """A bridge has no such setting, or a setting cannot have that value."""


class RosSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How ROS is listened to.

    Attributes:
        version: 1 or 2; by default that of the sourced ROS (`ROS_VERSION`), else the one that is installed.
        use_sim_time: for ROS 2, whether to go by `/clock`. ROS 1 has the parameter `/use_sim_time` for all nodes.
        inbox: the most messages that wait; further ones are dropped and counted.
    """

    version: Optional[Literal[1, 2]] = None
    use_sim_time: bool = False
    inbox: int = 10_000


class MqttSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the MQTT broker is, and who asks.

    Attributes:
        host, port: the broker.
        client_id: must stay the same over restarts and differ from that of any other client, since the broker keeps the
            session under it.
        username: for a broker that asks for one.
        password_file: a file that contains the password alone.
        tls: whether to use TLS; implied by a CA or certificate file.
        ca_file, cert_file, key_file: PEM files: whom to trust (the system's CAs by default), and who this is.
        keepalive_s: how soon a connection that has died silently is noticed, s.
        qos: quality of service of the subscriptions; with 0, messages may be lost.
        queue: the most messages that wait here.
    """

    host: str = "127.0.0.1"
    port: int = 1883
    client_id: str
    username: Optional[str] = None
    password_file: Optional[str] = None
    tls: bool = False
    ca_file: Optional[str] = None
    cert_file: Optional[str] = None
    key_file: Optional[str] = None
    keepalive_s: int = 30
    qos: int = 1
    queue: int = 1000

    @property
    def place(self) -> str:
        """The broker's HOST:PORT, for messages."""
        return f"{self.host}:{self.port}"

    @property
    def password(self) -> str | None:
        """The password in the file; None without one.

        Raises:
            OSError: the file cannot be read.
        """
        if self.password_file is None:
            return None
        return read_secret(self.password_file, "the password for the MQTT broker")


class MqttBridgeSettings(MqttSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same, and which topics are not the mapping's business.

    Attributes:
        frames: the topics whose payloads are step frames, such as `fleet/+/frames`.
        wills: the topics of the last wills of robots that send frames, with a level named `{producer}`.
        will_text: which payload on those topics is a will; by default any but an empty one.
        will_grace_s: how long a robot must be silent after its will before its episodes end, s.
    """

    frames: Optional[str] = None
    wills: Optional[str] = None
    will_text: Optional[str] = None
    will_grace_s: float = 5.0


def bridge_settings(
    kind: type[Settings], name: str, mapping: SignalMapping | None, options: Mapping[str, str], **defaults: Any
) -> Settings:
    """The settings of a bridge: those of the command line, else those of the mapping, else the defaults.

    Args:
        kind: the struct of its settings.
        name: the bridge's name.
        mapping: its `[source.NAME]` is read, if there is one.
        options: KEY=VALUE of the command line, all of them texts.
        **defaults: further defaults.

    Raises:
        BridgeOptionError: a setting is unknown, or has a wrong value.
    """
    given = defaults | (mapping.sources.get(name, {}) if mapping is not None else {}) | dict(options)
    known = kind.__struct_fields__
    unknown = sorted(set(given) - set(known))
    if unknown:
        message = f"the bridge {name} has no setting {', '.join(unknown)}; it has {', '.join(known)}"
        raise BridgeOptionError(message)
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        message = f"a setting of the bridge {name}: {setting_fault(kind, given, secret=_MAY_BE_SECRET) or error}"
        raise BridgeOptionError(message) from error

"""The options that several commands share, with one wording and one meaning each, and what is made of them."""

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from springback.producers.emitter.publishers import FramePublisher
    from springback.sinks.grafana.connection import GrafanaConnection
    from springback.stream_processors.settings import WorkerSettings

DEFAULT_GRAFANA = "http://127.0.0.1:3000"


def check_address(broker: str | None) -> str | None:
    """The address as given, checked.

    Raises:
        typer.BadParameter: it is not HOST:PORT, or several of them with commas between.
    """
    from springback.deploy.broker_process import split_address

    for address in [] if broker is None else broker.split(","):
        try:
            split_address(address)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
    return broker


def check_local_broker(broker: str) -> str:
    """The choice as given, checked.

    Raises:
        typer.BadParameter: it is neither a broker that we start nor an address.
    """
    if broker not in ("embedded", "kafka"):
        try:
            check_address(broker)
        except typer.BadParameter as error:
            message = f"{error.message}; the brokers to start here are embedded and kafka"
            raise typer.BadParameter(message) from error
    return broker


BrokerOption = Annotated[
    str | None,
    typer.Option(
        "--broker",
        "-b",
        envvar="SPRINGBACK_BROKER",
        callback=check_address,
        metavar="HOST:PORT",
        help="Where Kafka listens; several with commas between. 127.0.0.1:9092 if not given.",
    ),
]

LocalBrokerOption = Annotated[
    str,
    typer.Option(
        "--broker",
        "-b",
        callback=check_local_broker,
        metavar="embedded|kafka|HOST:PORT",
        help="The broker to start here, or the address of one that runs.",
    ),
]

PrefixOption = Annotated[
    str | None,
    typer.Option(
        "--prefix",
        envvar="SPRINGBACK_PREFIX",
        metavar="TEXT",
        help="What the names of all topics begin with. Nothing if not given.",
    ),
]

SettingsOption = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Settings as TOML or JSON; SPRINGBACK_* of the environment and the options here stand above it.",
    ),
]

ReadyFileOption = Annotated[
    Path | None,
    typer.Option(
        "--ready-file",
        metavar="FILE",
        dir_okay=False,
        help="A file to write once all is up and running, for whatever waits for it.",
    ),
]

LivePortOption = Annotated[
    int,
    typer.Option(
        "--live-port",
        min=0,
        max=65535,
        help="Where the live page is served on 127.0.0.1; 0 takes a free port.",
    ),
]

MetricsPortOption = Annotated[
    int,
    typer.Option(
        "--metrics-port", min=0, max=65535, help="Where the metrics are served on 127.0.0.1; 0 takes a free port."
    ),
]

TlsCertificateOption = Annotated[
    Path | None,
    typer.Option("--tls-cert", metavar="FILE", dir_okay=False, help="Serve HTTPS with this certificate (PEM)."),
]

TlsKeyOption = Annotated[
    Path | None,
    typer.Option("--tls-key", metavar="FILE", dir_okay=False, help="Its private key, if not in the same file."),
]

SilentAfterOption = Annotated[
    float,
    typer.Option(
        "--silent-after", min=1, metavar="SECONDS", help="Silence inside an episode that is called silent, or stale."
    ),
]

StalledAfterOption = Annotated[
    float,
    typer.Option("--stalled-after", min=1, metavar="SECONDS", help="Time without progress that is called stalled."),
]

GrafanaOption = Annotated[
    str,
    typer.Option(
        "--url",
        envvar="SPRINGBACK_GRAFANA",
        metavar="URL",
        help="Where Grafana is, with the sub-path that it may be served under.",
    ),
]

TokenFileOption = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="A file with the token of a service account; else it is taken from SPRINGBACK_GRAFANA_TOKEN.",
    ),
]

CaFileOption = Annotated[
    Path | None,
    typer.Option(
        "--ca-file",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Certificates to trust for https, in place of the system's.",
    ),
]


def stream_settings(broker: str | None, prefix: str | None, file: Path | None, **others: Any) -> "WorkerSettings":
    """The settings of the stream side: the file's, under the environment's, under those of the command line.

    Raises:
        SettingsError: a setting is not what it must be.
    """
    from springback.stream_processors.settings import load_settings

    overrides: dict[str, Any] = {key: value for key, value in others.items() if value is not None}
    if broker is not None:
        overrides["kafka"] = {"bootstrap": broker}
    if prefix is not None:
        overrides["prefix"] = prefix
    return load_settings(file, overrides=overrides)


SpoolOption = Annotated[
    Path | None,
    typer.Option(
        "--spool",
        metavar="FOLDER",
        file_okay=False,
        help="Keep on disk, in this folder, what Kafka does not take soon; what is left there goes first.",
    ),
]


def step_publisher(settings: "WorkerSettings", spool: Path | None = None) -> "FramePublisher":
    """What sends frames to the topic of steps; by way of a spool where there is a folder for it.

    Raises:
        SpoolInUseError: another process has the spool.
    """
    from springback.producers.emitter.kafka_publisher import KafkaPublisher
    from springback.producers.emitter.spooled_publisher import SpooledPublisher

    silence_kafka_clients()
    kafka = KafkaPublisher(settings.kafka.bootstrap, f"{settings.prefix}steps", **settings.kafka.producer_options())
    return kafka if spool is None else SpooledPublisher(kafka, spool)


def silence_kafka_clients() -> None:
    """Keeps Kafka clients from logging what their error will say: a command that fails says it once."""
    for name in ("aiokafka", "kafka"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def check_tls_key(certificate: Path | None, key: Path | None) -> None:
    """Refuses a key without its certificate.

    Raises:
        typer.BadParameter: there is no certificate.
    """
    if key is not None and certificate is None:
        message = "--tls-key goes with --tls-cert, which is missing"
        raise typer.BadParameter(message)


def grafana_connection(url: str, token_file: Path | None, ca_file: Path | None) -> "GrafanaConnection":
    """A connection to the Grafana that the options name.

    Raises:
        typer.BadParameter: no token was given, or what was given cannot be one.
        GrafanaAddressError: the address is not a URL.
    """
    from springback.producers.secret_files import read_secret
    from springback.sinks.grafana.connection import TOKEN_VARIABLE, GrafanaConnection

    given, where = os.environ.get(TOKEN_VARIABLE, ""), TOKEN_VARIABLE
    if token_file is not None:
        given, where = read_secret(token_file, "Grafana's token", errors="replace"), str(token_file)
    token = given.strip()
    if not token:
        message = (
            f"{where} holds no token. Make one in Grafana under Administration > Users and access > Service accounts, "
            f"and put it into {TOKEN_VARIABLE} or a file for --token-file"
        )
        raise typer.BadParameter(message)
    if not token.isascii() or not token.isprintable() or " " in token:
        message = f"what {where} holds cannot be a token: expected one word of ASCII letters, digits and signs"
        raise typer.BadParameter(message)
    return GrafanaConnection(url, token, ca_file=ca_file)


AlertmanagerOption = Annotated[
    str | None,
    typer.Option(
        "--alertmanager",
        metavar="URL",
        envvar="SPRINGBACK_ALERTMANAGER",
        show_envvar=True,
        help="Show the alerts and silences of this Alertmanager too: http://HOST:9093. One that wants a login is best "
        "given by the variable, as https://USER:PASSWORD@HOST.",
    ),
]

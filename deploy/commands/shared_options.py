"""The options that several commands share, with one wording and one meaning each."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from springback.producers.mapping.signal_mapping import SignalMapping
    from springback.stream_processors.resilience.stability.value_function import ValueModel
    from springback.stream_processors.settings import WorkerSettings


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

BaselineOption = Annotated[
    Path | None,
    typer.Option(
        "--baseline",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Score by this exported baseline alone and learn nothing (frozen), so that a run can be reproduced.",
    ),
]

ValueModelOption = Annotated[
    str | None,
    typer.Option(
        "--value-model",
        metavar="FILE|NAME",
        help="Value states by this network (springback fit-value) or installed model (`springback sources` lists "
        "them) instead of by the mean return at their anchor. A baseline that is given must have been learned with it.",
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

MappingOption = Annotated[
    str | None,
    typer.Option(
        "--mapping",
        "-m",
        metavar="FILE|NAME",
        help="Which field is which signal (TOML): a file, or the name of one that comes with springback "
        "(`springback sources` lists them).",
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


def check_recordings(files: list[Path]) -> list[Path]:
    """The files and folders as given, checked.

    Raises:
        typer.BadParameter: one of them is not there.
    """
    for file in files:
        if str(file) != "-" and not file.exists():
            message = f"there is no file {str(file)!r}"
            raise typer.BadParameter(message)
    return files


RecordingsArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE",
        callback=check_recordings,
        show_default=False,
        help="Recordings: step frames as JSON Lines, plain or gzip; with --mapping also MCAP, bags of ROS 1 and 2, "
        "ULog, Parquet, CSV, JSON Lines and folders of LeRobot, in any mixture. Several are one input; - is standard "
        "input.",
    ),
]


def read_value_option(name: str | None) -> "ValueModel | None":
    """The value model that the option names; None for the mean return by anchor.

    Raises:
        SettingsError: there is no such model, or it cannot be used.
    """
    from springback.stream_processors.value_models import find_value_model

    return find_value_model(name or "", "--value-model")


def read_mapping_option(name_or_file: str | None, files: Sequence[Path] = ()) -> "SignalMapping | None":
    """The mapping that the option names; None where it names none.

    Args:
        name_or_file: what was given.
        files: the recordings that it is for.

    Raises:
        MappingError: there is none, it is not as it must be, or a recording needs one where none is given.
    """
    from springback.producers.mapping.signal_mapping import load_mapping
    from springback.producers.recordings.any_format import check_without_mapping

    if name_or_file is not None:
        return load_mapping(name_or_file)
    for file in files:
        check_without_mapping(file)
    return None


def silence_kafka_clients() -> None:
    """Keep clients from logging what their error will say: a command that fails says it once."""
    for name in ("aiokafka", "kafka"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


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

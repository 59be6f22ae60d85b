"""The registry of sources: a new one is one file, one line here, and one extra in `pyproject.toml`.

- A **wrapper** goes around an environment in the agent's own code, which calls it.
- A **bridge** listens to something that runs, until it is told to stop; `springback bridge NAME` runs it. It is a
  callable of the type `Bridge`.
- A **recording** format is read by `springback evaluate` and `springback replay`; its callable is a `MessageReader`.
"""

import importlib
import importlib.util
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

from springback.producers.emitter.publishers import FramePublisher
from springback.producers.errors import MissingExtraError, ProducerError
from springback.producers.mapping.signal_mapping import SignalMapping

SourceKind = Literal["wrapper", "bridge", "recording"]

Bridge = Callable[[SignalMapping | None, FramePublisher, Mapping[str, str], threading.Event], Any]
"""Runs until the event is set: (mapping, publisher, options, stop).

The mapping is None where the user gave none. The publisher stays open, and takes frames as they are (JSON over MQTT) or
those of `MappedEmitters(publisher)`. The options are those of `--option KEY=VALUE` and stand above the mapping's
`[source.NAME]`. What it returns is shown (`str`) at the end.
"""


class UnknownSourceError(ProducerError, ValueError):
    """There is no source of that name."""


class Source(NamedTuple):
    """One source.

    Attributes:
        name: what it is called on the command line.
        kind: how it is used.
        place: MODULE:NAME of its class or function; the module is one of this folder.
        extra: the extra of springback that brings what it needs; None where it needs nothing, or pip cannot bring it.
        needs: the packages that must be importable for it, with blanks between.
        about: what it is, in a line.
        install: how to install it where an extra alone does not.
        magic: what files of a recording format begin with, where they all do.
        by_name: they are read by their name, so that a file that is packed, or a pipe, is copied first.
    """

    name: str
    kind: SourceKind
    place: str
    extra: str | None
    needs: str
    about: str
    install: str = ""
    magic: bytes = b""
    by_name: bool = False

    @property
    def missing(self) -> tuple[str, ...]:
        """Those of its packages that are not installed."""
        return tuple(package for package in self.needs.split() if importlib.util.find_spec(package) is None)

    @property
    def how_to_install(self) -> str:
        """The command that brings what it needs; empty where nothing is needed."""
        return self.install or (f'pip install "springback[{self.extra}]"' if self.extra else "")

    def load(self) -> Any:
        """Its class or function.

        Raises:
            MissingExtraError: a package that it needs is not installed.
        """
        module, _, name = self.place.partition(":")
        try:
            return getattr(importlib.import_module(f"springback.producers.{module}"), name)
        except ModuleNotFoundError as error:
            if self.extra is None or (error.name or "").partition(".")[0] not in self.needs.split():
                raise
            raise MissingExtraError(extra=self.extra, cause=error) from error


def _gymnasium(name: str, place: str, about: str) -> Source:
    return Source(name, "wrapper", place, "gymnasium", "gymnasium", about)


def _recording(name: str, module: str, needs: str, about: str, *, magic: bytes = b"", by_name: bool = False) -> Source:
    place, extra = f"recordings.{module}:read_messages", "recordings" if needs else None
    return Source(name, "recording", place, extra, needs, about, magic=magic, by_name=by_name)


SOURCES: Final[tuple[Source, ...]] = (
    _gymnasium("gymnasium", "environments.wrapper:Wrapper", "one Gymnasium environment"),
    _gymnasium("gymnasium-vector", "environments.vector_wrapper:VectorWrapper", "a vector of them, a frame a step"),
    Source(
        "habitat",
        "wrapper",
        "habitat.watch:watch",
        None,
        "habitat habitat_sim",
        "habitat-lab's environments and VectorEnv, and a bare habitat-sim",
        install="conda install habitat-sim withbullet headless -c conda-forge -c aihabitat; pip install habitat-lab",
    ),
    Source(
        "mqtt",
        "bridge",
        "bridges.mqtt_bridge:run_mqtt_bridge",
        "mqtt",
        "aiomqtt",
        "what robots say over MQTT: frames or a mapping",
    ),
    Source("ros", "bridge", "bridges.ros_bridge:run_ros_bridge", None, "", "topics of ROS 1 and ROS 2, by a mapping"),
    _recording("csv", "csv_rows", "", "rows of a CSV file, plain or gzip"),
    _recording("jsonl", "json_records", "", "any records as JSON Lines, plain or gzip"),
    _recording("lerobot", "lerobot_dataset", "pyarrow", "the folder of a LeRobot dataset (v2, v3)"),
    _recording(
        "mcap",
        "mcap_messages",
        "lz4 mcap rosbags zstandard",
        "MCAP files with ROS 2 and JSON messages",
        magic=b"\x89MCAP0\r\n",
    ),
    _recording("parquet", "parquet_rows", "pyarrow", "rows of a Parquet file", magic=b"PAR1", by_name=True),
    _recording("rosbag1", "rosbag1_messages", "lz4 rosbags", "bags of ROS 1", magic=b"#ROSBAG V"),
    _recording(
        "rosbag2",
        "rosbag2_messages",
        "rosbags",
        "bags of ROS 2 (SQLite), and their folders",
        magic=b"SQLite format 3\0",
        by_name=True,
    ),
    Source(
        "ulog",
        "recording",
        "recordings.ulog_messages:read_messages",
        "ulog",
        "pyulog",
        "logs of PX4 drones",
        magic=b"ULog\x01\x12\x35",
        by_name=True,
    ),
)
"""Every source, by kind and name."""


def find_source(name: str, kind: SourceKind) -> Source:
    """The source of this name.

    Raises:
        UnknownSourceError: there is none of this kind.
    """
    known = {source.name: source for source in SOURCES if source.kind == kind}
    if name in known:
        return known[name]
    message = f"there is no {kind} {name!r}; there are {', '.join(known) or 'none'}"
    raise UnknownSourceError(message)

"""The registry of sources: ours, and those of third parties.

- A **wrapper** goes around an environment in the agent's own code, which calls it.
- A **bridge** listens to something that runs, until it has to stop; `springback bridge NAME` runs it. It is a
  callable of the type `Bridge`.
- A **recording** format is read by `springback evaluate` and `springback replay`; its callable is a `MessageReader`.

One of ours is one module, one line here, and one extra in `pyproject.toml`. A third party's is a `Source` that its
distribution registers as an entry point of the group `springback.sources`:

    [project.entry-points."springback.sources"]
    sonar = "acme_sonar.springback:SOURCE"

Its module should import little: it is loaded to see which sources there are, and only `place` when one is used.
"""

from __future__ import annotations

import importlib
import importlib.util
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any, Final, Literal, NamedTuple, Optional, get_args

from springback.producers.emitter.publishers import FramePublisher
from springback.producers.errors import ProducerError
from springback.producers.habitat.world import HABITAT_LAB_BY_PIP, HABITAT_SIM_BY_CONDA
from springback.producers.install_hints import OURS, MissingExtraError, install_command
from springback.producers.mapping.signal_mapping import SignalMapping
from springback.producers.plugins import Plugin, PluginFault, load_plugins

SOURCE_GROUP: Final = "springback.sources"
"""The group of the entry points of third parties."""

MAGIC_BYTES: Final = 16
"""So much of a file's beginning is compared with the `magic` of a format."""

_RESERVED: Final = "frames"  # what recordings of step frames are called, which need no reader

SourceKind = Literal["wrapper", "bridge", "recording"]

Bridge = Callable[[Optional[SignalMapping], FramePublisher, Mapping[str, str], threading.Event], Any]
"""Runs until the event is set: (mapping, publisher, options, stop).

The mapping is None where the user gave none. The publisher stays open, and takes frames as they are (JSON over MQTT) or
those that `springback.MappedSteps(mapping, publisher)` makes of messages, `springback.MappedEmitters(publisher)` of
reports. The options are those of `--option KEY=VALUE` and override the mapping's `[source.NAME]`. What it returns is
shown (`str`) at the end.
"""


class UnknownSourceError(ProducerError, ValueError):
    """There is no source of that name."""


class BrokenSourceError(ProducerError):
    """The class or function of a third party's source cannot be imported."""


class Source(NamedTuple):
    """One source.

    Attributes:
        name: what it is called on the command line; no other source is called so.
        kind: how it is used.
        place: MODULE:NAME of its class or function.
        extra: the extra of its distribution that brings what it needs; None where it needs nothing, or pip cannot
            bring it.
        needs: the top-level packages that must be importable for it, with blanks between.
        about: what it is, in a line.
        install: how to install it where an extra alone does not.
        magic: what files of a recording format begin with, where they all do.
        by_name: they are read by their name, so that a file that is packed, or a pipe, is copied first.
        distribution: what brings it, as `pip` calls it; the registry fills it in.
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
    distribution: str = OURS

    @property
    def missing(self) -> tuple[str, ...]:
        """Those of its packages that are not installed."""
        return tuple(package for package in self.needs.split() if importlib.util.find_spec(package) is None)

    @property
    def how_to_install(self) -> str:
        """The command that brings what it needs; empty where nothing is needed."""
        return self.install or (install_command([self.extra], self.distribution) if self.extra else "")

    def load(self) -> Any:
        """Its class or function.

        Raises:
            MissingExtraError: a package that it needs is not installed.
            BrokenSourceError: it is a third party's, and cannot be imported.
        """
        module, _, name = self.place.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            if self.extra is not None and (error.name or "").partition(".")[0] in self.needs.split():
                raise MissingExtraError(extra=self.extra, cause=error, distribution=self.distribution) from error
            self._blame(error)
            raise
        except Exception as error:
            self._blame(error)
            raise

    def _blame(self, error: Exception) -> None:
        if self.distribution == OURS or isinstance(error, ProducerError):
            return
        how = f"; it may need: {self.how_to_install}" if self.missing and self.how_to_install else ""
        message = (
            f"the {self.kind} {self.name!r} of {self.distribution} cannot be imported from {self.place} "
            f"({type(error).__name__}: {error}); upgrade {self.distribution}, or tell those who make it{how}"
        )
        raise BrokenSourceError(message) from error


def _gymnasium(name: str, module: str, about: str) -> Source:
    return Source(name, "wrapper", f"springback.producers.environments.{module}", "gymnasium", "gymnasium", about)


def _recording(
    name: str, module: str, needs: str, about: str, *, magic: bytes = b"", by_name: bool = False, read: str = "messages"
) -> Source:
    place = f"springback.producers.recordings.{module}:read_{read}"
    return Source(name, "recording", place, "recordings" if needs else None, needs, about, "", magic, by_name)


SOURCES: Final[tuple[Source, ...]] = (
    _gymnasium("gymnasium", "wrapper:Wrapper", "one Gymnasium environment"),
    _gymnasium("gymnasium-vector", "vector_wrapper:VectorWrapper", "a vector of them, a frame a step"),
    Source(
        "habitat",
        "wrapper",
        "springback.producers.habitat.watch:watch",
        None,
        "habitat habitat_sim",
        "habitat-lab's environments and VectorEnv, and a bare habitat-sim",
        install=f"{HABITAT_SIM_BY_CONDA}; {HABITAT_LAB_BY_PIP}",
    ),
    Source(
        "mqtt",
        "bridge",
        "springback.producers.bridges.mqtt_bridge:run_mqtt_bridge",
        "mqtt",
        "aiomqtt",
        "what robots say over MQTT: frames or a mapping",
    ),
    Source(
        "ros",
        "bridge",
        "springback.producers.bridges.ros_bridge:run_ros_bridge",
        None,
        "",
        "topics of ROS 1 and ROS 2, by a mapping",
    ),
    _recording("csv", "rows", "", "rows of a CSV file, plain or gzip", read="csv"),
    _recording("jsonl", "rows", "", "any records as JSON Lines, plain or gzip", read="json_lines"),
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
        "springback.producers.recordings.ulog_messages:read_messages",
        "ulog",
        "pyulog",
        "logs of PX4 drones",
        magic=b"ULog\x01\x12\x35",
        by_name=True,
    ),
)
"""Our own, by kind and name."""


class Registry(NamedTuple):
    """The sources that can be used.

    Attributes:
        sources: ours, then those of third parties by distribution and name.
        faults: entry points of third parties that are left out.
    """

    sources: tuple[Source, ...]
    faults: tuple[PluginFault, ...]


def register_sources(entries: Iterable[EntryPoint] | None = None) -> Registry:
    """Puts those of third parties beside ours; what cannot be used, or takes a name that is taken, is left out.

    Args:
        entries: the entry points; those of the installed distributions by default.
    """
    taken = {source.name: source.distribution for source in SOURCES} | {_RESERVED: OURS}
    found: list[Source] = []

    def check(plugin: Plugin) -> str | None:
        wrong = _wrong_with(plugin.value)
        if wrong is None and plugin.value.name in taken:
            wrong = f"a source of {taken[plugin.value.name]} is called {plugin.value.name!r} already"
        if wrong is not None:
            return f"{wrong}; mend the `Source` in {plugin.distribution}, or uninstall it"
        taken[plugin.value.name] = plugin.distribution
        found.append(plugin.value._replace(distribution=plugin.distribution))
        return None

    _, faults = load_plugins(SOURCE_GROUP, check, entries)
    return Registry((*SOURCES, *found), tuple(faults))


@cache
def registry() -> Registry:
    """The sources of this installation; entry points are looked for once."""
    return register_sources()


def sources_of(kind: SourceKind) -> dict[str, Source]:
    """Those of one kind, by name."""
    return {source.name: source for source in registry().sources if source.kind == kind}


def find_source(name: str, kind: SourceKind) -> Source:
    """The source of this name.

    Raises:
        UnknownSourceError: there is none of this kind.
    """
    known = sources_of(kind)
    if name in known:
        return known[name]
    message = f"there is no {kind} {name!r}; there are {', '.join(known) or 'none'}"
    for fault in registry().faults:
        message += f"; {fault}" if fault.name == name else ""
    raise UnknownSourceError(message)


def _wrong_with(value: object) -> str | None:
    if not isinstance(value, Source):
        return f"it is a {type(value).__name__}, not a `springback.Source`"
    texts = (value.name, value.place, value.needs, value.about, value.install, value.extra or "")
    if not all(isinstance(text, str) for text in texts) or not isinstance(value.magic, bytes):
        return f"a field has a wrong type in {value!r}"
    if not value.name or value.kind not in get_args(SourceKind):
        return (
            f"it needs a name, and a kind out of {', '.join(get_args(SourceKind))}; got {value.name!r}, {value.kind!r}"
        )
    module, colon, name = value.place.partition(":")
    if not colon or not all(part.isidentifier() for part in (*module.split("."), name)):
        return f"its place must be MODULE:NAME, got {value.place!r}"
    if not all(package.isidentifier() for package in value.needs.split()):
        return f"needs must be names of top-level packages with blanks between, got {value.needs!r}"
    if value.kind == "recording" and not 0 < len(value.magic) <= MAGIC_BYTES:
        return f"a recording format is recognised by its magic, of 1 to {MAGIC_BYTES} bytes; got {value.magic!r}"
    return None

"""The sinks of third parties, which `springback export --sink NAME` runs beside the Prometheus one.

A distribution registers one under an entry point of the group `springback.sinks`, whose name then chooses it:

    [project.entry-points."springback.sinks"]
    parquet = "acme_sinks.springback:ParquetSink"

It leads to a class or function that gives a `Sink` when it is called with the options of `--sink-option` by name.
"""

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint
from typing import Any, Final

from springback.producers.plugins import NamedPlugins, named_plugins
from springback.sinks.errors import SinkError, SinkOptionError, SinkUnavailableError
from springback.sinks.sink import DeadLetter, Sink
from springback.stream_processors.resilience.readings import Reading

SINK_GROUP: Final = "springback.sinks"
"""The group of the entry points of third parties."""

PROMETHEUS: Final = "prometheus"
"""The sink that always runs: ours."""

_METHODS: Final = ("write", "write_dead_letter", "flush", "close")


def named_sinks(entries: Iterable[EntryPoint] | None = None) -> NamedPlugins:
    """Our own sink, and those of third parties.

    Args:
        entries: the entry points; those of the installed distributions by default.
    """

    def wrong_with(value: object) -> str | None:
        got = type(value).__name__
        return None if callable(value) else f"it is a {got}, expected a class or function that gives a `Sink`"

    return named_plugins(SINK_GROUP, "sink", (PROMETHEUS,), wrong_with, entries)


def make_sinks(
    names: Iterable[str], options: Iterable[str] = (), entries: Iterable[EntryPoint] | None = None
) -> list[Sink]:
    """The sinks of third parties that were asked for.

    Args:
        names: what their entry points are called; each is made once.
        options: what they are called with, each as NAME.KEY=VALUE.
        entries: the entry points; those of the installed distributions by default.

    Raises:
        SinkOptionError: there is no such sink, or it cannot be made of these options.
    """
    known = named_sinks(entries)
    wanted: dict[str, dict[str, str]] = {name: {} for name in names if name != PROMETHEUS}
    for option in options:
        place, equals, value = option.partition("=")
        name, dot, key = place.partition(".")
        if not equals or not dot or not key or name not in wanted:
            message = f"--sink-option {option!r}: expected NAME.KEY=VALUE, with NAME one of {_listed(wanted)} (--sink)"
            raise SinkOptionError(message)
        wanted[name][key] = value
    return [_made(known, name, given) for name, given in wanted.items()]


def _made(known: NamedPlugins, name: str, options: Mapping[str, str]) -> Sink:
    if fault := next((fault for fault in known.faults if fault.name == name and name not in known.plugins), None):
        message = f"--sink {name}: {fault}"
        raise SinkOptionError(message)
    if name not in known.plugins:
        message = f"--sink {name}: there is no such sink; there are {_listed(known.distributions)}"
        raise SinkOptionError(message)
    plugin = known.plugins[name]
    told = f"--sink {name} of {plugin.distribution}"
    try:
        sink = plugin.value(**options)
    except Exception as error:  # another's class may raise anything
        message = (
            f"{told} cannot be made with the options {dict(options)} ({type(error).__name__}: {error}); see what "
            f"{plugin.distribution} says of its options (--sink-option {name}.KEY=VALUE), or tell those who make it"
        )
        raise SinkOptionError(message) from error
    missing = [method for method in _METHODS if not callable(getattr(sink, method, None))]
    if not isinstance(getattr(sink, "name", None), str):
        missing.insert(0, "name")
    if missing:
        message = (
            f"{told} gives a {type(sink).__name__} without {_listed(missing)}, expected a `Sink`; upgrade "
            f"{plugin.distribution}, or tell those who make it"
        )
        raise SinkOptionError(message)
    return ThirdPartySink(name, plugin.distribution, sink)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


class ThirdPartySink:
    """A sink of a third party; what it raises says whose it is.

    Args:
        name: what it was asked for by.
        distribution: what brings it, as `pip` calls it.
        sink: itself.
    """

    def __init__(self, name: str, distribution: str, sink: Any) -> None:
        self._name = name
        self._distribution = distribution
        self._sink = sink

    @property
    def name(self) -> str:
        """What the sink is called."""
        return self._name

    def write(self, reading: Reading) -> None:
        """Passes one reading on."""
        self._run(lambda: self._sink.write(reading))

    def write_dead_letter(self, letter: DeadLetter) -> None:
        """Passes on that something could not be used."""
        self._run(lambda: self._sink.write_dead_letter(letter))

    def flush(self) -> None:
        """Has the sink bring what was written to where it belongs."""
        self._run(self._sink.flush)

    def close(self) -> None:
        """Has the sink let go of files and connections."""
        self._run(self._sink.close)

    def _run(self, call: Callable[[], None]) -> None:
        try:
            call()
        except SinkUnavailableError:
            raise
        except Exception as error:
            message = (
                f"The sink {self._name!r} of {self._distribution} failed ({type(error).__name__}: {error}). Export "
                f"without it, upgrade {self._distribution}, or tell those who make it (a sink that raises "
                "SinkUnavailableError is tried again)."
            )
            raise SinkError(message) from error

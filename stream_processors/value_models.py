"""The value model that a setting or an option names: the mean return by anchor, a fitted network, or a third party's.

A third party registers its own under an entry point of the group `springback.value_models`, whose name then chooses it:

    [project.entry-points."springback.value_models"]
    critic = "acme_critic.springback:Critic"

It leads to a `ValueModel`, or to a class or function that gives one when it is called without arguments.
"""

from collections.abc import Iterable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Final

from springback.producers.plugins import NamedPlugins, Plugin, named_plugins
from springback.stream_processors.errors import SettingsError
from springback.stream_processors.resilience.stability.network_value import (
    NetworkFormatError,
    NetworkValues,
    load_network,
)
from springback.stream_processors.resilience.stability.value_function import ValueModel

VALUE_MODEL_GROUP: Final = "springback.value_models"
"""The group of the entry points of third parties."""

ANCHOR: Final = "anchor"
"""The model that is used where none is named: the mean discounted return at each anchor, part of the baseline."""


def named_value_models(entries: Iterable[EntryPoint] | None = None) -> NamedPlugins:
    """Our own value model, and those of third parties.

    Args:
        entries: the entry points; those of the installed distributions by default.
    """

    def wrong_with(value: object) -> str | None:
        if _is_model(value) or callable(value):
            return None
        return f"it is a {type(value).__name__}, neither a `ValueModel` nor what gives one when it is called"

    return named_plugins(VALUE_MODEL_GROUP, "value model", (ANCHOR,), wrong_with, entries)


def find_value_model(name: str, named_by: str = "value_model") -> ValueModel | None:
    """The value model of a name; None for the mean return by anchor, which the baseline brings.

    Args:
        name: `anchor` or nothing; a third party's model; else a file of `springback fit-value` (`./NAME` if it is
            called like a model).
        named_by: the setting or option that names it.

    Raises:
        SettingsError: there is neither a model nor a file of that name, or it cannot be used.
    """
    if name in ("", ANCHOR):
        return None
    known = named_value_models()
    if name in known.plugins:
        return _made(known.plugins[name], named_by)
    if fault := next((fault for fault in known.faults if fault.name == name), None):
        message = f"{named_by}: {fault}"
        raise SettingsError(message)
    return _read_network(Path(name), named_by, known)


def _made(plugin: Plugin, named_by: str) -> ValueModel:
    told = f"{named_by}: the value model {plugin.name!r} of {plugin.distribution}"
    mend = f"upgrade {plugin.distribution}, or tell those who make it"
    try:
        model: Any = plugin.value if _is_model(plugin.value) else plugin.value()
    except Exception as error:
        message = f"{told} cannot be made ({type(error).__name__}: {error}); {mend}"
        raise SettingsError(message) from error
    if not _is_model(model):
        got = f"an object of type {type(model).__name__} without a method `values`"
        message = f"{told} is {got}, expected a `ValueModel`; {mend}"
        raise SettingsError(message)
    made: ValueModel = model
    return made


def _is_model(value: object) -> bool:
    return not isinstance(value, type) and callable(getattr(value, "values", None))


def _read_network(file: Path, named_by: str, known: NamedPlugins) -> NetworkValues:
    try:
        return load_network(file.read_bytes())
    except OSError as error:
        message = (
            f"{named_by}: cannot read {str(file)!r} ({error.strerror}): expected a file of `springback fit-value`, or "
            f"one of the value models {', '.join(known.distributions)}."
        )
        raise SettingsError(message) from error
    except NetworkFormatError as error:
        message = f"{named_by} {str(file)!r}: {error}."
        raise SettingsError(message) from error

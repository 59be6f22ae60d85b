"""The value model that a setting or an option names: the mean return by anchor, a fitted network, or a third party's.

A third party offers its own by an entry point of the group `springback.value_models`, which leads to a `ValueModel`, or
to a class or function that gives one when it is called without arguments. It is then chosen by the entry point's name.
"""

from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, NamedTuple, cast

from springback.stream_processors.errors import SettingsError
from springback.stream_processors.resilience.stability.network_value import (
    NetworkFormatError,
    NetworkValues,
    load_network,
)
from springback.stream_processors.resilience.stability.value_function import ValueModel

ENTRY_POINT_GROUP = "springback.value_models"
ANCHOR = "anchor"
"""The name of the model that is used where none is named: the mean discounted return at each anchor."""


class NamedValueModel(NamedTuple):
    """A value model that can be chosen by its name.

    Attributes:
        name: what a setting or `--value-model` calls it.
        distribution: the installed package that it comes with.
        problem: why it cannot be chosen, and what to do; empty where it can.
    """

    name: str
    distribution: str
    problem: str = ""


def named_value_models() -> list[NamedValueModel]:
    """Our own model, then those of third parties by name. None of them is loaded."""
    found = [NamedValueModel(ANCHOR, "springback")]
    offered = _offered()
    for entry in offered:
        rivals = [other for other in offered if other.name == entry.name]
        problem = ""
        if entry.name == ANCHOR:
            problem = f"springback itself has a value model {ANCHOR!r}: give the entry point another name"
        elif len(rivals) > 1:
            problem = f"{_distributions(rivals)} each have a value model {entry.name!r}: uninstall all but one"
        found.append(NamedValueModel(entry.name, _distribution(entry), problem))
    return found


def find_value_model(name: str, named_by: str = "value_model") -> ValueModel | None:
    """The value model of a name; None for the mean return by anchor, which comes with the baseline.

    Args:
        name: `anchor` or nothing; the entry point of a third party's model; else a file of `springback fit-value`
            (`./NAME` where it is called like a model).
        named_by: the setting or option that names it.

    Raises:
        SettingsError: there is neither a model nor a file of that name, or it cannot be used.
    """
    if name in ("", ANCHOR):
        return None
    offered = [entry for entry in _offered() if entry.name == name]
    if len(offered) > 1:
        message = f"{named_by}: {_distributions(offered)} each have a value model {name!r}: uninstall all but one."
        raise SettingsError(message)
    return _loaded(offered[0], named_by) if offered else _read_network(Path(name), named_by)


def _offered() -> list[EntryPoint]:
    return sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: (entry.name, _distribution(entry)))


def _distribution(entry: EntryPoint) -> str:
    return "an unnamed package" if entry.dist is None else entry.dist.name


def _distributions(entries: Sequence[EntryPoint]) -> str:
    return " and ".join(_distribution(entry) for entry in entries)


def _loaded(entry: EntryPoint, named_by: str) -> ValueModel:
    told = f"{named_by}: the value model {entry.name!r} of {_distribution(entry)} ({entry.value})"
    try:
        found: Any = entry.load()
        if isinstance(found, type) or not hasattr(found, "values"):
            found = cast("Callable[[], Any]", found)()
    except Exception as error:
        message = f"{told} cannot be loaded ({type(error).__name__}: {error}): update or uninstall that package."
        raise SettingsError(message) from error
    if not callable(getattr(found, "values", None)):
        message = f"{told} is a {type(found).__name__} without a method `values`: expected a ValueModel."
        raise SettingsError(message)
    return cast("ValueModel", found)


def _read_network(file: Path, named_by: str) -> NetworkValues:
    try:
        return load_network(file.read_bytes())
    except OSError as error:
        known = ", ".join(model.name for model in named_value_models() if not model.problem)
        message = (
            f"{named_by}: cannot read {str(file)!r} ({error.strerror}): expected a file of `springback fit-value`, or "
            f"one of the value models {known}."
        )
        raise SettingsError(message) from error
    except NetworkFormatError as error:
        message = f"{named_by} {str(file)!r}: {error}."
        raise SettingsError(message) from error

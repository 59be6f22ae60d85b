"""What third parties register by entry points: sources here, sinks and value models in the folders after this one.

A distribution registers an object under a group, in its `pyproject.toml`:

    [project.entry-points."springback.sources"]
    sonar = "acme_sonar.springback:SOURCE"

What cannot be used is a `PluginFault` rather than an error: one broken package must not stop what the others bring.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, distributions, entry_points
from typing import Any, Final, NamedTuple

from springback.producers.install_hints import OURS

NO_DISTRIBUTION: Final = "an unknown distribution"


class Plugin(NamedTuple):
    """What a third party has registered.

    Attributes:
        name: the entry point's name.
        distribution: what brings it, as `pip` calls it.
        value: the object that the entry point names.
    """

    name: str
    distribution: str
    value: Any


class PluginFault(NamedTuple):
    """An entry point that cannot be used.

    Attributes:
        name: the entry point's name.
        distribution: what brings it, as `pip` calls it.
        reason: what is wrong with it, and what to do.
    """

    name: str
    distribution: str
    reason: str

    def __str__(self) -> str:
        """A line about it."""
        return f"{self.name} of {self.distribution} is left out: {self.reason}"


class NamedPlugins(NamedTuple):
    """What can be chosen by a name: ours, and what third parties call by the names of their entry points.

    Attributes:
        distributions: what brings each, by name; ours first.
        plugins: those of third parties, by name.
        faults: those that cannot be used.
    """

    distributions: dict[str, str]
    plugins: dict[str, Plugin]
    faults: tuple[PluginFault, ...]


def named_plugins(
    group: str,
    kind: str,
    ours: Iterable[str],
    wrong_with: Callable[[Any], str | None],
    entries: Iterable[EntryPoint] | None = None,
) -> NamedPlugins:
    """Ours, and what is registered under a group by a name that is free.

    Args:
        group: the entry points' group.
        kind: what they are, in a word.
        ours: the names that are taken.
        wrong_with: gives what is wrong with an object that was loaded; None if it can be used.
        entries: the entry points; those of the installed distributions by default.
    """
    distributions = dict.fromkeys(ours, OURS)

    def check(plugin: Plugin) -> str | None:
        if plugin.name in distributions:
            taken = f"{distributions[plugin.name]} has a {kind} {plugin.name!r} already"
            return f"{taken}; rename the entry point in {plugin.distribution}, or uninstall it"
        wrong = wrong_with(plugin.value)
        if wrong is None:
            distributions[plugin.name] = plugin.distribution
        return wrong

    plugins, faults = load_plugins(group, check, entries)
    return NamedPlugins(distributions, {plugin.name: plugin for plugin in plugins}, tuple(faults))


def load_plugins(
    group: str, check: Callable[[Plugin], str | None], entries: Iterable[EntryPoint] | None = None
) -> tuple[list[Plugin], list[PluginFault]]:
    """Loads what is registered under a group, in the order of distributions and names.

    Args:
        group: the entry points' group.
        check: gives what is wrong with a plug-in that was loaded, and what to do; None if it can be used.
        entries: the entry points; those of the installed distributions by default.

    Returns:
        Those that can be used, and what is wrong with the others.
    """
    plugins: list[Plugin] = []
    faults: list[PluginFault] = []
    named = [(_distribution(entry), entry) for entry in (_registered(group) if entries is None else entries)]
    for distribution, entry in sorted(named, key=lambda one: (one[0], one[1].name)):
        try:
            plugin = Plugin(entry.name, distribution, entry.load())
        except (Exception, SystemExit) as error:  # another's module may raise anything when it is imported
            reason = (
                f"{entry.value} cannot be loaded ({type(error).__name__}: {error}); upgrade {distribution} "
                f"or uninstall it, or tell those who make it"
            )
            faults.append(PluginFault(entry.name, distribution, reason))
            continue
        wrong = check(plugin)
        if wrong is None:
            plugins.append(plugin)
        else:
            faults.append(PluginFault(entry.name, distribution, wrong))
    return plugins, faults


def _registered(group: str) -> Iterable[EntryPoint]:
    if sys.version_info >= (3, 10):
        return entry_points(group=group)
    return [entry for found in distributions() for entry in found.entry_points if entry.group == group]


def _distribution(entry: EntryPoint) -> str:
    # One that was made by hand, as in tests, belongs to none.
    if sys.version_info >= (3, 10):
        return entry.dist.name if entry.dist is not None else NO_DISTRIBUTION
    # Entry points of 3.9 do not know their distribution.
    names = (found.metadata["Name"] for found in distributions() if entry in found.entry_points)
    return next(names, NO_DISTRIBUTION)

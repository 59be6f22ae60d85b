"""Which tests an older Python runs: those of what goes onto robots and into the environments of simulators.

The other folders need 3.11, and so do the rooms of `producers` that only the command line uses. A test that imports of
them, itself or by what it imports of `tests`, is left out, and so is one that needs a package which is not among these.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALL_RUN_SINCE = (3, 11)
PACKAGES = ("gymnasium", "hypothesis", "kafka", "msgspec", "numpy", "pytest")
"""What `make test-oldest` installs, and the test of that tells it so."""
_LEFT_OUT = (
    *(f"springback.{folder}" for folder in ("deploy", "dashboards", "sinks", "stream_processors")),
    *(f"springback.producers.{room}" for room in ("babyai_testbed", "bridges", "gateway", "http_server", "recordings")),
)


def runs_here(file: Path) -> bool:
    """Whether this Python runs a module of tests."""
    return sys.version_info >= ALL_RUN_SINCE or runs_on_the_oldest(file)


@functools.cache
def runs_on_the_oldest(file: Path) -> bool:
    """Whether a module of tests imports what the oldest Python has, and no more."""
    names = set(_imported(file))
    if any(name.startswith(_LEFT_OUT) for name in names):
        return False
    tops = {name.partition(".")[0] for name in names} - {"springback", "tests", *PACKAGES}
    helpers = {ROOT.joinpath(*name.split(".")).with_suffix(".py") for name in names if name.startswith("tests.")}
    return all(map(_is_standard, tops)) and all(runs_on_the_oldest(helper) for helper in helpers if helper.is_file())


def _is_standard(module: str) -> bool:
    # Python 3.9 cannot list them; there, nothing else is installed that a test would import.
    return module in sys.stdlib_module_names if sys.version_info >= (3, 10) else find_spec(module) is not None


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)

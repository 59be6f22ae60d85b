"""A process that sees some of the installed packages alone, as a smaller install would have them."""

import subprocess
import sys

from tests.house import ROOT

BASE = ("kafka", "msgspec", "numpy", "tomli")
OF_THE_COMMAND_LINE = (
    "_datasketches",
    "annotated_doc",
    "annotated_types",
    "click",
    "datasketches",
    "markdown_it",
    "mdurl",
    "pydantic",
    "pydantic_core",
    "pygments",
    "rich",
    "scipy",
    "shellingham",
    "typer",
    "typing_extensions",
    "typing_inspection",
)

# What is installed beyond the packages asked for is as if it were not.
BLOCKER = """
import importlib.machinery, importlib.metadata, json, sys
names = (file.parts[0] for found in importlib.metadata.distributions() for file in found.files or ())
blocked = {name.partition(".")[0] for name in names} - set(sys.argv[1].split())
standard = getattr(sys, "stdlib_module_names", ())  # since 3.10
class Blocker(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in blocked and top not in standard and not top.startswith("_"):
            return None
        return super().find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = Blocker
"""


def run_with(packages: tuple[str, ...], script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a script that finds `json` and `sys` imported, and its arguments from `sys.argv[2]` on."""
    return subprocess.run(
        [sys.executable, "-c", BLOCKER + script, " ".join((*packages, "springback")), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

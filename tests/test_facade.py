"""The public names of `springback`: each is there or names its extra, is typed, and costs nothing until it is used."""

import ast
import importlib
import json
import re
import sys
from typing import assert_type

import pytest

import springback
from springback.producers.emitter import publishers, step_emitter
from springback.producers.install_hints import MissingExtraError
from tests.bare_install import BASE, run_with
from tests.house import PACKAGE, ROOT

FOR_USERS = ("README.md", "*/README.md", "tests/data/toy_plugin/*.py")

ASK_FOR_EACH = """
import springback
said = {}
for name in springback.__all__:
    try:
        getattr(springback, name)
    except ImportError as error:
        said[name] = f"{type(error).__name__}: {error}"
print(json.dumps(said))
"""

LOOK_AROUND = """
import inspect, pydoc
import springback
print(json.dumps([[name for name, _ in inspect.getmembers(springback)], pydoc.plain(pydoc.render_doc(springback))]))
"""

LOADED_BY = """
import importlib, importlib.metadata
importlib.metadata.version("springback")
before = set(sys.modules)
exec(sys.argv[2])
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def declared_for_type_checkers() -> dict[str, str]:
    """The names that the façade imports for type checkers alone, and from where."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def loaded_by(statement: str) -> list[str]:
    done = run_with(BASE, LOADED_BY, statement)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


@pytest.mark.parametrize("name", springback.__all__)
def test_every_public_name_is_there_or_names_its_extra(name: str) -> None:
    try:
        found = getattr(springback, name)
    except MissingExtraError as error:
        pytest.skip(str(error))
    assert found is getattr(springback, name)
    assert name in dir(springback)


def test_a_base_install_has_what_a_robot_needs_and_names_the_extra_of_the_rest() -> None:
    done = run_with(BASE, ASK_FOR_EACH)
    assert done.returncode == 0, done.stderr
    missing = {
        name: re.sub(r".*pip install .*\[(\w+)\]'$", r"\1", message)
        for name, message in json.loads(done.stdout).items()
    }
    of_gymnasium = dict.fromkeys(("Wrapper", "VectorWrapper", "isolated"), "gymnasium")
    assert missing == of_gymnasium | dict.fromkeys(("evaluate", "StateFeatures", "ValueModel"), "cli")


def test_a_base_install_can_be_looked_around_in() -> None:
    done = run_with(BASE, LOOK_AROUND)
    assert done.returncode == 0, done.stderr
    members, page = json.loads(done.stdout)
    left_out = {"Wrapper", "VectorWrapper", "isolated", "evaluate", "StateFeatures", "ValueModel"}
    assert {*springback.__all__} - {*members} == left_out
    assert "class StepEmitter" in page


def test_what_type_checkers_see_is_what_is_loaded() -> None:
    declared = declared_for_type_checkers()
    assert {*declared, "__version__"} == set(springback.__all__)
    for name, module in declared.items():
        assert getattr(springback, name) is getattr(importlib.import_module(module), name)


def test_the_types_are_known() -> None:
    """Checked by mypy: a name that does not exist is an error, or the comment on it would be."""
    publisher = springback.MemoryPublisher()
    assert_type(publisher, publishers.MemoryPublisher)
    with springback.StepEmitter(publisher, producer="robot-7") as emitter:
        assert_type(emitter, step_emitter.StepEmitter)
    assert_type(springback.__version__, str)
    with pytest.raises(AttributeError, match="no attribute 'StepEmiter'"):
        springback.StepEmiter  # type: ignore[attr-defined]  # noqa: B018


def test_importing_springback_loads_nothing_else() -> None:
    assert loaded_by("import springback") == ["springback"]


def test_the_emitter_loads_msgspec_and_numpy_alone() -> None:
    loaded = loaded_by("import springback; springback.StepEmitter")
    packages = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names)
    assert {name for name in packages if not name.startswith("_")} == {"msgspec", "numpy", "springback"}
    assert all(name.startswith("springback.producers") for name in loaded if name.startswith("springback."))


@pytest.mark.parametrize("files", FOR_USERS)
def test_examples_use_public_names_alone(files: str) -> None:
    text = "\n".join(file.read_text(encoding="utf-8") for file in ROOT.glob(files))
    assert text
    assert not re.findall(r"^(?:from|import) springback\.", text, re.MULTILINE)


def test_the_version_is_that_of_the_distribution() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", springback.__version__)
    assert sys.modules["springback"] is springback

"""Hints how to install: they name where an installation came from, and all that is missing at once."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from springback.producers.install_hints import (
    MissingExtraError,
    extras_to_install,
    install_command,
    missing_of,
    packages_of,
    told_missing,
)


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that has the distribution `acme-toys` in it, which `pip` beside this Python installed."""
    info = tmp_path / "acme_toys-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-toys\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda name: str(Path(sys.executable).with_name(name)))
    return tmp_path


def came_from(site: Path, url: str, **more: Any) -> str:
    """The hint where `pip` noted that `acme-toys` came from there."""
    (site / "acme_toys-1.0.dist-info" / "direct_url.json").write_text(json.dumps({"url": url, **more}))
    return install_command(["gym", "bus"], "acme-toys")


def test_a_clone_is_named_by_its_folder(acme: Path) -> None:
    clone = acme / "a clone"
    clone.mkdir()
    assert came_from(acme, clone.as_uri(), dir_info={"editable": True}) == (
        f"pip install --editable '{acme}/a clone[gym,bus]'"
    )
    assert came_from(acme, clone.as_uri(), dir_info={}) == f"pip install '{acme}/a clone[gym,bus]'"


def test_in_the_clone_it_is_a_dot(acme: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(acme)
    assert came_from(acme, acme.as_uri(), dir_info={"editable": True}) == "pip install --editable '.[gym,bus]'"


def test_a_wheel_is_named_by_its_path_while_it_is_there(acme: Path) -> None:
    wheel = acme / "acme_toys-1.0-py3-none-any.whl"
    assert came_from(acme, wheel.as_uri(), archive_info={}) == "pip install 'acme-toys[gym,bus]'"
    wheel.touch()
    assert came_from(acme, wheel.as_uri(), archive_info={}) == f"pip install '{wheel}[gym,bus]'"


def test_what_came_by_the_net_is_named_by_its_address(acme: Path) -> None:
    address = "https://example.org/acme/toys"
    assert came_from(acme, f"{address}.whl", archive_info={}) == (f"pip install 'acme-toys[gym,bus] @ {address}.whl'")
    assert came_from(acme, f"{address}.git", vcs_info={"vcs": "git", "commit_id": "c0ffee"}) == (
        f"pip install 'acme-toys[gym,bus] @ git+{address}.git@c0ffee'"
    )


@pytest.mark.parametrize(
    "note", ["", "{", "[]", "{}", '{"url": 4}', '{"url": "file:///no/such/clone", "dir_info": {}}']
)
def test_where_nothing_is_noted_ours_is_in_a_clone_and_that_of_others_in_an_index(
    note: str, acme: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (acme / "acme_toys-1.0.dist-info" / "direct_url.json").write_text(note)
    assert install_command(["gym"], "acme-toys") == "pip install 'acme-toys[gym]'"
    (acme / "acme_toys-1.0.dist-info").rename(acme / "springback-1.0.dist-info")
    (acme / "springback-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: springback\nVersion: 1\n")
    assert install_command(["worker"]) == "pip install '.[worker]' (in a clone of springback)"


def test_a_distribution_that_is_not_there_is_called_by_its_name(acme: Path) -> None:
    assert install_command(["gym"], "no-such-distribution") == "pip install 'no-such-distribution[gym]'"


def test_the_installer_is_that_of_this_python(acme: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/elsewhere/{name}")
    assert install_command(["gym"], "acme-toys").startswith(f"{sys.executable} -m pip install ")
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pip" else find(name))
    assert install_command(["gym"], "acme-toys").startswith(f"uv pip install --python {sys.executable} ")


def absent(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in packages else object())


def test_the_fewest_extras_bring_all_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    absent(monkeypatch, "faust", "nicegui", "aiomqtt")
    assert extras_to_install(["worker", "embedded", "sinks", "worker"]) == ["embedded"]
    assert extras_to_install(["worker", "live", "mqtt", "ulog"]) == ["worker", "live", "mqtt"]
    assert missing_of(["demo"]) == ["faust", "nicegui"]
    assert extras_to_install(["recordings", "fit"]) == []
    assert packages_of(["toys"]) == []


def test_two_extras_of_the_same_packages_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    absent(monkeypatch, "aiokafka")
    assert extras_to_install(["gateway", "sinks"]) == ["sinks"]


def test_a_sentence_names_a_few_of_many_and_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    absent(monkeypatch, *packages_of(["live"]))
    told = told_missing("the page", ["live"], met="uvicorn")
    assert told.startswith("the page needs what is not installed here (uvicorn, datasketches, rich, scipy and 8 more).")
    assert told.count("install ") == 1


def test_a_missing_extra_names_several_at_once() -> None:
    error = MissingExtraError(extra="recordings,ulog", cause=ImportError(name="mcap"))
    assert "[recordings,ulog]" in str(error)
    assert (error.name, error.extra, error.distribution) == ("mcap", "recordings,ulog", "springback")

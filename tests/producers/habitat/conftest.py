"""Recorded episodes, and a module that stands for habitat-sim where it is not installed."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from tests.house import DATA
from tests.producers.habitat.fake_habitat import Trace, fake_habitat_sim, read_traces
from tests.producers.habitat.habitat_makers import FakeHabitat, Habitat
from tests.producers.habitat.real_habitat import RealHabitat
from tests.producers.habitat.strict_habitat import strict_habitat_sim

NOW_S = 1_800_000_000.0


@pytest.fixture(scope="session")
def lab_traces() -> list[Trace]:
    return read_traces(DATA / "habitat_lab_pointnav.traces.jsonl.gz")


@pytest.fixture(scope="session")
def sim_traces() -> list[Trace]:
    return read_traces(DATA / "habitat_sim_nav_depth.traces.jsonl.gz")


@pytest.fixture
def strict_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "habitat_sim", strict_habitat_sim())


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.needs_habitat)])
def habitat(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Habitat]:
    """The strict fake, and, where it is installed, Habitat itself: the same tests on both."""
    if request.param == "fake":
        request.getfixturevalue("strict_module")
        yield FakeHabitat()
        return
    pytest.importorskip("habitat_sim", reason="habitat-sim is not installed")
    real = RealHabitat(tmp_path)
    yield real
    real.close()


@pytest.fixture
def habitat_sim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "habitat_sim", fake_habitat_sim())


@pytest.fixture
def publisher() -> MemoryPublisher:
    return MemoryPublisher()


@pytest.fixture
def emitter(publisher: MemoryPublisher) -> Iterator[StepEmitter]:
    with StepEmitter(publisher, producer="habitat", session="s", clock=lambda: NOW_S) as emitter:
        yield emitter

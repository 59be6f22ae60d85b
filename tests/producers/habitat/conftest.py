"""Recorded episodes, and a module that stands for habitat-sim where it is not installed."""

import sys
from collections.abc import Iterator

import pytest

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from tests.house import DATA
from tests.producers.habitat.fake_habitat import Trace, fake_habitat_sim, read_traces
from tests.producers.habitat.habitat_makers import FakeHabitat, Habitat
from tests.producers.habitat.strict_habitat import strict_habitat_sim

NOW_S = 1_800_000_000.0


@pytest.fixture(scope="session")
def lab_traces() -> list[Trace]:
    return read_traces(DATA / "habitat_lab_pointnav.traces.jsonl.gz")


@pytest.fixture(scope="session")
def sim_traces() -> list[Trace]:
    return read_traces(DATA / "habitat_sim_nav_depth.traces.jsonl.gz")


@pytest.fixture
def habitat(monkeypatch: pytest.MonkeyPatch) -> Habitat:
    monkeypatch.setitem(sys.modules, "habitat_sim", strict_habitat_sim())
    return FakeHabitat()


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

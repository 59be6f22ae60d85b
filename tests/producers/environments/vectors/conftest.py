"""An emitter whose frames stay in memory."""

from collections.abc import Iterator

import pytest

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter


@pytest.fixture
def publisher() -> MemoryPublisher:
    return MemoryPublisher()


@pytest.fixture
def emitter(publisher: MemoryPublisher) -> Iterator[StepEmitter]:
    with StepEmitter(publisher, producer="fleet", clock=lambda: 1_800_000_000.0) as emitter:
        yield emitter

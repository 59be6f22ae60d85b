"""Baselines learned live by a worker, exported, imported, frozen and unfrozen."""

import asyncio
import json
import urllib.request
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

from springback.producers.contract.frame import StepFrame
from springback.stream_processors.errors import BaselineImportError
from springback.stream_processors.offline.evaluation import learn_baseline
from springback.stream_processors.resilience.baseline.codec import dump_baseline, load_baseline
from springback.stream_processors.resilience.baseline.stage_baseline import FamilyBaseline, StageBaseline, sums_matrix
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.service.kafka_connection import KafkaConnection
from springback.stream_processors.worker.baselines import export_baseline, import_baseline, unfreeze_baseline
from tests.stream_processors.conftest import DEADLINE_S, until

if TYPE_CHECKING:
    from tests.stream_processors.conftest import Recorded, Stream

pytestmark = pytest.mark.broker


def test_learned_live_exported_imported_frozen_and_unfrozen(embedded_stream: "Stream", recorded: "Recorded") -> None:
    worker = embedded_stream.start(baseline_refresh_s="0.1")
    health = worker.wait_until_ready()
    kafka = KafkaConnection(bootstrap=embedded_stream.address)
    prefix = embedded_stream.prefix
    offline = learn_baseline(recorded.frames, ResilienceConfig())

    async def exported() -> StageBaseline:
        return load_baseline(await export_baseline(kafka, prefix=prefix))

    async def scenario() -> None:
        await embedded_stream.send_frames(recorded.frames)

        async def learned() -> bool:
            return references(await exported()) == references(offline)

        await until(learned, "the baseline is learned")
        live = await exported()
        for name, family in offline.families.items():
            assert live.families[name].cells.keys() == family.cells.keys()
            assert np.allclose(all_sums(live.families[name]), all_sums(family), rtol=1e-9, atol=1e-9)

        assert await import_baseline(kafka, recorded.baseline, prefix=prefix, frozen=True) == ["navigation"]
        assert dump_baseline(await exported()) == recorded.baseline

        await embedded_stream.send_frames([again(frame) for frame in recorded.frames])

        async def all_ignored() -> bool:
            return await asyncio.to_thread(ignored, health) == references(offline)["navigation"]

        await until(all_ignored, "every contribution to the frozen baseline is ignored")
        assert dump_baseline(await exported()) == recorded.baseline

        with pytest.raises(BaselineImportError, match=r"Not frozen: 'swimming'\. Frozen are: navigation\."):
            await unfreeze_baseline(kafka, ["swimming"], prefix=prefix)
        assert await unfreeze_baseline(kafka, prefix=prefix) == ["navigation"]
        assert dump_baseline(await exported()) == recorded.baseline
        assert await unfreeze_baseline(kafka, prefix=prefix) == []

        before = references(load_baseline(recorded.baseline))["navigation"]
        await embedded_stream.send_frames([again(frame, "a third") for frame in recorded.frames])

        async def more() -> bool:
            return references(await exported())["navigation"] == before + references(offline)["navigation"]

        await until(more, "what is not frozen any more learns again")

    asyncio.run(scenario())
    assert worker.end() == 0, worker.log()


def references(baseline: StageBaseline) -> dict[str, int]:
    return {name: family.references for name, family in baseline.families.items()}


def all_sums(family: FamilyBaseline) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return sums_matrix(b"".join(family.cells[cell] for cell in sorted(family.cells)))


def again(frame: StepFrame, start: str = "another start") -> StepFrame:
    return msgspec.structs.replace(frame, session=start)


def ignored(health: str) -> int:
    with urllib.request.urlopen(health + "live", timeout=DEADLINE_S) as answer:
        return int(json.load(answer)["ignored_contributions"])


def test_an_import_that_no_worker_takes_up_says_so(embedded_stream: "Stream", recorded: "Recorded") -> None:
    kafka = KafkaConnection(bootstrap=embedded_stream.address)
    with pytest.raises(BaselineImportError, match=r"\['navigation'\].*start one"):
        asyncio.run(import_baseline(kafka, recorded.baseline, prefix=embedded_stream.prefix, timeout_s=1.0))


def test_what_is_no_baseline_is_not_imported() -> None:
    with pytest.raises(BaselineImportError, match="cannot be imported"):
        asyncio.run(import_baseline(KafkaConnection(), b"{}"))

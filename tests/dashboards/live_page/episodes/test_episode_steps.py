"""An episode's steps back from their topic: where they are looked for, what is missing, and what a reading may take."""

import asyncio
import uuid
from typing import Any

import numpy as np
import pytest
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete  # type: ignore[import-untyped]
from aiokafka.structs import TopicPartition  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from springback.dashboards.live_page.episodes import steps_topic
from springback.dashboards.live_page.episodes.steps_topic import (
    EpisodeSteps,
    ReadingBounds,
    WantedEpisode,
    read_episode,
)
from springback.producers.contract.frame import StepFrame
from springback.producers.emitter.kafka_publisher import KafkaPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.stream_processors.resilience.readings import EpisodeKey
from springback.stream_processors.service.kafka_connection import KafkaConnection
from springback.stream_processors.settings import WorkerSettings
from springback.stream_processors.topics import declare_topics
from tests.dashboards.live_page.episodes.fake_steps_broker import FakeStepsBroker
from tests.examples import examples
from tests.stream_processors.frame_builders import frame_of, nominal_rows

KEY = EpisodeKey("robot-7", "boot", "1")
BEGAN_S = 1_790_000_000.0


def an_hour(steps: int = 60, per_frame: int = 2, between_s: float = 120.0) -> list[tuple[float, StepFrame]]:
    """An episode of an hour, two steps a frame, and behind each frame one of another episode."""
    frames = []
    for number, first in enumerate(range(0, steps, per_frame)):
        over = first + per_frame >= steps
        rows = nominal_rows(first, first + per_frame, total=steps)
        frames.append((BEGAN_S + number * between_s, frame_of(rows, "success" if over else None)))
        frames.append((BEGAN_S + number * between_s + 1.0, frame_of(nominal_rows(0, 1), episode="other")))
    return frames


def steps_found(
    broker: FakeStepsBroker, about_s: float = BEGAN_S, producer: str = "robot-7", **bounds: Any
) -> EpisodeSteps:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps_topic, "AIOKafkaConsumer", broker.consumer)
        wanted = WantedEpisode(KEY, producer, "navigation", about_s)
        return asyncio.run(read_episode(WorkerSettings(), wanted, bounds=ReadingBounds(**bounds)))


def numbers(found: EpisodeSteps) -> list[int]:
    columns: list[Any] = [frame.arrived.frame.steps.get("step", np.array([])) for frame in found.frames]
    return [step for column in columns for step in column.tolist()]  # a frame may have the end alone


@settings(max_examples=examples(60))
@given(about_s=st.floats(BEGAN_S - 100.0, BEGAN_S + 4000.0), at_once=st.integers(1, 40))
def test_from_wherever_it_is_looked_for_each_step_is_found_once_in_order(about_s: float, at_once: int) -> None:
    found = steps_found(FakeStepsBroker(an_hour(), at_once=at_once), about_s)
    assert numbers(found) == list(range(60))
    assert found.told == []


def test_what_lies_before_and_behind_the_episode_is_not_read() -> None:
    before = [(BEGAN_S - 100_000.0 + n, frame_of(nominal_rows(0, 1), episode=f"b{n}")) for n in range(50)]
    behind = [(BEGAN_S + 100_000.0 + n, frame_of(nominal_rows(0, 1), episode=f"a{n}")) for n in range(50)]
    broker = FakeStepsBroker([*before, *an_hour(), *behind], at_once=5)
    assert numbers(steps_found(broker)) == list(range(60))
    assert (min(broker.given), max(broker.given)) == (50, 109)


def test_steps_that_retention_has_deleted_are_named() -> None:
    # Of 60 steps in 30 frames the first 10 frames are gone, each with one of another episode behind it.
    found = steps_found(FakeStepsBroker(an_hour(), gone=20))
    assert numbers(found) == list(range(20, 60))
    assert found.told == [
        "The steps before 20 are no longer in the topic steps: what is drawn begins there, as if the episode did."
    ]


def test_steps_that_never_came_are_not_said_to_have_been_deleted() -> None:
    found = steps_found(FakeStepsBroker(an_hour()[20:]))
    assert numbers(found) == list(range(20, 60))
    assert found.told == [
        "The steps before 20 are not in the topic steps: what is drawn begins there, as if the episode did."
    ]


@pytest.mark.parametrize("gone", [59, 60])
def test_an_episode_of_which_all_is_deleted_is_told_so(gone: int) -> None:
    found = steps_found(FakeStepsBroker(an_hour(), gone=gone))
    assert found.told == ["None of its steps can be shown: they are no longer in the topic steps."]


def test_of_a_producer_that_sent_nothing_it_is_said_that_it_sent_nothing() -> None:
    found = steps_found(FakeStepsBroker(an_hour()), producer="<b>robot-8")
    assert found.told == ["None of its steps can be shown: the topic steps has none from the producer <b>robot-8."]


@pytest.mark.parametrize(
    ("bounds", "steps"),
    [({"steps": 10}, range(12)), ({"messages": 9}, range(10)), ({"bytes": 3000}, None), ({"seconds": 0.0}, range(0))],
    ids=["steps", "messages", "bytes", "time"],
)
def test_a_reading_stops_at_each_of_its_bounds_and_tells_no_more_than_it_knows(
    bounds: dict[str, Any], steps: range | None
) -> None:
    broker = FakeStepsBroker(an_hour(), gone=0, at_once=5)
    found = steps_found(broker, **bounds)
    if steps is None:
        assert 0 < found.steps < 60
        assert sum(len(broker.records[offset].value) for offset in broker.given[:-5]) <= bounds["bytes"]
    else:
        assert numbers(found) == list(steps)
    [told, *rest] = found.told
    assert told.startswith(("Not all" if found.frames else "None") + " of its steps are here: reading stops after")
    assert not [sentence for sentence in rest if "topic steps" in sentence]


def test_beyond_a_bound_nothing_is_said_of_what_the_topic_has() -> None:
    # Looking back, the first steps were not come to: nobody knows whether they are still there.
    found = steps_found(FakeStepsBroker(an_hour(), gone=2), BEGAN_S + 3600.0, messages=12)
    assert 0 < found.steps < 60
    assert len(found.told) == 1


def test_a_topic_that_there_is_not_is_named() -> None:
    broker = FakeStepsBroker(an_hour())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps_topic, "AIOKafkaConsumer", broker.consumer)
        wanted = WantedEpisode(KEY, "robot-7", "navigation", BEGAN_S)
        found = asyncio.run(read_episode(WorkerSettings(prefix="other-"), wanted))
    assert (found.told, broker.given) == (["There is no topic other-steps."], [])


@pytest.mark.kafka
def test_steps_that_kafka_has_deleted_are_named(apache_kafka: str) -> None:
    prefix = f"steps-{uuid.uuid4().hex[:8]}-"
    wanted_settings = WorkerSettings(prefix=prefix, kafka=KafkaConnection(bootstrap=apache_kafka))

    async def found_of(key: EpisodeKey) -> EpisodeSteps:
        return await read_episode(wanted_settings, WantedEpisode(key, "robot-7", "navigation", 0.0))

    async def delete(before_offset: int) -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=apache_kafka)
        await admin.start()
        place = TopicPartition(prefix + "steps", 0)
        await admin.delete_records({place: RecordsToDelete(before_offset=before_offset)})
        await admin.close()

    asyncio.run(declare_topics(apache_kafka, prefix=prefix, partitions=1))
    with StepEmitter(KafkaPublisher(apache_kafka, topic=prefix + "steps"), producer="robot-7") as emitter:
        key = EpisodeKey("robot-7", emitter.session, "1")
        episode = emitter.begin_episode(episode="1", family="navigation")
        for step in range(30):
            episode.step(progress=(step + 1) / 30, planning_s=0.02)
            if step % 10 == 9:
                assert emitter.flush(10.0)
        episode.end("success")
        emitter.flush(10.0)
    whole = asyncio.run(found_of(key))
    assert (numbers(whole), whole.told) == (list(range(30)), [])
    second = whole.frames[1]
    asyncio.run(delete(second.offset))
    rest = asyncio.run(found_of(key))
    assert numbers(rest) == numbers(EpisodeSteps(whole.frames[1:]))
    [told] = rest.told
    assert told.startswith(f"The steps before {rest.lowest_step} are no longer in the topic {prefix}steps")
    asyncio.run(delete(-1))
    gone = asyncio.run(found_of(key))
    assert gone.told == [f"None of its steps can be shown: they are no longer in the topic {prefix}steps."]

"""The baseline that scores as part of the state: when it is switched, and that whatever comes again is scored alike."""

import asyncio
from collections import Counter
from typing import Any

import msgspec
from hypothesis import given, settings

from springback.producers.contract.codec import encode_msgpack
from springback.producers.contract.frame import StepFrame
from springback.stream_processors.exact.port import Output
from springback.stream_processors.exact.stage import ExactStage
from springback.stream_processors.intake.step_table import ArrivedFrame
from springback.stream_processors.offline.switched_evaluation import PlacedFrame, evaluate_switched
from springback.stream_processors.resilience.baseline.codec import decode_contribution
from springback.stream_processors.resilience.baseline.stage_baseline import (
    BaselineConfig,
    EpisodeContribution,
    StageBaseline,
)
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import WindowReading, decode_reading
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState
from springback.stream_processors.stages.scoring_baseline import ScoringBaseline, baseline_switches
from springback.stream_processors.stages.track_steps import TrackSteps
from springback.stream_processors.topics import CONTRIBUTIONS, SUMMARIES, SWITCHES, WINDOWS
from tests.examples import examples
from tests.stream_processors.crashing_workers import Action, Broker, Worker, action_lists, live_through
from tests.stream_processors.frame_builders import START_S
from tests.stream_processors.random_episodes import cut_into_frames, judged_episodes, seeds

CONFIG = ResilienceConfig(
    baseline=BaselineConfig(mature_episodes=2, calibration_episodes=2, learning_references=3, calibration_share=0.0)
)
PARTITIONS = 2


class Fleet:
    """What the fleet has learned: of the contributions that it has taken in so far, or as it is given."""

    def __init__(self, learned: StageBaseline | None = None, *, pinned: bool = False) -> None:
        self.learned = learned or StageBaseline(grid=CONFIG.grid)
        self.version = 0
        self.pinned = pinned

    def usable(self) -> StageBaseline:
        return self.learned if self.pinned else self.learned.mature(CONFIG.baseline)

    def take_in(self, sent: list[Output]) -> None:
        for output in sent:
            if output.topic == CONTRIBUTIONS:
                self.learned.add(contribution_in(output), CONFIG.baseline)
                self.version += 1


def contribution_in(output: Output) -> EpisodeContribution:
    contribution = decode_contribution(output.value or b"")
    assert isinstance(contribution, EpisodeContribution)
    return contribution


def stage_of(worker: Worker, fleet: Fleet, interval_s: float = 0.0) -> ExactStage[TrackerState]:
    tracker = TrackSteps(CONFIG)
    scoring = ScoringBaseline(CONFIG, fleet, tracker, interval_s)
    return ExactStage(
        "track_steps",
        worker,
        worker,
        tracker,
        lambda key: sum(key) % 2,
        contexts=scoring,
        clock=lambda: worker.broker.now,
    )


def found_in(broker: Broker) -> dict[str, dict[Any, bytes]]:
    """What was sent, by topic and identity; fails where one identity has two contents."""
    found: dict[str, dict[Any, bytes]] = {WINDOWS: {}, SUMMARIES: {}, CONTRIBUTIONS: {}}
    for output in broker.sent:
        if output.topic in found:
            value = output.value or b""
            reading: Any = contribution_in(output) if output.topic == CONTRIBUTIONS else decode_reading(value)
            identity = reading.key if output.topic == CONTRIBUTIONS else reading.identity
            assert found[output.topic].setdefault(identity, value) == value
    return found


def switches_in(broker: Broker) -> list[tuple[bytes, bytes | None]]:
    return [(output.key, output.value) for output in broker.sent if output.topic == SWITCHES]


def assert_as_offline(broker: Broker, frames: dict[int, list[PlacedFrame]]) -> None:
    found = found_in(broker)
    for records in (switches_in(broker), broker.history):
        expected, taught = evaluate_switched(frames, baseline_switches(records, CONFIG.grid), CONFIG)
        windows = [decode_reading(value) for value in found[WINDOWS].values()]
        closed = [one for one in windows if isinstance(one, WindowReading) and one.state != "open"]
        assert counted(closed) == counted(expected.windows)
        episodes = [decode_reading(value) for value in found[SUMMARIES].values()]
        assert counted(episodes) == counted([*expected.summaries, *expected.begun])
        assert counted(map(decode_contribution, found[CONTRIBUTIONS].values())) == counted(taught)


def counted(readings: Any) -> Counter[bytes]:
    return Counter(msgspec.msgpack.encode(reading) for reading in readings)


def live_with_frames(seed: int, actions: list[Action]) -> tuple[Broker, dict[int, list[PlacedFrame]]]:
    """A fleet for each partition, whose frames come as the actions say, and the rest of them after that."""
    broker, fleet = Broker(PARTITIONS), Fleet()
    waiting: dict[int, list[StepFrame]] = {}
    for partition in range(PARTITIONS):
        ids = {"producer": f"fleet-{partition}", "session": f"boot-{partition}"}
        parts = judged_episodes(seed + partition, references=5, others=3, families=1)
        frames = [frame for at in range(0, len(parts), 2) for frame in cut_into_frames(parts[at : at + 2], seed + at)]
        waiting[partition] = [msgspec.structs.replace(frame, **ids) for frame in frames]
    placed: dict[int, list[PlacedFrame]] = {partition: [] for partition in range(PARTITIONS)}

    def append(partition: int, number: int) -> None:
        for frame in waiting[partition][: 1 + number]:
            time_s = START_S + len(placed[partition])
            placed[partition].append(PlacedFrame(len(placed[partition]), ArrivedFrame(frame, time_s)))
            broker.append(partition, frame.producer.encode(), encode_msgpack(frame), time_s)
        del waiting[partition][: 1 + number]

    def learn() -> None:
        fleet.take_in(broker.sent)

    async def live() -> None:
        await live_through(broker, lambda worker: stage_of(worker, fleet), actions, append, learn)
        rest: list[Action] = []
        for partition in range(PARTITIONS):
            rest += [("append", partition, 3), ("read", partition, 2), ("tick", 0, 0), ("learn", 0, 0)]
            rest += [("read", partition, 9), ("append", partition, 3), ("read", partition, 9)]
        while any(waiting.values()):
            await live_through(broker, lambda worker: stage_of(worker, fleet), rest, append, learn)

    asyncio.run(live())
    return broker, placed


@settings(max_examples=examples(20), deadline=None)
@given(seeds, action_lists(PARTITIONS, most=100))
def test_whatever_happens_the_stream_finds_what_its_switches_say(seed: int, actions: list[Action]) -> None:
    assert_as_offline(*live_with_frames(seed, actions))


def test_there_are_switches_and_windows_to_find() -> None:
    broker, placed = live_with_frames(3, [("append", 0, 3), ("read", 0, 6), ("kill", 3, 2), ("learn", 0, 0)] * 4)
    assert_as_offline(broker, placed)
    switches = baseline_switches(switches_in(broker), CONFIG.grid)
    assert all(len({len(one.baseline.families) for one in switches[p]} - {0}) for p in range(PARTITIONS))
    assert found_in(broker)[WINDOWS]

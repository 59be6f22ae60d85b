"""The baseline that scores as part of the state: when it is switched, and that whatever comes again is scored alike."""

import asyncio
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from springback.producers.contract.codec import encode_msgpack
from springback.producers.contract.frame import StepFrame
from springback.stream_processors.errors import StateFormatError
from springback.stream_processors.exact.context_log import digest_of
from springback.stream_processors.exact.contexts import HeldContext
from springback.stream_processors.exact.port import Output, StageEvent
from springback.stream_processors.exact.stage import ExactStage
from springback.stream_processors.intake.step_table import ArrivedFrame
from springback.stream_processors.offline.switched_evaluation import PlacedFrame, evaluate_switched
from springback.stream_processors.resilience.baseline.codec import (
    BaselineFormatError,
    decode_contribution,
    decode_scoring_family,
    encode_scoring_family,
)
from springback.stream_processors.resilience.baseline.stage_baseline import (
    BaselineConfig,
    EpisodeContribution,
    StageBaseline,
)
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import WindowReading, decode_reading
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState
from springback.stream_processors.stages.scoring_baseline import ScoringBaseline, baseline_switches, family_switches
from springback.stream_processors.stages.track_steps import TrackSteps
from springback.stream_processors.topics import CONTRIBUTIONS, SUMMARIES, SWITCHES, WINDOWS
from tests.examples import examples
from tests.stream_processors.crashing_workers import Action, Broker, Worker, action_lists, live_through
from tests.stream_processors.frame_builders import START_S, frame_of, nominal_baseline, nominal_rows
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


class Tracking:
    """One worker after another over one partition; each frame is an episode of its own, begun and not ended."""

    def __init__(self, fleet: Fleet) -> None:
        self.broker, self.fleet = Broker(1), fleet
        self.start()

    def start(self) -> None:
        self.worker = Worker(self.broker)
        self.stage = stage_of(self.worker, self.fleet)

    def track(self) -> None:
        number = len(self.broker.log[0])
        frame = frame_of(nominal_rows(0, 5), episode=str(number))
        self.broker.append(0, b"robot-7", encode_msgpack(frame), START_S + number)
        self.broker.now = self.worker.confirmed_at = self.broker.now + 2
        asyncio.run(self.stage.process(self.worker.read(0, 100)))
        asyncio.run(self.stage.tick())

    def references(self) -> list[dict[str, int]]:
        """How many references each family had, switch by switch."""
        switches = baseline_switches(switches_in(self.broker), CONFIG.grid)[0]
        return [{name: family.references for name, family in b.families.items()} for _, b in switches]

    def contents(self) -> int:
        """How many contents have been written."""
        return len({key for key, _ in self.broker.history if b"/content/" in key})


def learned(*families: str, references: int = 20) -> StageBaseline:
    """What evenly run references have taught of each family."""
    [family] = nominal_baseline(CONFIG, references=references).families.values()
    return StageBaseline(families={name: msgspec.structs.replace(family) for name in families}, grid=CONFIG.grid)


def test_a_family_is_scored_by_once_it_is_mature_and_a_switch_writes_no_other() -> None:
    fleet = Fleet(learned("navigation"))
    fleet.learned.families["navigation"].references = 1
    tracking = Tracking(fleet)
    tracking.track()
    fleet.learned = learned("navigation")
    fleet.version += 1
    tracking.track()
    fleet.learned.families["transport"] = learned("transport").families["transport"]
    fleet.learned.families["transport"].cycles = [2.0]
    fleet.version += 1
    tracking.track()
    assert tracking.references() == [{}, {"navigation": 20}, {"navigation": 20, "transport": 20}]
    assert tracking.contents() == 2


def test_what_has_been_learned_since_does_not_count_before_it_is_a_tenth() -> None:
    fleet = Fleet(learned("navigation"))
    tracking = Tracking(fleet)
    for references in (21, 22, 23, 24, 25):
        tracking.track()
        fleet.learned.families["navigation"].references = references
        fleet.version += 1
    tracking.track()
    assert tracking.references() == [{"navigation": 20}, {"navigation": 22}, {"navigation": 25}]


def test_a_restart_begins_a_term_by_what_it_finds() -> None:
    fleet = Fleet(learned("navigation"))
    tracking = Tracking(fleet)
    tracking.track()
    fleet.learned.families["navigation"].references = 21
    tracking.start()
    tracking.track()
    tracking.track()
    assert tracking.references() == [{"navigation": 20}, {"navigation": 20}]
    assert tracking.contents() == 1


def test_an_import_takes_the_place_of_what_was_learned() -> None:
    fleet = Fleet(learned("navigation"))
    tracking = Tracking(fleet)
    tracking.track()
    family = fleet.learned.families["navigation"]
    fleet.learned.families["navigation"] = msgspec.structs.replace(family, origin="request-1", cycles=[3.0])
    fleet.version += 1
    tracking.track()
    [before, after] = baseline_switches(switches_in(tracking.broker), CONFIG.grid)[0]
    assert before.baseline.families["navigation"].cycles != [3.0]
    assert after.baseline.families["navigation"].cycles == [3.0]
    assert (before.from_offset, after.from_offset) == (0, 1)


def test_another_file_is_gone_over_to_where_nothing_has_been_sent_of_yet() -> None:
    first, second = learned("navigation"), learned("navigation", references=7)
    tracking = Tracking(Fleet(first, pinned=True))
    tracking.track()
    tracking.fleet = Fleet(second, pinned=True)
    tracking.start()
    tracking.track()  # its predecessor may have sent outputs of this one
    tracking.track()
    switches = baseline_switches(switches_in(tracking.broker), CONFIG.grid)[0]
    assert [one.from_offset for one in switches] == [0, 1, 2]
    assert tracking.references() == [{"navigation": 20}, {"navigation": 20}, {"navigation": 7}]


def test_of_a_stretch_there_is_what_scored_one_family_in_it() -> None:
    tracking = Tracking(Fleet(learned("inspection", "navigation"), pinned=True))
    tracking.track()
    tracking.fleet = Fleet(learned("inspection", "navigation", references=7), pinned=True)
    tracking.start()
    tracking.track()
    tracking.track()
    records = switches_in(tracking.broker)

    def scored(
        start: int, stop: int, family: str = "navigation", partition: int = 0
    ) -> list[tuple[int, dict[str, int]]]:
        found = family_switches(records, partition, family, range(start, stop), CONFIG.grid)
        return [(at, {name: one.references for name, one in learned.families.items()}) for at, learned in found]

    assert scored(0, 1) == [(0, {"navigation": 20})]
    assert scored(1, 9) == [(1, {"navigation": 20}), (2, {"navigation": 7})]
    assert scored(5, 9) == [(2, {"navigation": 7})]
    assert scored(5, 9, "swimming") == [(2, {})]
    assert scored(0, 9, partition=1) == []
    records = [(key, record) for key, record in records if b"/content/" not in key]
    with pytest.raises(StateFormatError, match="which a switch names, is not among the records"):
        scored(0, 1)


def test_another_file_of_as_many_references_is_another_file() -> None:
    first, second = learned("navigation"), learned("navigation")
    second.families["navigation"].cycles = [3.0]
    tracking = Tracking(Fleet(first, pinned=True))
    tracking.track()
    tracking.fleet.learned = second
    tracking.fleet.version += 1
    tracking.track()
    [before, after] = baseline_switches(switches_in(tracking.broker), CONFIG.grid)[0]
    assert before.baseline.families["navigation"].cycles != [3.0]
    assert after.baseline.families["navigation"].cycles == [3.0]


def test_partitions_that_score_by_different_baselines_are_scored_by_their_own() -> None:
    def content_of(references: int, planning_s: float) -> bytes:
        [family] = nominal_baseline(CONFIG, references=references, planning_s=planning_s).families.values()
        return encode_scoring_family(family, CONFIG.grid)

    contents = {digest_of(content): content for content in (content_of(20, 0.125), content_of(21, 8.0))}
    near, far = (HeldContext({"navigation": digest}, contents.__getitem__) for digest in contents)
    fleet = Fleet(learned("navigation", references=21))
    scoring = ScoringBaseline(CONFIG, fleet, TrackSteps(CONFIG), 0.0)
    # What has been learned is no tenth more than either has: both go on, by the one that is further.
    assert scoring.renewed([near, far]).parts == scoring.renewed([far, near]).parts == far.parts
    frame = encode_msgpack(frame_of(nominal_rows(0, 12, planning_s=8.0)))
    event = StageEvent("steps", 0, 0, b"robot-7", frame, START_S)
    scored = [scoring.apply([event], [TrackSteps(CONFIG).blank()], context) for context in (near, far, near)]
    assert WINDOWS in {output.topic for output in scored[0]}
    assert WINDOWS not in {output.topic for output in scored[1]}
    assert scored[2] == scored[0]


def test_a_file_is_scored_by_though_no_family_of_it_is_mature() -> None:
    tracking = Tracking(Fleet(learned("navigation", references=1), pinned=True))
    tracking.track()
    assert tracking.references() == [{"navigation": 1}]


def test_what_a_family_scores_by_comes_back_to_the_last_bit() -> None:
    [family] = learned("navigation").families.values()
    data = encode_scoring_family(family, CONFIG.grid)
    found, grid = decode_scoring_family(data)
    assert (encode_scoring_family(found, grid), grid) == (data, CONFIG.grid)
    shuffled = msgspec.structs.replace(family, cells=dict(reversed(family.cells.items())), recent=[1, 2, 3])
    assert encode_scoring_family(shuffled, CONFIG.grid) == data
    assert (found.cells, found.policy, found.largest) == (family.cells, family.policy, family.largest)


def test_a_switch_whose_content_is_not_among_the_records_is_told() -> None:
    tracking = Tracking(Fleet(learned("navigation")))
    tracking.track()
    switches = [(key, value) for key, value in switches_in(tracking.broker) if b"/switch/" in key]
    with pytest.raises(StateFormatError, match="is not among the records"):
        baseline_switches(switches, CONFIG.grid)


def test_a_content_of_a_newer_version_is_told() -> None:
    data = msgspec.msgpack.decode(encode_scoring_family(learned("navigation").families["navigation"], CONFIG.grid))
    with pytest.raises(BaselineFormatError, match="scoring baseline has schema_version 99"):
        decode_scoring_family(msgspec.msgpack.encode([99, *data[1:]]))

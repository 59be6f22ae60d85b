"""What a worker measures of itself: counted once, of what it holds, and absent while it is not known."""

import asyncio
import json

import pytest

from springback.producers.contract.codec import encode_json, encode_msgpack
from springback.producers.contract.frame import StepFrame
from springback.stream_processors.exact.stage import ExactStage
from springback.stream_processors.exact.watches import StageCounts
from springback.stream_processors.metrics import services as metrics
from springback.stream_processors.metrics.spec import MetricSpec
from springback.stream_processors.resilience.baseline.estimates import materialise
from springback.stream_processors.resilience.baseline.stage_baseline import StageBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.service.health import Readiness
from springback.stream_processors.stages.aggregate_families import AggregateFamilies
from springback.stream_processors.stages.learn_baselines import LearnBaselines
from springback.stream_processors.stages.track_steps import TrackSteps
from springback.stream_processors.suspicions.batch_signs import WORKER_KINDS
from springback.stream_processors.worker.agents import Stages
from springback.stream_processors.worker.measurements import STEP_FATES, measure_worker
from tests.stream_processors.fake_engine import FakeEngine
from tests.stream_processors.frame_builders import frame_of_parts, header_of, nominal_rows

CONFIG = ResilienceConfig()
TRACK_STEPS = "track_steps"
STAGES = {TRACK_STEPS, "learn_baselines", "aggregate_families"}


class Worker:
    """The stages of a worker on an engine; its input comes to `track_steps`."""

    def __init__(self) -> None:
        self.engine = FakeEngine()
        nothing = materialise(StageBaseline(), CONFIG.baseline, CONFIG.window.fixed_bounds())
        tracker = TrackSteps(CONFIG, nothing)
        learner, families = LearnBaselines(CONFIG.baseline), AggregateFamilies(CONFIG.aggregate)
        quiet, clock = FakeEngine(), self.engine.clock
        self.tracking = ExactStage(
            TRACK_STEPS, self.engine, self.engine, tracker, lambda _: 0, clock=clock, settled=tracker.settle
        )
        self.stages = Stages(
            self.tracking,
            ExactStage("learn_baselines", quiet, quiet, learner, lambda _: 0, clock=clock),
            ExactStage("aggregate_families", quiet, quiet, families, lambda _: 0, clock=clock),
            tracker,
            learner,
            families,
        )
        self.readiness = Readiness(list, 10.0, clock, lambda: 1000.0)

    def arrive(self, *frames: StepFrame, partition: int = 0) -> None:
        for frame in frames:
            self.engine.append(partition, frame.producer.encode(), encode_msgpack(frame))
        asyncio.run(self.tracking.process(self.engine.read(partition)))

    def tick(self) -> None:
        asyncio.run(self.tracking.tick())

    def measured(self) -> dict[tuple[str, ...], float]:
        found = measure_worker(self.stages, self.readiness, baseline_cells=12, rebalances=3, now=self.engine.now)
        return {(one.metric.name, *one.labels): one.value for one in found}

    def value(self, metric: MetricSpec, *labels: str) -> float | None:
        return self.measured().get((metric.name, *labels))


@pytest.fixture
def worker() -> Worker:
    return Worker()


def frame(agent: str, first: int = 0, ends: bool = False) -> StepFrame:
    """Five steps of an agent's episode."""
    rows = nominal_rows(first, first + 5)
    return frame_of_parts([(header_of(agent=agent), rows, "failure" if ends else None)], producer=agent)


def test_each_metric_is_measured_with_the_labels_that_it_has(worker: Worker) -> None:
    worker.readiness.check()
    worker.arrive(frame("a"))
    worker.tick()
    found = list(
        measure_worker(worker.stages, worker.readiness, baseline_cells=12, rebalances=3, now=worker.engine.now)
    )
    assert {one.metric for one in found} == set(metrics.WORKER_METRICS)
    assert all(len(one.labels) == len(one.metric.labels) for one in found)
    assert {label for one in found for label in one.labels} == {*STAGES, *STEP_FATES, *WORKER_KINDS}
    measured = worker.measured()
    assert len(measured) == len(found)
    assert measured[metrics.WORKER_READY.name,] == 1
    assert measured[metrics.WORKER_READY_CHANGED.name,] == 1000
    assert measured[metrics.WORKER_REBALANCES.name,] == 3
    assert measured[metrics.WORKER_BASELINE_CELLS.name,] == 12


def test_frames_and_steps_are_counted_once(worker: Worker) -> None:
    worker.arrive(frame("a"), frame("b"))
    worker.engine.read_next[0] = 0
    asyncio.run(worker.tracking.process(worker.engine.read(0)))
    assert worker.value(metrics.WORKER_FRAMES) == 2
    assert worker.value(metrics.WORKER_MESSAGES, TRACK_STEPS) == 2
    assert worker.value(metrics.WORKER_STEPS) == 10
    assert worker.value(metrics.WORKER_COVERED_MESSAGES, TRACK_STEPS) == 2


def test_what_the_frames_of_a_session_show_is_counted_once_however_often_they_are_read(worker: Worker) -> None:
    odd = json.loads(encode_json(frame("a")))
    odd["steps"]["planing_s"] = [0.1] * 5
    later = json.loads(encode_json(frame("a", first=5, ends=True)))
    later["steps"]["planing_s"] = [0.1] * 5
    for one in (odd, later, odd | {"episodes": [odd["episodes"][0] | {"episode": "another"}]}):
        worker.engine.append(0, b"a", json.dumps(one).encode())
    worker.engine.append(0, b"a", b"no frame")
    worker.engine.append(0, b"b", json.dumps(odd).encode())
    for _ in range(2):  # what is read again is counted once
        worker.engine.read_next[0] = 0
        asyncio.run(worker.tracking.process(worker.engine.read(0)))
    assert worker.value(metrics.WORKER_SUSPICIONS, "unknown_column") == 1
    assert worker.value(metrics.WORKER_SUSPICIONS, "unreadable_part") == 1
    assert worker.value(metrics.WORKER_SUSPICIONS, "wrong_key") == 1
    # The engine's own clock is far behind the frames'.
    assert set(worker.stages.tracker.suspicions.counts) == {
        "unknown_column",
        "unreadable_part",
        "wrong_key",
        "clock_ahead",
    }
    assert worker.value(metrics.WORKER_SUSPICIONS, "clock_ahead") == 15


def test_the_age_of_the_last_offset_outlives_the_partitions(worker: Worker) -> None:
    assert worker.value(metrics.WORKER_LAST_OFFSET_AGE, TRACK_STEPS) is None
    worker.arrive(frame("a"))
    worker.engine.now += 70
    assert worker.value(metrics.WORKER_LAST_OFFSET_AGE, TRACK_STEPS) == 70
    worker.tracking.forget()
    assert worker.value(metrics.WORKER_LAST_OFFSET_AGE, TRACK_STEPS) == 70
    assert worker.value(metrics.WORKER_LAST_OFFSET_AGE, "learn_baselines") is None


def test_what_is_behind_is_known_once_the_broker_was_asked(worker: Worker) -> None:
    worker.arrive(frame("a"))
    for partition in (0, 1, 1):
        worker.engine.append(partition, b"b", encode_msgpack(frame("b")))
    assert worker.value(metrics.WORKER_OFFSETS_BEHIND, TRACK_STEPS) is None
    worker.tick()
    assert worker.value(metrics.WORKER_OFFSETS_BEHIND, TRACK_STEPS) == 3
    worker.arrive(partition=1)
    assert worker.value(metrics.WORKER_OFFSETS_BEHIND, TRACK_STEPS) == 1
    worker.arrive(frame("c"))  # one more than there was when the broker was asked
    assert worker.value(metrics.WORKER_OFFSETS_BEHIND, TRACK_STEPS) == 0
    worker.tracking.forget()
    assert worker.value(metrics.WORKER_OFFSETS_BEHIND, TRACK_STEPS) is None


def test_a_worker_whose_batches_fail_stays_behind_and_ages(worker: Worker) -> None:
    worker.arrive(frame("a"))
    worker.tick()
    worker.engine.append(0, b"b", encode_msgpack(frame("b")))
    worker.tick()
    for failures in range(1, 4):
        worker.engine.fail_sends = 1
        worker.engine.now += 40
        asyncio.run(worker.tracking.process(worker.engine.read(0)))
        assert worker.value(metrics.WORKER_ABANDONED_BATCHES, TRACK_STEPS) == failures
        assert worker.value(metrics.WORKER_OFFSETS_BEHIND, TRACK_STEPS) == 1
        assert worker.value(metrics.WORKER_LAST_OFFSET_AGE, TRACK_STEPS) == 40 * failures
    assert worker.value(metrics.WORKER_FRAMES) == 1
    assert worker.value(metrics.WORKER_READ_AGAIN, TRACK_STEPS) == 3


def test_open_episodes_are_those_of_all_partitions_held(worker: Worker) -> None:
    worker.arrive(frame("a"), frame("b"))
    worker.arrive(frame("c"), partition=1)
    assert worker.value(metrics.WORKER_OPEN_EPISODES) is None, "nothing was looked at yet in partition 2"
    worker.tick()
    assert worker.value(metrics.WORKER_OPEN_EPISODES) == 3
    worker.arrive(frame("a", first=5, ends=True))
    assert worker.value(metrics.WORKER_OPEN_EPISODES) == 2
    worker.engine.fail_sends = 1
    worker.arrive(frame("d"))
    assert worker.value(metrics.WORKER_OPEN_EPISODES) is None, "abandoned: the states must be loaded again"
    worker.arrive()
    assert worker.value(metrics.WORKER_OPEN_EPISODES) is None, "of one partition they are loaded"
    worker.tick()
    assert worker.value(metrics.WORKER_OPEN_EPISODES) == 3


def test_each_count_of_a_stage_has_a_metric_of_its_own(worker: Worker) -> None:
    counted = {
        "events": metrics.WORKER_MESSAGES,
        "covered": metrics.WORKER_COVERED_MESSAGES,
        "left_over": metrics.WORKER_LEFT_OVER_MESSAGES,
        "abandoned": metrics.WORKER_ABANDONED_BATCHES,
        "sent_back": metrics.WORKER_READ_AGAIN,
        "holes": metrics.WORKER_HOLES,
        "lost_offsets": metrics.WORKER_LOST_OFFSETS,
        "rejected": metrics.WORKER_REJECTED_MESSAGES,
        "tick_failures": metrics.WORKER_TICK_FAILURES,
    }
    for number, name in enumerate(counted, start=1):
        setattr(worker.stages.learn_baselines.counts, name, number)
    assert [worker.value(metric, "learn_baselines") for metric in counted.values()] == list(range(1, 10))


def test_a_hole_counts_once_whatever_its_length() -> None:
    counts = StageCounts()
    counts.passed_over(40)
    counts.passed_over(2)
    assert (counts.holes, counts.lost_offsets) == (2, 42)


def test_switches_are_those_of_the_stage_that_scores(worker: Worker) -> None:
    worker.stages.track_steps.counts.switches = 3
    assert worker.value(metrics.WORKER_SWITCHES) == 3

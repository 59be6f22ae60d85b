"""What a worker measures of itself, by the metrics of `metrics.services`."""

from collections.abc import Iterator
from typing import Any, get_args

from springback.stream_processors.exact.stage import ExactStage
from springback.stream_processors.metrics import services as metrics
from springback.stream_processors.resilience.readings import UnusedReason
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState
from springback.stream_processors.service.health import Measurement, Readiness
from springback.stream_processors.suspicions.batch_signs import WORKER_KINDS
from springback.stream_processors.worker.agents import Stages

STEP_FATES = ("taken", "rejected", *get_args(UnusedReason))


def measure_worker(
    stages: Stages, readiness: Readiness, *, baseline_cells: int, rebalances: int, now: float
) -> Iterator[Measurement]:
    """Everything that the worker measures.

    Args:
        stages: of the worker.
        readiness: of the worker.
        baseline_cells: how many cells of the baselines it has read.
        rebalances: how many it has taken part in.
        now: by the stages' clock.
    """
    yield Measurement(metrics.WORKER_READY, readiness.ready)
    yield Measurement(metrics.WORKER_READY_CHANGED, readiness.changed_s)
    yield Measurement(metrics.WORKER_FRAMES, stages.track_steps.counts.events)
    yield Measurement(metrics.WORKER_STEPS, stages.tracker.steps)
    for fate in STEP_FATES:
        yield Measurement(metrics.WORKER_STEP_FATES, stages.tracker.fates[fate], (fate,))
    for kind in WORKER_KINDS:
        yield Measurement(metrics.WORKER_SUSPICIONS, stages.tracker.suspicions.counts[kind], (kind,))
    yield Measurement(metrics.WORKER_TOLD_LOSSES, stages.tracker.told_losses)
    yield Measurement(metrics.WORKER_SHEDDINGS, stages.tracker.sheddings)
    for stage in stages.all():
        yield from _measure_stage(stage, now)
    yield Measurement(metrics.WORKER_SWITCHES, stages.track_steps.counts.switches)
    yield Measurement(metrics.WORKER_REBALANCES, rebalances)
    states = stages.track_steps.states()
    if states is not None:
        yield Measurement(metrics.WORKER_OPEN_EPISODES, _open_episodes(states))
    yield Measurement(metrics.WORKER_BASELINE_CELLS, baseline_cells)
    yield Measurement(metrics.WORKER_IGNORED_CONTRIBUTIONS, stages.learner.ignored)
    yield Measurement(metrics.WORKER_GROUPS_LET_GO, stages.families.groups_let_go)


def _measure_stage(stage: ExactStage[Any], now: float) -> Iterator[Measurement]:
    counts, label = stage.counts, (stage.name,)
    if counts.last_processed_at is not None:
        yield Measurement(metrics.WORKER_LAST_OFFSET_AGE, now - counts.last_processed_at, label)
    behind = counts.behind()
    if behind is not None:
        yield Measurement(metrics.WORKER_OFFSETS_BEHIND, behind, label)
    for metric, count in (
        (metrics.WORKER_MESSAGES, counts.events),
        (metrics.WORKER_COVERED_MESSAGES, counts.covered),
        (metrics.WORKER_LEFT_OVER_MESSAGES, counts.left_over),
        (metrics.WORKER_ABANDONED_BATCHES, counts.abandoned),
        (metrics.WORKER_READ_AGAIN, counts.sent_back),
        (metrics.WORKER_HOLES, counts.holes),
        (metrics.WORKER_LOST_OFFSETS, counts.lost_offsets),
        (metrics.WORKER_REJECTED_MESSAGES, counts.rejected),
        (metrics.WORKER_COSTLY_MESSAGES, counts.too_costly),
        (metrics.WORKER_LARGE_STATES, counts.too_large),
        (metrics.WORKER_TICK_FAILURES, counts.tick_failures),
    ):
        yield Measurement(metric, count, label)


def _open_episodes(states: list[TrackerState]) -> int:
    return sum(len(agent.open) for state in states for agent in state.agents.values())

"""What a judge measures of itself, by the metrics of `resilience/judge_metrics.py`."""

from collections.abc import Iterator

from springback.stream_processors.judging.judge_counts import JudgeCounts
from springback.stream_processors.metrics_page import Measurement
from springback.stream_processors.resilience import judge_metrics as metrics


def measure_judge(
    counts: JudgeCounts, *, ready: bool, endpoint_down: bool, waiting_frames: int
) -> Iterator[Measurement]:
    """All that is measured.

    Args:
        counts: of the judge since it began.
        ready: whether it has joined its group.
        endpoint_down: whether the endpoint counts as down.
        waiting_frames: how many it holds.
    """
    events = counts.events
    yield Measurement(metrics.JUDGE_READY, ready)
    yield Measurement(metrics.JUDGE_ENDPOINT_DOWN, endpoint_down)
    yield Measurement(metrics.JUDGE_FRAMES, events["frames"])
    yield Measurement(metrics.JUDGE_JUDGED_FRAMES, events["judged_frames"])
    yield Measurement(metrics.JUDGE_UNJUDGEABLE_FRAMES, events["unreadable_frames"], ("unreadable",))
    yield Measurement(metrics.JUDGE_UNJUDGEABLE_FRAMES, events["faulty_frames"], ("faulty",))
    yield Measurement(metrics.JUDGE_UNJUDGEABLE_FRAMES, events["oversized_frames"], ("oversized",))
    for cause, steps in counts.steps.items():
        yield Measurement(metrics.JUDGE_STEPS, steps, (cause,))
    yield Measurement(metrics.JUDGE_CALLS, events["calls"])
    yield Measurement(metrics.JUDGE_RETRIES, events["retries"])
    yield Measurement(metrics.JUDGE_WAITING_FRAMES, waiting_frames)

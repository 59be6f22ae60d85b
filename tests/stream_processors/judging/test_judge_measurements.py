"""What a judge measures of itself: all that it counts, each under its own metric and label."""

from typing import get_args

import pytest

from springback.stream_processors.judging.counts import Cause, Event, JudgeCounts
from springback.stream_processors.judging.process import measure_judge
from springback.stream_processors.metrics import services as metrics
from springback.stream_processors.metrics.services import JUDGE_METRICS


@pytest.mark.parametrize("is_so", [False, True])
def test_every_metric_is_measured_with_the_labels_that_it_has(is_so: bool) -> None:
    found = list(measure_judge(JudgeCounts(), ready=is_so, endpoint_down=not is_so, useless_calls=7, waiting_frames=5))
    assert {one.metric for one in found} == set(JUDGE_METRICS)
    assert all(len(one.labels) == len(one.metric.labels) for one in found)
    values = {one.metric: one.value for one in found}
    assert (values[metrics.JUDGE_READY], values[metrics.JUDGE_ENDPOINT_DOWN]) == (is_so, not is_so)
    assert values[metrics.JUDGE_WAITING_FRAMES] == 5
    assert values[metrics.JUDGE_USELESS_CALLS] == 7


def test_each_count_is_shown_once() -> None:
    counts = JudgeCounts()
    for number, cause in enumerate(get_args(Cause)):
        counts.add_steps(cause, 100 + number)
    for number, event in enumerate(get_args(Event)):
        counts.events[event] = 1 + number
    found = list(measure_judge(counts, ready=True, endpoint_down=False, useless_calls=0, waiting_frames=0))
    assert {one.labels[0]: one.value for one in found if one.metric is metrics.JUDGE_STEPS} == counts.steps
    assert {(one.metric, *one.labels): one.value for one in found if one.metric.kind == "counter"}.items() >= {
        (metrics.JUDGE_FRAMES,): counts.events["frames"],
        (metrics.JUDGE_JUDGED_FRAMES,): counts.events["judged_frames"],
        (metrics.JUDGE_UNJUDGEABLE_FRAMES, "unreadable"): counts.events["unreadable_frames"],
        (metrics.JUDGE_UNJUDGEABLE_FRAMES, "faulty"): counts.events["faulty_frames"],
        (metrics.JUDGE_UNJUDGEABLE_FRAMES, "oversized"): counts.events["oversized_frames"],
        (metrics.JUDGE_CALLS,): counts.events["calls"],
        (metrics.JUDGE_RETRIES,): counts.events["retries"],
    }.items()

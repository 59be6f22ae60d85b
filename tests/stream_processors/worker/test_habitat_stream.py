"""Recorded Habitat episodes through the watched environment: streamed as offline, and the unfit quarantined."""

import asyncio
import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from springback.stream_processors.offline.evaluation import evaluate_frames
from springback.stream_processors.offline.tables import FamilyRow, family_table
from springback.stream_processors.resilience.baseline.codec import dump_baseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import EpisodeSummary, WindowReading
from springback.stream_processors.topics import DEAD_LETTER, SUMMARIES, WINDOWS
from tests.house import DATA
from tests.producers.habitat.fake_habitat import Trace, read_traces
from tests.producers.habitat.trace_replay import replay_lab
from tests.stream_processors.conftest import Recorded, until

if TYPE_CHECKING:
    from tests.stream_processors.conftest import Stream

TRACES = DATA / "habitat_lab_pointnav.traces.jsonl.gz"
BROKEN = {"house_a.glb/nan-start": math.nan, "house_a.glb/inf-start": math.inf, "house_a.glb/nan-midst": math.nan}
BROKEN_FROM = 20


def with_broken_ones(traces: list[Trace]) -> list[Trace]:
    """The episodes, and three clean ones more whose distances are broken: two from the start, one from a step on."""
    broken: list[Trace] = []
    for name, distance_m in BROKEN.items():
        trace = [{**row, "episode_id": name.partition("/")[2]} for row in traces[0]]
        for row in trace[BROKEN_FROM if name.endswith("midst") else 0 :]:
            row["metrics"] = {**row["metrics"], "distance_to_goal": distance_m}
        if name.endswith("start"):
            trace[0]["start_geodesic"] = distance_m
        broken.append(trace)
    return [*traces[:5], *broken, *traces[5:]]


def lines(rows: list[FamilyRow]) -> list[tuple[Any, ...]]:
    return [
        (row.stress, row.episodes, row.censored, row.windows, pytest.approx(row.recovery_cost_mean, rel=1e-9))
        for row in rows
    ]


def test_offline_the_unfit_are_counted_and_teach_nothing() -> None:
    traces = read_traces(TRACES)
    fit, all_of_them = (
        evaluate_frames(replay_lab(some), ResilienceConfig()) for some in (traces, with_broken_ones(traces))
    )
    assert not fit.rejected
    # The first broken one in the midst is bridged: it might have been alone.
    bad = 3 * len(traces[0]) - BROKEN_FROM - 1
    assert Counter(row.reason for row in all_of_them.rejected) == {"not_finite": bad}
    assert all(row.row["feedback"].startswith("quarantined: the distance ") for row in all_of_them.rejected)
    assert dump_baseline(all_of_them.baseline) == dump_baseline(fit.baseline)
    costs = [
        {row.stress: row.recovery_cost_mean for row in family_table(found.summaries, found.windows)}
        for found in (fit, all_of_them)
    ]
    assert costs[0] == costs[1]
    censored = {summary.key.episode for summary in all_of_them.summaries if summary.censored}
    assert censored == BROKEN.keys()


@pytest.mark.broker
def test_streamed_as_offline_the_cost_rises_with_stress(embedded_stream: "Stream") -> None:
    traces = with_broken_ones(read_traces(TRACES))
    frames = replay_lab(traces)
    baseline = evaluate_frames(frames, ResilienceConfig()).baseline
    offline = evaluate_frames(frames, ResilienceConfig(), baseline, lagged=True)
    recorded = Recorded(frames, offline, dump_baseline(baseline))
    embedded_stream.freeze(recorded)
    worker = embedded_stream.start()
    worker.wait_until_ready()
    dead: list[dict[str, Any]] = []

    async def scenario() -> list[FamilyRow]:
        await embedded_stream.send_frames(frames)
        await embedded_stream.wait_for_episodes(recorded)

        async def all_dead_letters() -> bool:
            dead[:] = [json.loads(record.value) for record in await embedded_stream.read(DEAD_LETTER)]
            return len(dead) >= len(offline.rejected)

        await until(all_dead_letters, "every row of the unfit is among the dead letters")
        summaries = (await embedded_stream.readings(SUMMARIES)).values()
        windows = (await embedded_stream.readings(WINDOWS)).values()
        return family_table(
            [found for found in summaries if isinstance(found, EpisodeSummary)],
            [found for found in windows if isinstance(found, WindowReading) and found.state != "open"],
        )

    streamed = asyncio.run(scenario())
    assert worker.end() == 0, worker.log()
    assert lines(streamed) == lines(family_table(offline.summaries, offline.windows))
    assert len(dead) == len(offline.rejected)
    costs = [row.recovery_cost_mean or 0.0 for row in streamed]
    assert [row.stress for row in streamed] == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert costs[0] < 0.1 < sum(costs[1:3]) / 2 < sum(costs[3:5]) / 2 < costs[5]

"""Real Habitat episodes: the stress-response curve against a batch by numpy, and what is known of it.

`habitat_sim_nav_depth.episodes.json.gz` holds what the 216 episodes of that recording came to; of the other recording
the frames themselves are here.
"""

import gzip
import json
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from springback.producers.recordings.step_frames import read_frames
from springback.stream_processors.offline.evaluation import evaluate_frames
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.families.family_aggregate import aggregate
from springback.stream_processors.resilience.readings import EpisodeSummary
from tests.house import DATA
from tests.stream_processors.resilience.families.summary_builders import summary_of

CONFIG = ResilienceConfig()


@pytest.fixture(scope="module")
def sim_nav_depth() -> list[EpisodeSummary]:
    content = json.loads(gzip.decompress((DATA / "habitat_sim_nav_depth.episodes.json.gz").read_bytes()))
    return [summary_of(**dict(zip(content["columns"], row, strict=True))) for row in content["rows"]]


@pytest.fixture(scope="module")
def lab_pointnav() -> list[EpisodeSummary]:
    frames = [found.frame for found in read_frames([DATA / "habitat_lab_pointnav.frames.jsonl.gz"])]
    # Eight references teach it: whatever they come to is provisional, but what it comes to is the point here.
    return [msgspec.structs.replace(found, provisional=False) for found in evaluate_frames(frames, CONFIG).summaries]


def by_rank(values: Any, rank: float) -> float:
    return float(np.quantile(np.asarray(values, dtype=float), rank, method="inverted_cdf"))


def batch_margins(summaries: list[EpisodeSummary]) -> dict[float, tuple[float, float, int]]:
    """By stress level M_f, M_f at best and the number of episodes that break the default contract, by numpy."""
    names = ("final_progress", "final_propositions", "recovery_cost", "stability_loss", "violation")
    values = np.array([[getattr(summary, name) for name in names] for summary in summaries], dtype=float)
    clean = np.array([summary.traits.reference for summary in summaries])
    stress = np.round(np.array([summary.traits.declared_stress for summary in summaries], dtype=float) * 5) / 5
    least = [max(0.05, min(0.5, 0.9 * by_rank(values[clean, i], 0.1))) for i in (0, 1)]
    most = [max(f, 2 * by_rank(values[clean, i], 0.95)) for i, f in ((2, 5.0), (3, 1e-6), (4, 5.0))]

    def margin(entries: list[float]) -> float:
        return float(np.mean(np.sort(np.minimum(entries, 1.5))[:2]) - 1)

    found = {}
    for point in np.unique(stress):
        inside = np.sort(values[stress == point], axis=0)
        count = len(inside)
        sure = max(k for k in range(1, count + 1) if stats.binom.sf(k - 1, count, 0.9) >= 0.95)
        likely = [by_rank(inside[:, i], 0.1) / tau for i, tau in enumerate(least)]
        likely += [tau / (by_rank(inside[:, i], 0.9) + 1e-9) for i, tau in enumerate(most, start=2)]
        best = [inside[-sure, i] / tau for i, tau in enumerate(least)]
        best += [tau / (inside[sure - 1, i] + 1e-9) for i, tau in enumerate(most, start=2)]
        own = values[stress == point]
        reached = (own[:, 0] >= least[0]) & (own[:, 1] >= least[1])
        cheap = [own[:, i] + 1e-9 <= tau for i, tau in enumerate(most, start=2)]
        found[float(point)] = margin(likely), margin(best), count - int((reached & np.all(cheap, axis=0)).sum())
    return found


@pytest.mark.parametrize("name", ["sim_nav_depth", "lab_pointnav"])
def test_the_curve_of_a_recording(name: str, request: pytest.FixtureRequest) -> None:
    summaries: list[EpisodeSummary] = request.getfixturevalue(name)
    (found,) = aggregate(summaries, CONFIG.aggregate)
    expected = batch_margins(summaries)
    for point in found.margins:
        margin, at_best, violations = expected[point.stress]
        assert point.margin == pytest.approx(margin, abs=1e-9)
        assert point.favourable_margin == pytest.approx(at_best, abs=1e-9)
        assert point.violations == violations
        interval = stats.binomtest(violations, point.episodes).proportion_ci(method="wilson")
        held = "undecided" if interval.low > 0.1 else "kept"
        assert point.state == (held if margin >= 0 else "broken" if at_best < 0 else "undecided")
    kept = [stress for stress, (margin, _, _) in expected.items() if margin >= 0]
    assert (found.capacity, found.capacity_flag) == (max(kept), "ok")
    assert found.first_breach == min(expected.keys() - kept)


def test_every_episode_at_stress_0_is_withstood_and_most_at_02_are_not(sim_nav_depth: list[EpisodeSummary]) -> None:
    (found,) = aggregate(sim_nav_depth, CONFIG.aggregate)
    assert (found.capacity, found.dependable, found.tested_up_to, found.first_breach) == (0.0, 0.0, 1.0, 0.2)
    # Of the 36 episodes at 0.2 all arrive, but 26 cost more than the 5 that clean ones may, or collide more often.
    assert [level.violations for level in found.margins] == [0, 26, 36, 36, 36, 36]
    assert [level.state for level in found.margins] == ["kept", *["broken"] * 5]

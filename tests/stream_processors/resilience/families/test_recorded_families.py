"""Real Habitat episodes: the stress-response curve against a batch by numpy, and what is known of it.

`habitat_sim_nav_depth.episodes.json.gz` holds what the 216 episodes of that recording came to; of the other recording
the frames themselves are here.
"""

import gzip
import json
from typing import Any

import numpy as np
import pytest

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
    return evaluate_frames(frames, CONFIG).summaries


def by_rank(values: Any, rank: float) -> float:
    return float(np.quantile(np.asarray(values, dtype=float), rank, method="inverted_cdf"))


def batch_margins(summaries: list[EpisodeSummary]) -> list[float]:
    """M_f at each stress of the grid, with the default contract."""
    names = ("final_progress", "final_propositions", "recovery_cost", "stability_loss", "violation")
    values = np.array([[getattr(summary, name) for name in names] for summary in summaries], dtype=float)
    clean = np.array([summary.traits.reference for summary in summaries])
    stress = np.round(np.array([summary.traits.stress for summary in summaries]) * 5) / 5
    most = [max(f, 2 * by_rank(values[clean, i], 0.95)) for i, f in ((2, 10.0), (3, 1e-6), (4, 5.0))]
    margins = []
    for point in np.unique(stress):
        inside = values[stress == point]
        entries = [by_rank(inside[:, i], 0.1) / 0.5 for i in (0, 1)]
        entries += [tau / (by_rank(inside[:, i], 0.9) + 1e-9) for i, tau in zip((2, 3, 4), most, strict=True)]
        margins.append(float(np.mean(np.sort(np.minimum(entries, 10.0))[:3]) - 1))
    return margins


@pytest.mark.parametrize(
    ("name", "capacity", "first_breach"), [("sim_nav_depth", 0.2, 0.4), ("lab_pointnav", 0.4, 0.6)]
)
def test_the_curve_of_a_recording(
    name: str, capacity: float, first_breach: float, request: pytest.FixtureRequest
) -> None:
    summaries: list[EpisodeSummary] = request.getfixturevalue(name)
    (found,) = aggregate(summaries, CONFIG.aggregate)
    margins = [point.margin for point in found.margins]
    expected = batch_margins(summaries)
    assert margins == pytest.approx(expected, abs=1e-9)
    assert expected[1:] == sorted(expected[1:], reverse=True)
    assert (found.capacity, found.capacity_flag, found.first_breach) == (capacity, "ok", first_breach)

"""Stability loss and beta_step of whole recordings against the literal implementation of the definition."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.producers.contract.frame import StepFrame, TextColumn
from springback.producers.recordings.step_frames import read_frames
from springback.stream_processors.offline.evaluation import evaluate_frames, learn_baseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import EpisodeKey, EpisodeSummary
from springback.stream_processors.resilience.stability.stability_state import StabilityConfig
from tests.house import DATA
from tests.stream_processors.frame_builders import Part, ready, run_tracker
from tests.stream_processors.random_episodes import by_seed, cut_into_frames, judged_episodes
from tests.stream_processors.resilience.literal_metrics import Row
from tests.stream_processors.resilience.stability.literal_stability import LiteralStability

CONFIG = ResilienceConfig()
RECORDING = DATA / "habitat_lab_pointnav.frames.jsonl.gz"


def check(summary: EpisodeSummary, literal: LiteralStability, rows: list[Row]) -> None:
    if summary.outcome == "aborted":
        assert (summary.stability_loss, summary.beta_step) == (None, None)
        return
    success = summary.outcome == "success"
    assert summary.stability_loss == pytest.approx(literal.loss(rows, success), rel=1e-9, abs=1e-9)
    expected = literal.beta_step(rows, success)
    assert summary.beta_step == (None if expected is None else pytest.approx(expected, rel=1e-9, abs=1e-9))


@by_seed(12)
@given(seed=st.integers(0, 2**32 - 1))
def test_offline_agrees(seed: int) -> None:
    parts = judged_episodes(seed)
    evaluation = evaluate_frames(cut_into_frames(parts, seed), CONFIG, batch_frames=7)
    summaries = {summary.key: summary for summary in evaluation.summaries}
    assert len(summaries) == len(parts)
    for family, literal in literal_of(parts).items():
        for header, rows, _ in parts:
            if header.family == family:
                check(summaries[EpisodeKey(header.agent, "boot", "1")], literal, rows)


@by_seed(8)
@given(seed=st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("lag", [1, 5, 13, 64])
def test_the_stream_agrees_with_advantages_cut_off_at_the_lag(lag: int, seed: int) -> None:
    parts = judged_episodes(seed, families=1)
    frames = cut_into_frames(parts, seed)
    config = msgspec.structs.replace(CONFIG, stability=StabilityConfig(lag=lag))
    outputs, _ = run_tracker(frames, config, ready(learn_baseline(frames, config), config), [3] * 200)
    [literal] = literal_of(parts).values()
    literal.lag = lag
    rows_of = {EpisodeKey(header.agent, "boot", "1"): rows for header, rows, _ in parts}
    assert len(outputs.summaries) == len(parts)
    for summary in outputs.summaries:
        check(summary, literal, rows_of[summary.key])


def literal_of(parts: list[Part]) -> dict[str, LiteralStability]:
    """Each family's literal stability, learned from its references, all of which succeed."""
    families = dict.fromkeys(header.family for header, _, _ in parts)
    return {
        family: LiteralStability([rows for header, rows, _ in parts if header.reference and header.family == family])
        for family in families
    }


def rows_by_episode(frames: list[StepFrame]) -> dict[EpisodeKey, tuple[bool, list[Row]]]:
    """Every episode's rows in order, and whether it teaches."""
    found: dict[EpisodeKey, list[Row]] = {}
    reference: set[EpisodeKey] = set()
    succeeded: set[EpisodeKey] = set()
    for frame in frames:
        keys = [EpisodeKey(header.agent, frame.session, header.episode) for header in frame.episodes]
        reference |= {key for key, header in zip(keys, frame.episodes, strict=True) if header.reference}
        succeeded |= {keys[end.episode] for end in frame.ends if end.outcome == "success"}
        columns: dict[str, list[Any]] = {
            name: np.array(column.values)[column.codes].tolist() if isinstance(column, TextColumn) else column.tolist()
            for name, column in frame.steps.items()
        }
        for values in zip(*columns.values(), strict=True):
            row = dict(zip(columns, values, strict=True))
            found.setdefault(keys[row.get("episode", 0)], []).append(row)
    return {key: (key in reference and key in succeeded, rows) for key, rows in found.items()}


def test_offline_agrees_on_real_episodes() -> None:
    frames = [recorded.frame for recorded in read_frames([RECORDING])]
    episodes = rows_by_episode(frames)
    literal = LiteralStability([rows for teaches, rows in episodes.values() if teaches])
    summaries = evaluate_frames(frames, CONFIG).summaries
    assert len(summaries) == len(episodes) > 40
    assert max(summary.steps for summary in summaries) > 64
    for summary in summaries:
        assert {summary.traits.family} == {"navigation"}
        check(summary, literal, episodes[summary.key][1])
    assert len({round(summary.stability_loss or 0.0, 6) for summary in summaries}) > 30

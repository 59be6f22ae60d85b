"""Recorded episodes as a value model learns from them: states and shaped rewards, step by step."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from springback.producers.frame_parts import StepFrame
from springback.producers.frame_validation import tabulate
from springback.stream_processors.in_memory_driver import arrivals
from springback.stream_processors.resilience.admission import admit
from springback.stream_processors.resilience.batch_scoring import batch_rows, score
from springback.stream_processors.resilience.materialised_baseline import materialise
from springback.stream_processors.resilience.resilience_config import ResilienceConfig
from springback.stream_processors.resilience.shaped_reward import shaped_rewards
from springback.stream_processors.resilience.signals import Floats
from springback.stream_processors.resilience.stage_baseline import StageBaseline
from springback.stream_processors.resilience.tracker_state import TrackerState
from springback.stream_processors.resilience.value_model import AnchorValues, StateFeatures
from springback.stream_processors.resilience.valued_rows import state_features, value_rows


class RewardTrajectory(NamedTuple):
    """One episode: the states of its scored steps and the rewards of these steps (n,), and how it ended."""

    states: StateFeatures
    rewards: Floats
    success: bool


def reward_trajectories(
    frames: Iterable[StepFrame], config: ResilienceConfig, baseline: StageBaseline, *, references_only: bool = True
) -> list[RewardTrajectory]:
    """The recorded episodes that were seen to end, scored by the baseline; all are held in memory at once.

    Args:
        frames: the recording.
        config: settings of the core.
        baseline: what rewards are shaped and steps judged by.
        references_only: leave out episodes that are not marked as reference.
    """
    arrived = list(arrivals(frames))
    table = tabulate(arrived)
    ready = materialise(baseline, config.baseline, config.window.fixed_bounds())
    admission = admit(table, [TrackerState()] * len(arrived), config)
    rows = batch_rows(table, admission, ready)
    scored = score(rows, table.mode_names, admission, ready)
    valued = value_rows(rows, scored, table.mode_names, admission, ready, AnchorValues(ready), config.stability)
    states = state_features(rows, scored, table.mode_names, admission)
    found = []
    for number, slot in enumerate(admission.slots):
        own = slice(int(scored.starts[number]), int(scored.stops[number]))
        wanted = slot.episode.traits.reference or not references_only
        if wanted and slot.outcome not in (None, "aborted") and own.start < own.stop:
            success = slot.outcome == "success"
            last = np.array([own.stop - own.start - 1])
            rewards = shaped_rewards(
                valued.judged[own], valued.potential[own], last, np.array([success]), config.stability
            )
            found.append(RewardTrajectory(_part(states, own), rewards, success))
    return found


def _part(states: StateFeatures, own: slice) -> StateFeatures:
    return states._replace(
        family=states.family[own],
        mode=states.mode[own],
        progress=states.progress[own],
        propositions=states.propositions[own],
        excess=states.excess[own],
        cell=states.cell[own],
    )

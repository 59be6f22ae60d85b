"""Episodes of an agent that decides far more, or far less, often than those that have taught its family's baseline.

What a cycle does is compared with what a cycle does at the same stage. An agent that decides three times as often does
a third in each, however well it works, so its steps are left unscored, which is not calm, and its episode says why.
The rate is the median of the first cycle times, so that a pause or a slow stretch is no other rate. All of it is ours.
"""

import numpy as np

from springback.stream_processors.resilience.anchor import CYCLE, Bools
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.tracking.batch import Batch

RATE_CYCLES = 16
"""After so many known cycle times of an episode it is decided, once."""
FIRST_CYCLES = 64
"""So many are kept, whose median its summary tells."""


def follow_rates(batch: Batch, baseline: MaterialisedBaseline, config: ResilienceConfig) -> Bools:
    """Keeps the first cycle times of each episode, and decides of those that have enough. Mutates their states.

    Args:
        batch: the admitted rows.
        baseline: what to score by.
        config: settings of the core.

    Returns:
        which rows are not to be scored: those after the decision that their episode has another rate. Shape: (n,).
    """
    left_out = np.zeros(len(batch), dtype=bool)
    for place in batch.present.tolist():
        state = batch.episodes[place].state
        start, stop = int(batch.starts[place]), int(batch.stops[place])
        before, decided_at = len(state.cycles), start
        if before < FIRST_CYCLES:
            cycles = batch.signals[start:stop, CYCLE]
            known = np.flatnonzero(~np.isnan(cycles))
            state.cycles += cycles[known[: FIRST_CYCLES - before]].tolist()
            if before < RATE_CYCLES <= len(state.cycles):
                decided_at = start + int(known[RATE_CYCLES - before - 1]) + 1
        index = baseline.families.get(state.traits.family)
        if state.off_rate is None and len(state.cycles) >= RATE_CYCLES and index is not None:
            state.off_rate = _differs(float(np.median(state.cycles[:RATE_CYCLES])), index.cycle_s, config)
        if state.off_rate:
            left_out[decided_at:stop] = True
    return left_out


def _differs(cycle_s: float, usual_s: float | None, config: ResilienceConfig) -> bool:
    if usual_s is None or config.rate_ratio == "any":
        return False
    return not usual_s / config.rate_ratio <= cycle_s <= usual_s * config.rate_ratio

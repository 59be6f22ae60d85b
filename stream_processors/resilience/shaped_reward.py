"""The shaped reward of a step: what a judge thinks of it, and whether the task came nearer.

r~_t = judge + kappa_W (gamma Phi(a_{t+1}) - Phi(a_t)) with Phi(a) = -W*_rem(a, p) / W*_rem(a_0, 0): shaping by a
potential (Ng, Harada, Russell 1999) leaves the optimal policy as it is. The paper names judge and W*_rem; the form is
ours.
"""

import numpy as np
from springback.stream_processors.resilience.materialised_baseline import CellEstimates
from springback.stream_processors.resilience.policy_state import StabilityConfig
from springback.stream_processors.resilience.signals import CYCLE, GAINS, Bools, Floats, Ints

PROGRESS_GAIN, RETRIES = GAINS.start, 3


def shaped_rewards(judge: Floats, potential: Floats, last: Ints, success: Bools, config: StabilityConfig) -> Floats:
    """r~ of consecutive scored steps of some episodes. Shape: (n,) in and out.

    The potential after a success is 0; after any other end it is that of the last step.

    Args:
        judge: what a judge thinks of each step.
        potential: Phi of the state before each step.
        last: where the last step of each episode stands (k,).
        success: whether that episode was a success (k,).
        config: discount and weight of the shaping.
    """
    after = np.append(potential[1:], 0.0)
    after[last] = np.where(success, 0.0, potential[last])
    return judge + config.shaping * (config.discount * after - potential)


def judged(judge: Floats, signals: Floats, violation: Floats, cell: Ints, cells: CellEstimates) -> Floats:
    """What a judge thinks of each step, in [0, 1]: the mean of the scores that are there, else the rubric's.

    Shape: judge (n, 3) with NaN where there is no score, signals (n, 8), the others (n,).
    """
    there = ~np.isnan(judge)
    given = there.sum(axis=1)
    total = np.where(there, judge, 0.0).sum(axis=1)
    return np.where(given > 0, total / np.maximum(given, 1), rubric(signals, violation, cell, cells))


def rubric(signals: Floats, violation: Floats, cell: Ints, cells: CellEstimates) -> Floats:
    """A judge without a language model (ours): mean of goal progress, rationality and efficiency, each in [0, 1].

    Goal is the progress gained, as a share of the nominal gain; rationality is 1 without a retry or a violation, 0.5
    with one of them and 0 with both; efficiency is the nominal cycle time over the step's, at most 1.
    """
    goal = np.clip(signals[:, PROGRESS_GAIN] / cells.denominator[cell, PROGRESS_GAIN], 0.0, 1.0)
    rationality = 1.0 - 0.5 * (signals[:, RETRIES] > 0) - 0.5 * (violation > 0)
    nominal_s, cycle_s = cells.mean[cell, CYCLE], signals[:, CYCLE]
    efficiency = np.where(np.isnan(cycle_s), 1.0, np.minimum(1.0, nominal_s / np.where(cycle_s > 0, cycle_s, 1.0)))
    score: Floats = (goal + rationality + efficiency) / 3.0
    return score

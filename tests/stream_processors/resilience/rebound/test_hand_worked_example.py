"""Equations 1 to 3 worked by hand: three reference episodes of two steps, and one episode that fails in a window.

The working stands in the comments, in exact fractions; the core must agree to 1e-12.

References (A, B, C). Step 0 is in mode "run", step 1 in mode "grip"; both start below progress 0.1 with no proposition
met, so the leaves are (run, 0, 4) and (grip, 0, 4), three samples each. q is left out and so equals p.

               planning    perception   travel   retries   p after   risk   cycle
    run        1, 2, 3     2, 4, 6      4, 4, 4  0, 0, 0   0.05      0      1, 2, 3
    grip       5, 5, 5     4, 4, 4      1, 1, 1  1, 1, 1   1         0      4, 4, 4

The failing episode stays in (run, 0, 4) for both of its steps:

    step 0     12          10           4        2         0         1      3
    step 1     1           2            8        0         0.05      0      2
"""

from fractions import Fraction as F
from math import sqrt

import msgspec
import numpy as np
import pytest

from springback.producers.contract.frame import StepFrame
from springback.stream_processors.offline.evaluation import evaluate_frames, learn_baseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.rebound.rebound_window import WindowConfig
from springback.stream_processors.resilience.rebound.recovery_cost import CostConfig, remaining_work
from springback.stream_processors.resilience.rebound.recovery_intensity import excess, intensity
from tests.stream_processors.frame_builders import START_S, Row, frame_of, ready

CONFIG = ResilienceConfig(window=WindowConfig(effort_bound=4.0))
NAMES = ("planning_s", "perception_s", "travel", "retries", "progress", "risk", "cycle_time_s")
REFERENCES: list[list[tuple[float, ...]]] = [
    [(1, 2, 4, 0, 0.05, 0, 1), (5, 4, 1, 1, 1, 0, 4)],
    [(2, 4, 4, 0, 0.05, 0, 2), (5, 4, 1, 1, 1, 0, 4)],
    [(3, 6, 4, 0, 0.05, 0, 3), (5, 4, 1, 1, 1, 0, 4)],
]
FAILING: list[tuple[float, ...]] = [(12, 10, 4, 2, 0, 1, 3), (1, 2, 8, 0, 0.05, 0, 2)]


def rows(steps: list[tuple[float, ...]], modes: tuple[str, str]) -> list[Row]:
    return [
        {"step": t, "time_s": START_S + t, "mode": mode, **dict(zip(NAMES, values, strict=True))}
        for t, (values, mode) in enumerate(zip(steps, modes, strict=True))
    ]


def recording() -> list[StepFrame]:
    references = [
        frame_of(rows(steps, ("run", "grip")), "success", episode=f"reference-{i}", reference=True)
        for i, steps in enumerate(REFERENCES)
    ]
    return [*references, frame_of(rows(FAILING, ("run", "run")), "failure", episode="failing")]


# --- The cell (run, 0, 4), down the levels ------------------------------------------------------------------------
#
# Root: all six samples. Means: planning (2 + 5)/2 = 7/2, perception (4 + 4)/2 = 4, travel 5/2, retries 1/2,
# gains (1/20 + 19/20)/2 = 1/2, risk 0, cycle (2 + 4)/2 = 3.
#
# Every level below it (mode; mode and progress bin; leaf) holds the same n = 3 run samples, so with kappa = 20 each is
# mu = (3 x + 20 mu')/23: the distance d = mu - x from the samples' own mean x shrinks by a = 20/23, three times.
A = F(20, 23)
OWN = {"planning": F(2), "perception": F(4), "travel": F(4), "retries": F(0), "gain": F(1, 20), "cycle": F(2)}
ROOT = {"planning": F(7, 2), "perception": F(4), "travel": F(5, 2), "retries": F(1, 2), "gain": F(1, 2), "cycle": F(3)}
D0 = {name: ROOT[name] - OWN[name] for name in OWN}  # 3/2, 0, -3/2, 1/2, 9/20, 1
MEAN = {name: OWN[name] + A**3 * D0[name] for name in OWN}

# epsilon = max(absolute, root mean / 20): planning 7/40, perception 1/5, travel 1/8, retries 1/10 (the absolute one,
# for 1/40 is less), gains 1/40, risk 1/100 (the absolute one).
DENOMINATOR = {
    "planning": MEAN["planning"] + F(7, 40),
    "perception": MEAN["perception"] + F(1, 5),
    "travel": MEAN["travel"] + F(1, 8),
    "retries": MEAN["retries"] + F(1, 10),
    "gain": MEAN["gain"] + F(1, 40),
    "risk": F(1, 100),
}

# Covariance. Root, M2/5 over the six samples; between the two modes each pair adds 3 * 2 * (d/2's product) = 6 d d':
#   planning    2 + 6 (3/2)^2 = 31/2,  /5 = 31/10        perception  8 + 0 = 8,  /5 = 8/5        both  4 + 0, /5 = 4/5
#   travel      0 + 6 (3/2)^2 = 27/2,  /5 = 27/10        retries  6 (1/2)^2 = 3/2,  /5 = 3/10
#   travel with retries   6 (-3/2)(1/2) = -9/2,  /5 = -9/10
#   gains, each and together   6 (9/20)^2 = 243/200,  /5 = 243/1000        risk 0
# A level below: S = (M2 + 20 S' + 3 d d + 20 (d' - d)(d' - d))/23 with d = a d': 3 a^2 + 20 (3/23)^2 = 60/23, so
# S = a S' + M2/23 + (60/529) d' d', and after three levels, with d' = d0, a d0, a^2 d0,
# S = a^3 S0 + (1 + a + a^2) (M2/23 + (60/529) a^2 d0 d0).


def covariance(root: F, own_m2: F, one: str, other: str) -> F:
    return A**3 * root + (1 + A + A**2) * (own_m2 / 23 + F(60, 529) * A**2 * D0[one] * D0[other])


S_PLANNING = covariance(F(31, 10), F(2), "planning", "planning")
S_PERCEPTION = covariance(F(8, 5), F(8), "perception", "perception")
S_PLANNING_PERCEPTION = covariance(F(4, 5), F(4), "planning", "perception")
S_TRAVEL = covariance(F(27, 10), F(0), "travel", "travel")
S_RETRIES = covariance(F(3, 10), F(0), "retries", "retries")
S_TRAVEL_RETRIES = covariance(F(-9, 10), F(0), "travel", "retries")
S_GAIN = covariance(F(243, 1000), F(0), "gain", "gain")

# Remaining work. p before is 0 or 1/20, work left 2 or 1: at the root (n = 6 > 5) C_pw = 6 (-1/40)(1/2) = -3/40 and
# C_pp + 1e-5 n = 6/1600 + 6e-5 = 381/100000, slope -2500/127; at p = 0 that is 3/2 + (2500/127)/40 = 253/127. Below
# it n = 3 is too few for a slope: flat at 2. The distance from 2, -1/127, shrinks by a three times.
WORK = 2 - A**3 * F(1, 127)

# --- Equations 1 and 2 at the failing episode's steps --------------------------------------------------------------
#
# Step 0: planning 12, perception 10, travel 4 and retries 2 lie above their means (travel's is 4 - a^3 3/2); both
# gains are 0 and lag by their whole mean; risk 1 is 1/(1/100) = 100.
Z0 = [
    (12 - MEAN["planning"]) / DENOMINATOR["planning"],
    (10 - MEAN["perception"]) / DENOMINATOR["perception"],
    (4 - MEAN["travel"]) / DENOMINATOR["travel"],
    (2 - MEAN["retries"]) / DENOMINATOR["retries"],
    MEAN["gain"] / DENOMINATOR["gain"],
    MEAN["gain"] / DENOMINATOR["gain"],
    F(100),
]
# Step 1: planning 1, perception 2 and retries 0 lie below their means: nothing. Travel 8 does not. Gains of 1/20 lag
# behind 1/20 + a^3 9/20.
Z1 = [
    F(0),
    F(0),
    (8 - MEAN["travel"]) / DENOMINATOR["travel"],
    F(0),
    A**3 * F(9, 20) / DENOMINATOR["gain"],
    A**3 * F(9, 20) / DENOMINATOR["gain"],
    F(0),
]

ETA = F(1, 20)


def pair(z: list[F], s11: F, s12: F, s22: F, first: str, second: str) -> F:
    """(g^u)^2 of two signals: z' (D S D + eta I)^-1 z, by the adjoint over the determinant."""
    b11 = s11 / DENOMINATOR[first] ** 2 + ETA
    b12 = s12 / (DENOMINATOR[first] * DENOMINATOR[second])
    b22 = s22 / DENOMINATOR[second] ** 2 + ETA
    return (b22 * z[0] ** 2 - 2 * b12 * z[0] * z[1] + b11 * z[1] ** 2) / (b11 * b22 - b12**2)


def squares(z: list[F]) -> tuple[F, F, F]:
    cognitive = pair(z[0:2], S_PLANNING, S_PLANNING_PERCEPTION, S_PERCEPTION, "planning", "perception")
    physical = pair(z[2:4], S_TRAVEL, S_TRAVEL_RETRIES, S_RETRIES, "travel", "retries")
    # The two gains are one signal twice, z = (y, y), with covariance s (1 1; 1 1): (1, 1) is an eigenvector of the
    # regularised block, of eigenvalue 2 s + eta. Risk never varied: its variance is eta alone.
    s = S_GAIN / DENOMINATOR["gain"] ** 2
    debt = 2 * z[4] ** 2 / (2 * s + ETA) + z[6] ** 2 / ETA
    return cognitive, physical, debt


G0, G1 = squares(Z0), squares(Z1)
TOTAL0, TOTAL1 = sqrt(sum(G0) / 3), sqrt(sum(G1) / 3)

# --- Equation 3 ----------------------------------------------------------------------------------------------------
#
# The sum of effort rises to min(g, 10) - 0.8 = 9.2 > 4 at step 0: departure and alarm there. Step 1 is not calm, and
# the episode fails: unrecovered, from step 0 to step 1. tau* is the shrunk mean cycle, 2 + a^3. No cycle is ten times
# that long, but step 0's g^rec is far above 10 and counts as 10: its channels by 10/g of themselves.
TAU, EPSILON = float(MEAN["cycle"]), 1e-9
COST = (3 / (TAU + EPSILON) * 10 + 2 / (TAU + EPSILON) * TOTAL1) / (float(WORK) + EPSILON)
BARE_COST = (3 / (TAU + EPSILON) * TOTAL0 + 2 / (TAU + EPSILON) * TOTAL1) / (float(WORK) + EPSILON)


def test_the_working_comes_to_these_decimals() -> None:
    # So that a slip in the fractions above cannot hide: the same by pocket calculator.
    assert [float(MEAN[name]) for name in ("planning", "travel", "retries", "gain", "cycle")] == pytest.approx(
        [2.986274348647982, 3.013725651352018, 0.3287581162159941, 0.3458823045943946, 2.657516232431988], rel=1e-12
    )
    assert float(WORK) == pytest.approx(1.9948227068312443, rel=1e-12)
    # g of the cognitive, physical and debt channels at both steps, g^rec, and the cost.
    assert [sqrt(g) for g in G0] == pytest.approx([5.392060414382947, 8.360557028279729, 447.214236042002], rel=1e-12)
    assert [sqrt(g) for g in G1] == pytest.approx([0.0, 6.590557894660383, 0.647496047431292], rel=1e-12)
    assert [TOTAL0, TOTAL1, BARE_COST, COST] == pytest.approx(
        [258.2631385157181, 3.8233800270750593, 147.5939963897256, 7.101455608499902], rel=1e-12
    )


def test_the_cell_and_its_remaining_work() -> None:
    baseline = ready(learn_baseline(recording(), CONFIG), CONFIG)
    row = baseline.families["navigation"].rows[baseline.families["navigation"].modes["run"], 0, 4]
    order = ("planning", "perception", "travel", "retries", "gain", "gain")
    assert baseline.cells.mean[row].tolist() == pytest.approx(
        [*(float(MEAN[name]) for name in order), 0.0, float(MEAN["cycle"])], rel=1e-12, abs=1e-15
    )
    assert baseline.cells.denominator[row].tolist() == pytest.approx(
        [*(float(DENOMINATOR[name]) for name in order), 0.01], rel=1e-12
    )
    work = remaining_work(np.array([0.0]), np.array([row]), baseline.cells)
    assert work[0] == pytest.approx(float(WORK), rel=1e-12)


@pytest.mark.parametrize(
    ("step", "gain", "z", "squared"), [(FAILING[0], 0.0, Z0, G0), (FAILING[1], 0.05, Z1, G1)], ids=["step 0", "step 1"]
)
def test_excess_and_intensity(step: tuple[float, ...], gain: float, z: list[F], squared: tuple[F, F, F]) -> None:
    baseline = ready(learn_baseline(recording(), CONFIG), CONFIG)
    index = baseline.families["navigation"]
    row = index.rows[[index.modes["run"]], 0, 4]
    planning, perception, travel, retries, _, risk, cycle = step
    signals = np.array([[planning, perception, travel, retries, gain, gain, risk, cycle]], dtype=np.float64)
    found = excess(signals, row, baseline.cells)
    assert found[0].tolist() == pytest.approx([float(value) for value in z], rel=1e-12, abs=1e-15)
    level = intensity(found, row, baseline.cells)
    assert level.cognitive[0] == pytest.approx(sqrt(squared[0]), rel=1e-12)
    assert level.physical[0] == pytest.approx(sqrt(squared[1]), rel=1e-12)
    assert level.debt[0] == pytest.approx(sqrt(squared[2]), rel=1e-12)
    assert level.total[0] == pytest.approx(sqrt(sum(squared) / 3), rel=1e-12)


@pytest.mark.parametrize("capped", [True, False], ids=["capped", "bare"])
def test_the_windows_recovery_cost(capped: bool) -> None:
    cost, share = (COST, 10 / TOTAL0) if capped else (BARE_COST, 1.0)
    bare = msgspec.structs.replace(CONFIG, cost=CostConfig(cycle_cap="none", intensity_cap="none"))
    evaluation = evaluate_frames(recording(), CONFIG if capped else bare)
    [window] = [w for w in evaluation.windows if w.key.episode == "failing"]
    assert (window.state, window.cause, window.departure_step, window.reentry_step) == ("unrecovered", "effort", 0, 1)
    assert window.recovery_cost == pytest.approx(cost, rel=1e-12)
    assert window.peak == pytest.approx(TOTAL0, rel=1e-12)  # of g^rec as it was
    for found, u in ((window.costs.cognitive, 0), (window.costs.physical, 1), (window.costs.debt, 2)):
        expected = (3 * sqrt(G0[u] / 3) * share + 2 * sqrt(G1[u] / 3)) / (TAU + EPSILON) / (float(WORK) + EPSILON)
        assert found == pytest.approx(expected, rel=1e-12)
    # Step 1 has the same p before as step 0: one cycle went by, and the goal came no nearer.
    assert window.lost_cycles == pytest.approx(1.0, rel=1e-12)
    assert window.length_s == 5.0
    [summary] = [s for s in evaluation.summaries if s.key.episode == "failing"]
    assert summary.recovery_cost == window.recovery_cost

"""Equations 4 and 5 worked by hand: two reference episodes of two steps, an episode that fails and one that succeeds.

The working stands in the comments, in exact fractions; the core must agree to 1e-12. Mode "run", q = p, no risk.

              p after   cycle   retries   violation   judge (goal, rationality, efficiency)
    A  0      0.5       1       0         0           -
       1      1         2       1         0           -
    B  0      0.5       3       0         0           -
       1      1         2       0         0           0.6, -, 0.9
    failing
       0      0.5       4       0         0           -
       1      0.5       1       1         2           -
       2      0.6       2       0         0           0.3, 0.3, 0.6
    succeeding
       0      1         2       0         0           -

Step 0 of each starts at p = 0, anchor a = (run, 0, 4); the others at p = 1/2, anchor b = (run, 5, 2).
"""

from fractions import Fraction as F
from math import sqrt

import numpy as np
import pytest

from springback.producers.contract.columns import ABSENT
from springback.producers.contract.frame import StepFrame
from springback.stream_processors.offline.evaluation import evaluate_frames, exact, learn_baseline
from springback.stream_processors.offline.value_fitting import reward_trajectories
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline
from springback.stream_processors.resilience.baseline.stage_baseline import PolicySums, policy_matrix
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.stability.advantage import exact_advantages, lagged_advantages
from tests.stream_processors.frame_builders import START_S, Row, frame_of, ready, run_tracker

CONFIG = exact(ResilienceConfig())
NAMES = ("progress", "cycle_time_s", "retries", "violation")
SCORES = ("judge_goal", "judge_rationality", "judge_efficiency")
Step = tuple[tuple[float, ...], tuple[float, ...]]
A: list[Step] = [((0.5, 1, 0, 0), ()), ((1, 2, 1, 0), ())]
B: list[Step] = [((0.5, 3, 0, 0), ()), ((1, 2, 0, 0), (0.6, ABSENT, 0.9))]
FAILING: list[Step] = [((0.5, 4, 0, 0), ()), ((0.5, 1, 1, 2), ()), ((0.6, 2, 0, 0), (0.3, 0.3, 0.6))]
SUCCEEDING: list[Step] = [((1, 2, 0, 0), ())]


def rows(steps: list[Step]) -> list[Row]:
    return [
        {"step": t, "time_s": START_S + t, "mode": "run"}
        | dict(zip(NAMES, values, strict=True))
        | dict(zip(SCORES, scores, strict=False))
        for t, (values, scores) in enumerate(steps)
    ]


def recording() -> list[StepFrame]:
    return [
        frame_of(rows(A), "success", episode="A", reference=True),
        frame_of(rows(B), "success", episode="B", reference=True),
        frame_of(rows(FAILING), "failure", episode="failing"),
        frame_of(rows(SUCCEEDING), "success", episode="succeeding"),
    ]


# --- Shrinkage -----------------------------------------------------------------------------------------------------
#
# Root and mode hold the same four samples, so the mode's mean is the root's, m0. Below them bin and leaf hold the same
# two, of mean x: mu = (2 x + 20 mu')/22, twice: mu = x + (10/11)^2 (m0 - x). The two anchors' x lie even about m0.
K = F(10, 11) ** 2


def shrunk(own: F, other: F) -> F:
    """The mean at an anchor with two samples of mean `own`, where the other anchor's two have the mean `other`."""
    return own + K * ((own + other) / 2 - own)


# --- The baseline of the signals -----------------------------------------------------------------------------------
#
# Every gain is 1/2: so is every mean gain, epsilon = max(1/1000, 1/40), and a gain of 1/2 is 20/21 of it. Cycles have
# the mean 2 at either anchor: tau* = 2. Work left: 2 at a, 1 at b; n = 4 is too few for a slope.
GOAL = F(1, 2) / (F(1, 2) + F(1, 40))
WORK_A, WORK_B = shrunk(F(2), F(1)), shrunk(F(1), F(2))  # 192/121 and 171/121

# --- Rewards -------------------------------------------------------------------------------------------------------
#
# Every episode starts at a: W*(a_0, 0) = WORK_A, Phi(a) = -1, Phi(b) = -171/192 = -57/64.
GAMMA, DECAY = F(99, 100), F(99, 100) * F(95, 100)
PHI_A, PHI_B = F(-1), F(-57, 64)
JUDGED = {
    "A": [(GOAL + 1 + 1) / 3, (GOAL + F(1, 2) + 1) / 3],  # 2/1 is more than 1; a retry halves rationality
    "B": [(GOAL + 1 + F(2, 3)) / 3, F(3, 4)],  # 2/3; the mean of the two scores that are there
    "failing": [(GOAL + 1 + F(1, 2)) / 3, (0 + 0 + F(1)) / 3, F(2, 5)],  # a retry and a violation: 0
    "succeeding": [(1 + 1 + F(1)) / 3],  # a gain of 1 is more than the nominal: 1
}
SHAPING = {
    "A": [GAMMA * PHI_B - PHI_A, 0 - PHI_B],
    "B": [GAMMA * PHI_B - PHI_A, 0 - PHI_B],
    "failing": [GAMMA * PHI_B - PHI_A, GAMMA * PHI_B - PHI_B, GAMMA * PHI_B - PHI_B],  # the last step's after it
    "succeeding": [0 - PHI_A],
}
REWARD = {name: [j + s for j, s in zip(JUDGED[name], SHAPING[name], strict=True)] for name in JUDGED}

# --- Returns and values (equation 4) -------------------------------------------------------------------------------
RETURN = {name: [REWARD[name][0] + GAMMA * REWARD[name][1], REWARD[name][1]] for name in ("A", "B")}
MEAN_A, MEAN_B = ((RETURN["A"][t] + RETURN["B"][t]) / 2 for t in (0, 1))
V_A, V_B = shrunk(MEAN_A, MEAN_B), shrunk(MEAN_B, MEAN_A)

# --- Residuals, advantages, x^stab ---------------------------------------------------------------------------------
DELTA = {name: [REWARD[name][0] + GAMMA * V_B - V_A, REWARD[name][1] - V_B] for name in ("A", "B")}
DELTA["failing"] = [
    REWARD["failing"][0] + GAMMA * V_B - V_A,
    REWARD["failing"][1] + GAMMA * V_B - V_B,
    REWARD["failing"][2] - V_B,
]
DELTA["succeeding"] = [REWARD["succeeding"][0] - V_A]
ADVANTAGE = {
    "A": [DELTA["A"][0] + DECAY * DELTA["A"][1], DELTA["A"][1]],
    "B": [DELTA["B"][0] + DECAY * DELTA["B"][1], DELTA["B"][1]],
    "failing": [
        DELTA["failing"][0] + DECAY * DELTA["failing"][1] + DECAY**2 * DELTA["failing"][2],
        DELTA["failing"][1] + DECAY * DELTA["failing"][2],
        DELTA["failing"][2],
    ],
    "succeeding": DELTA["succeeding"],
}
# Population variances: of V_A alone 0, of (V_A, V_B) a quarter of their squared distance, of (V_A, V_B, V_B) 2/9 of it.
APART = (V_A - V_B) ** 2
SPREAD = {"A": [F(0), APART / 4], "B": [F(0), APART / 4], "failing": [F(0), APART / 4, APART * 2 / 9]}
SPREAD["succeeding"] = [F(0)]
X = {
    name: [[abs(d), abs(a), s] for d, a, s in zip(DELTA[name], ADVANTAGE[name], SPREAD[name], strict=True)]
    for name in DELTA
}

# --- Sigma(a) ------------------------------------------------------------------------------------------------------
Matrix = list[list[F]]


def outer(v: list[F]) -> Matrix:
    return [[x * y for y in v] for x in v]


def plus(*parts: tuple[F, Matrix]) -> Matrix:
    return [[sum((f * m[i][j] for f, m in parts), F(0)) for j in range(3)] for i in range(3)]


def sigma(t: int) -> Matrix:
    """Sigma at the anchor of step t.

    Two samples x, y have M2 = (x - y)(x - y)'/2. Over all four, with d half the distance of the anchors' means:
    M2_0 = M2_a + M2_b + 4 d d'. Root: S = M2_0/3. Mode: the same mean, so S = (M2_0 + 20 M2_0/3)/24 = (23/72) M2_0.
    Bin, then leaf: distance e of the mean above from the own one, first d, then 10/11 d. The new mean lies 10/11 e from
    the own one and e/11 from the one above: S = (M2 + 20 S' + 2 (10/11)^2 e e' + 20 (1/11)^2 e e')/22, which is
    (M2 + 20 S' + (20/11) e e')/22.
    """
    m2 = [plus((F(1, 2), outer([x - y for x, y in zip(X["A"][s], X["B"][s], strict=True)]))) for s in (0, 1)]
    means = [[(x + y) / 2 for x, y in zip(X["A"][s], X["B"][s], strict=True)] for s in (0, 1)]
    d = [(x - y) / 2 for x, y in zip(*means, strict=True)]
    s = plus((F(23, 72), plus((F(1), m2[0]), (F(1), m2[1]), (F(4), outer(d)))))
    for e in (d, [F(10, 11) * x for x in d]):
        s = plus((F(1, 22), m2[t]), (F(20, 22), s), (F(20, 11 * 22), outer(e)))
    return s


def distance(x: list[F], s: Matrix) -> float:
    """The root of x'(S + eta I)^-1 x: the inverse by cofactors over the determinant."""
    m = plus((F(1), s), (F(1, 20), [[F(i == j) for j in range(3)] for i in range(3)]))

    def cofactor(i: int, j: int) -> F:
        (a, b), (c, d) = ([m[(i + k) % 3][(j + n) % 3] for n in (1, 2)] for k in (1, 2))
        return a * d - b * c

    determinant = sum((m[0][j] * cofactor(0, j) for j in range(3)), F(0))
    return sqrt(sum(x[i] * cofactor(i, j) * x[j] for i in range(3) for j in range(3)) / determinant)


TERMS = {name: [distance(x, sigma(min(t, 1))) for t, x in enumerate(vectors)] for name, vectors in X.items()}


def test_the_working_comes_to_these_decimals() -> None:
    # So that a slip in the fractions above cannot hide: the same by pocket calculator.
    assert [float(w) for w in (WORK_A, WORK_B)] == pytest.approx([1.5867768595041323, 1.4132231404958677], rel=1e-12)
    assert [float(v) for name in REWARD for v in REWARD[name]] == pytest.approx(
        [
            1.102408234126984,
            1.7080853174603177,
            0.991297123015873,
            1.640625,
            0.9357415674603176,
            0.3422395833333333,
            0.40890625,
            2.0,
        ],
        rel=1e-12,
    )
    assert [float(V_A), float(V_B)] == pytest.approx([2.2787993572084484, 2.1000200872359964], rel=1e-12)
    assert [float(v) for x in X["failing"] for v in x] == pytest.approx(
        [
            0.7359620966155056,
            0.4577705205471365,
            0.0,
            0.3212393824609734,
            1.2692531814594812,
            0.007990506842970717,
            1.6911138372359964,
            1.6911138372359964,
            0.007102672749307304,
        ],
        rel=1e-12,
    )
    assert TERMS["A"] == pytest.approx([3.4320440619318293, 1.989424090191541], rel=1e-12)
    assert TERMS["failing"] == pytest.approx([2.8552232588364626, 5.443728143760033, 8.581591715670477], rel=1e-12)
    assert TERMS["succeeding"] == pytest.approx([1.3999143974434882], rel=1e-12)


def learned() -> MaterialisedBaseline:
    return ready(learn_baseline(recording(), CONFIG), CONFIG)


def test_rewards() -> None:
    found = reward_trajectories(recording(), CONFIG, learn_baseline(recording(), CONFIG), references_only=False)
    assert [t.success for t in found] == [True, True, False, True]
    for trajectory, name in zip(found, REWARD, strict=True):
        assert trajectory.rewards.tolist() == pytest.approx([float(r) for r in REWARD[name]], rel=1e-12)


def test_values_and_returns() -> None:
    baseline = learned()
    index = baseline.families["navigation"]
    cells = index.rows[index.modes["run"], [0, 5], [4, 2]]
    assert baseline.cells.value[cells].tolist() == pytest.approx([float(V_A), float(V_B)], rel=1e-12)
    [a, b] = run_tracker(recording()[:2], CONFIG, baseline)[0].contributions
    for lesson, name in ((a, "A"), (b, "B")):
        assert (lesson.cells, lesson.valued, lesson.stable) == ((("run", 0, 4), ("run", 5, 2)), True, True)
        sums = PolicySums.unpacked(policy_matrix(lesson.policy))
        assert sums.returns.tolist() == [[1.0, pytest.approx(float(r), rel=1e-12)] for r in RETURN[name]]
        assert sums.stability.n.tolist() == [1.0, 1.0]
        for mean, x in zip(sums.stability.mean.tolist(), X[name], strict=True):
            assert mean == pytest.approx([float(v) for v in x], rel=1e-12, abs=1e-15)


def test_advantages() -> None:
    for name, delta in DELTA.items():
        found = exact_advantages(np.array([float(d) for d in delta]), float(DECAY))
        assert found.tolist() == pytest.approx([float(a) for a in ADVANTAGE[name]], rel=1e-12)
    failing = np.array([float(d) for d in DELTA["failing"]])
    two = [DELTA["failing"][t] + DECAY * DELTA["failing"][t + 1] for t in (0, 1)]
    found = lagged_advantages(failing, np.array([0, 1]), float(DECAY), 2)
    assert found.tolist() == pytest.approx([float(a) for a in two], rel=1e-12)


@pytest.mark.parametrize(("t", "bins"), [(0, (0, 4)), (1, (5, 2))], ids=["a", "b"])
def test_the_covariance_of_the_stability_vector(t: int, bins: tuple[int, int]) -> None:
    baseline = learned()
    index = baseline.families["navigation"]
    row = index.rows[index.modes["run"], bins[0], bins[1]]
    expected = [[float(v) + 0.05 * (i == j) for j, v in enumerate(line)] for i, line in enumerate(sigma(t))]
    np.testing.assert_allclose(np.linalg.inv(baseline.cells.inverse_stability[row]), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", list(X))
def test_loss_and_beta_step(name: str) -> None:
    [summary] = [s for s in evaluate_frames(recording(), CONFIG).summaries if s.key.episode == name]
    terms = TERMS[name]
    assert summary.stability_loss == pytest.approx(sum(terms) / len(terms), rel=1e-12)
    if len(terms) == 1:
        assert summary.beta_step is None
    else:
        changes = [abs(terms[t] - terms[t - 1]) for t in range(1, len(terms))]
        assert summary.beta_step == pytest.approx(sum(changes) / len(changes), rel=1e-12)

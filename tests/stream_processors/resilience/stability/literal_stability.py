"""Value, advantage and stability loss a second time: literally as defined, with whole lists, sharing no code with ours.

Written from the definition alone: returns, advantages and variances are direct sums over an episode's steps.
"""

import math
from typing import Any

import numpy as np

from tests.stream_processors.resilience.literal_metrics import (
    ABSOLUTE,
    ETA,
    KAPPA,
    Level,
    LiteralBaseline,
    LiteralStep,
    Row,
    literal_steps,
    shrunk,
)

GAMMA, TRACE, SHAPING, SPREAD_STEPS = 0.99, 0.95, 1.0, 8
Anchor = tuple[str, int, int]
SCORES = ("judge_goal", "judge_rationality", "judge_efficiency")


class LiteralStability:
    """What reference successes teach, in three goes through them, and every episode's loss by it.

    `lag` cuts advantages off after so many residuals; None lets them run to the episode's end. The first `unscored`
    steps of an episode are left out.
    """

    def __init__(self, references: list[list[Row]], lag: int | None = None) -> None:
        self.lag = lag
        self.unscored = 0
        self.baseline = LiteralBaseline(references)
        self._residuals: dict[tuple[int, bool, int], tuple[list[Row], list[float]]] = {}
        self._distances: dict[tuple[int, bool, int, int | None], tuple[list[Row], list[float]]] = {}
        self.anchors = [step.anchor for rows in references for step in literal_steps(rows)]
        self._values: dict[Level, float] = {}
        self._covariances: dict[Level, tuple[Any, Any]] = {}
        self.returns: list[float] = []
        for rows in references:
            rewards = self.rewards(rows, success=True)
            for t in range(len(rewards)):
                self.returns.append(sum(GAMMA**k * reward for k, reward in enumerate(rewards[t:])))
        self.vectors = [vector for rows in references for vector in self.stability(rows, success=True)]

    def steps(self, rows: list[Row]) -> list[LiteralStep]:
        """The scored steps."""
        return literal_steps(rows)[self.unscored :]

    def judge(self, row: Row, anchor: Anchor, gain: float) -> float:
        """The mean of the scores that are there, else the rubric's."""
        given = [row[name] for name in SCORES if name in row]
        if given:
            return float(sum(given) / len(given))
        mean = self.baseline.cell(anchor)[0]
        epsilon = max(ABSOLUTE[4], 0.05 * abs(self.baseline.root_mean[4]))
        goal = min(1.0, max(0.0, gain / (max(mean[4], 0.0) + epsilon)))
        faults = (row.get("retries", 0.0) > 0) + (row.get("violation", 0.0) > 0)
        return float((goal + [1.0, 0.5, 0.0][faults] + min(1.0, mean[7] / row["cycle_time_s"])) / 3)

    def rewards(self, rows: list[Row], success: bool) -> list[float]:
        """The shaped rewards of an episode that was seen to end."""
        steps = self.steps(rows)
        start = (steps[0].anchor[0], 0, 4)  # nothing done: p = 0 and q = 0
        whole = self.baseline.remaining(start, 0.0)
        phi = [-self.baseline.remaining(step.anchor, step.p) / whole for step in steps]
        phi.append(0.0 if success else phi[-1])
        return [
            self.judge(row, step.anchor, step.x[4]) + SHAPING * (GAMMA * phi[t + 1] - phi[t])
            for t, (row, step) in enumerate(zip(rows[self.unscored :], steps, strict=True))
        ]

    def level(self, level: Level, samples: list[Any]) -> Any:
        """Those of the samples, one for each reference step, that belong to a level."""
        return np.array([v for a, v in zip(self.anchors, samples, strict=True) if a[: len(level)] == level])

    def value(self, level: Level) -> float:
        """The mean discounted return at a level, shrunk to those above it."""
        if level not in self._values:
            part = self.level(level, self.returns)
            above = self.value(level[:-1]) if level else 0.0
            weight = KAPPA if level else 0.0
            own = float(part.mean()) if len(part) else above
            self._values[level] = (len(part) * own + weight * above) / (len(part) + weight)
        return self._values[level]

    def residuals(self, rows: list[Row], success: bool) -> list[float]:
        """Delta of each step; after the end nothing is to be had."""
        key = id(rows), success, self.unscored
        if key not in self._residuals:
            self._residuals[key] = rows, self._residuals_of(rows, success)  # kept with its rows, so that the id stays
        return self._residuals[key][1]

    def _residuals_of(self, rows: list[Row], success: bool) -> list[float]:
        values = [*(self.value(step.anchor) for step in self.steps(rows)), 0.0]
        rewards = self.rewards(rows, success)
        return [reward + GAMMA * values[t + 1] - values[t] for t, reward in enumerate(rewards)]

    def advantages(self, rows: list[Row], success: bool) -> list[float]:
        """A of each step, a direct sum."""
        delta = self.residuals(rows, success)
        stops = [len(delta) if self.lag is None else t + self.lag for t in range(len(delta))]
        return [
            math.fsum((GAMMA * TRACE) ** k * d for k, d in enumerate(delta[t:stop])) for t, stop in enumerate(stops)
        ]

    def stability(self, rows: list[Row], success: bool) -> list[list[float]]:
        """The vector x^stab of each step."""
        values = [self.value(step.anchor) for step in self.steps(rows)]
        spread = [float(np.var(values[max(0, t - SPREAD_STEPS + 1) : t + 1])) for t in range(len(values))]
        delta, advantage = self.residuals(rows, success), self.advantages(rows, success)
        return [[abs(d), abs(a), v] for d, a, v in zip(delta, advantage, spread, strict=True)]

    def covariance(self, level: Level) -> Any:
        """Sigma(a) of x^stab."""
        return self._moments(level)[1]

    def _moments(self, level: Level) -> tuple[Any, Any]:
        """Mean and covariance of x^stab, shrunk down the levels."""
        if level not in self._covariances:
            above = self._moments(level[:-1]) if level else None
            self._covariances[level] = shrunk(self.level(level, self.vectors), above)
        return self._covariances[level]

    def distances(self, rows: list[Row], success: bool) -> list[float]:
        """The terms of equation 5."""
        key = id(rows), success, self.unscored, self.lag
        if key not in self._distances:
            self._distances[key] = rows, self._distances_of(rows, success)
        return self._distances[key][1]

    def _distances_of(self, rows: list[Row], success: bool) -> list[float]:
        found = []
        for step, x in zip(self.steps(rows), self.stability(rows, success), strict=True):
            solved = np.linalg.solve(self.covariance(step.anchor) + ETA * np.eye(3), np.array(x))
            found.append(math.sqrt(float(np.array(x) @ solved)))
        return found

    def loss(self, rows: list[Row], success: bool) -> float:
        """l(pi, z)."""
        return float(np.mean(self.distances(rows, success)))

    def beta_step(self, rows: list[Row], success: bool) -> float | None:
        """The mean change of the distance from step to step."""
        s = self.distances(rows, success)
        return float(np.mean([abs(s[t] - s[t - 1]) for t in range(1, len(s))])) if len(s) > 1 else None

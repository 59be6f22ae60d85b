"""A second, literal implementation of the metrics' definition: slow, with whole lists, sharing no code with ours.

Written from the definition alone: one cell at a time, one step at a time, numpy for sums over lists only.
"""

import itertools
import math
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Row = dict[str, Any]
Level = tuple[Any, ...]
"""How much of an anchor (mode, b^p, b^q) is told apart: nothing at the root, the whole of it at a leaf."""
KAPPA, ETA = 20.0, 0.05
ABSOLUTE = [1e-3, 1e-3, 1e-2, 0.1, 1e-3, 1e-3, 1e-2]
CHANNELS = ([0, 1], [2, 3], [4, 5, 6])


@dataclass
class LiteralStep:
    """A step with its anchor (mode, b^p, b^q), signals x and progress before."""

    step: int
    anchor: tuple[str, int, int]
    x: list[float]
    p: float


def literal_steps(rows: list[Row]) -> list[LiteralStep]:
    """Anchors from p and q before the step; an absent q is p; every row must give its cycle time."""
    steps: list[LiteralStep] = []
    p = q = 0.0
    for row in rows:
        p_after = float(row["progress"])
        q_after = float(row.get("propositions", p_after))
        anchor = (row.get("mode", "run"), min(math.floor(10 * p), 9), min(math.floor(5 * (1 - q)), 4))
        efforts = [row.get(name, 0.0) for name in ("planning_s", "perception_s", "travel", "retries")]
        x = [*efforts, p_after - p, q_after - q, row.get("risk", 0.0), row["cycle_time_s"]]
        steps.append(LiteralStep(row["step"], anchor, x, p))
        p, q = p_after, q_after
    return steps


def shrunk(part: Any, above: tuple[Any, Any] | None) -> tuple[Any, Any]:
    """Mean and covariance of a level's samples, shrunk to the level above, which stands where there are none."""
    n = len(part)
    if n == 0 and above is not None:
        return above
    own = part.mean(axis=0)
    m2 = sum(np.outer(v - own, v - own) for v in part)
    if above is None:
        return own, m2 / max(n - 1, 1)
    mu, s = above
    new = (n * own + KAPPA * mu) / (n + KAPPA)
    spread = n * np.outer(own - new, own - new) + KAPPA * np.outer(mu - new, mu - new)
    return new, (m2 + KAPPA * s + spread) / (n + KAPPA)


class LiteralBaseline:
    """Keeps every sample, and works a cell out from them when it is first asked for it."""

    def __init__(self, episodes: list[list[Row]]) -> None:
        self.anchors: list[tuple[str, int, int]] = []
        samples = []
        for rows in episodes:
            steps = literal_steps(rows)
            for step in steps:
                self.anchors.append(step.anchor)
                samples.append([*step.x, step.p, steps[-1].step - step.step + 1])
        self.samples = np.array(samples)
        self.root_mean = self.samples.mean(axis=0)
        self._cells: dict[Level, tuple[Any, Any]] = {}
        self._lines: dict[Level, tuple[int, float, float, float]] = {}

    def level(self, level: Level) -> Any:
        """The samples of a level."""
        return self.samples[np.array([anchor[: len(level)] == level for anchor in self.anchors])]

    def cell(self, level: Level) -> tuple[Any, Any]:
        """Mean and covariance of the 10-vector, shrunk down the levels."""
        if level not in self._cells:
            self._cells[level] = shrunk(self.level(level), self.cell(level[:-1]) if level else None)
        return self._cells[level]

    def remaining(self, level: Level, p: float) -> float:
        """W*_rem."""
        return max(1.0, self._work(level, p))

    def _work(self, level: Level, p: float) -> float:
        n, p_mean, w_mean, slope = self._line(level)
        if n == 0:
            return self._work(level[:-1], p)
        here = w_mean + slope * (p - p_mean)
        return (n * here + KAPPA * self._work(level[:-1], p)) / (n + KAPPA) if level else here

    def _line(self, level: Level) -> tuple[int, float, float, float]:
        """How many samples, the means of p and w, and the slope."""
        if level not in self._lines:
            part = self.level(level)
            n, ps, ws = len(part), part[:, 8], part[:, 9]
            p_mean, w_mean = (float(ps.mean()), float(ws.mean())) if n else (0.0, 0.0)
            c_pw = float(np.sum((ps - p_mean) * (ws - w_mean)))
            c_pp = float(np.sum((ps - p_mean) ** 2))
            self._lines[level] = n, p_mean, w_mean, min(0.0, c_pw / (c_pp + 1e-5 * n)) if n > 5 else 0.0
        return self._lines[level]

    def intensity(self, step: LiteralStep) -> tuple[float, list[float]]:
        """g^rec and the channels' g^u."""
        mu, s = self.cell(step.anchor)
        epsilon = [max(ABSOLUTE[k], 0.05 * abs(self.root_mean[k])) for k in range(7)]
        denominator = [max(mu[k], 0.0) + epsilon[k] for k in range(7)]
        difference = [(mu[k] - step.x[k]) if k in (4, 5) else (step.x[k] - mu[k]) for k in range(7)]
        z = np.array([max(difference[k], 0.0) / denominator[k] for k in range(7)])
        channels = []
        for block in CHANNELS:
            d = np.diag([1 / denominator[k] for k in block])
            sigma = d @ s[np.ix_(block, block)] @ d
            solved = np.linalg.solve(sigma + ETA * np.eye(len(block)), z[block])
            channels.append(math.sqrt(float(z[block] @ solved)))
        return math.sqrt(sum(g * g for g in channels) / 3), channels

    def score(self, rows: list[Row]) -> "LiteralScores":
        """Every step of an episode."""
        scores = LiteralScores()
        before: tuple[int, float] | None = None
        for step in literal_steps(rows):
            g, channels = self.intensity(step)
            w = self.remaining(step.anchor, step.p)
            scores.steps.append(step.step)
            scores.g.append(g)
            scores.channels.append(channels)
            scores.work.append(w)
            scores.ratio.append(step.x[7] / (self.cell(step.anchor)[0][7] + 1e-9))
            far = before is not None and step.step - before[0] - 1 > max(64, before[1])
            if far:
                scores.gaps.append(len(scores.g) - 1)
            scores.c.append(0.0 if before is None or far else step.step - before[0] + w - before[1])
            before = step.step, w
        return scores


@dataclass
class LiteralScores:
    """Columns of an episode's steps."""

    steps: list[int] = field(default_factory=list)
    g: list[float] = field(default_factory=list)
    channels: list[list[float]] = field(default_factory=list)
    work: list[float] = field(default_factory=list)
    ratio: list[float] = field(default_factory=list)
    c: list[float] = field(default_factory=list)
    gaps: list[int] = field(default_factory=list)
    """Positions of steps that a gap lies before."""

    def cost(self, first: int, last: int) -> float:
        """C_rec of the window from position first to last."""
        terms = [min(self.ratio[i], 10.0) * min(self.g[i], 10.0) for i in range(first, last + 1)]
        return math.fsum(terms) / (self.work[first] + 1e-9)

    def channel_cost(self, u: int, first: int, last: int) -> float:
        """The same with g^u / sqrt(3), which shrinks as g^rec does where that is capped."""
        terms = []
        for i in range(first, last + 1):
            share = 10.0 / self.g[i] if self.g[i] > 10.0 else 1.0
            terms.append(min(self.ratio[i], 10.0) * share * self.channels[i][u] / math.sqrt(3))
        return math.fsum(terms) / (self.work[first] + 1e-9)

    def interruptions(self) -> int:
        """Cycles of ten nominal ones or more."""
        return sum(ratio >= 10.0 for ratio in self.ratio)

    def largest_sums(self) -> tuple[float, float]:
        """Both sums run through the episode without a stop."""
        effort = delay = top_effort = top_delay = 0.0
        for g, c in zip(self.g, self.c, strict=True):
            effort, delay = max(0.0, effort + min(g, 10.0) - 0.8), max(0.0, delay + min(c, 10.0) - 0.4)
            top_effort, top_delay = max(top_effort, effort), max(top_delay, delay)
        return top_effort, top_delay


def folds_of(tasks: list[str]) -> list[int]:
    """The fold of each reference, by its task."""
    return [zlib.crc32(task.encode()) % 5 for task in tasks]


def sums_by_folds(episodes: list[list[Row]], folds: list[int]) -> list[tuple[float, float]]:
    """The largest sums of each reference by a baseline of those of the other folds."""
    found = []
    for rows, fold in zip(episodes, folds, strict=True):
        others = LiteralBaseline([other for other, its in zip(episodes, folds, strict=True) if its != fold])
        found.append(others.score(rows).largest_sums())
    return found


@dataclass
class LiteralWindow:
    """Positions of a window among the scored steps; `reentry` is None where the steps ran out, at `last`."""

    departure: int
    alarm: int
    reentry: int | None
    cause: str
    last: int


def literal_windows_between_gaps(scores: LiteralScores, bounds: tuple[float, float]) -> list[LiteralWindow]:
    """The windows of one episode: each part between two gaps has its own."""
    windows: list[LiteralWindow] = []
    edges = [0, *scores.gaps, len(scores.g)]
    for begin, end in itertools.pairwise(edges):
        for w in literal_windows(scores.g[begin:end], scores.c[begin:end], bounds):
            reentry = None if w.reentry is None else w.reentry + begin
            windows.append(LiteralWindow(w.departure + begin, w.alarm + begin, reentry, w.cause, w.last + begin))
    return windows


def literal_windows(
    g: list[float], c: list[float], bounds: tuple[float, float], drifts: tuple[float, float] = (0.8, 0.4)
) -> list[LiteralWindow]:
    """The windows of one episode, found with whole lists of sums."""
    windows: list[LiteralWindow] = []
    begin = 0
    while begin < len(g):
        effort, delay = [0.0], [0.0]  # sums before step begin + k
        alarm = None
        for i in range(begin, len(g)):
            effort.append(max(0.0, effort[-1] + (min(g[i], 10.0) - drifts[0])))
            delay.append(max(0.0, delay[-1] + (min(c[i], 10.0) - drifts[1])))
            if effort[-1] > bounds[0] or delay[-1] > bounds[1]:
                alarm = i
                break
        if alarm is None:
            break
        starts, causes = [], []
        if effort[-1] > bounds[0]:
            zero = max(k for k, s in enumerate(effort) if s == 0.0)
            starts.append(begin + zero)
            causes.append("effort")
        if delay[-1] > bounds[1]:
            zero = max(k for k, s in enumerate(delay) if s == 0.0)
            starts.append(max(0, begin + zero - 1))
            causes.append("delay")
        calm = [g[i] <= 1.0 and c[i] <= 0.4 for i in range(len(g))]
        closing = next((i for i in range(alarm + 2, len(g)) if calm[i - 2] and calm[i - 1] and calm[i]), None)
        reentry = None if closing is None else closing - 2
        last = len(g) - 1 if reentry is None else reentry
        windows.append(LiteralWindow(min(starts), alarm, reentry, "+".join(causes), last))
        if closing is None:
            break
        begin = closing + 1
    return windows

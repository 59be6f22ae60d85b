"""What an open episode remembers for its policy stability, and the settings of it."""

import math

import msgspec
import numpy as np

from springback.stream_processors.resilience.anchor import Floats
from springback.stream_processors.resilience.baseline.stage_baseline import CellKey

WAITING_COLUMNS = 5
"""Of a waiting step: delta, spread, mode, b^p and b^q."""
MOST_RETURN_CELLS = 2048
"""Cells that the returns of an episode are gathered for; one that passes through more teaches nothing (ours)."""
MANY_MODES = 256
"""Modes remembered by an open episode before those that no step waits in are dropped."""


class StabilityConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of value, advantage and loss (ours, where the paper leaves them open).

    Attributes:
        discount: gamma.
        trace: lambda of the advantage estimate.
        shaping: kappa_W, the weight of the potential in the reward.
        lag: steps after which an advantage is taken as it is; 0 waits for the episode's end, which is exact. What a lag
            leaves out is at most (discount * trace)^lag of an advantage: below 2 % with 64.
        spread_steps: how many values, the current one included, the variance of V is taken over.
        judge_weights: of goal, rationality and efficiency in what a judge or the rubric thinks of a step: not
            negative, and not all 0.

    Raises:
        ValueError: the weights are none.
    """

    discount: float = 0.99
    trace: float = 0.95
    shaping: float = 1.0
    lag: int = 64
    spread_steps: int = 8
    judge_weights: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        """Checks the weights."""
        if not all(0.0 <= weight < math.inf for weight in self.judge_weights) or sum(self.judge_weights) == 0.0:
            message = f"judge_weights: got {self.judge_weights}, expected three numbers of 0 or more, not all of them 0"
            raise ValueError(message)

    @property
    def decay(self) -> float:
        """Gamma lambda: what an advantage's residuals fade by, step by step."""
        return self.discount * self.trace


class LastStep(msgspec.Struct, frozen=True, array_like=True):
    """The last scored step: its reward needs the state after it. `value` and `spread` are NaN without a value model."""

    judged: float
    potential: float
    value: float
    spread: float
    mode: int
    progress_bin: int
    residual_bin: int


class ReturnTraces(msgspec.Struct):
    """Sums of discounted returns by cell, without keeping the rewards.

    A reward r adds to the return of each earlier step, discounted by how long ago it was; so the visits of a cell keep
    one fading trace between them, and r times the trace goes to the cell's sum.
    """

    cells: list[CellKey] = msgspec.field(default_factory=list)
    visits: list[float] = msgspec.field(default_factory=list)
    sums: list[float] = msgspec.field(default_factory=list)
    traces: list[float] = msgspec.field(default_factory=list)

    def add(self, cells: list[CellKey], rewards: Floats, discount: float) -> None:
        """Takes in steps in order, with the cell that each was taken in and its reward. Shape: rewards (n,)."""
        number = {cell: i for i, cell in enumerate(dict.fromkeys([*self.cells, *cells]))}
        grown = len(number) - len(self.cells)
        visits, sums, traces = (np.array([*known, *[0.0] * grown]) for known in (self.visits, self.sums, self.traces))
        for cell, reward in zip(cells, rewards.tolist(), strict=True):
            traces *= discount
            traces[number[cell]] += 1.0
            visits[number[cell]] += 1.0
            sums += reward * traces
        self.cells = list(number)
        self.visits, self.sums, self.traces = visits.tolist(), sums.tolist(), traces.tolist()


class StabilityState(msgspec.Struct):
    """The stability of one open episode, as far as it is known.

    Three steps at distances 1, 3 and 2 have the mean 2, and the mean change from step to step (2 + 1) / 2:

    >>> state = StabilityState()
    >>> state.add_distances([1.0, 3.0, 2.0])
    >>> state.loss(), state.beta_step()
    (2.0, 1.5)

    `waiting` holds little-endian float64 rows (delta, spread, mode, b^p, b^q) of the steps whose advantage is not known
    yet; modes are positions in `modes`. `whole` is False once a scored step had no value.
    """

    initial_work: float = 0.0
    last: LastStep | None = None
    values: list[float] = msgspec.field(default_factory=list)
    waiting: bytes = b""
    modes: list[str] = msgspec.field(default_factory=list)
    whole: bool = True
    steps: int = 0
    total: float = 0.0
    changes: float = 0.0
    last_distance: float = 0.0

    def forget_modes(self) -> None:
        """Drops the modes that no step waits in, once there are many: names that never come twice must not pile up."""
        if len(self.modes) <= MANY_MODES:
            return
        waiting = np.frombuffer(self.waiting, dtype="<f8").reshape(-1, WAITING_COLUMNS).copy()
        met = [*waiting[:, 2].astype(np.int64).tolist(), *([] if self.last is None else [self.last.mode])]
        position = {old: new for new, old in enumerate(dict.fromkeys(met))}
        waiting[:, 2] = [position[old] for old in met[: len(waiting)]]
        self.waiting = waiting.tobytes()
        if self.last is not None:
            self.last = msgspec.structs.replace(self.last, mode=position[self.last.mode])
        self.modes = [self.modes[old] for old in position]

    def add_distances(self, distances: list[float]) -> None:
        """Takes in the distances of further steps, in order: the terms of equation 5."""
        total, changes, before = self.total, self.changes, self.last_distance
        if not self.steps and distances:
            before = distances[0]  # the first step is no change
        for distance in distances:
            total += distance
            changes += abs(distance - before)
            before = distance
        self.total, self.changes, self.last_distance = total, changes, before
        self.steps += len(distances)

    def loss(self) -> float | None:
        """l(pi, z) over the steps so far; None before the first."""
        return self.total / self.steps if self.steps else None

    def beta_step(self) -> float | None:
        """The mean change of the distance from step to step (ours); None before the second."""
        return self.changes / (self.steps - 1) if self.steps > 1 else None

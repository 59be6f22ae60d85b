"""Step frames of a made-up fleet: a function of its arguments alone, so that every run of a benchmark takes the same.

Each agent goes through one episode after another of 200 steps, and one episode in four has a stretch of trouble in it.
All number columns but the judge's are given, as by an agent that reports all that it can.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from springback.producers.contract.frame import EpisodeEnd, EpisodeHeader, StepColumn, StepFrame, TextColumn
from springback.stream_processors.offline.evaluation import learn_baseline
from springback.stream_processors.resilience.baseline.stage_baseline import StageBaseline
from springback.stream_processors.resilience.config import ResilienceConfig

EPISODE_STEPS = 200
FAMILIES = 4
_POOL_EPISODES = 16
_TROUBLE = slice(80, 110)
_START_S = 1_700_000_000.0  # past, whenever this runs: a time ahead of the broker's would be replaced
_CYCLE_S = 0.5
_REFERENCES_EACH = 14  # of a family; live scoring asks for at least ten


def fleet_frames(agents: int, frames_each: int, size: int) -> Iterator[StepFrame]:
    """Frames of `size` steps each, the agents taking turns."""
    pool = _pool(_POOL_EPISODES, troubled=True)
    for number in range(frames_each):
        for agent in range(agents):
            yield _frame(agent, number, size, pool, reference=False)


def fleet_baseline() -> StageBaseline:
    """What undisturbed episodes of the same fleet teach."""
    pool = _pool(_REFERENCES_EACH, troubled=False)
    frames = [
        _frame(agent, number, EPISODE_STEPS, pool, reference=True)
        for agent in range(FAMILIES)
        for number in range(_REFERENCES_EACH)
    ]
    return learn_baseline(frames, ResilienceConfig())


def _pool(episodes: int, troubled: bool) -> dict[str, npt.NDArray[np.float64]]:
    """Number columns of some episodes, end to end."""
    rng = np.random.default_rng(7)
    shape = episodes, EPISODE_STEPS
    trouble = np.zeros(shape, dtype=np.bool_)
    if troubled:
        trouble[::4, _TROUBLE] = True
    advance = np.where(trouble, 0.0, 1.0) * rng.uniform(0.8, 1.2, shape)
    progress = np.cumsum(advance, axis=1) / advance.sum(axis=1, keepdims=True)
    columns = {
        "cycle_time_s": rng.lognormal(np.log(_CYCLE_S), 0.1, shape),
        "progress": np.minimum(progress, 1.0),
        "propositions": np.floor(np.minimum(progress, 1.0) * 4) / 4,
        "planning_s": rng.gamma(4.0, 0.01, shape) * np.where(trouble, 6.0, 1.0),
        "perception_s": rng.gamma(4.0, 0.01, shape),
        "travel": rng.uniform(0.2, 0.3, shape) * np.where(trouble, 2.0, 1.0),
        "retries": rng.poisson(np.where(trouble, 1.5, 0.02)).astype(np.float64),
        "risk": rng.exponential(0.02, shape),
        "violation": np.zeros(shape),
    }
    return {name: column.reshape(-1) for name, column in columns.items()}


def _frame(
    agent: int, number: int, size: int, pool: dict[str, npt.NDArray[np.float64]], *, reference: bool
) -> StepFrame:
    position = np.arange(number * size, (number + 1) * size)
    episode, step = position // EPISODE_STEPS, position % EPISODE_STEPS
    first, last = int(episode[0]), int(episode[-1])
    name = f"agent-{agent:03d}"
    headers = tuple(
        EpisodeHeader(
            agent=name,
            episode=str(episode_number),
            family=f"family-{agent % FAMILIES}",
            task=f"task-{episode_number % _POOL_EPISODES}",
            method="benchmark",
            reference=reference,
            stress=0.0 if reference else 0.4,
        )
        for episode_number in range(first, last + 1)
    )
    ended = (episode[step == EPISODE_STEPS - 1] - first).tolist()
    rows = position % len(pool["progress"])
    steps: dict[str, StepColumn] = {
        "episode": episode - first,
        "step": step,
        "time_s": _START_S + _CYCLE_S * position,
        **{column: values[rows] for column, values in pool.items()},
        "mode": TextColumn(["navigate", "manipulate"], (step >= EPISODE_STEPS * 4 // 5).astype(np.uint16)),
        "action": TextColumn(["forward", "left", "right", "pick"], (step % 4).astype(np.uint16)),
    }
    ends = tuple(EpisodeEnd(episode=place, outcome="success") for place in ended)
    return StepFrame(producer=name, session="benchmark", episodes=headers, steps=steps, ends=ends)

"""Whether the rewards of a LeRobot dataset are the progress of its task: a reward may be anything.

It is taken for progress if all of it lies in [0, 1] and it rises within episodes, as a coverage or a share of stages
does. A penalty, a reward for each step that one survives, and a 1 at the end alone say nothing of how near the task is
to its end; the share of the episode's length that is over does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from springback.producers.contract.columns import SHARE_ROUNDING

REWARD: Final = "next.reward"
RISING_SHARE: Final = 0.9
"""The share of episodes in which a reward that is progress rises, at least; one odd episode decides nothing (ours)."""


def reward_of(row: dict[str, Any]) -> float | None:
    """The reward in a row: a number, or a list of one; None where there is none."""
    cell = row.get(REWARD)
    if isinstance(cell, list) and len(cell) == 1:
        cell = cell[0]
    return float(cell) if isinstance(cell, (int, float)) else None


@dataclass
class RewardCheck:
    """What the rewards of a dataset are like; rows are taken in one by one, the episodes one after another.

    >>> check = RewardCheck()
    >>> for reward in (0.0, 0.25, 0.75):
    ...     check.take(0, reward)
    >>> check.finish()
    (True, 'next.reward lies in [0, 1] and rises in 1 of 1 episodes, so it is the progress')
    """

    low: float = float("inf")
    high: float = float("-inf")
    missing: int = 0
    episodes: int = 0
    rising: int = 0
    _episode: Any = None
    _rewards: list[float] = field(default_factory=list)

    def take(self, episode: Any, reward: float | None) -> None:
        """Takes in the reward of the next row."""
        if episode != self._episode:
            self._close()
            self._episode = episode
        if reward is None or reward != reward:
            self.missing += 1
            return
        self.low, self.high = min(self.low, reward), max(self.high, reward)
        self._rewards.append(reward)

    def finish(self) -> tuple[bool, str]:
        """Whether the rewards are the progress, and a line that says which is and why."""
        self._close()
        otherwise = ", so the progress is the share of the episode's length"
        if not self.episodes:
            return False, f"there is no {REWARD}{otherwise}"
        if self.missing:
            return False, f"{self.missing} frames have no {REWARD}{otherwise}"
        if self.low < -SHARE_ROUNDING or self.high > 1.0 + SHARE_ROUNDING:
            return False, f"{REWARD} goes from {self.low:g} to {self.high:g} and not from 0 to 1{otherwise}"
        told = f"rises in {self.rising} of {self.episodes} episodes"
        if self.rising < RISING_SHARE * self.episodes:
            return False, f"{REWARD} {told} alone{otherwise}"
        return True, f"{REWARD} lies in [0, 1] and {told}, so it is the progress"

    def _close(self) -> None:
        if self._rewards:
            self.episodes += 1
            self.rising += rises(self._rewards)
        self._rewards = []


def rises(rewards: Iterable[float]) -> bool:
    """Whether the rewards of an episode rise: by more than one stride, on the whole, and rather up than down.

    >>> [rises(rewards) for rewards in ([0, 0.5, 0.4, 1], [0, 0, 0, 1], [1, 1, 1, 1], [0, 1, 0, 1], [1, 0.5, 0])]
    [True, False, False, False, False]
    """
    taken = list(rewards)
    strides = [later - earlier for earlier, later in zip(taken, taken[1:])]
    up, down = sum(s for s in strides if s > 0), -sum(s for s in strides if s < 0)
    return len(set(taken)) > 2 and taken[-1] - taken[0] >= (max(taken) - min(taken)) / 2 and 2 * down <= up

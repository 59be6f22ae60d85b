"""What a family is held to, and how the figures of families are worked out: the part of the settings for aggregates."""

import sys
from collections.abc import Mapping
from typing import Literal

import msgspec

Threshold = float | Literal["auto"]

CONFIDENCE = 0.95
"""Of the bound by which a level is called broken, and of the interval of a share of violations (ours)."""

SMALLEST_MOST = 2
"""The largest K of equation 9 that is accepted (ours)."""

ROUNDING = 1e-9
"""By how much a probability may be short of what is asked, against what floats make of it."""


def _check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        message = f"{name} is {value}, expected a share between 0 and 1"
        raise ValueError(message)


class FamilyContract(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contract of equation 7: what an episode of a family must keep to.

    A contract stands for itself alone: what it leaves out has the defaults here, not those of another contract.

    Attributes:
        progress: tau_p, the least final progress; `auto` takes it from the reference episodes, as all that follow.
        propositions: tau_q, the least final share of goal propositions, or `auto`.
        recovery: tau_rec, the largest recovery cost of an episode, or `auto`.
        stability: tau_stab, the largest stability loss of an episode, or `auto`.
        safety: tau_safe, the largest violation load of an episode, or `auto`.
        evolution: versions of the agent in the order of their updates. Where given, the version is the stress operator:
            an episode's stress is its version's place in the list, 0 for the first and 1 for the last, and all of
            these versions are one group. Two at least; empty where stress comes from outside.
    """

    progress: Threshold = "auto"
    propositions: Threshold = "auto"
    recovery: Threshold = "auto"
    stability: Threshold = "auto"
    safety: Threshold = "auto"
    evolution: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Checks the ranges."""
        for name in ("progress", "propositions", "recovery", "stability", "safety"):
            value = getattr(self, name)
            most = 1.0 if name in ("progress", "propositions") else sys.float_info.max
            if value != "auto" and not 0 < value <= most:
                share = " and at most 1" if most == 1 else ""
                message = f'{name} is {value}, expected a number above 0{share}, or "auto"'
                raise ValueError(message)
        if len(set(self.evolution)) != len(self.evolution) or len(self.evolution) == 1:
            message = f"evolution is {list(self.evolution)}, expected two or more different versions, or none"
            raise ValueError(message)


class AutoThresholds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How `auto` is resolved (ours).

    A cost may be `factor` times its `rank` quantile over the reference episodes, and at least the floor: most clean
    episodes cost nothing, so without floors any recovery at all would break the contract. A benefit must be
    `benefit_factor` times its `benefit_rank` quantile, but neither more than `benefit_most` (which holds while there is
    no reference episode) nor less than `benefit_floor`: where one in ten of the clean episodes ends at nothing, a
    contract without a floor would be content with nothing.
    """

    factor: float = 2.0
    rank: float = 0.95
    recovery_floor: float = 5.0
    stability_floor: float = 1e-6
    safety_floor: float = 5.0
    benefit_factor: float = 0.9
    benefit_rank: float = 0.1
    benefit_most: float = 0.5
    benefit_floor: float = 0.05

    def __post_init__(self) -> None:
        """Checks the ranges."""
        _check_share("rank", self.rank)
        _check_share("benefit_rank", self.benefit_rank)
        for name in ("factor", "recovery_floor", "stability_floor", "safety_floor", "benefit_factor", "benefit_floor"):
            if not 0 < getattr(self, name) < float("inf"):
                message = f"{name} is {getattr(self, name)}, expected a number above 0"
                raise ValueError(message)
        if not self.benefit_floor <= self.benefit_most <= 1:
            message = f"benefit_most is {self.benefit_most}, expected {self.benefit_floor} (benefit_floor) to 1"
            raise ValueError(message)


class AggregateConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of everything that is known per family (ours, where the paper leaves a value open). Times are seconds.

    A level at which everything fails must break its contract. It ends at no proposition, so one entry of equation 8 is
    0; at best the other one of the margin is at the cap c. For K = 2 their mean less 1 is below 0 only where c < 2:
    other settings are refused. So is a larger K: progress and propositions alone are measured in any case (violations
    once there is a reference), and with fewer than K entries a level decides nothing. So are settings with too few
    episodes for any bound at the 95 % that a level is called broken by: of n, all fail by chance with alpha^n, which
    must be 0.05 at most.

    Attributes:
        default: the contract of families that have none of their own.
        families: contracts by family.
        auto: how `auto` thresholds are resolved.
        alpha: the quantile of equation 8, and the share of episodes that a contract lets break it.
        ratio_cap: c, the most that one entry of equation 8 counts.
        smallest: K of equation 9, how many of the smallest entries make the margin: 1 or 2.
        grid: the stress grid, rising from 0 to 1.
        min_episodes: n_min, the episodes that a stress level needs to decide anything.
        level_generation: a level keeps its latest episodes in two generations of this many, so that a repaired fleet
            gets its capacity back; None keeps all, as offline.
        live_rank: the quantile over active episodes that is the live stress.
        hold_s: how long a state of the live stress must hold before it counts.
        breach_end_s: how long it must be otherwise before a breach, or a violated contract, is over; also how long
            nothing may run before a breach is.
        active_memory: active episodes remembered per family.
        active_timeout_s: an active episode whose end has not been seen for this long is forgotten.
        ended_memory: ended episodes remembered per family, so that repetitions change nothing.
        group_memory: methods and versions remembered per family; one more, and the one silent for longest is let go.
        pair_memory: tasks, and perturbed episodes among them, that are remembered per group to be paired.
        kind_memory: attack kinds and perturbation kinds told apart; further ones are counted as `other`.
        reading_interval_s: shortest time between two readings of one group, but for a change of what counts live.
    """

    default: FamilyContract = FamilyContract()
    families: Mapping[str, FamilyContract] = {}
    auto: AutoThresholds = AutoThresholds()
    alpha: float = 0.1
    ratio_cap: float = 1.5
    smallest: int = 2
    grid: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    min_episodes: int = 5
    level_generation: int | None = 100
    live_rank: float = 0.9
    hold_s: float = 30.0
    breach_end_s: float = 60.0
    active_memory: int = 4096
    active_timeout_s: float = 86_400.0
    ended_memory: int = 4096
    group_memory: int = 32
    pair_memory: int = 1024
    kind_memory: int = 16
    reading_interval_s: float = 1.0

    def __post_init__(self) -> None:
        """Checks the ranges, and that a total failure cannot pass."""
        _check_share("alpha", self.alpha)
        _check_share("live_rank", self.live_rank)
        grid = list(self.grid)
        if len(grid) < 2 or grid != sorted(set(grid)) or (grid[0], grid[-1]) != (0, 1):
            # An episode goes to the nearest point: else clean ones would count as stress, or 1 as less than it is.
            message = f"grid is {grid}, expected rising values from 0 to 1"
            raise ValueError(message)
        for name in (
            "smallest", "min_episodes", "active_memory", "ended_memory", "group_memory", "pair_memory", "kind_memory",
        ):  # fmt: skip
            if getattr(self, name) < 1:
                message = f"{name} is {getattr(self, name)}, expected at least 1"
                raise ValueError(message)
        for name in ("hold_s", "breach_end_s"):
            if not 0 <= getattr(self, name) < float("inf"):
                message = f"{name} is {getattr(self, name)}, expected seconds, 0 or more"
                raise ValueError(message)
        self._check_that_failure_shows()

    def _check_that_failure_shows(self) -> None:
        if self.smallest > SMALLEST_MOST:
            message = (
                f"smallest is {self.smallest}, expected 1 or {SMALLEST_MOST}: with more, a level at which everything "
                "fails at once would decide nothing, as only its progress and propositions are measured for sure"
            )
            raise ValueError(message)
        if not 1 <= self.ratio_cap < float("inf"):
            message = (
                f"ratio_cap is {self.ratio_cap}, expected a number from 1 on: below it no level keeps its contract"
            )
            raise ValueError(message)
        if self.smallest == SMALLEST_MOST and self.ratio_cap >= SMALLEST_MOST:
            message = (
                f"ratio_cap is {self.ratio_cap} with smallest {self.smallest}: a level at which everything fails would "
                f"keep its contract, (0 + {self.ratio_cap:g}) / {self.smallest} - 1 being not below 0. "
                f"Expected a ratio_cap below {SMALLEST_MOST}, or smallest 1"
            )
            raise ValueError(message)
        if not self.alpha**self.min_episodes <= 1 - CONFIDENCE + ROUNDING:
            message = (
                f"min_episodes is {self.min_episodes} with alpha {self.alpha}: so few episodes cannot show that a "
                f"level is broken, as all of them are bad by chance with {self.alpha**self.min_episodes:.2g}. Expected "
                f"alpha^min_episodes to be at most {1 - CONFIDENCE:.2g}"
            )
            raise ValueError(message)
        if self.level_generation is not None and self.level_generation < self.min_episodes:
            message = (
                f"level_generation is {self.level_generation}, expected at least min_episodes ({self.min_episodes})"
            )
            raise ValueError(message)

    def contract(self, family: str) -> FamilyContract:
        """What the family is held to."""
        return self.families.get(family, self.default)

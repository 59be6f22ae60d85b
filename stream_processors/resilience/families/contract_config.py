"""What a family is held to, and how the figures of families are worked out: the part of the settings for aggregates."""

from collections.abc import Mapping
from typing import Literal

import msgspec

Threshold = float | Literal["auto"]


def _check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        message = f"{name} is {value}, expected a share between 0 and 1"
        raise ValueError(message)


class FamilyContract(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contract of equation 7: what an episode of a family must keep to.

    A contract stands for itself alone: what it leaves out has the defaults here, not those of another contract.

    Attributes:
        progress: tau_p, the least final progress.
        propositions: tau_q, the least final share of goal propositions.
        recovery: tau_rec, the largest recovery cost of an episode; `auto` takes it from the reference episodes.
        stability: tau_stab, the largest stability loss of an episode, or `auto`.
        safety: tau_safe, the largest violation load of an episode, or `auto`.
        evolution: versions of the agent in the order of their updates. Where given, the version is the stress operator:
            an episode's stress is its version's place in the list, 0 for the first and 1 for the last, and all of
            these versions are one group. Two at least; empty where stress comes from outside.
    """

    progress: float = 0.5
    propositions: float = 0.5
    recovery: Threshold = "auto"
    stability: Threshold = "auto"
    safety: Threshold = "auto"
    evolution: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Checks the ranges."""
        for name in ("progress", "propositions", "recovery", "stability", "safety"):
            value = getattr(self, name)
            if value != "auto" and not 0 < value < float("inf"):
                message = f"{name} is {value}, expected a number above 0" + ("" if name[0] == "p" else ', or "auto"')
                raise ValueError(message)
        if len(set(self.evolution)) != len(self.evolution) or len(self.evolution) == 1:
            message = f"evolution is {list(self.evolution)}, expected two or more different versions, or none"
            raise ValueError(message)


class AutoThresholds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How `auto` is resolved (ours): `factor` times the `rank` quantile over reference episodes, at least the floor.

    Most clean episodes cost nothing, so without floors any recovery at all would break the contract.
    """

    factor: float = 2.0
    rank: float = 0.95
    recovery_floor: float = 10.0
    stability_floor: float = 1e-6
    safety_floor: float = 5.0

    def __post_init__(self) -> None:
        """Checks the ranges."""
        _check_share("rank", self.rank)
        for name in ("factor", "recovery_floor", "stability_floor", "safety_floor"):
            if not 0 < getattr(self, name) < float("inf"):
                message = f"{name} is {getattr(self, name)}, expected a number above 0"
                raise ValueError(message)


class AggregateConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of everything that is known per family (ours, where the paper leaves a value open). Times are seconds.

    Attributes:
        default: the contract of families that have none of their own.
        families: contracts by family.
        auto: how `auto` thresholds are resolved.
        alpha: the quantile of equation 8.
        ratio_cap: the most that one entry of equation 8 counts.
        smallest: K of equation 9, how many of the smallest entries make the margin.
        grid: the stress grid, rising.
        min_episodes: n_min, the episodes that a stress bin needs to decide anything.
        live_rank: the quantile over active episodes that is the live stress.
        breach_evaluations: how many evaluations in a row begin a breach, and how many end it.
        breach_quiet_s: a breach ends when no episode has been active for this long.
        active_memory: active episodes remembered per family.
        active_timeout_s: an active episode whose end has not been seen for this long is forgotten.
        ended_memory: ended episodes remembered per family, so that repetitions change nothing.
        group_memory: methods and versions remembered per family; one more, and the one silent for longest is let go.
        pair_memory: tasks, and perturbed episodes among them, that are remembered per group to be paired.
        kind_memory: attack kinds and perturbation kinds told apart; further ones are counted as `other`.
        reading_interval_s: shortest time between two readings of one group, but for the beginning or end of a breach.
    """

    default: FamilyContract = FamilyContract()
    families: Mapping[str, FamilyContract] = {}
    auto: AutoThresholds = AutoThresholds()
    alpha: float = 0.1
    ratio_cap: float = 10.0
    smallest: int = 3
    grid: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    min_episodes: int = 5
    live_rank: float = 0.9
    breach_evaluations: int = 3
    breach_quiet_s: float = 60.0
    active_memory: int = 4096
    active_timeout_s: float = 86_400.0
    ended_memory: int = 4096
    group_memory: int = 32
    pair_memory: int = 1024
    kind_memory: int = 16
    reading_interval_s: float = 1.0

    def __post_init__(self) -> None:
        """Checks the ranges."""
        _check_share("alpha", self.alpha)
        _check_share("live_rank", self.live_rank)
        grid = list(self.grid)
        if not grid or grid != sorted(set(grid)) or not 0 <= grid[0] <= grid[-1] <= 1:
            message = f"grid is {grid}, expected rising values in [0, 1]"
            raise ValueError(message)
        for name in (
            "smallest", "min_episodes", "breach_evaluations", "active_memory", "ended_memory", "group_memory",
            "pair_memory", "kind_memory",
        ):  # fmt: skip
            if getattr(self, name) < 1:
                message = f"{name} is {getattr(self, name)}, expected at least 1"
                raise ValueError(message)

    def contract(self, family: str) -> FamilyContract:
        """What the family is held to."""
        return self.families.get(family, self.default)

"""What is known of a whole family, method and version, as the sinks see it. Part of the readings' contract."""

from typing import Literal

import msgspec

READING_SCHEMA_VERSION = 1


class ExtensibilityRatios(msgspec.Struct, frozen=True, kw_only=True):
    """The entries of r_f (equation 8), each capped. None where no episode of the bin had the quantity."""

    progress: float | None = None
    propositions: float | None = None
    recovery: float | None = None
    stability: float | None = None
    safety: float | None = None


class StressMargin(msgspec.Struct, frozen=True, kw_only=True):
    """One point of the stress-response curve: M_f (equation 9) over the episodes of one bin of the stress grid.

    `margin` is None where the bin has no episode. `sufficient` says that it has enough of them to decide anything.
    """

    stress: float
    episodes: int
    margin: float | None
    sufficient: bool
    ratios: ExtensibilityRatios


class NavigationScores(msgspec.Struct, frozen=True, kw_only=True):
    """Navigation safety over the episodes of one attack kind; each score None where no episode had what it needs."""

    episodes: int
    success_rate: float | None = None
    spl: float | None = None
    sel: float | None = None
    goal_completion: float | None = None


class ContractThresholds(msgspec.Struct, frozen=True, kw_only=True):
    """The contract that a family is held to, with `auto` resolved; None where there is nothing to resolve it by yet."""

    progress: float
    propositions: float
    recovery: float | None
    stability: float | None
    safety: float | None


CapacityFlag = Literal["ok", "none", "insufficient"]


class FamilyReading(msgspec.Struct, frozen=True, kw_only=True, tag="family"):
    """What is known of one family, method and version: stability, graceful extensibility and outcome.

    The latest replaces those before it (`sequence` rises with every change). Equations 6 and 8 to 10; the rest is ours.

    Attributes:
        episodes: episodes seen to end; `censored` ones are counted apart and enter nothing.
        violations: episodes whose monitor m_i (equation 7) fell below 0 by the thresholds at its end.
        beta: the sup of the ratio of equation 6 over pairs; `beta_p95` its 0.95 quantile; None without a pair.
        beta_by_kind: the sup by perturbation kind.
        beta_unpaired: the same ratio against the family's mean reference loss: an estimate for fleets without twins.
        pairs: perturbed episodes that had their clean twin; `tasks_let_go`: unpaired tasks that memory had no room for.
        unmeasured: perturbed episodes without magnitude or stress, which can be no pair: nothing to divide by.
        capacity: lambda*_f, 0 with flag `none` where no stress level holds, None with `insufficient` where no bin has
            enough episodes.
        first_breach: the smallest stress of a sufficient bin with a negative margin.
        live_stress: the 0.9 quantile of stress over the family's active episodes; None without one.
        in_breach: whether the live stress is beyond the capacity (with hysteresis); `breaches` counts its beginnings.
        navigation: by attack kind; `all` over every kind.
    """

    family: str
    method: str
    version: str
    sequence: int
    updated_s: float
    episodes: int
    censored: int
    violations: int
    success_rate: float | None
    completion: float | None
    mean_steps: float | None
    recovery_cost_mean: float | None
    stability_loss_mean: float | None
    beta: float | None
    beta_p95: float | None
    beta_by_kind: dict[str, float]
    beta_unpaired: float | None
    pairs: int
    tasks_let_go: int
    capacity: float | None
    capacity_flag: CapacityFlag
    first_breach: float | None
    margins: tuple[StressMargin, ...]
    thresholds: ContractThresholds
    live_stress: float | None
    in_breach: bool
    breaches: int
    navigation: dict[str, NavigationScores]
    unmeasured: int = 0
    schema_version: int = READING_SCHEMA_VERSION

    @property
    def identity(self) -> tuple[str, str, str]:
        """What the reading is of."""
        return self.family, self.method, self.version

"""How far from its contract an episode (equation 7) and a whole stress level (equations 8 and 9) stay.

An example: the episodes of a level reached all of the progress and propositions, of which 0.5 is wanted, at a recovery
cost of 8 where the contract allows 10 and violations of 4 where it allows 5; stability was not measured. The entries
are 1 / 0.5 twice, 10 / 8 and 5 / 4. The margin takes the three smallest: (1.25 + 1.25 + 2) / 3 - 1:

>>> contract = ContractThresholds(progress=0.5, propositions=0.5, recovery=10.0, stability=None, safety=5.0)
>>> all_of_it = QuantileSketch([1.0] * 5)
>>> level = StressBin(episodes=5, progress=all_of_it, propositions=all_of_it)
>>> level.recovery, level.safety = QuantileSketch([8.0] * 5), QuantileSketch([4.0] * 5)
>>> found = ratios(level, contract, AggregateConfig())
>>> found.progress, found.propositions, round(found.recovery, 6), found.stability, round(found.safety, 6)
(2.0, 2.0, 1.25, None, 1.25)
>>> round(margin(found, smallest=3), 6)
0.5

The monitor of a single such episode is its smallest entry less 1, that is 0.25.
"""

from statistics import fmean
from typing import NamedTuple

import msgspec

from springback.stream_processors.resilience.families.contract_config import (
    AggregateConfig,
    AutoThresholds,
    FamilyContract,
    Threshold,
)
from springback.stream_processors.resilience.quantiles import QuantileSketch
from springback.stream_processors.resilience.readings import (
    ContractThresholds,
    EpisodeSummary,
    ExtensibilityRatios,
    StressMargin,
)

EPSILON = 1e-9


class ReferenceCosts(msgspec.Struct, kw_only=True):
    """What the reference episodes of a family cost, whatever their method and version: `auto` thresholds come from it.

    A worse version must not loosen its own contract, so a family has one of these.
    """

    recovery: QuantileSketch = msgspec.field(default_factory=QuantileSketch)
    stability: QuantileSketch = msgspec.field(default_factory=QuantileSketch)
    safety: QuantileSketch = msgspec.field(default_factory=QuantileSketch)

    def add(self, summary: EpisodeSummary) -> None:
        """Takes in a reference episode that was seen to end."""
        _add(self.recovery, summary.recovery_cost)
        _add(self.stability, summary.stability_loss)
        self.safety.add(summary.violation)

    def thresholds(self, contract: FamilyContract, auto: AutoThresholds) -> ContractThresholds:
        """The contract with `auto` resolved; None where no reference episode has the quantity yet. Source: ours."""
        return ContractThresholds(
            progress=contract.progress,
            propositions=contract.propositions,
            recovery=_resolved(contract.recovery, self.recovery, auto.recovery_floor, auto),
            stability=_resolved(contract.stability, self.stability, auto.stability_floor, auto),
            safety=_resolved(contract.safety, self.safety, auto.safety_floor, auto),
        )


class StressBin(msgspec.Struct, kw_only=True):
    """The episodes of one group at one point of the stress grid, as sketches of what equation 8 takes quantiles of."""

    episodes: int = 0
    progress: QuantileSketch = msgspec.field(default_factory=QuantileSketch)
    propositions: QuantileSketch = msgspec.field(default_factory=QuantileSketch)
    recovery: QuantileSketch = msgspec.field(default_factory=QuantileSketch)
    stability: QuantileSketch = msgspec.field(default_factory=QuantileSketch)
    safety: QuantileSketch = msgspec.field(default_factory=QuantileSketch)

    def add(self, summary: EpisodeSummary) -> None:
        """Takes in an episode that was seen to end."""
        self.episodes += 1
        self.progress.add(summary.final_progress)
        self.propositions.add(summary.final_propositions)
        _add(self.recovery, summary.recovery_cost)
        _add(self.stability, summary.stability_loss)
        self.safety.add(summary.violation)


class _Entries(NamedTuple):
    """The five quantities of equations 7 and 8, of an episode or as quantiles; None where unknown."""

    progress: float | None
    propositions: float | None
    recovery: float | None
    stability: float | None
    safety: float | None


def monitor(summary: EpisodeSummary, thresholds: ContractThresholds) -> float:
    """m_i: how far the episode stayed within its contract; below 0 the contract is violated.

    Entries whose quantity or threshold is unknown are left out.

    Units: ratio. Source: equation 7.
    """
    entries = _Entries(
        summary.final_progress,
        summary.final_propositions,
        summary.recovery_cost,
        summary.stability_loss,
        summary.violation,
    )
    return min(_known(_ratios(entries, thresholds))) - 1


def ratios(stress_bin: StressBin, thresholds: ContractThresholds, config: AggregateConfig) -> ExtensibilityRatios:
    """r_f: the entries of a stress level, each capped; None where its quantity or threshold is unknown.

    Units: ratio. Source: equation 8; the cap is ours.
    """
    entries = _Entries(
        stress_bin.progress.quantile(config.alpha),
        stress_bin.propositions.quantile(config.alpha),
        stress_bin.recovery.quantile(1 - config.alpha),
        stress_bin.stability.quantile(1 - config.alpha),
        stress_bin.safety.quantile(1 - config.alpha),
    )
    found = _ratios(entries, thresholds)
    return ExtensibilityRatios(
        **{
            name: None if ratio is None else min(ratio, config.ratio_cap)
            for name, ratio in zip(_Entries._fields, found, strict=True)
        }
    )


def margin(found: ExtensibilityRatios, smallest: int) -> float | None:
    """M_f: the mean of the `smallest` lowest entries that are known, less 1; None where none is.

    Units: ratio. Source: equation 9.
    """
    known = sorted(_known([getattr(found, name) for name in _Entries._fields]))
    return fmean(known[:smallest]) - 1 if known else None


def stress_margin(
    stress: float, stress_bin: StressBin, thresholds: ContractThresholds, config: AggregateConfig
) -> StressMargin:
    """One point of the stress-response curve."""
    found = ratios(stress_bin, thresholds, config)
    held = margin(found, config.smallest)
    enough = stress_bin.episodes >= config.min_episodes and held is not None
    return StressMargin(
        stress=stress,
        episodes=stress_bin.episodes,
        margin=held,
        state="insufficient" if not enough or held is None else "kept" if held >= 0 else "broken",
        ratios=found,
    )


def _ratios(entries: _Entries, thresholds: ContractThresholds) -> list[float | None]:
    benefits = ((entries.progress, thresholds.progress), (entries.propositions, thresholds.propositions))
    costs = (
        (entries.recovery, thresholds.recovery),
        (entries.stability, thresholds.stability),
        (entries.safety, thresholds.safety),
    )
    return [
        *(None if value is None else value / least for value, least in benefits),
        *(None if value is None or most is None else most / (value + EPSILON) for value, most in costs),
    ]


def _known(values: list[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _add(sketch: QuantileSketch, value: float | None) -> None:
    if value is not None:
        sketch.add(value)


def _resolved(threshold: Threshold, costs: QuantileSketch, floor: float, auto: AutoThresholds) -> float | None:
    if threshold != "auto":
        return threshold
    usual = costs.quantile(auto.rank)
    return None if usual is None else max(floor, auto.factor * usual)

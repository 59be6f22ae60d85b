"""How far from its contract an episode (equation 7) and a whole stress level (equations 8 and 9) stay.

An example: the ten episodes of a level reached all of the progress and propositions, of which 0.5 is wanted, at a
recovery cost of 8 where the contract allows 10 and violations of 4 where it allows 5; stability was not measured. The
entries are 1 / 0.5 twice, capped at 1.5, 10 / 8 and 5 / 4. The margin takes the two smallest: (1.25 + 1.25) / 2 - 1:

>>> contract = ContractThresholds(progress=0.5, propositions=0.5, recovery=10.0, stability=None, safety=5.0)
>>> level = StressLevel()
>>> for _ in range(10):
...     level.add(Quantities(progress=1.0, propositions=1.0, recovery=8.0, stability=None, safety=4.0), generation=100)
>>> found = level_figures(level, contract, AggregateConfig())
>>> found.ratios.progress, round(found.ratios.recovery, 6), found.unmeasured, round(found.ratios.safety, 6)
(1.5, 1.25, ('stability',), 1.25)
>>> round(found.margin, 6), found.state, found.violations
(0.25, 'kept', 0)

The monitor of a single such episode is its smallest entry less 1, that is 0.25.
"""

import math
import struct
from statistics import fmean
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from springback.stream_processors.resilience.families.contract_config import (
    AggregateConfig,
    AutoThresholds,
    FamilyContract,
    Threshold,
)
from springback.stream_processors.resilience.families.sample_bounds import favourable_rank, wilson_interval
from springback.stream_processors.resilience.quantiles import QuantileSketch, rank_position
from springback.stream_processors.resilience.readings import (
    ContractThresholds,
    EpisodeSummary,
    ExtensibilityRatios,
    LevelFigures,
    LevelState,
)

EPSILON = 1e-9


class Quantities(NamedTuple):
    """The five quantities of equations 7 and 8, of an episode or as quantiles of several; None where unknown."""

    progress: float | None
    propositions: float | None
    recovery: float | None
    stability: float | None
    safety: float | None

    @classmethod
    def of(cls, summary: EpisodeSummary) -> "Quantities":
        """Those of an episode at its end; of a provisional one without recovery and stability, which nothing rests on.

        What progress, propositions and violations came to does not depend on windows, and is not provisional.
        """
        return cls(
            summary.final_progress,
            summary.final_propositions,
            None if summary.provisional else summary.recovery_cost,
            None if summary.provisional else summary.stability_loss,
            summary.violation,
        )

    def ratios(self, thresholds: ContractThresholds) -> "Quantities":
        """Each against its threshold, so that below 1 it breaks the contract. Source: equations 7 and 8."""
        return Quantities(
            _benefit(self.progress, thresholds.progress),
            _benefit(self.propositions, thresholds.propositions),
            _cost(self.recovery, thresholds.recovery),
            _cost(self.stability, thresholds.stability),
            _cost(self.safety, thresholds.safety),
        )


BENEFITS = 2
"""The first of the quantities are such that more is better; of the others less is."""
_ROW = struct.Struct(f"<{len(Quantities._fields)}d")


class StressLevel(msgspec.Struct, kw_only=True):
    """The latest episodes of a group at one point of the stress grid, each a packed row of its quantities as float64.

    Rows and not sketches: so quantiles and their bounds are exact and do not depend on order, and the episodes that
    break the contract are counted by the thresholds of now.

    Attributes:
        newer, older: the rows of two generations; NaN stands for an unknown quantity. A full one becomes the older.
        newer_provisional, older_provisional: those of provisional episodes, which belong to the same generations: they
            count in the share that breaks the contract, and in no margin.
    """

    newer: bytearray = msgspec.field(default_factory=bytearray)
    older: bytearray = msgspec.field(default_factory=bytearray)
    newer_provisional: bytearray = msgspec.field(default_factory=bytearray)
    older_provisional: bytearray = msgspec.field(default_factory=bytearray)

    def __len__(self) -> int:
        """How many episodes it holds."""
        rows = self.newer, self.older, self.newer_provisional, self.older_provisional
        return sum(map(len, rows)) // _ROW.size

    def add(self, episode: Quantities, generation: int | None, *, provisional: bool = False) -> None:
        """Takes in an episode that was seen to end; a generation holds at most so many, None for all.

        Raises:
            ValueError: a quantity is not finite.
        """
        if not all(value is None or math.isfinite(value) for value in episode):
            message = f"expected finite numbers, got {episode}"
            raise ValueError(message)
        if generation is not None and len(self.newer) + len(self.newer_provisional) >= generation * _ROW.size:
            self.older, self.newer = self.newer, bytearray()
            self.older_provisional, self.newer_provisional = self.newer_provisional, bytearray()
        row = _ROW.pack(*(math.nan if value is None else value for value in episode))
        if provisional:
            self.newer_provisional += row
        else:
            self.newer += row

    def rows(self, *, provisional: bool = False) -> npt.NDArray[np.float64]:
        """Its episodes, or the provisional ones. Shape: (n, 5), in the order of `Quantities`; NaN where unknown."""
        held = self.older_provisional + self.newer_provisional if provisional else self.older + self.newer
        return np.frombuffer(held, dtype="<f8").reshape(-1, len(Quantities._fields))


class ReferenceEpisodes(msgspec.Struct, kw_only=True):
    """What the reference episodes of a family came to, whatever their method and version: `auto` is taken from it.

    A worse version must not loosen its own contract, so a family has one of these.
    """

    progress: QuantileSketch = msgspec.field(default_factory=QuantileSketch)
    propositions: QuantileSketch = msgspec.field(default_factory=QuantileSketch)
    recovery: QuantileSketch = msgspec.field(default_factory=QuantileSketch)
    stability: QuantileSketch = msgspec.field(default_factory=QuantileSketch)
    safety: QuantileSketch = msgspec.field(default_factory=QuantileSketch)

    def add(self, summary: EpisodeSummary) -> None:
        """Takes in a reference episode that was seen to end."""
        for name, value in Quantities.of(summary)._asdict().items():
            if value is not None:
                getattr(self, name).add(value)

    def thresholds(self, contract: FamilyContract, auto: AutoThresholds) -> ContractThresholds:
        """The contract with `auto` resolved; a cost has None while no reference episode has it. Source: ours."""
        return ContractThresholds(
            progress=_least(contract.progress, self.progress, auto),
            propositions=_least(contract.propositions, self.propositions, auto),
            recovery=_most(contract.recovery, self.recovery, auto.recovery_floor, auto),
            stability=_most(contract.stability, self.stability, auto.stability_floor, auto),
            safety=_most(contract.safety, self.safety, auto.safety_floor, auto),
        )


def monitor(summary: EpisodeSummary, thresholds: ContractThresholds) -> float:
    """m_i: how far the episode stayed within its contract; below 0 the contract is violated.

    Entries whose quantity or threshold is unknown are left out.

    Units: ratio. Source: equation 7.
    """
    return min(ratio for ratio in Quantities.of(summary).ratios(thresholds) if ratio is not None) - 1


def margin(ratios: ExtensibilityRatios, smallest: int) -> float | None:
    """M_f: the mean of the `smallest` lowest entries, less 1; None where fewer are known.

    Units: ratio. Source: equation 9.
    """
    known = sorted(ratio for ratio in msgspec.structs.astuple(ratios) if ratio is not None)
    return fmean(known[:smallest]) - 1 if len(known) >= smallest else None


def level_figures(level: StressLevel, thresholds: ContractThresholds, config: AggregateConfig) -> LevelFigures:
    """What a level's episodes come to by these thresholds; of provisional ones the share of violations alone.

    Source: equations 8 and 9; the cap, the favourable margin, the state and the share of violations are ours.
    """
    rows, provisional = level.rows(), level.rows(provisional=True)
    count, judged = len(rows), len(rows) + len(provisional)
    if not judged:
        return LevelFigures(episodes=0, margin=None, state="insufficient", ratios=ExtensibilityRatios())
    likely, favourable = _quantiles(rows, config.alpha)
    ratios = _capped(likely.ratios(thresholds), config.ratio_cap)
    held = margin(ratios, config.smallest)
    at_best = margin(_capped(favourable.ratios(thresholds), config.ratio_cap), config.smallest)
    violations = _violations(rows, thresholds) + _violations(provisional, thresholds)
    low, high = wilson_interval(violations, judged)
    return LevelFigures(
        episodes=count,
        margin=held,
        state=_state(held, at_best, enough=count >= config.min_episodes, too_many=low > config.alpha),
        ratios=ratios,
        favourable_margin=at_best,
        violations=violations,
        violation_low=low,
        violation_high=high,
        unmeasured=tuple(name for name, ratio in msgspec.structs.asdict(ratios).items() if ratio is None and count),
        provisional=len(provisional),
    )


def _state(held: float | None, at_best: float | None, *, enough: bool, too_many: bool) -> LevelState:
    if not enough or held is None or at_best is None:
        return "insufficient"
    if held >= 0:
        # The margin sees each quantity by itself and the K worst of them alone, so that it may be 0 or more although
        # most episodes break the contract, each in its own way or by the one quantity that others make up for.
        return "undecided" if too_many else "kept"
    return "broken" if at_best < 0 else "undecided"


def _quantiles(rows: npt.NDArray[np.float64], alpha: float) -> tuple[Quantities, Quantities]:
    """Of each quantity the quantile of equation 8, and the most favourable that so many values of it allow."""
    ordered = np.sort(rows, axis=0)  # NaN last
    likely: list[float | None] = []
    favourable: list[float | None] = []
    for place, (column, count) in enumerate(zip(ordered.T, (~np.isnan(rows)).sum(axis=0).tolist(), strict=True)):
        if not count:
            likely.append(None)
            favourable.append(None)
            continue
        best = favourable_rank(count, 1 - alpha)
        if place < BENEFITS:
            likely.append(float(column[rank_position(count, alpha) - 1]))
            favourable.append(float(column[count - best]) if best else 1.0)
        else:
            likely.append(float(column[rank_position(count, 1 - alpha) - 1]))
            favourable.append(float(column[best - 1]) if best else 0.0)
    return Quantities(*likely), Quantities(*favourable)


def _violations(rows: npt.NDArray[np.float64], thresholds: ContractThresholds) -> int:
    """How many of the episodes have a monitor below 0."""
    least = np.array([thresholds.progress, thresholds.propositions])
    costs = (thresholds.recovery, thresholds.stability, thresholds.safety)
    most = np.array([math.nan if cost is None else cost for cost in costs])
    # Nothing is below or above NaN: what is not known violates nothing.
    short = rows[:, :BENEFITS] / least < 1
    dear = most / (rows[:, BENEFITS:] + EPSILON) < 1
    return int((short.any(axis=1) | dear.any(axis=1)).sum())


def _capped(ratios: Quantities, cap: float) -> ExtensibilityRatios:
    return ExtensibilityRatios(
        **{name: None if ratio is None else min(ratio, cap) for name, ratio in ratios._asdict().items()}
    )


def _benefit(value: float | None, least: float) -> float | None:
    return None if value is None else value / least


def _cost(value: float | None, most: float | None) -> float | None:
    return None if value is None or most is None else most / (value + EPSILON)


def _least(threshold: Threshold, benefits: QuantileSketch, auto: AutoThresholds) -> float:
    if threshold != "auto":
        return threshold
    usual = benefits.quantile(auto.benefit_rank)
    if usual is None:
        return auto.benefit_most
    return max(auto.benefit_floor, min(auto.benefit_most, auto.benefit_factor * usual))


def _most(threshold: Threshold, costs: QuantileSketch, floor: float, auto: AutoThresholds) -> float | None:
    if threshold != "auto":
        return threshold
    usual = costs.quantile(auto.rank)
    return None if usual is None else max(floor, auto.factor * usual)

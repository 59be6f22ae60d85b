"""How each metric of a family and method has changed between two versions, with its interval and its tests.

Episodes at the stress levels that both versions were played at are compared; the candidate's are weighted to the
baseline version's mix of levels. Intervals come from a bootstrap over tasks; a task that both versions played is drawn
for both at once, so what makes it hard for either cancels out. Ours.
"""

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal

import msgspec
import numpy as np

from springback.stream_processors.offline.comparison_contract import METRICS, VersionContract
from springback.stream_processors.offline.comparison_evidence import evidence_of, level_text
from springback.stream_processors.offline.resampling import TaskDraws, percentile_interval
from springback.stream_processors.offline.samples import (
    STATISTICS,
    EpisodeSample,
    StressLevel,
    at_levels,
    levels_of,
    mix_weights,
    sample_of,
)
from springback.stream_processors.offline.significance import TaskComparison, compare_tasks
from springback.stream_processors.offline.stress_response import capacities, stress_curve
from springback.stream_processors.resilience.anchor import Bools, Floats
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.readings import ContractThresholds, EpisodeSummary, WindowReading

_ROUNDING = 1e-9

Verdict = Literal["ok", "breach", "undetermined", "unchecked"]
FamilyMethod = tuple[str, str]
"""What is compared with its like: a family and a method."""
Episodes = tuple[list[EpisodeSummary], list[WindowReading]]


class MetricChange(msgspec.Struct, frozen=True, kw_only=True):
    """How one metric has changed. None stands for what could not be determined.

    Attributes:
        stress: the stress level of a margin; None for metrics over all levels.
        difference: the candidate's value less the baseline version's.
        low, high: its bootstrap interval.
        tasks: the tests task by task, for metrics that single episodes or windows have; Holm-corrected over families.
        allowance: by how much the metric may get worse, in its own unit; None where it is not checked.
    """

    metric: str
    stress: StressLevel | None
    baseline: float | None
    candidate: float | None
    difference: float | None
    low: float | None = None
    high: float | None = None
    tasks: TaskComparison | None = None
    allowance: float | None = None
    verdict: Verdict = "unchecked"


def metric_name(change: MetricChange) -> str:
    """A metric as it is read, with its stress level where it has one."""
    return change.metric if change.stress is None else f"{change.metric} λ={level_text(change.stress)}"


class ResampledPair:
    """The two versions of a group under the same draws of tasks, at the stress levels that both were played at.

    Args:
        group: family and method.
        baseline: the baseline version's episodes and windows.
        candidate: those of the candidate.
        contract: what may not get worse.
        thresholds: of the operational margin, the same for both.
        config: settings of the operational margin.
    """

    def __init__(
        self,
        group: FamilyMethod,
        baseline: Episodes,
        candidate: Episodes,
        contract: VersionContract,
        thresholds: ContractThresholds,
        config: AggregateConfig,
    ) -> None:
        self.group, self.contract, self.thresholds, self.config = group, contract, thresholds, config
        samples = sample_of(*baseline, config.grid), sample_of(*candidate, config.grid)
        common = set(samples[0].level.tolist()) & set(samples[1].level.tolist())
        self.baseline, self.candidate = (at_levels(sample, common) for sample in samples)
        self._mix = mix_weights(self.candidate, like=self.baseline)
        played = (set(zip(sample.task, sample.level.tolist(), strict=True)) for sample in samples)
        paired = {task for task, _ in set.intersection(*played)}
        self.evidence = evidence_of(baseline[0], candidate[0], config.grid, len(paired))
        seed = zlib.crc32("\0".join([str(contract.seed), *group]).encode("utf-8", "surrogatepass"))
        self._draws = TaskDraws(self.baseline.task, self.candidate.task, seed=seed, resamples=contract.resamples)

    def changes(self) -> Iterator[MetricChange]:
        """How each metric has changed."""
        for name in STATISTICS:
            yield self.change(name)
        yield from self._stress_response()

    def change(self, metric: str) -> MetricChange:
        """How a metric of `STATISTICS` has changed."""
        statistic = STATISTICS[metric]
        before, after = self._resampled(statistic.value)
        enough = self._enough(statistic.known)
        values = statistic.task_values(self.baseline), statistic.task_values(self.candidate)
        tasks = None if values[0] is None or values[1] is None else compare_tasks(values[0], values[1])
        return self._change(metric, None, before, after, enough, tasks)

    def _stress_response(self) -> Iterator[MetricChange]:
        """M_f at each stress level that has enough episodes of both versions, and lambda* over those declared."""
        names = levels_of(self.config.grid)
        counts = [np.bincount(s.level, minlength=len(names)) for s in (self.baseline, self.candidate)]
        levels = np.flatnonzero(np.minimum(*counts) >= self.config.min_episodes).tolist()
        if not levels:
            return
        before, after = self._resampled(
            lambda sample, weights: stress_curve(sample, weights, levels, self.thresholds, self.config)
        )
        for column, level in enumerate(levels):
            enough = self._enough(partial(_at_level, level=level))
            yield self._change("margin", names[level], before[:, column], after[:, column], enough)
        stresses = [self.config.grid[level] for level in levels if level < len(self.config.grid)]
        if stresses:
            enough = self._enough(lambda sample: np.isin(sample.level, levels[: len(stresses)]))
            held = [capacities(curve[:, : len(stresses)], stresses) for curve in (before, after)]
            yield self._change("capacity", None, held[0], held[1], enough)

    def _resampled(self, statistic: Callable[[EpisodeSample, Floats], Floats]) -> tuple[Floats, Floats]:
        return (
            self._draws.resample(lambda weights: statistic(self.baseline, weights), 0),
            self._draws.resample(lambda weights: statistic(self.candidate, weights * self._mix), 1),
        )

    def _enough(self, known: Callable[[EpisodeSample], Bools]) -> bool:
        """Whether the episodes that a metric is found from are of enough tasks, in both versions."""
        return all(
            len({task for task, own in zip(sample.task, known(sample).tolist(), strict=True) if own})
            >= self.contract.least_tasks
            for sample in (self.baseline, self.candidate)
        )

    def _change(
        self,
        metric: str,
        stress: StressLevel | None,
        before: Floats,
        after: Floats,
        enough: bool,
        tasks: TaskComparison | None = None,
    ) -> MetricChange:
        change = MetricChange(
            metric=metric,
            stress=stress,
            baseline=_number(before[0]),
            candidate=_number(after[0]),
            difference=_number(after[0] - before[0]),
            tasks=tasks,
        )
        if change.difference is not None:
            low, high = percentile_interval((after - before)[1:], self.contract.confidence)
            change = msgspec.structs.replace(change, low=low, high=high)
        allowed = self.contract.allowance(self.group[0], metric)
        if allowed is None:
            return change
        if change.baseline is not None:
            change = msgspec.structs.replace(change, allowance=allowed.of(change.baseline))
        return msgspec.structs.replace(change, verdict=self._verdict(change, enough))

    def _verdict(self, change: MetricChange, enough: bool) -> Verdict:
        if not enough or change.difference is None or change.low is None or change.high is None:
            return "undetermined"
        worse = -METRICS[change.metric]
        worse_by, at_least = worse * change.difference, min(worse * change.low, worse * change.high)
        bar = (change.allowance or 0.0) + _ROUNDING * (1.0 + abs(change.baseline or 0.0))
        return "breach" if worse_by > bar and (at_least > bar or self.contract.rule == "point") else "ok"


def _at_level(sample: EpisodeSample, level: int) -> Bools:
    return np.asarray(sample.level == level)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)

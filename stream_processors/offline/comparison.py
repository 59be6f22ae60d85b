"""Non-degradation between two versions of the agents: how each metric has changed, and whether a contract allows it.

Both versions are scored by one baseline, and held to thresholds from it, so that a worse candidate loosens nothing.
Per family and method, episodes at the stress levels that both versions were played at are compared; the candidate's are
weighted to the baseline version's mix of levels. Intervals come from a bootstrap over tasks; a task that both versions
played is drawn for both at once, so what makes it hard for either cancels out. Ours; the paper names the contract.
"""

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Literal

import msgspec
import numpy as np

from springback.producers.contract.frame import PartFault, StepFrame, TextColumn
from springback.stream_processors.offline.comparison_contract import METRICS, VersionContract
from springback.stream_processors.offline.resampling import TaskDraws, compare_ranks, percentile_interval
from springback.stream_processors.offline.samples import (
    STATISTICS,
    EpisodeSample,
    Statistic,
    at_levels,
    capacities,
    mix_weights,
    sample_of,
    stress_curve,
)
from springback.stream_processors.resilience.anchor import Bools, Floats, Ints
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.families.operational_margin import ReferenceCosts
from springback.stream_processors.resilience.readings import ContractThresholds, EpisodeSummary, WindowReading

COMPARISON_SCHEMA_VERSION = 1
_ROUNDING = 1e-9

Verdict = Literal["ok", "breach", "undetermined", "unchecked"]
FamilyMethod = tuple[str, str]
"""What is compared with its like: a family and a method."""


class MetricChange(msgspec.Struct, frozen=True, kw_only=True):
    """How one metric has changed. None stands for what could not be determined.

    Attributes:
        stress: the stress level of a margin; None for metrics over all levels.
        difference: the candidate's value less the baseline version's.
        low, high: its bootstrap interval.
        p_value: of the Mann-Whitney test, for metrics that single episodes or windows have.
        allowance: by how much the metric may get worse, in its own unit; None where it is not checked.
    """

    metric: str
    stress: float | None
    baseline: float | None
    candidate: float | None
    difference: float | None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    allowance: float | None = None
    verdict: Verdict = "unchecked"


class GroupChange(msgspec.Struct, frozen=True, kw_only=True):
    """How one family and method has changed. Episodes are those that were seen to end, at common stress levels."""

    family: str
    method: str
    baseline_episodes: int
    candidate_episodes: int
    common_tasks: int
    left_out_stresses: list[float]
    metrics: list[MetricChange]


class Breach(msgspec.Struct, frozen=True, kw_only=True):
    """What got worse than its allowance."""

    family: str
    method: str
    metric: str
    stress: float | None


class VersionComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What `springback compare --json` writes. `passed` says that there is no breach."""

    baseline_version: str
    candidate_version: str
    passed: bool
    breaches: list[Breach]
    groups: list[GroupChange]
    contract: VersionContract
    schema_version: int = COMPARISON_SCHEMA_VERSION


class ScoredVersion(msgspec.Struct, frozen=True):
    """A version's episodes and closed windows, scored."""

    summaries: list[EpisodeSummary]
    windows: list[WindowReading]

    def groups(self) -> set[FamilyMethod]:
        """The families and methods that have episodes."""
        return {_group(summary) for summary in self.summaries}


def compare_versions(
    baseline: ScoredVersion,
    candidate: ScoredVersion,
    *,
    groups: Iterable[FamilyMethod],
    contract: VersionContract,
    versions: tuple[str, str],
    config: AggregateConfig,
) -> VersionComparison:
    """Compares two versions, family by family and method by method.

    Args:
        baseline: the version that sets what is expected.
        candidate: the version that is held to it.
        groups: the families and methods to compare; both versions should have episodes of them.
        contract: what may not get worse.
        versions: their names.
        config: settings of margins, with the stress grid. Thresholds that are `auto` come from the reference episodes
            of the baseline version.
    """
    before, after = _by_group(baseline), _by_group(candidate)
    references: dict[str, ReferenceCosts] = defaultdict(ReferenceCosts)
    for summary in baseline.summaries:
        if summary.traits.reference and not summary.censored:
            references[summary.traits.family].add(summary)
    changes = []
    for group in sorted(groups):
        thresholds = references[group[0]].thresholds(config.contract(group[0]), config.auto)
        samples = sample_of(*before[group], config.grid), sample_of(*after[group], config.grid)
        changes.append(_compare_group(group, *samples, contract, thresholds, config))
    breaches = [
        Breach(family=group.family, method=group.method, metric=change.metric, stress=change.stress)
        for group in changes
        for change in group.metrics
        if change.verdict == "breach"
    ]
    return VersionComparison(
        baseline_version=versions[0],
        candidate_version=versions[1],
        passed=not breaches,
        breaches=breaches,
        groups=changes,
        contract=contract,
    )


def _by_group(version: ScoredVersion) -> dict[FamilyMethod, tuple[list[EpisodeSummary], list[WindowReading]]]:
    found: dict[FamilyMethod, tuple[list[EpisodeSummary], list[WindowReading]]] = defaultdict(lambda: ([], []))
    for summary in version.summaries:
        found[_group(summary)][0].append(summary)
    for window in version.windows:
        found[_group(window)][1].append(window)
    return found


def _group(reading: EpisodeSummary | WindowReading) -> FamilyMethod:
    return reading.traits.family, reading.traits.method


def _compare_group(
    group: FamilyMethod,
    baseline: EpisodeSample,
    candidate: EpisodeSample,
    contract: VersionContract,
    thresholds: ContractThresholds,
    config: AggregateConfig,
) -> GroupChange:
    played = set(baseline.level.tolist()), set(candidate.level.tolist())
    common = played[0] & played[1]
    samples = at_levels(baseline, common), at_levels(candidate, common)
    pair = _ResampledPair(group, *samples, contract, thresholds, config)
    return GroupChange(
        family=group[0],
        method=group[1],
        baseline_episodes=len(pair.baseline.task),
        candidate_episodes=len(pair.candidate.task),
        common_tasks=len({*pair.baseline.task} & {*pair.candidate.task}),
        left_out_stresses=[config.grid[level] for level in sorted(played[0] ^ played[1])],
        metrics=list(pair.changes()),
    )


class _ResampledPair:
    """The two samples of a group under the same draws of tasks.

    Args:
        group: family and method.
        baseline: the baseline version's episodes, at the stress levels that both versions were played at.
        candidate: those of the candidate.
        contract: what may not get worse.
        thresholds: of the operational margin, the same for both.
        config: settings of the operational margin.
    """

    def __init__(
        self,
        group: tuple[str, str],
        baseline: EpisodeSample,
        candidate: EpisodeSample,
        contract: VersionContract,
        thresholds: ContractThresholds,
        config: AggregateConfig,
    ) -> None:
        self.family = group[0]
        self.baseline, self.candidate, self.contract = baseline, candidate, contract
        self.thresholds, self.config = thresholds, config
        self._mix = mix_weights(candidate, like=baseline)
        seed = zlib.crc32("\0".join([str(contract.seed), *group]).encode("utf-8", "surrogatepass"))
        self._draws = TaskDraws(baseline.task, candidate.task, seed=seed, resamples=contract.resamples)

    def changes(self) -> Iterator[MetricChange]:
        """How each metric has changed."""
        for name, statistic in STATISTICS.items():
            yield self._measure(name, statistic)
        yield from self._stress_response()

    def _measure(self, metric: str, statistic: Statistic) -> MetricChange:
        before, after = self._resampled(statistic.value)
        enough = self._enough(statistic.known)
        p_value = None
        if statistic.values is not None:
            ranks = compare_ranks(statistic.values(self.baseline), statistic.values(self.candidate))
            p_value = None if ranks is None else ranks.p
        return self._change(metric, None, before, after, enough, p_value)

    def _stress_response(self) -> Iterator[MetricChange]:
        """M_f at each stress level that has enough episodes of both versions, and lambda* over these levels."""
        counts = [np.bincount(s.level, minlength=len(self.config.grid)) for s in (self.baseline, self.candidate)]
        levels = np.flatnonzero(np.minimum(*counts) >= self.config.min_episodes).tolist()
        if not levels:
            return
        before, after = self._resampled(
            lambda sample, weights: stress_curve(sample, weights, levels, self.thresholds, self.config)
        )
        stresses = [self.config.grid[level] for level in levels]
        for column, (level, stress) in enumerate(zip(levels, stresses, strict=True)):
            enough = self._enough(partial(_at_level, level=level))
            yield self._change("margin", stress, before[:, column], after[:, column], enough, None)
        enough = self._enough(lambda sample: np.isin(sample.level, levels))
        held = capacities(before, stresses), capacities(after, stresses)
        yield self._change("capacity", None, *held, enough, None)

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
        self, metric: str, stress: float | None, before: Floats, after: Floats, enough: bool, p_value: float | None
    ) -> MetricChange:
        change = MetricChange(
            metric=metric,
            stress=stress,
            baseline=_number(before[0]),
            candidate=_number(after[0]),
            difference=_number(after[0] - before[0]),
            p_value=p_value,
        )
        if change.difference is not None:
            low, high = percentile_interval((after - before)[1:], self.contract.confidence)
            change = msgspec.structs.replace(change, low=low, high=high)
        allowed = self.contract.allowance(self.family, metric)
        if allowed is None:
            return change
        if change.baseline is not None:
            change = msgspec.structs.replace(change, allowance=allowed.of(change.baseline))
        return msgspec.structs.replace(change, verdict=self._verdict(change, enough))

    def _verdict(self, change: MetricChange, enough: bool) -> Verdict:
        if not enough or change.difference is None or change.low is None or change.high is None:
            missed = change.baseline is not None and self.contract.undetermined == "breach"
            return "breach" if missed else "undetermined"
        worse = -METRICS[change.metric]
        worse_by, at_least = worse * change.difference, min(worse * change.low, worse * change.high)
        bar = (change.allowance or 0.0) + _ROUNDING * (1.0 + abs(change.baseline or 0.0))
        return "breach" if worse_by > bar and (at_least > bar or self.contract.rule == "point") else "ok"


def _at_level(sample: EpisodeSample, level: int) -> Bools:
    return np.asarray(sample.level == level)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def versions_in(frames: Iterable[StepFrame]) -> list[str]:
    """The versions that episodes of these frames are of, sorted."""
    return sorted({header.version for frame in frames for header in frame.episodes})


def frames_of_version(frames: Iterable[StepFrame], version: str) -> list[StepFrame]:
    """The frames with the episodes of one version alone, in their order; frames without one are left out."""
    return [part for frame in frames if (part := _part_of(frame, version)) is not None]


def _part_of(frame: StepFrame, version: str) -> StepFrame | None:
    wanted = np.array([header.version == version for header in frame.episodes], dtype=bool)
    if wanted.all() or not wanted.any():
        return frame if len(wanted) and wanted.all() else None
    episode: Ints = np.asarray(frame.steps.get("episode", ()), dtype=np.int64)
    known = (episode >= 0) & (episode < len(wanted))
    kept = known & wanted[np.where(known, episode, 0)]
    place, row = _places(wanted), _places(kept)
    steps = {
        name: TextColumn(column.values, column.codes[kept]) if isinstance(column, TextColumn) else column[kept]
        for name, column in frame.steps.items()
    }
    if frame.n_steps:
        steps["episode"] = place[episode[kept]]
    return StepFrame(
        producer=frame.producer,
        session=frame.session,
        episodes=tuple(header for header in frame.episodes if header.version == version),
        steps=steps,
        ends=tuple(
            msgspec.structs.replace(end, episode=int(place[end.episode]))
            for end in frame.ends
            if end.episode < len(wanted) and wanted[end.episode]
        ),
        faults=tuple(_moved_faults(frame.faults, {"steps": row, "episodes": place})),
        schema_version=frame.schema_version,
    )


def _moved_faults(faults: Iterable[PartFault], places: dict[str, Ints]) -> Iterator[PartFault]:
    """The faults of what was kept, at its new place. Those of ends stay: their ends are gone from the frame already."""
    for fault in faults:
        place = places.get(fault.part)
        if place is None:
            yield fault
        elif place[fault.index] >= 0:
            yield msgspec.structs.replace(fault, index=int(place[fault.index]))


def _places(kept: Bools) -> Ints:
    """Where each of the kept ones stands among them; -1 for the others."""
    return np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int64)

"""Non-degradation between two versions of the agents: how each metric has changed, and whether a contract allows it.

Both versions are scored by one baseline, and held to thresholds from it, so that a worse candidate loosens nothing.
Per family and method, episodes at the stress levels that both versions were played at are compared; the candidate's are
weighted to the baseline version's mix of levels. Intervals come from a bootstrap over tasks; a task that both versions
played is drawn for both at once, so what makes it hard for either cancels out. Ours; the paper names the contract.
"""

from collections import defaultdict
from collections.abc import Iterable

import msgspec
from springback.stream_processors.metric_change import MetricChange, ResampledPair
from springback.stream_processors.resilience.aggregate_config import AggregateConfig
from springback.stream_processors.resilience.family_readings import ContractThresholds
from springback.stream_processors.resilience.operational_margin import ReferenceCosts
from springback.stream_processors.resilience.readings import EpisodeSummary, WindowReading
from springback.stream_processors.version_contract import VersionContract
from springback.stream_processors.version_sample import VersionSample, at_levels, sample_of

COMPARISON_SCHEMA_VERSION = 1
Group = tuple[str, str]
"""Family and method."""


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

    def groups(self) -> set[Group]:
        """The families and methods that have episodes."""
        return {_group(summary) for summary in self.summaries}


def compare_versions(
    baseline: ScoredVersion,
    candidate: ScoredVersion,
    *,
    groups: Iterable[Group],
    contract: VersionContract,
    versions: tuple[str, str],
    config: AggregateConfig,
) -> VersionComparison:
    """Compare two versions, family by family and method by method.

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


def _by_group(version: ScoredVersion) -> dict[Group, tuple[list[EpisodeSummary], list[WindowReading]]]:
    found: dict[Group, tuple[list[EpisodeSummary], list[WindowReading]]] = defaultdict(lambda: ([], []))
    for summary in version.summaries:
        found[_group(summary)][0].append(summary)
    for window in version.windows:
        found[_group(window)][1].append(window)
    return found


def _group(reading: EpisodeSummary | WindowReading) -> Group:
    return reading.traits.family, reading.traits.method


def _compare_group(
    group: Group,
    baseline: VersionSample,
    candidate: VersionSample,
    contract: VersionContract,
    thresholds: ContractThresholds,
    config: AggregateConfig,
) -> GroupChange:
    played = set(baseline.level.tolist()), set(candidate.level.tolist())
    common = played[0] & played[1]
    pair = ResampledPair(group, at_levels(baseline, common), at_levels(candidate, common), contract, thresholds, config)
    return GroupChange(
        family=group[0],
        method=group[1],
        baseline_episodes=len(pair.baseline.task),
        candidate_episodes=len(pair.candidate.task),
        common_tasks=len({*pair.baseline.task} & {*pair.candidate.task}),
        left_out_stresses=[config.grid[level] for level in sorted(played[0] ^ played[1])],
        metrics=list(pair.changes()),
    )

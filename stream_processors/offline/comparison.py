"""Non-degradation between two versions of the agents: how each metric has changed, and whether a contract allows it.

Both versions are scored by one baseline, and held to thresholds from it, so that a worse candidate loosens nothing.
Per family and method, first the evidence is looked at (`comparison_evidence`): too little of it, or more aborted
episodes, is a finding. Then each metric (`metric_changes`). Ours; the paper names the contract.
"""

from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from typing import Literal

import msgspec

from springback.stream_processors.offline.comparison_contract import VersionContract
from springback.stream_processors.offline.comparison_evidence import Evidence, Finding, findings_of
from springback.stream_processors.offline.metric_changes import (
    Episodes,
    FamilyMethod,
    MetricChange,
    ResampledPair,
    metric_name,
)
from springback.stream_processors.offline.samples import STATISTICS, counts
from springback.stream_processors.offline.significance import TaskComparison, corrected, holm
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.families.operational_margin import ReferenceEpisodes
from springback.stream_processors.resilience.readings import EpisodeSummary, WindowReading

COMPARISON_SCHEMA_VERSION = 2

FamilyVerdict = Literal["passed", "failed", "unclear"]


class GroupChange(msgspec.Struct, frozen=True, kw_only=True):
    """How one family and method has changed.

    Attributes:
        verdict: `failed` by a finding that fails; `unclear` where one only says that too little is known, and the
            contract lets that pass; else `passed`.
        reasons: why, in words.
        evidence: what the comparison rests on.
        findings: what speaks against the candidate, or keeps it from being judged.
        metrics: how each has changed.
    """

    family: str
    method: str
    verdict: FamilyVerdict
    reasons: list[str]
    evidence: Evidence
    findings: list[Finding]
    metrics: list[MetricChange]


class VersionComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What `springback compare --json` writes.

    Attributes:
        passed: whether the candidate may replace the baseline version: no family failed, and at least one passed.
        verdict: the same in one line.
        failures: the findings that fail.
    """

    baseline_version: str
    candidate_version: str
    passed: bool
    verdict: str
    failures: list[Finding]
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
        groups: the families and methods to compare, of those that the baseline version has episodes of.
        contract: what may not get worse.
        versions: their names.
        config: settings of margins, with the stress grid. Thresholds that are `auto` come from the reference episodes
            of the baseline version.
    """
    before, after = _by_group(baseline), _by_group(candidate)
    references: dict[str, ReferenceEpisodes] = defaultdict(ReferenceEpisodes)
    for summary in baseline.summaries:
        if summary.traits.reference and counts(summary):
            references[summary.traits.family].add(summary)
    pairs = []
    for group in sorted(groups):
        thresholds = references[group[0]].thresholds(config.contract(group[0]), config.auto)
        pairs.append(ResampledPair(group, before[group], after[group], contract, thresholds, config))
    evidence = _with_corrected_shares([pair.evidence for pair in pairs])
    metrics = _with_corrected_tests([list(pair.changes()) for pair in pairs])
    changes = [
        _judged(pair.group, known, changed, contract, config)
        for pair, known, changed in zip(pairs, evidence, metrics, strict=True)
    ]
    failures = [finding for group in changes for finding in group.findings if finding.fails]
    passed = not failures and any(group.verdict == "passed" for group in changes)
    return VersionComparison(
        baseline_version=versions[0],
        candidate_version=versions[1],
        passed=passed,
        verdict=_verdict_line(versions, changes, passed),
        failures=failures,
        groups=changes,
        contract=contract,
    )


def _breach_text(change: MetricChange) -> str:
    """What got worse, from what to what, and what was allowed."""
    before, after, allowed = (
        "unknown" if value is None else f"{value:.3g}"
        for value in (change.baseline, change.candidate, change.allowance)
    )
    return f"{metric_name(change)} {before} -> {after}; it may worsen by {allowed}"


def _by_group(version: ScoredVersion) -> dict[FamilyMethod, Episodes]:
    found: dict[FamilyMethod, Episodes] = defaultdict(lambda: ([], []))
    for summary in version.summaries:
        found[_group(summary)][0].append(summary)
    for window in version.windows:
        found[_group(window)][1].append(window)
    return found


def _group(reading: EpisodeSummary | WindowReading) -> FamilyMethod:
    return reading.traits.family, reading.traits.method


def _with_corrected_shares(evidence: Iterable[Evidence]) -> list[Evidence]:
    """The evidence of all families, with the p of a risen share of aborted episodes Holm-corrected over them."""
    evidence = list(evidence)
    corrected_p = holm([found.aborted_p for found in evidence])
    return [msgspec.structs.replace(found, aborted_p_holm=p) for found, p in zip(evidence, corrected_p, strict=True)]


def _with_corrected_tests(groups: list[list[MetricChange]]) -> list[list[MetricChange]]:
    """The changes of all families, with the p of each metric Holm-corrected over them."""
    tests: dict[str, list[TaskComparison | None]] = {}
    for metric in STATISTICS:
        own = [change.tasks for changes in groups for change in changes if change.metric == metric]
        tests[metric] = corrected(own)
    return [
        [
            msgspec.structs.replace(change, tasks=tests[change.metric][place]) if change.metric in tests else change
            for change in changes
        ]
        for place, changes in enumerate(groups)
    ]


def _judged(
    group: FamilyMethod,
    evidence: Evidence,
    metrics: list[MetricChange],
    contract: VersionContract,
    config: AggregateConfig,
) -> GroupChange:
    """One family and method with its findings, and the verdict that follows from them."""
    family, method = group
    checked = [change for change in metrics if change.verdict != "unchecked"]
    undetermined = [change for change in checked if change.verdict == "undetermined"]
    named = ", ".join(map(metric_name, undetermined))
    found = partial(Finding, family=family, method=method)
    findings = list(findings_of(family, method, evidence, contract.evidence, config.min_episodes))
    if contract.undetermined == "breach":
        findings += [
            found(
                kind="undetermined",
                said=f"{metric_name(change)}: too little to decide by, which the contract takes for a breach",
                metric=change.metric,
                stress=change.stress,
            )
            for change in undetermined
            if change.baseline is not None
        ]
    if not findings and len(undetermined) == len(checked):
        said = (
            f"too little to decide any metric by that is checked: {named}" if checked else "no metric of it is checked"
        )
        findings.append(
            found(kind="nothing_decided", said=said, fails=bool(checked) and contract.evidence.missing_family == "fail")
        )
    findings += [
        found(kind="breach", said=_breach_text(change), metric=change.metric, stress=change.stress)
        for change in checked
        if change.verdict == "breach"
    ]
    verdict: FamilyVerdict = "passed"
    if findings:
        verdict = "failed" if any(finding.fails for finding in findings) else "unclear"
    reasons = [finding.said for finding in findings]
    if not findings:
        decided = len(checked) - len(undetermined)
        reasons.append(f"{decided} of {len(checked)} checked metrics are within their allowance")
        if undetermined:
            reasons.append(f"too little to decide by: {named}")
    return GroupChange(
        family=family,
        method=method,
        verdict=verdict,
        reasons=reasons,
        evidence=evidence,
        findings=findings,
        metrics=metrics,
    )


def _verdict_line(versions: tuple[str, str], groups: list[GroupChange], passed: bool) -> str:
    """The verdict in one line."""
    of: dict[FamilyVerdict, list[str]] = {"failed": [], "unclear": [], "passed": []}
    for group in groups:
        of[group.verdict].append(f"{group.family} ({group.method})")
    words = {"failed": "failed", "unclear": "could not be told", "passed": "passed"}
    told = [f"{len(names)} {words[verdict]}" for verdict, names in of.items() if names]
    found = ", ".join(told) or "there was no family to compare"
    named = f": {', '.join(of['failed'])}" if of["failed"] else ""
    outcome = "passed" if passed else "FAILED"
    return f"{outcome}: version {versions[1]} against {versions[0]}, {found}{named}"

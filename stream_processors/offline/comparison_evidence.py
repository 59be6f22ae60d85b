"""What a comparison of two versions rests on: how many episodes ended, and whether more of them were aborted.

No evidence is a finding. A candidate whose episodes never ended has made no metric worse, for it has none; so before
any metric is looked at, each family and stress level that the baseline version was played at must have enough episodes
of the candidate that ended and count, and the share of aborted ones may not have risen. What is too little, and what of
this fails, is in the contract; that all of a family's episodes were aborted always does. Ours.

Whether the share rose is tested within stress levels (`significance.rise_p`). A test of few episodes finds little:
below `small_sample` episodes, a rise by more than `small_rise` counts whatever its p. By the defaults (20; 0.3), of two
versions of which each aborts a tenth of its episodes, one is taken for worse by chance in 3 % of comparisons at most;
with five or six episodes, in up to 7 %.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from springback.stream_processors.offline.comparison_contract import EvidenceRules
from springback.stream_processors.offline.samples import StressLevel, level_of, levels_of
from springback.stream_processors.offline.significance import Stratum, rise_p
from springback.stream_processors.resilience.families.contract_config import FamilyContract
from springback.stream_processors.resilience.families.stress_capacity import stress_place
from springback.stream_processors.resilience.readings import EpisodeSummary

FindingKind = Literal[
    "all_aborted",
    "few_episodes",
    "few_baseline_episodes",
    "few_at_level",
    "aborted_rose",
    "undetermined",
    "nothing_decided",
    "breach",
]
_APART = FamilyContract()
_ROUNDING = 1e-9


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that speaks against a candidate in one family and method, or that keeps it from being judged.

    Attributes:
        kind: `breach` is a metric that got worse by more than its allowance, `undetermined` one that could not be
            decided where the contract takes that for a breach; all others are of the evidence.
        metric: that metric.
        stress: the stress level, where it is of one.
        fails: whether the comparison fails for it; one that does not only keeps the family from passing.
        said: the same in words.
    """

    family: str
    method: str
    kind: FindingKind
    said: str
    fails: bool = True
    metric: str | None = None
    stress: StressLevel | None = None


class EpisodeCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The episodes of a version, each counted once.

    Attributes:
        ended: were seen to end, and count.
        aborted: were not seen to end.
        provisional: were seen to end, while their family was still learning, and count in no comparison.
    """

    ended: int
    aborted: int
    provisional: int

    @property
    def episodes(self) -> int:
        """All of them."""
        return self.ended + self.aborted + self.provisional


class LevelEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The episodes of both versions at one stress level. Metrics are compared over the levels where both have some."""

    stress: StressLevel
    baseline: EpisodeCounts
    candidate: EpisodeCounts

    @property
    def played_by_both(self) -> bool:
        """Whether both versions have episodes here, whatever became of them."""
        return self.baseline.episodes > 0 and self.candidate.episodes > 0

    @property
    def compared(self) -> bool:
        """Whether both versions have episodes here that count."""
        return self.baseline.ended > 0 and self.candidate.ended > 0


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to compare a family and method by.

    Attributes:
        baseline, candidate: the episodes of either version.
        levels: the same by stress level, of those at which either was played.
        paired_tasks: tasks that both played at one level at least, to an end that counts.
        aborted_rise: by how much the share of aborted episodes rose, at the baseline version's mix of levels; None
            where the versions share no level.
        aborted_p: one-sided p of that rise; `aborted_p_holm` is Holm-corrected over families.
        bound_references, bound_references_needed: how many references stand behind the bounds of provisional episodes,
            the fewest, and how many it takes; None where no episode is provisional.
    """

    baseline: EpisodeCounts
    candidate: EpisodeCounts
    levels: list[LevelEvidence]
    paired_tasks: int
    aborted_rise: float | None
    aborted_p: float | None
    aborted_p_holm: float | None = None
    bound_references: int | None = None
    bound_references_needed: int | None = None


def evidence_of(
    baseline: Sequence[EpisodeSummary], candidate: Sequence[EpisodeSummary], grid: Sequence[float], paired_tasks: int
) -> Evidence:
    """The evidence of one family and method.

    Args:
        baseline: all episodes of the baseline version.
        candidate: all episodes of the candidate.
        grid: the stress grid.
        paired_tasks: tasks that both played to an end that counts.
    """
    by_level = _by_level(baseline, grid), _by_level(candidate, grid)
    levels = [
        LevelEvidence(stress=level, baseline=counts_of(by_level[0][level]), candidate=counts_of(by_level[1][level]))
        for level in levels_of(grid)
        if by_level[0][level] or by_level[1][level]
    ]
    both = [level for level in levels if level.played_by_both]
    learning = [summary for summary in (*baseline, *candidate) if summary.provisional]
    return Evidence(
        baseline=counts_of(baseline),
        candidate=counts_of(candidate),
        levels=levels,
        paired_tasks=paired_tasks,
        aborted_rise=_rise(both),
        aborted_p=rise_p(map(_stratum, both)) if both else None,
        bound_references=min((summary.bound_references or 0 for summary in learning), default=None),
        bound_references_needed=max((summary.bound_references_needed or 0 for summary in learning), default=None),
    )


def counts_of(summaries: Iterable[EpisodeSummary]) -> EpisodeCounts:
    """How many episodes ended, were aborted, and are provisional."""
    kinds = Counter(
        "aborted" if summary.censored else "provisional" if summary.provisional else "ended" for summary in summaries
    )
    return EpisodeCounts(ended=kinds["ended"], aborted=kinds["aborted"], provisional=kinds["provisional"])


def findings_of(
    family: str, method: str, evidence: Evidence, rules: EvidenceRules, least_episodes: int
) -> Iterator[Finding]:
    """What the evidence itself has against the candidate.

    Args:
        family: task family.
        method: of the agents.
        evidence: of the two, with the p of the aborted share corrected.
        rules: of the contract.
        least_episodes: n_min, unless the contract says otherwise.
    """
    least = least_episodes if rules.least_episodes is None else rules.least_episodes
    before, after = evidence.baseline, evidence.candidate

    def found(kind: FindingKind, said: str, fails: bool, stress: StressLevel | None = None) -> Finding:
        return Finding(family=family, method=method, kind=kind, said=said, fails=fails, stress=stress)

    family_fails = rules.missing_family == "fail"
    if after.aborted and after.aborted == after.episodes:
        yield found("all_aborted", f"all {after.aborted} episodes of the candidate were aborted", True)
    elif after.ended < least:
        yield found("few_episodes", _few("the candidate", after, least, evidence), family_fails)
    if before.ended < least:
        yield found("few_baseline_episodes", _few("the baseline version", before, least, evidence), family_fails)
    elif after.ended >= least:
        for level in evidence.levels:
            if level.baseline.episodes and level.candidate.ended < least:
                said = f"at stress {level_text(level.stress)} {_few('the candidate', level.candidate, least, evidence)}"
                yield found("few_at_level", said, rules.missing_level == "fail", level.stress)
    if _aborted_rose(evidence, rules):
        both = [level for level in evidence.levels if level.played_by_both]
        was, now = (
            f"{sum(counts.aborted for counts in version)} of {sum(counts.episodes for counts in version)}"
            for version in ([level.baseline for level in both], [level.candidate for level in both])
        )
        said = f"the share of aborted episodes rose from {was} to {now}, at the same stress levels"
        if evidence.aborted_p_holm is not None:
            said += f" (one-sided p {evidence.aborted_p_holm:.2g}, corrected)"
        yield found("aborted_rose", said, rules.aborted_rose == "fail")


def level_text(stress: StressLevel) -> str:
    """A stress level as it is read.

    >>> level_text(0.4), level_text("undeclared")
    ('0.4', 'undeclared')
    """
    return stress if isinstance(stress, str) else f"{stress:g}"


def _few(whose: str, counts: EpisodeCounts, least: int, evidence: Evidence) -> str:
    said = f"{whose} has {counts.ended} ended episode{'s' * (counts.ended != 1)} that count, {least} are needed"
    apart = [f"{counts.aborted} aborted"] if counts.aborted else []
    if counts.provisional:
        learned = f"{evidence.bound_references} of {evidence.bound_references_needed}"
        apart.append(f"{counts.provisional} provisional (learning: {learned})")
    return said + (f"; beside them {' and '.join(apart)}" if apart else "")


def _by_level(summaries: Iterable[EpisodeSummary], grid: Sequence[float]) -> dict[StressLevel, list[EpisodeSummary]]:
    found: dict[StressLevel, list[EpisodeSummary]] = {level: [] for level in levels_of(grid)}
    for summary in summaries:
        found[level_of(stress_place(summary.traits, _APART), grid)].append(summary)
    return found


def _stratum(level: LevelEvidence) -> Stratum:
    before, after = level.baseline, level.candidate
    return Stratum(before.aborted, before.episodes, after.aborted, after.episodes)


def _rise(both: Sequence[LevelEvidence]) -> float | None:
    """By how much the share of aborted episodes rose, each level with its weight in the baseline version."""
    episodes = sum(level.baseline.episodes for level in both)
    if not episodes:
        return None
    return sum(
        level.baseline.episodes
        / episodes
        * (level.candidate.aborted / level.candidate.episodes - level.baseline.aborted / level.baseline.episodes)
        for level in both
    )


def _aborted_rose(evidence: Evidence, rules: EvidenceRules) -> bool:
    if evidence.aborted_rise is None or evidence.aborted_rise <= _ROUNDING:
        return False
    few = min(evidence.baseline.episodes, evidence.candidate.episodes) < rules.small_sample
    beyond_chance = evidence.aborted_p_holm is not None and evidence.aborted_p_holm <= rules.aborted_p
    return beyond_chance or (few and evidence.aborted_rise > rules.small_rise + _ROUNDING)

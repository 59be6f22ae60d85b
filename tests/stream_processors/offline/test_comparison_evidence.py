"""What a comparison rests on: no evidence is a finding, by hand and whatever the contract says of metrics."""

import itertools
import math
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springback.stream_processors.offline.comparison import ScoredVersion, VersionComparison, compare_versions
from springback.stream_processors.offline.comparison_contract import Allowances, EvidenceRules, VersionContract
from springback.stream_processors.offline.comparison_evidence import evidence_of, findings_of
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.readings import EpisodeSummary
from tests.examples import examples
from tests.stream_processors.offline.version_episodes import summary_of

CONFIG = AggregateConfig(grid=(0.0, 0.5, 1.0))
CONTRACT = VersionContract(
    schema_version=1, resamples=100, allowances=Allowances(success_rate=0.05, recovery_cost=0.5, margin=0.1)
)
LENIENT = EvidenceRules(missing_family="pass", missing_level="pass", aborted_rose="pass")


def compared(
    before: list[EpisodeSummary], after: list[EpisodeSummary], contract: VersionContract = CONTRACT
) -> VersionComparison:
    versions = ScoredVersion(before, []), ScoredVersion(after, [])
    return compare_versions(
        *versions, groups=versions[0].groups(), contract=contract, versions=("1", "2"), config=CONFIG
    )


def episodes(version: str, count: int, start: int = 0, **fields: Any) -> list[EpisodeSummary]:
    return [summary_of(start + i, version, **fields) for i in range(count)]


def with_rules(**rules: Any) -> VersionContract:
    return msgspec.structs.replace(CONTRACT, evidence=EvidenceRules(**rules))


def kinds(comparison: VersionComparison) -> list[str]:
    return [finding.kind for group in comparison.groups for finding in group.findings]


@pytest.mark.parametrize("undetermined", ["pass", "breach"])
@pytest.mark.parametrize("evidence", [EvidenceRules(), LENIENT])
def test_situation_8_a_candidate_all_of_whose_episodes_were_aborted_fails_always(
    undetermined: Literal["pass", "breach"], evidence: EvidenceRules
) -> None:
    """Twenty good episodes against twenty that never ended: there is no metric to be worse in, and no way to pass."""
    contract = msgspec.structs.replace(CONTRACT, undetermined=undetermined, evidence=evidence)
    comparison = compared(episodes("1", 20), episodes("2", 20, outcome="aborted", recovery_cost=None), contract)
    assert not comparison.passed
    (group,) = comparison.groups
    assert group.verdict == "failed"
    assert "all_aborted" in kinds(comparison)
    assert "all 20 episodes of the candidate were aborted" in group.reasons
    assert (group.evidence.candidate.ended, group.evidence.candidate.aborted) == (0, 20)
    # 0 of 20 to 20 of 20: the one of C(40, 20) ways to mark twenty that marks all of the candidate's.
    assert group.evidence.aborted_rise == 1.0
    assert group.evidence.aborted_p == pytest.approx(1 / 137846528820)
    assert comparison.verdict.startswith("FAILED: version 2 against 1, 1 failed: navigation")


@settings(max_examples=examples(30), deadline=None)
@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from(["pass", "fail"]),
    st.sampled_from(["pass", "fail"]),
    st.sampled_from(["pass", "breach"]),
)
def test_no_contract_lets_a_candidate_pass_of_which_nothing_ended(
    ended: int, aborted: int, stress: float, missing: Any, rose: Any, undetermined: Any
) -> None:
    rules = EvidenceRules(missing_family=missing, missing_level=missing, aborted_rose=rose, least_episodes=1)
    contract = msgspec.structs.replace(CONTRACT, undetermined=undetermined, evidence=rules)
    after = episodes("2", aborted, outcome="aborted", recovery_cost=None, stress=stress)
    assert not compared(episodes("1", ended), after, contract).passed
    other_family = episodes("2", ended, family="another")
    assert not compared(episodes("1", ended), other_family, contract).passed


def test_a_family_that_the_candidate_was_not_recorded_in_fails_unless_the_contract_lets_it_pass() -> None:
    before = [*episodes("1", 8), *episodes("1", 8, start=8, family="cooking")]
    after = episodes("2", 8)
    comparison = compared(before, after)
    assert {group.family: group.verdict for group in comparison.groups} == {"cooking": "failed", "navigation": "passed"}
    (failure,) = comparison.failures
    assert (failure.family, failure.kind) == ("cooking", "few_episodes")
    assert failure.said == "the candidate has 0 ended episodes that count, 5 are needed"
    lenient = compared(before, after, with_rules(missing_family="pass"))
    assert {group.family: group.verdict for group in lenient.groups} == {"cooking": "unclear", "navigation": "passed"}
    assert lenient.passed
    assert lenient.verdict == "passed: version 2 against 1, 1 could not be told, 1 passed"


@pytest.mark.parametrize(("count", "verdict"), [(4, "failed"), (5, "passed")])
def test_five_ended_episodes_are_enough_and_four_are_not(count: int, verdict: str) -> None:
    (group,) = compared(episodes("1", 8), episodes("2", count)).groups
    assert group.verdict == verdict
    (of_the_contract,) = compared(episodes("1", 8), episodes("2", count), with_rules(least_episodes=count)).groups
    # Four tasks decide no metric (least_tasks), so that four are too few in the end.
    assert of_the_contract.verdict == verdict
    assert kinds(compared(episodes("1", 8), episodes("2", 4), with_rules(least_episodes=4))) == ["nothing_decided"]


def test_the_baseline_version_must_have_shown_something_too() -> None:
    comparison = compared(episodes("1", 4), episodes("2", 8))
    assert kinds(comparison) == ["few_baseline_episodes"]
    assert comparison.groups[0].reasons[0].startswith("the baseline version has 4 ended episodes that count")


def test_a_stress_level_that_the_candidate_was_not_played_at_fails_unless_the_contract_lets_it_pass() -> None:
    before = [*episodes("1", 8), *episodes("1", 8, start=8, stress=1.0)]
    after = [*episodes("2", 8), *episodes("2", 4, start=8, stress=1.0)]
    comparison = compared(before, after)
    (failure,) = comparison.failures
    assert (failure.kind, failure.stress) == ("few_at_level", 1.0)
    assert failure.said == "at stress 1 the candidate has 4 ended episodes that count, 5 are needed"
    lenient = compared(before, after, with_rules(missing_level="pass"))
    assert lenient.groups[0].verdict == "unclear"
    assert not lenient.passed  # nothing else passed
    assert compared(after, before).passed  # a level that only the candidate was played at is no fault of it


def test_a_level_at_which_both_versions_were_aborted_is_no_evidence_of_the_candidate() -> None:
    # As bad as before says nothing of how it ends: no episode of the level has shown that.
    before = [*episodes("1", 8), *episodes("1", 8, start=8, stress=1.0, outcome="aborted")]
    after = [*episodes("2", 8), *episodes("2", 8, start=8, stress=1.0, outcome="aborted")]
    (failure,) = compared(before, after).failures
    assert (failure.kind, failure.stress) == ("few_at_level", 1.0)


def test_undeclared_stress_is_a_level_of_its_own() -> None:
    before = [*episodes("1", 8, stress=0.0), *episodes("1", 8, start=8, stress=None)]
    after = episodes("2", 16, stress=0.0)
    comparison = compared(before, after)
    assert [(f.kind, f.stress) for f in comparison.failures] == [("few_at_level", "undeclared")]
    assert [level.stress for level in comparison.groups[0].evidence.levels] == [0.0, "undeclared"]
    again = [*episodes("2", 8, stress=0.0), *episodes("2", 8, start=8, stress=None, recovery_cost=9.0)]
    margins = {
        change.stress: (change.baseline, change.candidate)
        for change in compared(before, again).groups[0].metrics
        if change.metric == "margin"
    }
    assert set(margins) == {0.0, "undeclared"}


def test_provisional_episodes_are_evidence_missing_and_said_as_such() -> None:
    fields = {"provisional": True, "bound_references": 12, "bound_references_needed": 20}
    comparison = compared(episodes("1", 8), [*episodes("2", 2), *episodes("2", 6, start=2, **fields)])
    (group,) = comparison.groups
    counted = group.evidence.candidate
    assert (counted.ended, counted.provisional, counted.episodes) == (2, 6, 8)
    assert group.reasons == [
        "the candidate has 2 ended episodes that count, 5 are needed; beside them 6 provisional (learning: 12 of 20)"
    ]
    worse = episodes("2", 6, start=8, recovery_cost=900.0, **fields)
    assert compared(episodes("1", 8), [*episodes("2", 8), *worse]).passed


def test_a_share_of_aborted_episodes_that_rose_fails_beyond_chance() -> None:
    """Of 40 each, 2 against 7 or 8: of C(80, 9) or C(80, 10) ways to mark as many, those that mark as many after."""
    p_of_7, p_of_8 = (
        sum(math.comb(40, k) * math.comb(40, 2 + n - k) for k in range(n, n + 3)) / math.comb(80, 2 + n) for n in (7, 8)
    )
    assert p_of_7 > 0.05 > p_of_8

    def version(name: str, aborted: int) -> list[EpisodeSummary]:
        return [*episodes(name, 40 - aborted), *episodes(name, aborted, start=40 - aborted, outcome="aborted")]

    few, many = compared(version("1", 2), version("2", 7)), compared(version("1", 2), version("2", 8))
    assert few.passed
    assert [failure.kind for failure in many.failures] == ["aborted_rose"]
    assert [group.evidence.aborted_p for c in (few, many) for group in c.groups] == pytest.approx([p_of_7, p_of_8])
    assert compared(version("1", 8), version("2", 2)).passed
    assert compared(version("1", 2), version("2", 8), with_rules(aborted_rose="pass")).groups[0].verdict == "unclear"


@pytest.mark.parametrize(("count", "aborted", "verdict"), [(10, 3, "passed"), (8, 3, "failed")])
def test_of_few_episodes_three_in_ten_more_aborted_are_allowed_and_no_more(
    count: int, aborted: int, verdict: str
) -> None:
    """The p of three of ten is 120 / 1140, of three of eight 56 / 560: no test takes either for a rise."""
    after = [*episodes("2", count - aborted), *episodes("2", aborted, start=count, outcome="aborted")]
    (group,) = compared(episodes("1", count), after).groups
    assert group.verdict == verdict
    assert group.evidence.aborted_rise == pytest.approx(aborted / count)
    p = math.comb(count, aborted) / math.comb(2 * count, aborted)
    assert group.evidence.aborted_p == pytest.approx(p)
    assert p > 0.05


@pytest.mark.parametrize(("count", "most"), [(5, 0.07), (6, 0.07), *((n, 0.03) for n in (*range(7, 22), 40))])
def test_versions_that_are_alike_are_seldom_taken_for_worse(count: int, most: float) -> None:
    """Each aborts a tenth of its episodes. The chance of every pair of counts is summed, where they fail."""

    def version(aborted: int) -> list[EpisodeSummary]:
        return [*episodes("1", count - aborted), *episodes("2", aborted, start=100, outcome="aborted")]

    chance = [math.comb(count, k) * 0.1**k * 0.9 ** (count - k) for k in range(count + 1)]
    wrong = 0.0
    for before, after in itertools.combinations(range(count + 1), 2):
        if chance[before] * chance[after] > 1e-7:
            evidence = evidence_of(version(before), version(after), CONFIG.grid, 0)
            found = msgspec.structs.replace(evidence, aborted_p_holm=evidence.aborted_p)
            rules = EvidenceRules(least_episodes=1)
            kinds = {finding.kind for finding in findings_of("f", "m", found, rules, 1)}
            wrong += chance[before] * chance[after] * ("aborted_rose" in kinds)
    assert 0 < wrong <= most


def test_more_stress_is_no_reason_for_more_aborted_episodes_to_count() -> None:
    """Half of the episodes at stress 1 are aborted by either version, and the candidate was played there more."""

    def version(name: str, calm: int, hard: int) -> list[EpisodeSummary]:
        return [
            *episodes(name, calm),
            *episodes(name, hard // 2, start=100, stress=1.0),
            *episodes(name, hard // 2, start=200, stress=1.0, outcome="aborted"),
        ]

    (group,) = compared(version("1", 40, 10), version("2", 10, 40)).groups
    assert group.evidence.aborted_rise == pytest.approx(0.0)
    assert "aborted_rose" not in [finding.kind for finding in group.findings]


def test_the_p_of_aborted_shares_is_corrected_over_families() -> None:
    before = [s for f in ("a", "b", "c") for s in episodes("1", 30, family=f)]
    after = [
        *episodes("2", 25, family="a"), *episodes("2", 5, start=25, family="a", outcome="aborted"),
        *episodes("2", 30, family="b"), *episodes("2", 30, family="c"),
    ]  # fmt: skip
    comparison = compared(before, after)
    (a, *_) = comparison.groups
    assert a.evidence.aborted_p == pytest.approx(0.0261, abs=1e-4)  # C(30, 5) / C(60, 5)
    assert a.evidence.aborted_p_holm == pytest.approx(3 * 0.0261, abs=3e-4)
    assert comparison.passed

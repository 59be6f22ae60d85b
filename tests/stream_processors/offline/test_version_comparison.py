"""Two versions compared: verdicts on made-up episodes, against figures worked out by hand and under noise."""

from typing import Any

import msgspec
import numpy as np
import pytest

from springback.stream_processors.offline.comparison import ScoredVersion, VersionComparison, compare_versions
from springback.stream_processors.offline.comparison_contract import Allowances, EvidenceRules, VersionContract
from springback.stream_processors.offline.metric_changes import MetricChange
from springback.stream_processors.resilience.families.contract_config import AggregateConfig, FamilyContract
from springback.stream_processors.resilience.readings import EpisodeSummary, WindowReading
from tests.stream_processors.offline.version_episodes import breaches_of, summary_of, window_of

CONFIG = AggregateConfig(grid=(0.0, 0.5, 1.0), families={"cooking": FamilyContract(recovery=2.0)})
CONTRACT = VersionContract(
    schema_version=1, resamples=500, allowances=Allowances(success_rate=0.05, recovery_cost=0.5, window_length=1.0)
)


def compared(
    before: list[EpisodeSummary],
    after: list[EpisodeSummary],
    contract: VersionContract = CONTRACT,
    windows: tuple[list[WindowReading], list[WindowReading]] = ([], []),
) -> VersionComparison:
    versions = ScoredVersion(before, windows[0]), ScoredVersion(after, windows[1])
    return compare_versions(
        *versions, groups=versions[0].groups(), contract=contract, versions=("1", "2"), config=CONFIG
    )


def change(comparison: VersionComparison, metric: str, family: str = "navigation") -> MetricChange:
    (group,) = (group for group in comparison.groups if group.family == family)
    (found,) = (found for found in group.metrics if found.metric == metric)
    return found


def episodes(version: str, costs: list[float], **fields: Any) -> list[EpisodeSummary]:
    return [summary_of(i, version, recovery_cost=cost, **fields) for i, cost in enumerate(costs)]


def test_the_same_episodes_in_any_order_are_no_change() -> None:
    rng = np.random.default_rng(0)
    costs = rng.exponential(size=40).tolist()
    comparison = compared(episodes("1", costs), episodes("2", costs)[::-1], contract=no_allowance())
    assert comparison.passed
    found = change(comparison, "recovery_cost")
    assert found.difference == pytest.approx(0.0, abs=1e-12)
    assert (found.low, found.high) == pytest.approx((0.0, 0.0), abs=1e-12)
    assert found.tasks is not None
    # No task differs, and a task is as likely dearer as cheaper than another.
    assert (found.tasks.paired_tasks, found.tasks.paired_p, found.tasks.superiority) == (40, 1.0, 0.5)


def no_allowance() -> VersionContract:
    return msgspec.structs.replace(CONTRACT, allowances=Allowances(recovery_cost=0.0, success_rate=0.0))


def test_the_order_of_episodes_changes_no_bit() -> None:
    rng = np.random.default_rng(6)
    before, after = (
        [
            summary_of(
                i, version, task=f"t{i % 9}", recovery_cost=float(cost), outcome="success" if cost < 1 else "failure"
            )
            for i, cost in enumerate(rng.exponential(size=30))
        ]
        for version in "12"
    )
    windows = [window_of(summary, 3 + i) for i, summary in enumerate(before)], [window_of(after[0], 4)]
    turned = windows[0][::-1], windows[1]
    assert compared(before, after, windows=windows) == compared(before[::-1], after[::-1], windows=turned)


def test_the_family_and_the_metric_that_got_worse_are_named() -> None:
    before = [*episodes("1", [1.0] * 10, family="a"), *episodes("1", [1.0] * 10, family="b", method="m")]
    after = [*episodes("2", [1.0] * 10, family="a"), *episodes("2", [1.6] * 10, family="b", method="m")]
    comparison = compared(before, after)
    (breach,) = breaches_of(comparison)
    assert (breach.family, breach.method, breach.metric) == ("b", "m", "recovery_cost")
    assert not comparison.passed
    assert compared(after, before).passed


def test_what_chance_explains_is_no_breach_but_by_the_point_rule() -> None:
    noisy = [0.0] * 9 + [8.0]
    before, after = episodes("1", [0.0] * 10), episodes("2", noisy)
    found = change(compared(before, after), "recovery_cost")
    assert found.difference == pytest.approx(0.8)
    assert found.low is not None
    assert found.low <= 0.5
    assert found.verdict == "ok"
    strict = msgspec.structs.replace(CONTRACT, rule="point")
    assert change(compared(before, after, strict), "recovery_cost").verdict == "breach"


def test_a_change_of_just_the_allowance_is_allowed() -> None:
    before = episodes("1", [1.0] * 10)
    assert change(compared(before, episodes("2", [1.5] * 10)), "recovery_cost").verdict == "ok"
    assert change(compared(before, episodes("2", [1.5001] * 10)), "recovery_cost").verdict == "breach"


def test_success_may_not_fall_where_cost_may_not_rise() -> None:
    before = episodes("1", [1.0] * 40)
    after = [msgspec.structs.replace(s, outcome="failure" if i % 2 else "success") for i, s in enumerate(before)]
    assert [b.metric for b in breaches_of(compared(before, after))] == ["success_rate"]
    assert compared(after, before).passed
    found = change(compared(before, after), "success_rate")
    assert (found.baseline, found.candidate, found.difference) == (1.0, 0.5, -0.5)
    assert found.low is not None
    assert found.high is not None
    assert found.low < -0.5 < found.high < -0.05


def test_tasks_in_common_make_the_interval_sharper() -> None:
    rng = np.random.default_rng(2)
    hardness = rng.exponential(5.0, size=40)
    before = episodes("1", hardness.tolist())
    shared = episodes("2", (hardness + 1.0).tolist())
    apart = [summary_of(i, "2", task=f"other-{i}", recovery_cost=float(cost) + 1.0) for i, cost in enumerate(hardness)]
    sharp, blunt = (change(compared(before, after), "recovery_cost") for after in (shared, apart))
    assert sharp.difference == pytest.approx(blunt.difference)
    assert (sharp.low, sharp.high) == pytest.approx((1.0, 1.0))
    assert sharp.verdict == "breach"
    assert blunt.verdict == "ok"


def test_another_mix_of_stress_is_no_change() -> None:
    def at(stress: float, count: int, version: str, start: int) -> list[EpisodeSummary]:
        return [summary_of(start + i, version, stress=stress, recovery_cost=1.0 + 4.0 * stress) for i in range(count)]

    before = [*at(0.0, 10, "1", 0), *at(1.0, 10, "1", 10)]
    after = [*at(0.0, 5, "2", 0), *at(1.0, 25, "2", 10), *at(0.5, 8, "2", 50)]
    comparison = compared(before, after)
    found = change(comparison, "recovery_cost")
    assert (found.baseline, found.candidate) == pytest.approx((3.0, 3.0))
    assert comparison.passed
    (group,) = comparison.groups
    assert [level.stress for level in group.evidence.levels if not level.compared] == [0.5]
    assert (group.evidence.baseline.ended, group.evidence.candidate.ended, group.evidence.paired_tasks) == (20, 38, 15)
    # Five tasks at stress 0 and ten at stress 1, each against itself at its own stress.
    assert found.tasks is not None
    assert (found.tasks.paired_tasks, found.tasks.paired_p) == (15, 1.0)


def test_window_length_is_over_windows_that_were_seen_to_end() -> None:
    before, after = episodes("1", [1.0] * 6), episodes("2", [1.0] * 6)
    own = [window_of(s, 4) for s in before]
    other = [window_of(s, 6, "unrecovered") for s in after] + [window_of(s, 12, number=1) for s in after[:2]]
    other += [window_of(s, 900, "censored", number=2) for s in after]
    found = change(compared(before, after, windows=(own, other)), "window_length")
    assert (found.baseline, found.candidate) == (4.0, (6 * 6 + 2 * 12) / 8)
    assert found.verdict == "breach"


def test_beta_is_of_twins() -> None:
    def version(name: str, shift: float) -> list[EpisodeSummary]:
        found = []
        for i in range(8):
            task = f"t{i}"
            found.append(summary_of(3 * i, name, task=task, reference=True, stability_loss=1.0 + i))
            found.append(summary_of(3 * i + 1, name, task=task, reference=True, stability_loss=3.0 + i))
            loss = 2.0 + i + shift * (i + 1)
            found.append(
                summary_of(3 * i + 2, name, task=task, stress=1.0, magnitude=0.5, perturbation="p", stability_loss=loss)
            )
        return found

    contract = msgspec.structs.replace(CONTRACT, allowances=Allowances(beta=1.0, beta_p95=1.0))
    comparison = compared(version("1", 1.0), version("2", -2.0), contract)
    beta, upper = change(comparison, "beta"), change(comparison, "beta_p95")
    assert (beta.baseline, beta.candidate) == pytest.approx((16.0, 32.0))
    assert (upper.baseline, upper.candidate) == pytest.approx((16.0, 32.0))
    assert beta.tasks is None
    assert {breach.metric for breach in breaches_of(comparison)} == {"beta", "beta_p95"}


def test_beta_of_twins_divides_by_the_magnitude_that_was_realised() -> None:
    def version(name: str, realised: float | None) -> list[EpisodeSummary]:
        pushed: dict[str, Any] = {"stress": 1.0, "magnitude": 0.5, "perturbation": "p", "stability_loss": 2.0}
        clean = [summary_of(i, name, task=f"t{i}", reference=True, stability_loss=1.0) for i in range(8)]
        hurt = [summary_of(8 + i, name, task=f"t{i}", **pushed) for i in range(8)]
        return clean + [msgspec.structs.replace(summary, realised_magnitude=realised) for summary in hurt]

    # |2 - 1| over the 0.5 that was announced, and over the 0.25 there was.
    beta = change(compared(version("1", None), version("2", 0.25)), "beta")
    assert (beta.baseline, beta.candidate) == pytest.approx((2.0, 4.0))


def test_what_is_too_little_decides_nothing_unless_it_must() -> None:
    before, after = episodes("1", [1.0] * 4), episodes("2", [9.0] * 4)
    assert change(compared(before, after), "recovery_cost").verdict == "undetermined"
    rules = EvidenceRules(least_episodes=4, missing_family="pass")
    may, must = (msgspec.structs.replace(CONTRACT, evidence=rules, undetermined=word) for word in ("pass", "breach"))
    assert compared(before, after, may).groups[0].verdict == "unclear"
    comparison = compared(before, after, must)
    assert comparison.groups[0].verdict == "failed"
    # Neither version has windows, so that there is nothing to decide of their length.
    failures = [(failure.kind, failure.metric) for failure in comparison.failures]
    assert failures == [("undetermined", "success_rate"), ("undetermined", "recovery_cost")]


def test_episodes_without_an_end_or_a_baseline_count_in_nothing() -> None:
    before = episodes("1", [1.0] * 10)
    after = [
        *episodes("2", [1.0] * 10),
        *(summary_of(20 + i, "2", outcome="aborted", recovery_cost=50.0) for i in range(2)),
        *(summary_of(40 + i, "2", recovery_cost=None) for i in range(9)),
    ]
    comparison = compared(before, after)
    assert change(comparison, "recovery_cost").candidate == pytest.approx(1.0)
    counted = comparison.groups[0].evidence.candidate
    assert (counted.ended, counted.aborted) == (19, 2)
    assert comparison.passed


def test_the_seed_decides_and_other_families_do_not() -> None:
    rng = np.random.default_rng(4)
    one, two = (rng.exponential(size=30).tolist() for _ in range(2))
    alone = compared(episodes("1", one), episodes("2", two))
    with_others = compared(
        [*episodes("1", two, family="another"), *episodes("1", one)],
        [*episodes("2", one, family="another"), *episodes("2", two)],
    )
    own, among_others = change(alone, "recovery_cost"), change(with_others, "recovery_cost")
    assert msgspec.structs.replace(own, tasks=None) == msgspec.structs.replace(among_others, tasks=None)
    assert own.tasks is not None
    assert among_others.tasks is not None
    assert own.tasks.paired_p == own.tasks.paired_p_holm == among_others.tasks.paired_p
    assert among_others.tasks.paired_p_holm == 1.0  # p is 0.86 and 0.86, and twice the smaller is more than 1
    reseeded = compared(episodes("1", one), episodes("2", two), msgspec.structs.replace(CONTRACT, seed=1))
    assert change(alone, "recovery_cost") != change(reseeded, "recovery_cost")


def test_equal_versions_are_seldom_taken_for_worse() -> None:
    """Of pairs of samples of one kind, with no allowance at all, about 2.5 % may look worse."""
    contract = msgspec.structs.replace(
        CONTRACT, resamples=200, allowances=Allowances(recovery_cost=0.0), confidence=0.95
    )
    rng = np.random.default_rng(8)
    broken = 0
    for _ in range(60):
        before = episodes("1", rng.normal(5.0, 1.0, size=30).tolist())
        after = episodes("2", rng.normal(5.0, 1.0, size=30).tolist())
        broken += not compared(before, after, contract).passed
    assert broken <= 6

"""The numbers of a report: against the aggregates they must agree with, and of inputs with little in them."""

import itertools
import random
from statistics import fmean
from typing import Any

import msgspec
import pytest

from springback.dashboards.evaluation_report.group_rows import CapacityInterval, capacity_interval, resampled_curve
from springback.dashboards.evaluation_report.report_groups import ReportGroup, groups_of
from springback.dashboards.evaluation_report.report_numbers import ALL_FAMILIES, AXES
from springback.dashboards.evaluation_report.report_origin import ReportOrigin
from springback.stream_processors.offline.resampling import bootstrap, weighted_mean
from springback.stream_processors.resilience.families.contract_config import AggregateConfig, FamilyContract
from springback.stream_processors.resilience.families.family_aggregate import aggregate
from springback.stream_processors.resilience.readings import ChannelCosts
from tests.dashboards.evaluation_report.report_readings import fleet, numbers_of, summary_of, window_of

CONFIG = AggregateConfig()


def interval_of(group: ReportGroup) -> CapacityInterval | None:
    response = resampled_curve(group, seed=0)
    return None if response is None else capacity_interval(response, group.reading)


def test_the_interval_of_the_capacity_is_that_of_every_draw_of_the_tasks() -> None:
    """Three tasks, of which one breaks the contract at stress 0.4, and so does any draw of them that holds it."""
    config = AggregateConfig(min_episodes=3, default=FamilyContract(recovery=1.0, stability=1.0, safety=1.0))
    summaries = [
        summary_of(f"{stress}-{task}", 1.5 if stress and task == "sink" else 0.5, task=task, stress=stress)
        for stress in (0.0, 0.4)
        for task in ("mug", "plate", "sink")
    ]
    [group] = groups_of(summaries, [], aggregate(summaries, config), config)
    assert group.reading is not None
    assert group.reading.capacity == 0.4  # (1/1.5 + 1.5)/2 - 1 is not below 0
    hard = [msgspec.structs.replace(s, final_progress=0.0) if s.recovery_cost == 1.5 else s for s in summaries]
    [group] = groups_of(hard, [], aggregate(hard, config), config)
    assert group.reading is not None
    held = group.reading.capacity
    found = interval_of(group)
    assert found is not None
    assert (found.low, held, found.high) == (0.0, 0.0, 0.4)  # 8 of the 27 draws are without the sink
    assert found.none_share == 0.0


def test_where_versions_are_the_stress_the_interval_is_over_versions() -> None:
    config = AggregateConfig(default=FamilyContract(evolution=("1", "2"), recovery=1.0, stability=1.0, safety=1.0))
    summaries = [
        summary_of(
            f"{version}-{task}",
            1.0,
            task=f"t{task}",
            version=version,
            final_progress=reached,
            final_propositions=reached,
        )
        for version, reached in (("1", 1.0), ("2", 0.0))
        for task in range(6)
    ]
    [group] = groups_of(summaries, [], aggregate(summaries, config), config)
    found = interval_of(group)
    assert found is not None
    assert (found.low, found.high, found.none_share) == (0.0, 0.0, 0.0)
    assert group.reading is not None
    assert (group.reading.capacity, group.reading.first_breach) == (0.0, 1.0)


def test_episodes_of_one_task_leave_the_capacity_without_an_interval() -> None:
    [row] = numbers_of([summary_of(f"{i}", 0.0, task="mug", reference=True) for i in range(9)]).groups
    assert row.capacity_interval is None
    assert row.clean_cost_mean is not None
    assert (row.clean_cost_mean.value, row.clean_cost_mean.low) == (0.0, None)


def test_the_interval_of_the_capacity_holds_the_capacity_and_does_not_depend_on_order() -> None:
    summaries = list(fleet())
    shuffled = summaries[:]
    random.Random(1).shuffle(shuffled)
    for own, other in zip(
        groups_of(summaries, [], aggregate(summaries, CONFIG), CONFIG),
        groups_of(shuffled, [], aggregate(shuffled, CONFIG), CONFIG),
        strict=True,
    ):
        found = interval_of(own)
        assert found == interval_of(other)
        assert found is not None
        assert own.reading is not None
        assert own.reading.capacity is not None
        assert found.low <= own.reading.capacity <= found.high
        assert {found.low, found.high} <= set(CONFIG.grid)


def test_a_capacity_without_doubt_has_an_interval_of_one_point() -> None:
    calm = [summary_of(f"c{i}", 0.0, task=f"t{i}", reference=True, stability_loss=1.0) for i in range(5)]
    broken = [
        summary_of(f"b{i}", 500.0, task=f"t{i}", stress=0.4, final_progress=0.0, stability_loss=9.0) for i in range(5)
    ]
    [row] = numbers_of([*calm, *broken]).groups
    assert row.capacity_interval is not None
    assert (row.capacity_interval.low, row.capacity_interval.high, row.capacity_interval.none_share) == (0, 0, 0)
    # Without references there are thresholds for two entries alone, both 0 here.
    nothing = [msgspec.structs.replace(s, final_progress=0.0, final_propositions=0.0) for s in broken]
    [row] = numbers_of(nothing, AggregateConfig(smallest=2, ratio_cap=1.5)).groups
    assert row.capacity_interval is not None
    assert row.capacity_interval.none_share == 1


def test_figures_of_a_group_are_the_plain_ones() -> None:
    summaries = list(fleet(families=["navigation"], methods=["careful"]))
    numbers = numbers_of(summaries)
    [row] = numbers.groups
    costs = [s.recovery_cost for s in summaries if s.recovery_cost is not None and (s.traits.stress or 0.0) > 0]
    assert row.disturbed == len(costs) == 40
    assert row.disturbed_cost_mean is not None
    assert row.disturbed_cost_mean.value == pytest.approx(fmean(costs))
    hardest = numbers.stresses[-1]
    assert (hardest.stress, hardest.episodes) == (1.0, 8)
    assert hardest.success_rate is not None
    own = [s for s in summaries if s.traits.stress == 1.0]
    assert hardest.success_rate.value == fmean(s.outcome == "success" for s in own)
    assert hardest.recovery_cost_mean is not None
    assert hardest.recovery_cost_mean.value == pytest.approx(fmean(s.recovery_cost or 0.0 for s in own))
    broken = [e for e in numbers.evaluation.episodes if e.contract_margin is not None and e.contract_margin < 0]
    assert sum(outcome.contract_broken for outcome in numbers.outcomes) == len(broken)
    assert sum(outcome.contract_held_to for outcome in numbers.outcomes) == len(summaries)


def test_censored_and_unscored_episodes_enter_no_cost() -> None:
    numbers = numbers_of(
        [
            summary_of("seen", 2.0, stress=0.2),
            summary_of("censored", 50.0, stress=0.2, outcome="aborted"),
            summary_of("unscored", None, stress=0.2),
        ]
    )
    [row], [whole] = numbers.stresses, numbers.groups
    assert [point.recovery_cost for point in numbers.costs] == [2.0]
    assert (whole.episodes, whole.disturbed) == (3, 1)
    assert (row.episodes, row.censored, row.unscored) == (3, 1, 1)
    assert row.recovery_cost_mean is not None
    assert (row.recovery_cost_mean.value, row.recovery_cost_mean.low) == (2.0, None)
    assert row.success_rate is not None
    assert row.success_rate.value == 1.0


def test_channel_shares_sum_to_one_and_are_unknown_without_cost() -> None:
    costly = summary_of("a", 4.0, stress=0.4, costs=ChannelCosts(cognitive=1.0, physical=2.0, debt=5.0))
    numbers = numbers_of([summary_of("b", 0.0, reference=True), costly, summary_of("c", 0.0)])
    calm, row, undeclared = numbers.channels
    assert (row.cognitive, row.physical, row.debt) == (0.125, 0.25, 0.625)
    assert (calm.stress, calm.cognitive, calm.physical, calm.debt) == (0.0, None, None, None)
    assert (undeclared.stress, undeclared.episodes) == (None, 1)


def test_the_signature_by_hand() -> None:
    clean = [summary_of(f"c{i}", 0.0, task=f"t{i}", reference=True, stability_loss=2.0) for i in range(5)]
    hurt = [
        summary_of(f"d{i}", 5.0, task=f"t{i}", stress=0.2, magnitude=0.5, perturbation="physical", stability_loss=2.5)
        for i in range(5)
    ]
    mean, row = numbers_of([*clean, *hurt]).signatures
    assert (mean.family, row.family) == (ALL_FAMILIES, "navigation")
    # cost 5 of tau_rec 5; windows of 10 in 40 steps; loss 2 against 2.5; beta 0.5/0.5 against 2; holds at 0.2.
    assert row.scores() == pytest.approx([1.0, 0.5, 0.75, 0.8, 1 / 1.5, 0.2])
    assert mean.scores() == row.scores()


def test_what_is_unknown_of_a_signature_is_said_to_be() -> None:
    _, row = numbers_of([summary_of("a", 0.0, reference=True)]).signatures
    assert row.scores() == [None] * len(AXES)


def test_a_timeline_has_every_episode_that_had_a_window() -> None:
    summaries = [summary_of(f"{i:03}", 1.0, stress=i / 100, started_s=float(i)) for i in reversed(range(100))]
    [lines] = numbers_of([*summaries, summary_of("calm", 0.0, stress=0.5)]).timelines
    assert (lines.episodes, lines.with_windows) == (101, 100)
    assert [row.episode for row in lines.rows] == [f"{i:03}" for i in range(100)]
    assert [row.started_s for row in lines.rows] == [float(i) for i in range(100)]
    assert lines.rows[7].windows[0].recovery_cost == 1.0


@pytest.mark.parametrize(
    ("traits", "run"),
    [
        ({"reference": True}, "clean"),
        ({"stress": 0.0}, "clean"),
        ({}, "undeclared"),
        ({"stress": 0.05}, "disturbed"),
        ({"perturbation": "physical"}, "disturbed"),
        ({"magnitude": 0.3}, "disturbed"),
        ({"perturbation": "none", "stress": 0.0}, "clean"),
    ],
)
def test_that_nobody_said_is_neither_clean_nor_disturbed(traits: dict[str, Any], run: str) -> None:
    summary = summary_of("1", 1.0, **traits)
    [group] = groups_of([summary], [], [], CONFIG)
    assert group.run(summary.traits) == run
    [outcome] = numbers_of([summary]).outcomes
    assert outcome.run == run


def test_no_row_holds_clean_and_disturbed_episodes() -> None:
    """All of these are at the level of stress 0, to which 0.05 is nearest: two clean, three not, one window each."""
    clean = [summary_of(f"c{i}", 1.0, task=f"t{i}", stress=0.0) for i in range(2)]
    hurt = [summary_of(f"d{i}", 3.0, task="t0", stress=0.05, outcome="failure") for i in range(3)]
    numbers = numbers_of([*clean, *hurt])
    assert [(r.stress, r.run, r.episodes, r.tasks, r.windows) for r in numbers.stresses] == [
        (0.0, "clean", 2, 2, 2),
        (0.0, "disturbed", 3, 1, 3),
    ]
    assert [(r.run, r.episodes, r.success_rate and r.success_rate.value) for r in numbers.outcomes] == [
        ("clean", 2, 1.0),
        ("disturbed", 3, 0.0),
    ]
    assert [(r.run, r.recovery_cost_mean and r.recovery_cost_mean.value) for r in numbers.stresses] == [
        ("clean", 1.0),
        ("disturbed", 3.0),
    ]
    assert [(r.run, r.episodes) for r in numbers.channels] == [("clean", 2), ("disturbed", 3)]


def test_a_contract_says_what_its_thresholds_rest_on() -> None:
    """Ten references cost 0 to 9 and reach 1; the recovery is asked for as a number, and stability is not measured."""
    config = AggregateConfig(families={"navigation": FamilyContract(recovery=4.5)})
    calm = [summary_of(f"c{i}", float(i), task=f"t{i}", reference=True, violation=float(i)) for i in range(10)]
    hurt = [summary_of("d", 7.0, stress=0.4, final_progress=0.2, violation=30.0)]
    numbers = numbers_of([*calm, *hurt], config)
    found = {row.part: row for row in numbers.contracts}
    assert list(found) == ["progress", "propositions", "recovery", "stability", "safety"]
    progress, recovery, stability, safety = (found[p] for p in ("progress", "recovery", "stability", "safety"))
    assert (progress.asked, progress.threshold, progress.usual, progress.references) == (None, 0.5, 1.0, 10)
    assert (progress.factor, progress.rank, progress.least, progress.most) == (0.9, 0.1, 0.05, 0.5)
    assert (recovery.asked, recovery.threshold) == (4.5, 4.5)
    assert (stability.threshold, stability.references, stability.usual) == (None, 0, None)
    # The 0.95 quantile of ten is the tenth, 9, and twice that is more than the floor of 5.
    assert (safety.threshold, safety.usual, safety.least) == (18.0, 9.0, 5.0)
    clean, disturbed = numbers.outcomes
    assert (clean.contract_held_to, clean.contract_broken, clean.broken_recovery) == (
        10,
        5,
        5,
    )  # 5, 6, 7, 8, 9 cost more
    assert (disturbed.contract_broken, disturbed.broken_progress, disturbed.broken_propositions) == (1, 1, 0)
    assert (disturbed.broken_recovery, disturbed.broken_stability, disturbed.broken_safety) == (1, 0, 1)


def test_a_family_without_references_has_no_evidence_for_its_contract() -> None:
    rows = {row.part: row for row in numbers_of([summary_of("1", 1.0, stress=0.2)]).contracts}
    assert (rows["progress"].threshold, rows["progress"].references) == (0.5, 0)
    assert (rows["recovery"].threshold, rows["recovery"].usual) == (None, None)


def test_the_date_of_a_report_is_that_of_its_newest_step() -> None:
    steps = [summary_of("1", 1.0, started_s=5.0, ended_s=50.0), summary_of("2", 1.0, started_s=2.0, ended_s=40.0)]
    origin = numbers_of(steps, origin=ReportOrigin(sources=["monday"])).origin
    assert (origin.first_step_s, origin.last_step_s, origin.written_s) == (2.0, 50.0, None)
    assert origin.sources == ["monday"]
    assert numbers_of([]).origin.last_step_s is None


def test_versions_as_stress_are_one_group() -> None:
    config = AggregateConfig(default=FamilyContract(evolution=("1", "2", "3")))
    summaries = [summary_of(v, 1.0, version=v, reference=True) for v in ("1", "2", "3")]
    [group] = groups_of(summaries, [window_of(s) for s in summaries], aggregate(summaries, config), config)
    assert group.identity == ("navigation", "default", "evolution")
    assert [group.stress(s.traits) for s in summaries] == [0.0, 0.5, 1.0]
    assert [group.run(s.traits) for s in summaries] == ["clean", "disturbed", "disturbed"]
    kicked = summary_of("4", 1.0, version="1", perturbation="physical")
    assert group.run(kicked.traits) == "disturbed"
    assert len(group.windows) == 3


def test_the_order_of_episodes_changes_nothing_but_their_own_list() -> None:
    summaries = list(fleet(families=["navigation"], methods=["careful"]))
    shuffled = summaries[:]
    random.Random(4).shuffle(shuffled)
    own, other = numbers_of(summaries), numbers_of(shuffled)
    assert (own.groups, own.stresses, own.signatures) == (other.groups, other.stresses, other.signatures)
    assert own.costs == other.costs


def test_situation_7_twins_are_tested_as_pairs_and_tasks_count_once() -> None:
    """Eight tasks, clean and at two stresses, cost from 0 to 350 clean and 1 to 8 more disturbed, on the mean of both.

    All eight go up: p = 2 / 2^8 for one family; with a second one whose p is 1, Holm's correction doubles the smaller.
    """
    twins = [
        summary_of(f"{task}-{stress}", 50.0 * task + extra * (1 + task), task=f"t{task}", **fields)
        for task in range(8)
        for stress, extra, fields in (
            (0.0, 0.0, {"reference": True}),
            (0.4, 0.5, {"stress": 0.4}),
            (0.8, 1.5, {"stress": 0.8}),
        )
    ]
    same = [msgspec.structs.replace(s, recovery_cost=1.0) for s in twins]
    other = [msgspec.structs.replace(s, traits=msgspec.structs.replace(s.traits, family="z")) for s in same]
    [alone] = numbers_of(twins).groups
    [row, idle] = numbers_of([*twins, *other]).groups
    assert alone.comparison is not None
    assert row.comparison is not None
    assert idle.comparison is not None
    assert (alone.comparison.paired_tasks, alone.comparison.higher) == (8, 8)
    assert (alone.comparison.p, row.comparison.p) == pytest.approx((2 / 2**8, 2 * 2 / 2**8))
    assert (idle.comparison.paired_p, idle.comparison.p) == (1.0, 1.0)
    # Blind to pairs: of the 8 * 8 pairs of a clean and a disturbed task, the disturbed one is the dearer in 36.
    assert alone.comparison.superiority == pytest.approx(36 / 64)
    assert alone.comparison.unpaired_p is not None
    assert alone.comparison.unpaired_p > 0.5


def test_situation_7_a_correlation_says_what_it_is_over() -> None:
    """Over 24 episodes it has the interval of eight tasks, and no p; over three level means a p of 2 / 3!."""
    costs = {0.0: 0.0, 0.4: 1.0, 0.8: 2.0}
    summaries = [
        summary_of(f"{task}-{stress}", 50.0 * task + cost, task=f"t{task}", stress=stress)
        for task in range(8)
        for stress, cost in costs.items()
    ]
    [row] = numbers_of(summaries).groups
    assert row.correlation is not None
    assert row.level_correlation is not None
    assert (row.correlation.over, row.correlation.points, row.correlation.p) == ("episodes", 24, None)
    # Cost ranks 3 t + l + 1, with l = 0, 1, 2, and stress 8 l + 4.5, shared by eight. About the means of 12.5,
    # products sum to 8 * 8 * sum (l - 1) l = 128, squares to 8 * 2 * 64 = 1024 and to (24^3 - 24) / 12 = 1150.
    assert row.correlation.rho == pytest.approx(128 / (1024 * 1150) ** 0.5)
    assert row.correlation.low is not None
    assert (row.level_correlation.over, row.level_correlation.points) == ("level means", 3)
    assert (row.level_correlation.rho, row.level_correlation.p_holm) == pytest.approx((1.0, 2 / 6))


def test_report_and_comparison_have_their_intervals_from_one_piece_of_code() -> None:
    """A version against one that costs nothing: the interval of the difference is that of the mean in the report."""
    summaries = list(fleet(families=["navigation"], methods=["careful"]))
    hard = [s for s in summaries if s.traits.stress == 1.0]
    row = numbers_of(summaries).stresses[-1]
    costs = [s.recovery_cost or 0.0 for s in hard]
    assert row.recovery_cost_mean == bootstrap(costs, [s.traits.task for s in hard], weighted_mean, seed=0)


def test_provisional_episodes_are_shown_and_tested_for_nothing() -> None:
    calm = [summary_of(f"c{i}", 0.0, task=f"t{i}", reference=True) for i in range(8)]
    hurt = [summary_of(f"d{i}", 5.0 + i, task=f"t{i}", stress=0.4) for i in range(8)]
    learning = [msgspec.structs.replace(s, provisional=True) for s in (*calm, *hurt)]
    [row] = numbers_of(learning).groups
    assert (row.episodes, row.provisional, row.disturbed) == (16, 16, 8)
    assert row.disturbed_cost_mean is not None
    assert row.comparison is not None
    assert (row.comparison.p, row.correlation, row.level_correlation) == (None, None, None)
    assert [stress.provisional for stress in numbers_of(learning).stresses] == [8, 8]
    [judged] = numbers_of([*calm, *hurt]).groups
    assert judged.comparison is not None
    assert judged.comparison.p == pytest.approx(2 / 2**8)


def test_undeclared_stress_has_a_row_and_no_part_in_what_is_said_over_stress() -> None:
    declared = [summary_of(f"{i}-{s}", s * 10 + i, task=f"t{i}", stress=s) for i in range(6) for s in (0.0, 0.4, 0.8)]
    silent = [summary_of(f"u{i}", 900.0, task=f"t{i}", stress=None) for i in range(6)]
    with_silent, without = numbers_of([*declared, *silent]), numbers_of(declared)
    assert [row.stress for row in with_silent.stresses] == [0.0, 0.4, 0.8, None]
    [row], [other] = with_silent.groups, without.groups
    assert (row.correlation, row.level_correlation) == (other.correlation, other.level_correlation)
    assert (row.audc_from, row.audc_to) == (0.0, 0.8)


def test_the_area_under_the_curve_is_that_of_its_margins_and_its_interval_holds_it() -> None:
    numbers = numbers_of(list(fleet()))
    for row, known in zip(numbers.groups, numbers.evaluation.resilience, strict=True):
        values = [(margin.stress, margin.margin + 1) for margin in known.margins if margin.margin is not None]
        area = sum((b - a) * (left + right) / 2 for (a, left), (b, right) in itertools.pairwise(values))
        assert (known.audc_from, known.audc_to) == (0.0, 1.0)
        assert known.audc == pytest.approx(area)
        assert row.audc is not None
        assert row.audc.value == known.audc
        assert row.audc.low is not None
        assert row.audc.high is not None
        assert row.audc.low <= area <= row.audc.high
        assert row.audc.low < row.audc.high


def test_nothing_comes_to_nothing() -> None:
    numbers = numbers_of([])
    assert (numbers.groups, numbers.stresses, numbers.timelines, numbers.signatures) == ([], [], [], [])

"""Equations 7 to 9 worked by hand, and which state a level is in."""

import math
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from springback.stream_processors.resilience.families.contract_config import (
    AggregateConfig,
    AutoThresholds,
    FamilyContract,
)
from springback.stream_processors.resilience.families.operational_margin import (
    Quantities,
    ReferenceEpisodes,
    StressLevel,
    level_figures,
    margin,
    monitor,
)
from springback.stream_processors.resilience.readings import ContractThresholds, EpisodeSummary, ExtensibilityRatios
from tests.stream_processors.random_episodes import by_seed, seeds
from tests.stream_processors.resilience.families.summary_builders import summary_of

CONFIG = AggregateConfig()
THRESHOLDS = ContractThresholds(progress=0.5, propositions=0.5, recovery=10.0, stability=4.0, safety=5.0)


def level_of(*summaries: EpisodeSummary, generation: int | None = None) -> StressLevel:
    found = StressLevel()
    for summary in summaries:
        found.add(Quantities.of(summary), generation)
    return found


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        # p/tau_p 0.8/0.5 = 1.6, q/tau_q 0.75/0.5 = 1.5, 10/8 = 1.25, 4/2 = 2, 5/2 = 2.5: the least is 1.25, less 1.
        ({"final_progress": 0.8, "final_propositions": 0.75, "recovery_cost": 8.0}, 0.25),
        # Recovery twice the threshold: 10/20 - 1.
        ({"final_progress": 0.8, "final_propositions": 0.75, "recovery_cost": 20.0}, -0.5),
        # No goal proposition: 0/0.5 - 1.
        ({"final_propositions": 0.0, "recovery_cost": 8.0}, -1.0),
        # Violation 10 of 5: 5/10 - 1.
        ({"recovery_cost": 8.0, "violation": 10.0}, -0.5),
        # Stability 5 of 4: 4/5 - 1.
        ({"recovery_cost": 8.0, "stability_loss": 5.0}, -0.2),
        # Unscored: recovery and stability are unknown, the least of 1.6, 1.5 and 2.5 decides.
        (
            {"final_progress": 0.8, "final_propositions": 0.75, "recovery_cost": None, "stability_loss": None},
            0.5,
        ),
        # On the threshold itself.
        ({"final_progress": 0.5, "recovery_cost": 8.0}, 0.0),
    ],
)
def test_monitor(fields: dict[str, Any], expected: float) -> None:
    summary = summary_of(**{"stability_loss": 2.0, "violation": 2.0, **fields})
    assert monitor(summary, THRESHOLDS) == pytest.approx(expected, abs=1e-8)
    # One episode is counted as violating exactly where its monitor is below 0.
    assert level_figures(level_of(summary), THRESHOLDS, CONFIG).violations == (expected < 0)


def test_monitor_leaves_out_what_has_no_threshold_yet() -> None:
    unknown = ContractThresholds(progress=0.5, propositions=0.5, recovery=None, stability=None, safety=None)
    dear = summary_of(recovery_cost=1e9, stability_loss=1e9, violation=1e9)
    assert monitor(dear, unknown) == 1.0
    assert level_figures(level_of(dear), unknown, CONFIG).violations == 0


def level_of_ten() -> StressLevel:
    """Progress 0.1 … 1.0, propositions 1, recovery 1 … 10, stability 0.5 … 5, no violation."""
    return level_of(
        *(
            summary_of(final_progress=i / 10, final_propositions=1.0, recovery_cost=float(i), stability_loss=i / 2)
            for i in range(1, 11)
        )
    )


def test_ratios_margin_and_favourable_margin() -> None:
    # Ten values: the smallest whose rank reaches 0.1 is the first, 0.9 the ninth.
    # r = [0.1/0.5, 1/0.5 -> 1.5, 10/9, 4/4.5, 5/(0 + eps) -> 1.5] = [0.2, 1.5, 1.1111, 0.8889, 1.5]
    found = level_figures(level_of_ten(), THRESHOLDS, CONFIG)
    assert found.ratios.progress == pytest.approx(0.2)
    assert found.ratios.propositions == 1.5
    assert found.ratios.recovery == pytest.approx(10 / 9)
    assert found.ratios.stability == pytest.approx(4 / 4.5)
    assert found.ratios.safety == 1.5
    # M = (0.2 + 0.8889)/2 - 1
    assert found.margin == pytest.approx((0.2 + 4 / 4.5) / 2 - 1)
    # P(Bin(10, 0.9) >= 7) = 0.987 and >= 8 is 0.930, so k = 7: the seventh cost, and of progress the seventh from
    # above, which is 0.4. Entries 0.4/0.5 = 0.8 and 4/3.5 = 1.143: M+ = (0.8 + 1.143)/2 - 1 = -0.029.
    assert found.favourable_margin == pytest.approx((0.8 + 4 / 3.5) / 2 - 1)
    assert (found.episodes, found.state, found.unmeasured) == (10, "broken", ())
    # Progress 0.1 … 0.4 is too little; stability 4, 4.5 and 5 too much (4 of 4 is, with epsilon, a hair over): 4 + 3.
    assert found.violations == 7
    assert found.violation_share == pytest.approx(0.7)


def test_the_margin_needs_k_entries() -> None:
    assert margin(ExtensibilityRatios(progress=0.8, propositions=0.5), 2) == pytest.approx(-0.35)
    assert margin(ExtensibilityRatios(progress=0.8, propositions=0.5), 3) is None
    assert margin(ExtensibilityRatios(), 1) is None
    # Exactly on the boundary: (1 + 1)/2 - 1.
    assert margin(ExtensibilityRatios(progress=1.0, propositions=1.0, safety=1.5), 2) == 0.0


def test_what_is_not_measured_is_left_out_and_named() -> None:
    level = level_of(*[summary_of(recovery_cost=None, stability_loss=None)] * 5)
    found = level_figures(level, THRESHOLDS, CONFIG)
    assert found.unmeasured == ("recovery", "stability")
    assert (found.ratios.recovery, found.ratios.stability) == (None, None)
    assert (found.state, found.margin) == ("kept", 0.5)


def test_an_empty_level_says_nothing() -> None:
    found = level_figures(StressLevel(), THRESHOLDS, CONFIG)
    assert (found.episodes, found.margin, found.state, found.ratios) == (0, None, "insufficient", ExtensibilityRatios())
    assert (found.violation_low, found.violation_high, found.violation_share) == (None, None, None)


@pytest.mark.parametrize(("episodes", "state"), [(4, "insufficient"), (5, "kept")])
def test_sufficient_from_the_least_number_on(episodes: int, state: str) -> None:
    assert level_figures(level_of(*[summary_of()] * episodes), THRESHOLDS, CONFIG).state == state


@pytest.mark.parametrize(
    ("bad", "episodes", "state"),
    [
        # Five episodes: M takes the worst. M+ takes the third: three bad ones are needed for *broken*.
        (0, 5, "kept"),
        (1, 5, "undecided"),
        (2, 5, "undecided"),
        (3, 5, "broken"),
        # Twenty: M takes the second worst (0.1 * 20), M+ the fifth (k = 16).
        (1, 20, "kept"),
        (2, 20, "undecided"),
        (4, 20, "undecided"),
        (5, 20, "broken"),
    ],
)
def test_one_bad_run_breaks_no_level(bad: int, episodes: int, state: str) -> None:
    runs = [summary_of(final_progress=0.0, final_propositions=0.0)] * bad + [summary_of()] * (episodes - bad)
    assert level_figures(level_of(*runs), THRESHOLDS, CONFIG).state == state


def test_ten_episodes_that_all_break_the_contract_by_one_quantity_are_not_kept() -> None:
    # q 0.26 of 0.5 is 0.52, the others are at the cap of 1.5: (0.52 + 1.5)/2 - 1 = 0.01, "kept". But all ten violate,
    # and the lower Wilson bound of 10 of 10 is 1/(1 + 3.84/10) = 0.722, far above 0.1.
    found = level_figures(level_of(*[summary_of(final_progress=0.9, final_propositions=0.26)] * 10), THRESHOLDS, CONFIG)
    assert found.margin == pytest.approx(0.01)
    assert (found.state, found.violations) == ("undecided", 10)
    assert found.violation_low == pytest.approx(0.7225, abs=1e-4)


def test_twenty_recoveries_that_all_cost_too_much_are_not_kept() -> None:
    # Cost 9 of 5 is 0.5556; with 1.5: (0.5556 + 1.5)/2 - 1 = 0.028.
    thresholds = msgspec.structs.replace(THRESHOLDS, recovery=5.0)
    found = level_figures(level_of(*[summary_of(recovery_cost=9.0)] * 20), thresholds, CONFIG)
    assert found.margin == pytest.approx((5 / 9 + 1.5) / 2 - 1, abs=1e-6)
    assert (found.state, found.violations) == ("undecided", 20)


def test_four_kinds_of_failure_of_nine_in_a_hundred_each_are_not_kept() -> None:
    # The tenth of each of the quantities is good, as only nine of each are bad: all entries are at the cap, M is
    # 1.5 - 1. But 36 of 100 violate: (0.36 + 0.0192 - 1.96 sqrt(0.36*0.64/100 + 0.0384/400))/1.0384 = 0.2727.
    bad: list[dict[str, Any]] = [
        {"final_progress": 0.0}, {"final_propositions": 0.0}, {"recovery_cost": 50.0}, {"violation": 50.0},
    ]  # fmt: skip
    runs = [summary_of(**fields) for fields in bad for _ in range(9)] + [summary_of()] * 64
    found = level_figures(level_of(*runs), THRESHOLDS, CONFIG)
    assert (found.margin, found.state, found.violations) == (0.5, "undecided", 36)
    assert found.violation_low == pytest.approx(0.2727, abs=1e-4)


@pytest.mark.parametrize(
    ("violating", "state"),
    # Of 20, (p + 0.096 - 1.96 sqrt(p (1 - p)/20 + 0.0024))/1.192: 4 of 20 is 0.0807 and 5 of 20 is 0.1119.
    [(0, "kept"), (4, "kept"), (5, "undecided"), (20, "undecided")],
)
def test_kept_asks_that_a_share_above_alpha_is_not_sure(violating: int, state: str) -> None:
    runs = [summary_of(recovery_cost=12.0)] * violating + [summary_of()] * (20 - violating)
    found = level_figures(level_of(*runs), THRESHOLDS, CONFIG)
    assert found.margin is not None
    assert found.margin >= 0
    assert (found.state, found.violations) == (state, violating)


def test_situation_1_every_disturbed_episode_cut_at_step_2_breaks_its_level() -> None:
    # Progress and propositions 0, no cost as nothing was left to recover: with K = 3 of entries up to 10 the margin was
    # (0 + 0 + 10)/3 - 1 = 2.33, "kept". Now (0 + 0)/2 - 1 = -1.
    cut = summary_of(outcome="failure", steps=2, final_progress=0.0, final_propositions=0.0, recovery_cost=0.0)
    found = level_figures(level_of(*[cut] * 10), THRESHOLDS, CONFIG)
    assert (found.margin, found.favourable_margin, found.state) == (-1.0, -1.0, "broken")
    assert found.violations == 10


def test_situation_1_six_of_ten_that_break_their_contract_break_their_level() -> None:
    # As BabyAI at stress 1: six of ten reach nothing, the others all; none costs anything.
    nothing = summary_of(outcome="timeout", final_progress=0.3, final_propositions=0.0)
    found = level_figures(level_of(*[nothing] * 6, *[summary_of()] * 4), THRESHOLDS, CONFIG)
    # Both quantiles are those of the failures, M+ too (k = 7, the fourth worst): 0.3/0.5 and 0: (0.6 + 0)/2 - 1 = -0.7.
    assert found.margin == pytest.approx(-0.7)
    assert (found.state, found.violations) == ("broken", 6)


@given(
    st.integers(1, 5),  # of which those above 2 are refused
    st.one_of(st.floats(0, 1.5), st.just(1.0)),
    st.floats(0.001, 0.8),
    st.integers(1, 40),
    st.one_of(st.floats(0, 1), st.just(1.0)),
    st.floats(1e-6, 1),
    st.sampled_from(["auto", 1e-3, 8.0, 1e6]),
    st.booleans(),
    st.integers(0, 60),
)
def test_total_failure_breaks_every_level_by_all_settings_that_are_accepted(
    smallest: int, nearness: float, alpha: float, episodes: int,
    progress: float, least: float, most: Any, scored: bool, more: int,
) -> None:  # fmt: skip
    # Caps from 1 up to the largest that may be accepted, and beyond it.
    cap = 1 + nearness * (smallest / (smallest - 1) - 1 if smallest > 1 else 20)
    config = None
    with suppress(ValueError):
        config = AggregateConfig(
            smallest=smallest, ratio_cap=cap, alpha=alpha, min_episodes=episodes, level_generation=None
        )
    assume(config is not None)
    assert config is not None
    contract = FamilyContract(progress=least, propositions=least, recovery=most, stability=most, safety=most)
    references = ReferenceEpisodes()
    for _ in range(5):
        references.add(summary_of(reference=True))
    # Nothing was reached, some way may have been gone, and what failed at once has cost nothing, as far as one knows.
    cost = 0.0 if scored else None
    failed = summary_of(
        outcome="failure", final_progress=progress, final_propositions=0.0, recovery_cost=cost, stability_loss=cost
    )
    found = level_figures(level_of(*[failed] * (episodes + more)), references.thresholds(contract, config.auto), config)
    # Progress and propositions are always measured, so that K entries are, and nothing is ever insufficient.
    assert smallest <= 2
    assert found.state == "broken"
    assert found.violations == found.episodes


@by_seed(30)
@given(seeds)
def test_the_order_of_episodes_changes_nothing_and_violations_are_monitors_below_0(seed: int) -> None:
    rng = np.random.default_rng(seed)
    summaries = [
        summary_of(
            final_progress=float(rng.beta(4, 1)),
            final_propositions=float(rng.integers(0, 3)) / 2,
            recovery_cost=None if rng.random() < 0.2 else float(rng.exponential(6)),
            stability_loss=None if rng.random() < 0.2 else float(rng.gamma(4)),
            violation=float(rng.poisson(3)),
        )
        for _ in range(int(rng.integers(1, 60)))
    ]
    found = level_figures(level_of(*summaries), THRESHOLDS, CONFIG)
    shuffled = [summaries[i] for i in rng.permutation(len(summaries))]
    assert level_figures(level_of(*shuffled), THRESHOLDS, CONFIG) == found
    assert found.violations == sum(monitor(summary, THRESHOLDS) < 0 for summary in summaries)
    assert found.margin is not None
    assert found.favourable_margin is not None
    assert found.margin <= found.favourable_margin


def test_a_level_keeps_its_latest_two_generations() -> None:
    level = level_of(*(summary_of(recovery_cost=float(i)) for i in range(25)), generation=10)
    # Ten, ten, and then five after the first ten have gone.
    assert level.rows()[:, 2].tolist() == [float(i) for i in range(10, 25)]
    assert len(level) == 15
    assert len(level_of(*[summary_of()] * 25)) == 25


def test_provisional_episodes_belong_to_the_same_generations() -> None:
    level = StressLevel()
    for i in range(25):
        level.add(Quantities(1.0, 1.0, None, None, float(i)), 10, provisional=i < 13)
    # Ten, ten, and then five after the first ten have gone: of those left the first three are provisional.
    assert level.rows(provisional=True)[:, 4].tolist() == [10.0, 11.0, 12.0]
    assert level.rows()[:, 4].tolist() == [float(i) for i in range(13, 25)]
    assert len(level) == 15


def test_what_is_not_finite_enters_no_level() -> None:
    with pytest.raises(ValueError, match="finite"):
        level_of(summary_of(recovery_cost=math.inf))


def test_auto_thresholds_of_costs() -> None:
    references = ReferenceEpisodes()
    auto = FamilyContract()
    nothing = references.thresholds(auto, AutoThresholds())
    assert (nothing.recovery, nothing.stability, nothing.safety) == (None, None, None)
    references.add(summary_of(recovery_cost=None, stability_loss=None, violation=1.0))
    only_safety = references.thresholds(auto, AutoThresholds())
    # 2 * 1 is below the floor.
    assert (only_safety.recovery, only_safety.stability, only_safety.safety) == (None, None, 5.0)
    for i in range(1, 21):
        references.add(summary_of(recovery_cost=float(i), stability_loss=i / 10, violation=float(i)))
    found = references.thresholds(auto, AutoThresholds())
    # 20 values: the 0.95 quantile is the 19th. Of violations there are 21, 0.95 * 21 = 19.95: the 20th, which is 19.
    assert (found.recovery, found.stability, found.safety) == (38.0, 2 * 1.9, 38.0)
    assert references.thresholds(FamilyContract(recovery=3.0), AutoThresholds()).recovery == 3.0


def test_auto_thresholds_of_benefits() -> None:
    def least(*values: float) -> float:
        references = ReferenceEpisodes()
        for value in values:
            references.add(summary_of(final_progress=value, final_propositions=1.0))
        return references.thresholds(FamilyContract(), AutoThresholds()).progress

    assert least() == 0.5  # nothing is known yet: no less than what any family is held to at most
    assert least(*[1.0] * 20) == 0.5  # 0.9 * 1 is above the most
    # Twenty values: the 0.1 quantile is the second, 0.4: 0.9 * 0.4.
    assert least(0.1, 0.4, *[0.8] * 18) == pytest.approx(0.36)
    assert least(0.0, 0.0, *[0.8] * 18) == 0.05  # the floor: a contract is not content with nothing
    fixed = ReferenceEpisodes().thresholds(FamilyContract(progress=0.9), AutoThresholds())
    assert (fixed.progress, fixed.propositions) == (0.9, 0.5)


def test_clean_references_leave_the_floors() -> None:
    references = ReferenceEpisodes()
    references.add(summary_of(recovery_cost=0.0, stability_loss=0.0))
    found = references.thresholds(FamilyContract(), AutoThresholds())
    assert (found.recovery, found.stability, found.safety) == (5.0, 1e-6, 5.0)

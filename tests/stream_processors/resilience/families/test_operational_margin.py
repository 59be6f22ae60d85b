"""Equations 7 to 9 worked by hand."""

from typing import Any

import pytest

from springback.stream_processors.resilience.families.contract_config import (
    AggregateConfig,
    AutoThresholds,
    FamilyContract,
)
from springback.stream_processors.resilience.families.operational_margin import (
    ReferenceCosts,
    StressBin,
    margin,
    monitor,
    ratios,
    stress_margin,
)
from springback.stream_processors.resilience.readings import ContractThresholds, ExtensibilityRatios
from tests.stream_processors.resilience.families.summary_builders import summary_of

CONFIG = AggregateConfig()
THRESHOLDS = ContractThresholds(progress=0.5, propositions=0.5, recovery=10.0, stability=4.0, safety=5.0)


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


def test_monitor_leaves_out_what_has_no_threshold_yet() -> None:
    unknown = ContractThresholds(progress=0.5, propositions=0.5, recovery=None, stability=None, safety=None)
    assert monitor(summary_of(recovery_cost=1e9, stability_loss=1e9, violation=1e9), unknown) == 1.0


def bin_of_ten() -> StressBin:
    """Progress 0.1 … 1.0, propositions 1, recovery 1 … 10, stability 0.5 … 5, no violation."""
    found = StressBin()
    for i in range(1, 11):
        found.add(
            summary_of(final_progress=i / 10, final_propositions=1.0, recovery_cost=float(i), stability_loss=i / 2)
        )
    return found


def test_ratios_and_margin() -> None:
    # Ten values: the smallest whose rank reaches 0.1 is the first, 0.9 the ninth.
    # r = [0.1/0.5, 1/0.5, 10/9, 4/4.5, 5/(0 + eps) -> capped at 10] = [0.2, 2, 1.1111, 0.8889, 10]
    found = ratios(bin_of_ten(), THRESHOLDS, CONFIG)
    assert found.progress == pytest.approx(0.2)
    assert found.propositions == pytest.approx(2.0)
    assert found.recovery == pytest.approx(10 / 9)
    assert found.stability == pytest.approx(4 / 4.5)
    assert found.safety == 10.0
    # M = (0.2 + 0.8889 + 1.1111)/3 - 1 = 2.2/3 - 1
    assert margin(found, 3) == pytest.approx(2.2 / 3 - 1)
    point = stress_margin(0.4, bin_of_ten(), THRESHOLDS, CONFIG)
    assert (point.stress, point.episodes, point.sufficient) == (0.4, 10, True)
    assert (point.margin, point.ratios) == (margin(found, 3), found)


def test_the_margin_takes_what_is_known() -> None:
    # (0.5 + 0.8)/2 - 1: two are known, fewer than K.
    assert margin(ExtensibilityRatios(progress=0.8, propositions=0.5), 3) == pytest.approx(-0.35)
    assert margin(ExtensibilityRatios(), 3) is None
    # Exactly on the boundary: (1 + 1 + 1)/3 - 1.
    assert margin(ExtensibilityRatios(progress=1.0, propositions=1.0, safety=1.0, recovery=7.0), 3) == 0.0


def test_unscored_episodes_count_but_have_no_costs() -> None:
    found = StressBin()
    for _ in range(5):
        found.add(summary_of(recovery_cost=None, stability_loss=None))
    point = stress_margin(0.0, found, THRESHOLDS, CONFIG)
    assert (point.episodes, point.sufficient) == (5, True)
    assert (point.ratios.recovery, point.ratios.stability) == (None, None)
    assert point.margin == pytest.approx((2 + 2 + 10) / 3 - 1)


def test_an_empty_bin_has_no_margin() -> None:
    point = stress_margin(0.2, StressBin(), THRESHOLDS, CONFIG)
    assert (point.episodes, point.margin, point.sufficient, point.ratios) == (0, None, False, ExtensibilityRatios())


@pytest.mark.parametrize(("episodes", "sufficient"), [(4, False), (5, True)])
def test_sufficient_from_the_least_number_on(episodes: int, sufficient: bool) -> None:
    found = StressBin()
    for _ in range(episodes):
        found.add(summary_of())
    assert stress_margin(0.0, found, THRESHOLDS, CONFIG).sufficient is sufficient


def test_auto_thresholds() -> None:
    costs = ReferenceCosts()
    auto = FamilyContract()
    nothing = costs.thresholds(auto, AutoThresholds())
    assert (nothing.recovery, nothing.stability, nothing.safety) == (None, None, None)
    costs.add(summary_of(recovery_cost=None, stability_loss=None, violation=1.0))
    only_safety = costs.thresholds(auto, AutoThresholds())
    # 2 * 1 is below the floor.
    assert (only_safety.recovery, only_safety.stability, only_safety.safety) == (None, None, 5.0)
    for i in range(1, 21):
        costs.add(summary_of(recovery_cost=float(i), stability_loss=i / 10, violation=float(i)))
    found = costs.thresholds(auto, AutoThresholds())
    # 20 values: the 0.95 quantile is the 19th. Of violations there are 21, 0.95 * 21 = 19.95: the 20th, which is 19.
    assert (found.recovery, found.stability, found.safety) == (38.0, 2 * 1.9, 38.0)
    assert costs.thresholds(FamilyContract(recovery=3.0, progress=0.9), AutoThresholds()).recovery == 3.0


def test_clean_references_leave_the_floors() -> None:
    costs = ReferenceCosts()
    costs.add(summary_of(recovery_cost=0.0, stability_loss=0.0))
    found = costs.thresholds(FamilyContract(), AutoThresholds())
    assert (found.recovery, found.stability, found.safety) == (10.0, 1e-6, 5.0)

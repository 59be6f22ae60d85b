"""Readings of whole families as series: the latest alone, absent where unknown, and bounded."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from springback.sinks.fleet.families import ATTACKS, STRESS_LEVELS
from springback.sinks.fleet.series_bounds import SeriesBounds
from springback.sinks.prometheus_sink import PrometheusSink
from springback.stream_processors.resilience.readings import (
    ContractThresholds,
    ExtensibilityRatios,
    FamilyReading,
    LevelFigures,
    NavigationScores,
    StressMargin,
    decode_reading,
    encode_reading,
)
from tests.reading_builders import failed_level

Make = Callable[..., Any]

GROUP = {"family": "navigation", "method": "default", "version": "0"}


class Families:
    """A sink that has caught up, and the family series of its page."""

    def __init__(self, **bounds: Any) -> None:
        self.registry = CollectorRegistry()
        self.sink = PrometheusSink(self.registry, bounds=SeriesBounds(**bounds), clock=lambda: 1010.0)
        self.sink.caught_up()

    def after(self, *readings: FamilyReading) -> "Families":
        for reading in readings:
            self.sink.write(decode_reading(encode_reading(reading)))
        return self

    def __call__(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"springback_{name}", labels)

    def of(self, name: str) -> dict[str, float]:
        """The values of a metric by the labels that follow the group's."""
        return {
            "/".join(value for label, value in sample.labels.items() if label not in GROUP): sample.value
            for metric in self.registry.collect()
            for sample in metric.samples
            if sample.name == f"springback_{name}"
        }

    def shown(self) -> list[str]:
        return sorted(
            sample.labels["family"]
            for metric in self.registry.collect()
            for sample in metric.samples
            if sample.name == "springback_contract_violated"
        )

    def folded(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for metric in self.registry.collect()
            if not metric.name.startswith("springback_exporter")
            for sample in metric.samples
        }


def test_every_figure_of_a_family_is_shown(family: Make) -> None:
    page = Families().after(family())
    figures = {
        "family_updated_timestamp_seconds": 1000,
        "family_episodes_total": 48,
        "policy_stability_beta": 3.5,
        "policy_stability_beta_p95": 3,
        "policy_stability_beta_unpaired": 4,
        "policy_stability_beta_difference": 0.7,
        "policy_stability_repeatability": 0.5,
        "stability_pairs_total": 17,
        "stability_tasks_let_go_total": 2,
        "dependable_capacity": 0,
        "tested_up_to_stress": 0.2,
        "stress_capacity": 0,
        "first_breach_stress": 0.2,
        "contract_violations_total": 9,
        "contract_violated": 1,
        "contract_violated_times_total": 1,
        "live_stress": 0.2,
        "stress_breaches_total": 3,
        "family_learning": 0,
        "bound_references": 24,
        "bound_references_needed": 20,
        "provisional_episodes_total": 7,
        "family_success_ratio": 0.75,
        "family_completion_ratio": 0.875,
        "family_mean_steps": 31.5,
        "family_mean_recovery_cost": 1.25,
        "family_mean_stability_loss": 2.5,
    }
    assert {name: page(name, **GROUP) for name in figures} == figures
    assert page.of("policy_stability_beta_by_perturbation") == {"physical": 3.5, "semantic": 2}
    assert page.of("stability_unpaired_episodes") == {"no_twin": 4, "other_version": 3}
    assert page.of("stress_capacity_flag") == {"ok": 1, "open": 0, "none": 0, "insufficient": 0}
    assert page.of("stress_state") == {"within": 0, "untested": 0, "breach": 1, "unsettled": 0, "none_declared": 0}
    assert page.of("active_episodes") == {"yes": 3, "no": 2}
    assert page.of("contract_threshold") == {"progress": 0.5, "propositions": 0.5, "recovery": 10, "safety": 5}


def test_the_response_to_stress_is_shown_by_level(family: Make) -> None:
    page = Families().after(family())
    assert page.of("stress_margin") == {"0": 0.375, "0.2": -0.5, "undeclared": 0.375}
    assert page.of("stress_favourable_margin") == {"0": 0.5, "0.2": -0.25, "undeclared": 0.5}
    assert page.of("stress_level_episodes") == {"0": 30, "0.2": 12, "0.4": 0, "undeclared": 6}
    states = {label for label, value in page.of("stress_level_state").items() if value}
    assert states == {"0/kept", "0.2/broken", "0.4/insufficient", "undeclared/kept"}
    assert len(page.of("stress_level_state")) == 4 * 4
    assert page.of("contract_violation_ratio") == {"0": 1 / 30, "0.2": 8 / 12, "undeclared": 0}
    assert page.of("contract_violation_ratio_low") == {"0": 0.0059, "0.2": 0.3906, "undeclared": 0}
    assert page.of("contract_violation_ratio_high") == {"0": 0.1667, "0.2": 0.8619, "undeclared": 0.3903}
    assert page("extensibility_ratio", **GROUP, stress="0.2", quantity="recovery") == 0.75
    assert page("extensibility_ratio", **GROUP, stress="0.2", quantity="stability") is None


def test_undeclared_stress_is_not_0(family: Make) -> None:
    """Situation 4: robots that declare no stress. Nothing is said of a live stress, and nothing of level 0."""
    failed = failed_level(favourable_margin=-1.0, ratios=ExtensibilityRatios(progress=0.0, propositions=0.0))
    field = family(
        margins=(),
        undeclared=failed,
        live_stress=None,
        stress_state=None,
        active_episodes=3,
        active_undeclared=3,
        capacity=None,
        capacity_flag="insufficient",
        dependable=None,
        tested_up_to=None,
    )
    page = Families().after(field)
    assert page("live_stress", **GROUP) is None
    assert page.of("stress_state") == {"within": 0, "untested": 0, "breach": 0, "unsettled": 0, "none_declared": 1}
    assert page.of("active_episodes") == {"yes": 0, "no": 3}
    assert page.of("stress_margin") == {"undeclared": -1}
    assert page.of("contract_violation_ratio_low") == {"undeclared": 0.8389}
    assert page("contract_violated", **GROUP) == 1


def test_a_contract_is_not_said_to_be_unviolated_where_no_level_can_say(family: Make) -> None:
    """Situations 4 and 10: while a family is learning twenty of twenty may fail, and no level knows of it."""
    page = Families()
    few = StressMargin(stress=0.0, episodes=4, margin=0.5, state="insufficient", ratios=ExtensibilityRatios())
    nothing = {"contract_violated": False, "undeclared": None}
    assert page.after(family(sequence=1, margins=(few,), **nothing))("contract_violated", **GROUP) is None
    enough = StressMargin(stress=0.0, episodes=5, margin=0.5, state="kept", ratios=ExtensibilityRatios())
    assert page.after(family(sequence=2, margins=(enough,), **nothing))("contract_violated", **GROUP) == 0
    assert page.after(family(sequence=3, margins=(), **nothing))("contract_violated", **GROUP) is None
    undeclared = LevelFigures(episodes=5, margin=0.5, state="kept", ratios=ExtensibilityRatios())
    assert (
        page.after(family(sequence=4, margins=(), contract_violated=False, undeclared=undeclared))(
            "contract_violated", **GROUP
        )
        == 0
    )


def test_a_family_is_learning_until_enough_references_stand_behind_its_bounds(family: Make) -> None:
    """Situation 10: with ten references the windows of clean episodes count for nothing."""
    page = Families()
    assert page.after(family(sequence=1, bound_references=19))("family_learning", **GROUP) == 1
    assert page.after(family(sequence=2, bound_references=20))("family_learning", **GROUP) == 0
    assert page.after(family(sequence=3, bound_references=None))("family_learning", **GROUP) == 1
    assert page("bound_references", **GROUP) is None


def test_a_level_is_labelled_as_one_writes_it(family: Make) -> None:
    ratios = ExtensibilityRatios()
    margins = tuple(
        StressMargin(stress=stress, episodes=5, margin=0.0, state="kept", ratios=ratios)
        for stress in (0.0, 0.1 + 0.2, 3 * 0.2, 1.0)
    )
    assert [*Families().after(family(margins=margins, undeclared=None)).of("stress_margin")] == ["0", "0.3", "0.6", "1"]


def test_navigation_is_shown_by_attack(family: Make) -> None:
    page = Families().after(family())
    assert page.of("navigation_episodes") == {"all": 42, "model": 7}
    assert page.of("navigation_success_ratio") == {"all": 0.75, "model": 0.5}
    assert page.of("navigation_spl_ratio") == {"all": 0.5}
    assert page.of("navigation_sel_ratio") == {"all": 0.25}
    assert page.of("navigation_goal_completion_ratio") == {"all": 0.625}


def test_what_is_unknown_has_no_series(family: Make) -> None:
    unknown = family(
        **dict.fromkeys(
            ("success_rate", "completion", "mean_steps", "recovery_cost_mean", "stability_loss_mean", "beta"), None
        ),
        **dict.fromkeys(("beta_p95", "beta_unpaired", "capacity", "first_breach", "live_stress"), None),
        **dict.fromkeys(("beta_difference", "stability_repeatability", "dependable", "tested_up_to"), None),
        **dict.fromkeys(("undeclared", "bound_references", "bound_references_needed"), None),
        unpaired={},
        beta_by_kind={},
        capacity_flag="insufficient",
        contract_violated=False,
        margins=(),
        thresholds=ContractThresholds(progress=0.5, propositions=0.5, recovery=None, stability=None, safety=None),
        navigation={},
        stress_state="within",
    )
    page = Families().after(unknown)
    names = {
        name.removeprefix("springback_") for name, labels in page.folded() if dict(labels).items() >= GROUP.items()
    }
    assert names == {
        "family_updated_timestamp_seconds",
        "family_episodes_total",
        "stability_pairs_total",
        "stability_tasks_let_go_total",
        "stress_capacity_flag",
        "contract_threshold",
        "contract_violations_total",
        "contract_violated_times_total",
        "active_episodes",
        "stress_state",
        "stress_breaches_total",
        "family_learning",
        "provisional_episodes_total",
    }
    assert page.of("stress_capacity_flag") == {"ok": 0, "open": 0, "none": 0, "insufficient": 1}
    assert page.of("stress_state") == {"within": 1, "untested": 0, "breach": 0, "unsettled": 0, "none_declared": 0}


def test_a_figure_that_is_known_no_longer_goes(family: Make) -> None:
    page = Families().after(family(), family(sequence=43, live_stress=None, margins=(), undeclared=None, navigation={}))
    assert page("live_stress", **GROUP) is None
    assert page.of("stress_margin") == page.of("navigation_episodes") == {}


def test_no_capacity_is_a_capacity_of_nothing_and_a_flag(family: Make) -> None:
    page = Families().after(family(capacity=0.0, capacity_flag="none"))
    assert page("stress_capacity", **GROUP) == 0
    assert page.of("stress_capacity_flag") == {"ok": 0, "open": 0, "none": 1, "insufficient": 0}


def test_a_capacity_that_is_only_as_much_as_was_tested_says_so(family: Make) -> None:
    """Situation 2: while only clean episodes run, lambda* 0.0 is at least that much, and not all."""
    page = Families().after(family(capacity=0.0, capacity_flag="open", dependable=0.0, tested_up_to=0.0))
    assert page.of("stress_capacity_flag") == {"ok": 0, "open": 1, "none": 0, "insufficient": 0}
    assert (page("dependable_capacity", **GROUP), page("tested_up_to_stress", **GROUP)) == (0, 0)


def test_a_worker_that_lost_its_state_is_believed_when_it_counts_anew(family: Make) -> None:
    page = Families().after(family(sequence=42, updated_s=1000.0), family(sequence=1, updated_s=2000.0, beta=7.5))
    assert page("policy_stability_beta", **GROUP) == 7.5


def test_the_latest_reading_replaces_and_repetitions_drop_out(family: Make) -> None:
    page = Families().after(
        family(sequence=5, breaches=1, violations=4),
        family(sequence=9, breaches=3, violations=6),
        family(sequence=9, breaches=3, violations=6),
        family(sequence=7, breaches=2, violations=5, beta=99.0),
    )
    assert page("stress_breaches_total", **GROUP) == 3
    assert page("contract_violations_total", **GROUP) == 6
    assert page("policy_stability_beta", **GROUP) == 3.5
    assert page("exporter_readings_total", kind="family") == 4
    assert page("exporter_repeated_readings_total", kind="family") == 2


def test_methods_and_versions_are_apart(family: Make) -> None:
    page = Families().after(family(beta=1.0), family(version="1", beta=2.0), family(method="reflexion", beta=3.0))
    values = [
        page("policy_stability_beta", family="navigation", method=method, version=version)
        for method, version in (("default", "0"), ("default", "1"), ("reflexion", "0"))
    ]
    assert values == [1, 2, 3]


@given(st.data())
def test_compaction_order_and_repetition_change_nothing(family: Make, data: st.DataObject) -> None:
    history = [
        family(name, sequence=number, updated_s=1000.0 + number, breaches=number // 2, beta=float(number))
        for number in range(1, 6)
        for name in ("navigation", "assembly", "transport")
    ]
    latest = history[-3:]
    told = data.draw(st.permutations(history + data.draw(st.lists(st.sampled_from(history), max_size=5))))
    cap = data.draw(st.integers(1, 4))
    restarted = Families(groups=cap).after(*data.draw(st.permutations(latest)))
    assert Families(groups=cap).after(*told).folded() == restarted.folded()
    assert restarted("exporter_unshown_families") == max(0, 3 - cap)


def test_beyond_the_bound_the_newest_are_shown(family: Make) -> None:
    page = Families(groups=2).after(*(family(f"family-{number}", updated_s=1000.0 - number) for number in range(4)))
    assert page.shown() == ["family-0", "family-1"]
    assert page("exporter_unshown_families") == 2
    page.after(family("family-3", sequence=43, updated_s=1001.0))
    assert page.shown() == ["family-0", "family-3"]


def test_families_take_no_series_from_the_groups_of_episodes(family: Make, summary: Make) -> None:
    page = Families(groups=1).after(family("long ago"), summary())
    assert page("steps_total", **GROUP) == 20


def test_what_is_remembered_of_families_is_bounded(family: Make) -> None:
    page = Families(groups=5, remembered_families=2).after(*(family(f"family-{number}") for number in range(4)))
    assert page.shown() == ["family-2", "family-3"]


def test_stress_levels_and_attacks_are_bounded(family: Make) -> None:
    many = 1000
    margins = tuple(
        StressMargin(
            stress=1 - number / many, episodes=1, margin=0.0, state="insufficient", ratios=ExtensibilityRatios()
        )
        for number in range(many)
    )
    navigation = {f"attack-{number:04}": NavigationScores(episodes=1) for number in range(many)}
    together = {"all": NavigationScores(episodes=many), "other": NavigationScores(episodes=9)}
    page = Families().after(family(margins=margins, navigation={**navigation, **together}))
    assert list(page.of("stress_margin"))[:2] == ["0.001", "0.002"]
    assert len(page.of("stress_margin")) == STRESS_LEVELS + 1
    assert list(page.of("stress_margin"))[-1] == "undeclared"
    assert page.of("navigation_episodes") == {
        **{f"attack-{number:04}": 1 for number in range(ATTACKS)},
        "all": many,
        "other": 9,
    }
    assert page("exporter_overflow_readings_total", bound="stress") == 1
    assert page("exporter_overflow_readings_total", bound="attack") == 1


def test_unknown_kinds_of_perturbation_share_the_largest(family: Make) -> None:
    page = Families().after(family(beta_by_kind={"ghost": 2.0, "poltergeist": 5.0, "banshee": 3.0, "physical": 1.0}))
    assert page.of("policy_stability_beta_by_perturbation") == {"other": 5, "physical": 1}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_refused_once_and_has_no_series(family: Make, value: float) -> None:
    margins = (
        StressMargin(stress=value, episodes=5, margin=1.0, state="kept", ratios=ExtensibilityRatios()),
        StressMargin(stress=0.2, episodes=5, margin=value, state="kept", ratios=ExtensibilityRatios()),
    )
    page = Families().after(family(beta=value, updated_s=value, margins=margins, undeclared=None))
    for _ in range(3):
        assert page("policy_stability_beta", **GROUP) is None
        assert page("family_updated_timestamp_seconds", **GROUP) is None
        assert page.of("stress_margin") == {}
        assert page.of("stress_level_episodes") == {"0.2": 5}
        assert page("policy_stability_beta_p95", **GROUP) == 3
    assert page("exporter_refused_values_total", metric="springback_policy_stability_beta") == 1
    assert page("exporter_refused_values_total", metric="springback_stress_margin") == 2


def test_a_total_below_nothing_is_refused(family: Make) -> None:
    page = Families().after(family(breaches=-1))
    assert page("stress_breaches_total", **GROUP) is None
    assert page("exporter_refused_values_total", metric="springback_stress_breaches_total") == 1

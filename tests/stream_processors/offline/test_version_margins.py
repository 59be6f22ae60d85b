"""Two versions compared by stability and stress response: against the reducer of families, and by hand."""

import msgspec
import numpy as np
import pytest

from springback.stream_processors.offline.comparison import ScoredVersion, VersionComparison, compare_versions
from springback.stream_processors.offline.comparison_contract import Allowances, VersionContract
from springback.stream_processors.offline.metric_changes import MetricChange
from springback.stream_processors.offline.samples import StressLevel
from springback.stream_processors.resilience.families.contract_config import AggregateConfig, FamilyContract
from springback.stream_processors.resilience.families.family_aggregate import aggregate
from springback.stream_processors.resilience.readings import EpisodeSummary
from tests.stream_processors.offline.version_episodes import breaches_of, summary_of

CONFIG = AggregateConfig(families={"cooking": FamilyContract(recovery=2.0, stability=4.0, safety=1.0)})
CONTRACT = VersionContract(schema_version=1, resamples=300, allowances=Allowances(margin=0.1, capacity=0.0))


def random_version(version: str, seed: int, tasks: int = 12) -> list[EpisodeSummary]:
    rng = np.random.default_rng(seed)
    found: list[EpisodeSummary] = []
    for i in range(tasks):
        for stress in (0.0, 0.2, 0.4, 0.6, 1.0):
            cost, loss, progress, share = rng.exponential(size=4)
            found.append(
                summary_of(
                    len(found),
                    version,
                    task=f"t{i}",
                    family="cooking" if i % 2 else "navigation",
                    reference=stress == 0.0,
                    stress=stress + float(rng.uniform(-0.05, 0.05) if stress else 0.0),
                    magnitude=stress,
                    perturbation="slip" if stress else "none",
                    outcome=str(rng.choice(["success", "failure", "timeout", "aborted"], p=[0.7, 0.1, 0.1, 0.1])),
                    recovery_cost=None if rng.uniform() < 0.1 else float(20.0 * cost * stress),
                    stability_loss=None if rng.uniform() < 0.1 else float(1.0 + loss * (1.0 + stress)),
                    final_progress=min(1.0, 0.3 + progress),
                    final_propositions=min(1.0, 0.3 + share),
                    violation=float(rng.poisson(stress)),
                )
            )
    return found


def compared(before: list[EpisodeSummary], after: list[EpisodeSummary], **changes: object) -> VersionComparison:
    return compare_versions(
        ScoredVersion(before, []),
        ScoredVersion(after, []),
        groups=ScoredVersion(before, []).groups(),
        contract=msgspec.structs.replace(CONTRACT, **changes),
        versions=("1", "2"),
        config=CONFIG,
    )


def changes_of(comparison: VersionComparison, metric: str, family: str) -> list[MetricChange]:
    return [
        change
        for group in comparison.groups
        if group.family == family
        for change in group.metrics
        if change.metric == metric
    ]


@pytest.mark.parametrize("seed", range(4))
def test_each_figure_is_that_of_the_families_reducer(seed: int) -> None:
    before, after = random_version("1", seed), random_version("2", 100 + seed)
    comparison = compared(before, after)
    for reading in aggregate(before, CONFIG):
        for metric, expected in (
            ("success_rate", reading.success_rate),
            ("recovery_cost", reading.recovery_cost_mean),
            ("stability_loss", reading.stability_loss_mean),
            ("beta", reading.beta),
            ("beta_p95", reading.beta_p95),
        ):
            (change,) = changes_of(comparison, metric, reading.family)
            assert change.baseline == pytest.approx(expected), metric
        margins = {c.stress: c.baseline for c in changes_of(comparison, "margin", reading.family)}
        expected_margins: dict[StressLevel | None, float | None] = {
            m.stress: m.margin for m in reading.margins if m.sufficient
        }
        assert set(margins) <= set(expected_margins)
        assert margins == pytest.approx({stress: expected_margins[stress] for stress in margins})
        if set(margins) == set(expected_margins):
            (change,) = changes_of(comparison, "capacity", reading.family)
            assert change.baseline == reading.capacity


def test_the_candidate_loosens_no_threshold() -> None:
    """Its own references are dear, and would set `auto` thresholds that let anything pass."""
    before = random_version("1", 3)
    dear = [msgspec.structs.replace(s, recovery_cost=500.0, stability_loss=90.0) for s in before]
    comparison = compared(before, dear)
    assert "margin" in {breach.metric for breach in breaches_of(comparison)}
    for family in ("cooking", "navigation"):
        changes = changes_of(comparison, "margin", family)
        assert changes
        assert all(change.candidate is not None and change.candidate < 0 for change in changes)
        (capacity,) = changes_of(comparison, "capacity", family)
        assert capacity.candidate == 0.0


def test_one_stress_level_alone_can_break_the_contract() -> None:
    before = [
        summary_of(100 * level + i, "1", task=f"t{i}", stress=0.2 * level, reference=level == 0, family="cooking")
        for level in range(3)
        for i in range(10)
    ]
    after = [msgspec.structs.replace(s, final_progress=0.0) if s.traits.stress == 0.4 else s for s in before]
    comparison = compared(before, after)
    assert [(breach.metric, breach.stress) for breach in breaches_of(comparison)] == [
        ("margin", 0.4),
        ("capacity", None),
    ]
    # r_f is at the cap of 1.5 before, and (0, 1.5, 1.5, unknown, 1.5) after: M_f of the two smallest.
    (change,) = (c for c in changes_of(comparison, "margin", "cooking") if c.stress == 0.4)
    assert (change.baseline, change.candidate) == pytest.approx((0.5, 1.5 / 2 - 1))
    (capacity,) = changes_of(comparison, "capacity", "cooking")
    assert (capacity.baseline, capacity.candidate) == (0.4, 0.2)

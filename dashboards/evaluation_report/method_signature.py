"""The signature of a method: six measures of resilience, each brought to 0 to 1 with 1 the best.

The scales are fixed ones and not relative to the methods at hand, so a signature can be compared between reports.

Source: ours.
"""

from collections.abc import Iterable
from statistics import fmean

import msgspec
from springback.dashboards.evaluation_report.report_groups import ReportGroup, costs
from springback.stream_processors.resilience.readings import EpisodeSummary

ALL_FAMILIES = "*"
AXES = {
    "success": ("success", "share of the disturbed episodes that succeed"),
    "low_cost": ("low cost", "1 / (1 + mean C_rec of the disturbed episodes / the most that the contract allows)"),
    "short_windows": ("short windows", "1 - mean window length / mean length of an episode, in steps"),
    "steadiness": ("steadiness", "mean stability loss of the clean / of the disturbed episodes, at most 1"),
    "low_beta": (
        "low β",
        "1 / (1 + β / mean stability loss of the clean): 0.5 where magnitude 1 doubles the loss at worst",
    ),
    "capacity": ("capacity λ*", "the stress up to which the family's contract holds"),
}


class SignatureRow(msgspec.Struct, frozen=True, kw_only=True):
    """The signature of a method and version in one family, or over all of them: the mean of the families' scores.

    `family` is `*` for that mean. A score is None where nothing is known of it.
    """

    family: str
    method: str
    version: str
    success: float | None
    low_cost: float | None
    short_windows: float | None
    steadiness: float | None
    low_beta: float | None
    capacity: float | None

    def scores(self) -> list[float | None]:
        """The scores in the order of AXES."""
        return [getattr(self, name) for name in AXES]


def signature_rows(groups: Iterable[ReportGroup]) -> list[SignatureRow]:
    """The signatures of all methods and versions: for each its mean first, then its families."""
    of_method: dict[tuple[str, str], list[SignatureRow]] = {}
    for group in groups:
        of_method.setdefault(group.identity[1:], []).append(_row(group))
    rows = []
    for method, version in sorted(of_method):
        own = of_method[method, version]
        means = {name: _mean(getattr(row, name) for row in own) for name in AXES}
        rows += [SignatureRow(family=ALL_FAMILIES, method=method, version=version, **means), *own]
    return rows


def _row(group: ReportGroup) -> SignatureRow:
    family, method, version = group.identity
    disturbed = [summary for summary in group.ended if not group.is_clean(summary.traits)]
    clean = [summary for summary in group.ended if group.is_clean(summary.traits)]
    cost = _mean(costs(disturbed))
    loss, clean_loss = _mean_loss(disturbed), _mean_loss(clean)
    reading = group.reading
    return SignatureRow(
        family=family,
        method=method,
        version=version,
        success=_mean(float(summary.outcome == "success") for summary in disturbed),
        low_cost=_halving(cost, None if reading is None else reading.thresholds.recovery),
        short_windows=_short_windows(group, disturbed),
        steadiness=None if loss is None or clean_loss is None else min(1.0, clean_loss / max(loss, 1e-9)),
        low_beta=_halving(None if reading is None else reading.beta, clean_loss),
        capacity=None if reading is None else reading.capacity,
    )


def _short_windows(group: ReportGroup, disturbed: list[EpisodeSummary]) -> float | None:
    steps = _mean(summary.steps for summary in disturbed if summary.recovery_cost is not None)
    if not steps:
        return None
    length = _mean(window.length_steps for window in group.whole_windows if not group.is_clean(window.traits))
    return 1.0 if length is None else max(0.0, 1 - length / steps)


def _mean_loss(summaries: list[EpisodeSummary]) -> float | None:
    return _mean(summary.stability_loss for summary in summaries)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _halving(value: float | None, half_at: float | None) -> float | None:
    """1 where the value is 0, falling to 0.5 at `half_at` and on towards 0."""
    return None if value is None or not half_at else 1 / (1 + value / half_at)

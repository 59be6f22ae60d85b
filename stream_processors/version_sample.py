"""The episodes of one family, method and version as columns, and what a version is judged by, under any weights.

Statistics take the weights of the episodes, a row per resample, and give a value per row, so that all resamples of a
bootstrap are worked out at once. Censored episodes are left out; of each metric, so are those without a value of it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from springback.stream_processors.resample_statistics import weighted_maximum, weighted_mean, weighted_quantile
from springback.stream_processors.resilience.aggregate_config import FamilyContract
from springback.stream_processors.resilience.operational_margin import EPSILON
from springback.stream_processors.resilience.readings import EpisodeSummary, WindowReading
from springback.stream_processors.resilience.signals import Bools, Floats, Ints
from springback.stream_processors.resilience.stability_pairs import UPPER_RANK
from springback.stream_processors.resilience.stress_capacity import nearest_point
from springback.stream_processors.resilience.stress_operator import stress_place

_APART = FamilyContract()
"""Of no evolution: versions are compared here, and are not the stress."""


@dataclass(frozen=True, slots=True)
class VersionSample:
    """The episodes of a group that were seen to end. Shape: (n,) each; NaN where an episode has no value.

    Attributes:
        task: ids of the tasks.
        level: positions in the stress grid.
        success: 1 or 0.
        recovery_cost, stability_loss: C_rec and l.
        progress, propositions, violation: p, q and the violation load at the episode's end.
        beta: the ratio of equation 6 of a perturbed episode that has a clean twin.
        window_steps, windows: summed length and number of the rebound windows that were not censored.
        lengths: of these windows, each by itself, with their episode; both (m,).
    """

    task: list[str]
    level: Ints
    success: Floats
    recovery_cost: Floats
    stability_loss: Floats
    progress: Floats
    propositions: Floats
    violation: Floats
    beta: Floats
    window_steps: Floats
    windows: Floats
    lengths: Floats
    episode_of_length: Ints


class Statistic(NamedTuple):
    """A metric of a sample.

    Attributes:
        value: from a sample and its episodes' weights (b, n) to the metric (b,).
        known: which episodes have a part in it (n,).
        values: what the Mann-Whitney test compares; None for a metric that is no mean over episodes or windows.
    """

    value: Callable[[VersionSample, Floats], Floats]
    known: Callable[[VersionSample], Bools]
    values: Callable[[VersionSample], Floats] | None


def sample_of(
    summaries: Iterable[EpisodeSummary], windows: Iterable[WindowReading], grid: Sequence[float]
) -> VersionSample:
    """The sample of one group's episodes and their windows; a stress level goes to the nearest point of the grid."""
    seen = [summary for summary in summaries if not summary.censored]
    level = {point: i for i, point in enumerate(grid)}
    place = {summary.key: i for i, summary in enumerate(seen)}
    whole = [window for window in windows if window.state in ("recovered", "unrecovered") and window.key in place]
    lengths = np.array([float(window.length_steps) for window in whole])
    episode_of_length = np.array([place[window.key] for window in whole], dtype=np.int64)
    return VersionSample(
        task=[summary.traits.task for summary in seen],
        level=np.array([level[nearest_point(summary.traits.stress, grid)] for summary in seen], dtype=np.int64),
        success=np.array([float(summary.outcome == "success") for summary in seen]),
        recovery_cost=_column([summary.recovery_cost for summary in seen]),
        stability_loss=_column([summary.stability_loss for summary in seen]),
        progress=np.array([summary.final_progress for summary in seen]),
        propositions=np.array([summary.final_propositions for summary in seen]),
        violation=np.array([summary.violation for summary in seen]),
        beta=_column(_beta_ratios(seen)),
        window_steps=np.bincount(episode_of_length, lengths, len(seen)).astype(np.float64),
        windows=np.bincount(episode_of_length, minlength=len(seen)).astype(np.float64),
        lengths=lengths,
        episode_of_length=episode_of_length,
    )


def at_levels(sample: VersionSample, levels: Iterable[int]) -> VersionSample:
    """The sample's episodes at some of the stress levels alone."""
    kept = np.isin(sample.level, np.array(sorted(levels), dtype=np.int64))
    kept_length = kept[sample.episode_of_length]
    of_windows: dict[str, Any] = {
        "lengths": sample.lengths[kept_length],
        "episode_of_length": (np.cumsum(kept) - 1)[sample.episode_of_length[kept_length]],
    }
    of_episodes = {
        column.name: getattr(sample, column.name)[kept]
        for column in fields(sample)
        if column.name not in ("task", *of_windows)
    }
    task = [task for task, own in zip(sample.task, kept.tolist(), strict=True) if own]
    return VersionSample(task=task, **of_episodes, **of_windows)


def mix_weights(sample: VersionSample, like: VersionSample) -> Floats:
    """Weights that give a sample another's mix of stress levels (direct standardisation). Shape: (n,); mean 1.

    Both must be at the same levels. A version that was recorded under more stress is not worse for that.
    """
    most = 1 + int(max(sample.level.max(initial=0), like.level.max(initial=0)))
    own, other = np.bincount(sample.level, minlength=most), np.bincount(like.level, minlength=most)
    share = other / max(other.sum(), 1) * own.sum() / np.maximum(own, 1)
    return np.asarray(share[sample.level], dtype=np.float64)


def _column(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _beta_ratios(seen: Sequence[EpisodeSummary]) -> list[float | None]:
    """|l(rho(z)) - l(z)| / (|rho| + epsilon) of each episode; several references of a task are averaged."""
    clean: dict[str, list[float]] = defaultdict(list)
    places = [stress_place(summary.traits, _APART) for summary in seen]
    for summary, place in zip(seen, places, strict=True):
        if place.role == "reference" and summary.stability_loss is not None:
            clean[summary.traits.task].append(summary.stability_loss)
    ratios: list[float | None] = []
    for summary, place in zip(seen, places, strict=True):
        loss, twins = summary.stability_loss, clean.get(summary.traits.task)
        if place.role != "perturbed" or place.magnitude <= 0 or loss is None or twins is None:
            ratios.append(None)
        else:
            ratios.append(abs(loss - fmean(twins)) / (place.magnitude + EPSILON))
    return ratios


def _known(column: str) -> Callable[[VersionSample], Bools]:
    return lambda sample: ~np.isnan(getattr(sample, column))


def _of_known(column: str, statistic: Callable[[Floats, Floats], Floats]) -> Callable[[VersionSample, Floats], Floats]:
    def value(sample: VersionSample, weights: Floats) -> Floats:
        values = getattr(sample, column)
        known = ~np.isnan(values)
        return statistic(values[known], weights[:, known])

    return value


def _mean(column: str) -> Statistic:
    known = _known(column)
    return Statistic(
        _of_known(column, weighted_mean), known, lambda sample: np.asarray(getattr(sample, column)[known(sample)])
    )


def _window_length(sample: VersionSample, weights: Floats) -> Floats:
    count = weights @ sample.windows
    length: Floats = np.divide(weights @ sample.window_steps, count, out=np.full(len(weights), np.nan), where=count > 0)
    return length


def _beta_quantile(values: Floats, weights: Floats) -> Floats:
    return weighted_quantile(values, weights, UPPER_RANK)


STATISTICS: dict[str, Statistic] = {
    "success_rate": _mean("success"),
    "recovery_cost": _mean("recovery_cost"),
    "window_length": Statistic(_window_length, lambda sample: sample.windows > 0, lambda sample: sample.lengths),
    "stability_loss": _mean("stability_loss"),
    "beta": Statistic(_of_known("beta", weighted_maximum), _known("beta"), None),
    "beta_p95": Statistic(_of_known("beta", _beta_quantile), _known("beta"), None),
}

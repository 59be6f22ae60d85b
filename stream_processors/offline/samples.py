"""The episodes of one family, method and version as columns, and the figures that are taken of them by resampling.

Statistics take the weights of the episodes, a row per resample, and give a value per row, so that all resamples of a
bootstrap are worked out at once. Censored episodes are left out, and provisional ones, whose family was still learning;
of each metric, so are those without a value of it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from statistics import fmean
from typing import Any, Literal, NamedTuple

import numpy as np

from springback.stream_processors.offline.resampling import weighted_maximum, weighted_mean, weighted_quantile
from springback.stream_processors.offline.significance import TaskValue
from springback.stream_processors.resilience.anchor import Bools, Floats, Ints
from springback.stream_processors.resilience.families.contract_config import FamilyContract
from springback.stream_processors.resilience.families.operational_margin import EPSILON
from springback.stream_processors.resilience.families.stability_beta import UPPER_RANK
from springback.stream_processors.resilience.families.stress_capacity import StressPlace, nearest_point, stress_place
from springback.stream_processors.resilience.readings import EpisodeSummary, WindowReading

UNDECLARED: Literal["undeclared"] = "undeclared"
StressLevel = float | Literal["undeclared"]
"""A point of the stress grid, or the level of the episodes that declared no stress."""

_APART = FamilyContract()
"""A contract without `evolution`: versions are no stress."""


@dataclass(frozen=True, slots=True)
class EpisodeSample:
    """The episodes of a group that count. Shape: (n,) each; NaN where an episode has no value.

    Attributes:
        task: ids of the tasks.
        level: positions in the stress grid; one more is the level of undeclared stress.
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
        tested: what is tested task by task: values, and the episode of each; None for a metric that is no mean over
            episodes or windows.
    """

    value: Callable[[EpisodeSample, Floats], Floats]
    known: Callable[[EpisodeSample], Bools]
    tested: Callable[[EpisodeSample], tuple[Ints, Floats]] | None

    def task_values(self, sample: EpisodeSample) -> list[TaskValue] | None:
        """Task, stress level and value of each episode or window that is tested; None where nothing is."""
        if self.tested is None:
            return None
        episodes, values = self.tested(sample)
        level = sample.level.tolist()
        return [(sample.task[i], level[i], value) for i, value in zip(episodes.tolist(), values.tolist(), strict=True)]


def sample_of(
    summaries: Iterable[EpisodeSummary],
    windows: Iterable[WindowReading],
    grid: Sequence[float],
    contract: FamilyContract = _APART,
) -> EpisodeSample:
    """The sample of one group's episodes and their windows, in an order that does not depend on how they arrived.

    Args:
        summaries: the episodes.
        windows: their windows.
        grid: the stress levels; an episode goes to the nearest, one that declared none to a level of its own.
        contract: of the family, which may make the version the stress.
    """
    seen = sorted((summary for summary in summaries if counts(summary)), key=_key_of)
    places = [stress_place(summary.traits, contract, summary.realised_magnitude) for summary in seen]
    levels = levels_of(grid)
    place = {summary.key: i for i, summary in enumerate(seen)}
    whole = [window for window in windows if window.state in ("recovered", "unrecovered") and window.key in place]
    whole.sort(key=lambda window: (place[window.key], window.number))
    lengths = np.array([float(window.length_steps) for window in whole])
    episode_of_length = np.array([place[window.key] for window in whole], dtype=np.int64)
    return EpisodeSample(
        task=[summary.traits.task for summary in seen],
        level=np.array([levels.index(level_of(place, grid)) for place in places], dtype=np.int64),
        success=np.array([float(summary.outcome == "success") for summary in seen]),
        recovery_cost=_column([summary.recovery_cost for summary in seen]),
        stability_loss=_column([summary.stability_loss for summary in seen]),
        progress=np.array([summary.final_progress for summary in seen]),
        propositions=np.array([summary.final_propositions for summary in seen]),
        violation=np.array([summary.violation for summary in seen]),
        beta=_column(_beta_ratios(seen, places)),
        window_steps=np.bincount(episode_of_length, lengths, len(seen)).astype(np.float64),
        windows=np.bincount(episode_of_length, minlength=len(seen)).astype(np.float64),
        lengths=lengths,
        episode_of_length=episode_of_length,
    )


def counts(summary: EpisodeSummary) -> bool:
    """Whether an episode is evidence: it was seen to end, by bounds that its family had already learned."""
    return not (summary.censored or summary.provisional)


def level_of(place: StressPlace, grid: Sequence[float]) -> StressLevel:
    """The stress level that an episode belongs to."""
    return UNDECLARED if place.stress is None else nearest_point(place.stress, grid)


def levels_of(grid: Sequence[float]) -> list[StressLevel]:
    """All stress levels that there can be, in the order of a sample's `level`: undeclared is the last."""
    return [*grid, UNDECLARED]


def at_levels(sample: EpisodeSample, levels: Iterable[int]) -> EpisodeSample:
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
    return EpisodeSample(task=task, **of_episodes, **of_windows)


def mix_weights(sample: EpisodeSample, like: EpisodeSample) -> Floats:
    """Weights that give a sample another's mix of stress levels (direct standardisation). Shape: (n,); mean 1.

    Both must be at the same levels. A version that was recorded under more stress is not worse for that.
    """
    most = 1 + int(max(sample.level.max(initial=0), like.level.max(initial=0)))
    own, other = np.bincount(sample.level, minlength=most), np.bincount(like.level, minlength=most)
    share = other / max(other.sum(), 1) * own.sum() / np.maximum(own, 1)
    return np.asarray(share[sample.level], dtype=np.float64)


def _key_of(summary: EpisodeSummary) -> tuple[str, str, str]:
    return summary.key.agent, summary.key.session, summary.key.episode


def _column(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _beta_ratios(seen: Sequence[EpisodeSummary], places: Sequence[StressPlace]) -> list[float | None]:
    """|l(rho(z)) - l(z)| / (|rho| + epsilon) of each episode; several references of a task are averaged."""
    clean: dict[str, list[float]] = defaultdict(list)
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


def _known(column: str) -> Callable[[EpisodeSample], Bools]:
    return lambda sample: ~np.isnan(getattr(sample, column))


def _of_known(column: str, statistic: Callable[[Floats, Floats], Floats]) -> Callable[[EpisodeSample, Floats], Floats]:
    def value(sample: EpisodeSample, weights: Floats) -> Floats:
        values = getattr(sample, column)
        known = ~np.isnan(values)
        return statistic(values[known], weights[:, known])

    return value


def _mean(column: str) -> Statistic:
    known = _known(column)

    def tested(sample: EpisodeSample) -> tuple[Ints, Floats]:
        return np.flatnonzero(known(sample)), getattr(sample, column)[known(sample)]

    return Statistic(_of_known(column, weighted_mean), known, tested)


def _window_length(sample: EpisodeSample, weights: Floats) -> Floats:
    count = weights @ sample.windows
    length: Floats = np.divide(weights @ sample.window_steps, count, out=np.full(len(weights), np.nan), where=count > 0)
    return length


def _beta_quantile(values: Floats, weights: Floats) -> Floats:
    return weighted_quantile(values, weights, UPPER_RANK)


STATISTICS: dict[str, Statistic] = {
    "success_rate": _mean("success"),
    "recovery_cost": _mean("recovery_cost"),
    "window_length": Statistic(
        _window_length, lambda sample: sample.windows > 0, lambda sample: (sample.episode_of_length, sample.lengths)
    ),
    "stability_loss": _mean("stability_loss"),
    "beta": Statistic(_of_known("beta", weighted_maximum), _known("beta"), None),
    "beta_p95": Statistic(_of_known("beta", _beta_quantile), _known("beta"), None),
}

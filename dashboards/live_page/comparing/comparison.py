"""The methods and versions of a family side by side, by the episodes that were seen live.

A figure of one of them is over its latest episodes that count, with the interval of tasks that are drawn anew (of
successes no narrower than Wilson's). What
differs between two of them is found as `springback compare` finds it, by the same code: at the stress levels that both
were run at, one's episodes weighted to the other's mix of levels, tasks that both ran as pairs. What keeps a difference
from meaning much (other stress, other tasks, too few of them) is said beside it.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from springback.dashboards.live_page.links import family_token
from springback.dashboards.live_page.page_parts import percent
from springback.stream_processors.metrics.figure_words import NOT_KNOWN, counted, stress_text
from springback.stream_processors.offline.comparison_contract import CONTRACT_SCHEMA_VERSION, VersionContract
from springback.stream_processors.offline.comparison_evidence import EpisodeCounts, Evidence, LevelEvidence, counts_of
from springback.stream_processors.offline.metric_changes import Episodes, MetricChange, ResampledPair
from springback.stream_processors.offline.resampling import CONFIDENCE, Interval, bootstrap, weighted_mean
from springback.stream_processors.offline.samples import EpisodeSample, StressLevel, levels_of, sample_of
from springback.stream_processors.offline.significance import corrected
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.families.sample_bounds import wilson_interval
from springback.stream_processors.resilience.readings import ContractThresholds, EpisodeSummary, FamilyReading

MOST_GROUPS = 20
"""Methods and versions of one family that are compared at a time."""

_CONTRACT = VersionContract(schema_version=CONTRACT_SCHEMA_VERSION, confidence=CONFIDENCE)
# Of margins alone, which are not compared here: a family's reading has them.
_NO_THRESHOLDS = ContractThresholds(progress=0.0, propositions=0.0, recovery=None, stability=None, safety=None)
_SEED = 0
_LEAST_TASKS = 2

Form = Callable[[float], str]
"""How a figure is written."""


class SeenGroup(NamedTuple):
    """A family, method and version, safe to be shown; the latest of its episodes; what is known of it, if anything."""

    names: tuple[str, ...]
    episodes: Sequence[EpisodeSummary]
    reading: FamilyReading | None


class Difference(NamedTuple):
    """What one of them has over another.

    Attributes:
        evidence: what it rests on.
        success, cost: how the share of successes and the mean recovery cost of an episode differ.
    """

    evidence: Evidence
    success: MetricChange
    cost: MetricChange

    @property
    def compared(self) -> list[LevelEvidence]:
        """The stress levels at which both have episodes that count."""
        return [level for level in self.evidence.levels if level.compared]


class GroupFigures(NamedTuple):
    """One method and version.

    Attributes:
        names: family, method and version.
        token: what stands for it in addresses.
        reading: the latest of it; None where none was read.
        counted: its latest episodes, by what became of them. Figures are over those that `ended`.
        tasks: how many tasks these are of.
        levels: how many of them were at each stress level.
        success, cost: their share of successes, and their mean recovery cost; None without an episode.
        scored: how many of them have a cost.
        difference: from the one that the others are held against; None for itself.
    """

    names: tuple[str, ...]
    token: str
    reading: FamilyReading | None
    counted: EpisodeCounts
    tasks: int
    levels: Mapping[StressLevel, int]
    success: Interval | None
    cost: Interval | None
    scored: int
    difference: Difference | None = None


def compare_groups(groups: Sequence[SeenGroup], base: str | None, config: AggregateConfig) -> list[GroupFigures]:
    """Their figures, in the order of their names, each with its difference from one of them.

    Args:
        groups: of one family; those after the first `MOST_GROUPS` are left out.
        base: the token of the one that the others are held against; the one of the most episodes where it is none.
        config: with the stress grid.
    """
    chosen = sorted(groups[:MOST_GROUPS], key=lambda group: group.names)
    if not chosen:
        return []
    tokens = [_token(group) for group in chosen]
    figures = [_figures(group, token, config) for group, token in zip(chosen, tokens, strict=True)]
    first = tokens.index(base) if base in tokens else max(range(len(chosen)), key=lambda n: figures[n].counted.ended)
    others = [number for number in range(len(chosen)) if number != first]
    differences = _tested([_difference(chosen[first], chosen[number], config) for number in others])
    for number, difference in zip(others, differences, strict=True):
        figures[number] = figures[number]._replace(difference=difference)
    return figures


def number(value: float) -> str:
    r"""A number, to two places.

    >>> number(1.234), number(-0.5)
    ('1.23', '\u22120.50')
    """
    return f"{value:,.2f}".replace("-", "\N{MINUS SIGN}")


def interval_words(figure: Interval | None, form: Form, episodes: int, tasks: int) -> tuple[str, str]:
    """A figure; and its interval, with on how many it rests.

    >>> interval_words(Interval(value=1.5, low=1.25, high=2.0), number, 12, 6)
    ('1.50', '1.25 to 2.00; 12 episodes of 6 tasks')
    >>> interval_words(Interval(value=1.5, low=None, high=None), number, 1, 1)
    ('1.50', 'no interval of one task; 1 episode of 1 task')
    """
    if figure is None:
        return NOT_KNOWN, ""
    rests = f"{counted(episodes, 'episode')} of {counted(tasks, 'task')}"
    if figure.low is None or figure.high is None:
        return form(figure.value), f"no interval of one task; {rests}"
    return form(figure.value), f"{form(figure.low)} to {form(figure.high)}; {rests}"


def mix_text(levels: Mapping[StressLevel, int]) -> str:
    """How many episodes were at each stress level.

    >>> mix_text({0.0: 12, 0.4: 3, "undeclared": 1})
    '0.0: 12, 0.4: 3, undeclared: 1'
    """
    return ", ".join(f"{_level_text(level)}: {number:,}" for level, number in levels.items())


def difference_sentences(base: str, other: str, difference: Difference) -> list[str]:
    """What differs, in words, and what that is worth.

    Args:
        base: the name of the one that is held against.
        other: the name of the one whose difference it is.
        difference: between them.
    """
    evidence, compared = difference.evidence, difference.compared
    told = []
    if not compared:
        told.append("They have no episodes that count at the same stress: nothing of them can be compared.")
    else:
        told.append(_change_sentence("Success", difference.success, percent))
        told.append(_change_sentence("Recovery cost", difference.cost, number))
        levels = ", ".join(_level_text(level.stress) for level in compared)
        told.append(f"At stress {levels}, where both have episodes, and by the mix of stress that {base} has there.")
        tasks = evidence.paired_tasks
        told.append(
            f"They share {counted(tasks, 'task')} at the same stress."
            if tasks
            else "They share no task at the same stress: what differs may be their tasks."
        )
    for name, which in ((base, "baseline"), (other, "candidate")):
        alone = [level for level in evidence.levels if not level.compared and getattr(level, which).ended]
        if alone:
            own = ", ".join(f"{_level_text(level.stress)} ({getattr(level, which).ended:,})" for level in alone)
            told.append(f"Left out are the episodes of {name} at stress {own}: the other has none there.")
        apart = [f"{n:,} {word}" for n, word in _uncounted(getattr(evidence, which)) if n]
        if apart:
            told.append(f"In no figure are {' and '.join(apart)} episodes of {name}.")
    return told


def _token(group: SeenGroup) -> str:
    family, method, version = group.names
    return family_token(
        group.reading or replace(group.episodes[0].traits, family=family, method=method, version=version)
    )


def _figures(group: SeenGroup, token: str, config: AggregateConfig) -> GroupFigures:
    sample = sample_of(group.episodes, (), config.grid)
    names = levels_of(config.grid)
    places = Counter(sample.level.tolist())
    scored = [value == value for value in sample.recovery_cost.tolist()]
    return GroupFigures(
        names=group.names,
        token=token,
        reading=group.reading,
        counted=counts_of(group.episodes),
        tasks=len(set(sample.task)),
        levels={names[place]: places[place] for place in sorted(places)},
        success=_no_narrower(_interval(sample, sample.success.tolist(), [True] * len(scored)), len(scored)),
        cost=_interval(sample, sample.recovery_cost.tolist(), scored),
        scored=sum(scored),
    )


def _interval(sample: EpisodeSample, values: Sequence[float], known: Sequence[bool]) -> Interval | None:
    of_task = [(task, value) for task, value, is_known in zip(sample.task, values, known, strict=True) if is_known]
    return bootstrap([value for _, value in of_task], [task for task, _ in of_task], weighted_mean, seed=_SEED)


def _no_narrower(share: Interval | None, episodes: int) -> Interval | None:
    """The interval of a share, reaching as far as Wilson's: where all succeed, so do they however tasks are drawn."""
    if share is None or share.low is None or share.high is None:
        return share
    low, high = wilson_interval(round(share.value * episodes), episodes)
    return replace(share, low=min(share.low, low), high=max(share.high, high))


def _difference(base: SeenGroup, other: SeenGroup, config: AggregateConfig) -> Difference:
    family, method, version = other.names
    before: Episodes = (list(base.episodes), [])
    after: Episodes = (list(other.episodes), [])
    pair = ResampledPair((family, f"{method} {version}"), before, after, _CONTRACT, _NO_THRESHOLDS, config)
    return Difference(pair.evidence, pair.change("success_rate"), pair.change("recovery_cost"))


def _tested(differences: Sequence[Difference]) -> list[Difference]:
    """The differences, with the p of each figure corrected for being several."""
    success = corrected([difference.success.tasks for difference in differences])
    cost = corrected([difference.cost.tasks for difference in differences])
    return [
        difference._replace(
            success=replace(difference.success, tasks=tested[0]), cost=replace(difference.cost, tasks=tested[1])
        )
        for difference, tested in zip(differences, zip(success, cost, strict=True), strict=True)
    ]


def _change_sentence(name: str, change: MetricChange, form: Form) -> str:
    if change.baseline is None or change.candidate is None:
        return f"{name} cannot be compared: it is not known of both."
    told = f"{name} {form(change.candidate)} against {form(change.baseline)}"
    tasks, low, high = change.tasks, change.low, change.high
    if tasks is None or min(tasks.first_tasks, tasks.second_tasks) < _LEAST_TASKS or low is None or high is None:
        return f"{told}, of too few tasks to tell it from chance."
    between = f"between {form(low)} and {form(high)}"
    p = "" if tasks.p is None else f" (p {tasks.p:.2g}, {'pairs of tasks' if tasks.paired else 'tasks unpaired'})"
    # Either of the two by itself is beyond its bound now and then by chance.
    if (low > 0 or high < 0) and tasks.p is not None and tasks.p <= 1 - CONFIDENCE:
        return f"{told}: {'higher' if low > 0 else 'lower'}, the difference {between}{p}."
    return f"{told}: that may be chance, the difference {between}{p}."


def _uncounted(counted: EpisodeCounts) -> Sequence[tuple[int, str]]:
    return (counted.aborted, "aborted"), (counted.provisional, "provisional")


def _level_text(level: StressLevel) -> str:
    return stress_text(None if isinstance(level, str) else level)

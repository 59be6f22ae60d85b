"""What a report stands on: where its episodes come from and when they were, the settings, and each family's contract.

The date of a report is that of its newest step, and not that of the clock: so the same recordings make the same bytes.
Where `SOURCE_DATE_EPOCH` is set, as builds that can be reproduced do, a report says that date too.
"""

import importlib.metadata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from springback.dashboards.evaluation_report.report_groups import ReportGroup
from springback.stream_processors.resilience.families.contract_config import AggregateConfig, AutoThresholds
from springback.stream_processors.resilience.families.operational_margin import Quantities
from springback.stream_processors.resilience.quantiles import quantile
from springback.stream_processors.resilience.readings import ContractThresholds, EpisodeSummary

LEARNED = "a baseline learned from the reference episodes of the recordings"
_BENEFITS = ("progress", "propositions")


class ReportOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """What a report is made of, and how.

    Attributes:
        sources: what the episodes were read from.
        version: of springback.
        baseline: what the steps were scored by.
        mapping: the mapping that the recordings were read by; None without one.
        value_model: what valued states; None where it was the mean return by anchor.
        settings: those of the core (`resilience` in a settings file), nested as they are there.
        changed: those that are not the defaults, by their dotted names.
        first_step_s, last_step_s: when the episodes began and ended, in seconds since 1970 (UTC); None without one.
        written_s: what the date of writing was set to; None where it was not.
    """

    sources: list[str] = []
    version: str = importlib.metadata.version("springback")
    baseline: str = LEARNED
    mapping: str | None = None
    value_model: str | None = None
    settings: dict[str, Any] = {}
    changed: dict[str, Any] = {}
    first_step_s: float | None = None
    last_step_s: float | None = None
    written_s: float | None = None


class Resolved(NamedTuple):
    """How `auto` found a threshold: `factor` times the `rank` quantile of the references, from `least` to `most`."""

    rank: float
    factor: float
    least: float
    most: float | None


class ContractRow(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a family's contract, and what its threshold rests on.

    Attributes:
        part: `progress`, `propositions`, `recovery`, `stability` or `safety`.
        asked: the number that the settings ask for; None is `auto`.
        threshold: what episodes are held to; None where nothing has measured it yet, so that it is left out.
        references: reference episodes seen to end, and not provisional, that have the quantity.
        usual: the `rank` quantile over them; `factor` times that is the threshold, but from `least` to `most`.
    """

    family: str
    part: str
    asked: float | None
    threshold: float | None
    references: int
    usual: float | None
    rank: float
    factor: float
    least: float
    most: float | None


def with_times(origin: ReportOrigin, summaries: Sequence[EpisodeSummary]) -> ReportOrigin:
    """The origin with when the episodes began and ended."""
    return msgspec.structs.replace(
        origin,
        first_step_s=min((summary.started_s for summary in summaries), default=None),
        last_step_s=max((summary.ended_s for summary in summaries), default=None),
    )


def changed_settings(settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that differ from the defaults, by their dotted names.

    >>> changed_settings({"window": {"k": 2, "h": 1}, "a": 3}, {"window": {"k": 1, "h": 1}, "a": 3})
    {'window.k': 2}
    """
    return dict(_changes("", settings, defaults))


def _changes(name: str, settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        before = defaults.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            yield from _changes(f"{name}{key}.", value, before)
        elif value != before:
            yield f"{name}{key}", value


def contract_rows(groups: Iterable[ReportGroup]) -> list[ContractRow]:
    """The parts of the contract of each family, by name; a family has one, whatever its methods and versions."""
    families: dict[str, list[ReportGroup]] = {}
    for group in groups:
        families.setdefault(group.identity[0], []).append(group)
    return [row for family, own in families.items() for row in _contract_rows(family, own)]


def _contract_rows(family: str, groups: Sequence[ReportGroup]) -> Iterator[ContractRow]:
    config = groups[0].config
    references = [
        Quantities.of(summary)
        for group in groups
        for summary in group.ended
        if summary.traits.reference and not summary.provisional
    ]
    held_to = next((group.reading.thresholds for group in groups if group.reading is not None), None)
    for part in Quantities._fields:
        known = [value for reference in references if (value := getattr(reference, part)) is not None]
        yield _contract_row(family, part, known, held_to, config)


def _contract_row(
    family: str, part: str, known: list[float], held_to: ContractThresholds | None, config: AggregateConfig
) -> ContractRow:
    resolved = _resolved(part, config.auto)
    asked = getattr(config.contract(family), part)
    return ContractRow(
        family=family,
        part=part,
        asked=None if asked == "auto" else asked,
        threshold=None if held_to is None else getattr(held_to, part),
        references=len(known),
        usual=quantile(known, resolved.rank) if known else None,
        **resolved._asdict(),
    )


def _resolved(part: str, auto: AutoThresholds) -> Resolved:
    if part in _BENEFITS:
        return Resolved(auto.benefit_rank, auto.benefit_factor, auto.benefit_floor, auto.benefit_most)
    return Resolved(auto.rank, auto.factor, getattr(auto, f"{part}_floor"), None)

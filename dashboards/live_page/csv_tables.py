"""The tables of the pages as CSV, whole: what is not known is empty, and times are UTC by the broker's clock.

Texts that a spreadsheet would run as a formula are made harmless (`spreadsheet_cells`); numbers stay numbers.
"""

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from springback.dashboards.live_page.fleet_rows import fleet_rows, natural_order
from springback.dashboards.live_page.fleet_view import FleetView
from springback.dashboards.spreadsheet_cells import harmless_text
from springback.sinks.fleet.fleet_state import clean_family
from springback.sinks.fleet.labels import clean_label_value
from springback.stream_processors.resilience.readings import (
    ChannelCosts,
    EpisodeKey,
    EpisodeTraits,
    FamilyReading,
)

if TYPE_CHECKING:
    from springback.dashboards.live_page.comparing.comparison import GroupFigures
    from springback.stream_processors.offline.resampling import Interval

Row = Mapping[str, Any]


def csv_text(rows: Iterable[Row], columns: Sequence[str]) -> str:
    r"""Rows as CSV (RFC 4180), each cell safe to be opened in a spreadsheet.

    >>> csv_text([{"agent": "=1+1", "cost": -2.5}, {"agent": "a,b", "cost": None}], ("agent", "cost"))
    'agent,cost\r\n\'=1+1,-2.5\r\n"a,b",\r\n'
    """
    written = io.StringIO()
    table = csv.writer(written)
    table.writerow(columns)
    for row in rows:
        table.writerow([_cell(row.get(column)) for column in columns])
    return written.getvalue()


def fleet_csv(view: FleetView, now_s: float) -> str:
    """Each agent, by name."""
    rows = sorted(fleet_rows(view, now_s), key=lambda row: natural_order(row.name))
    columns = (
        *("name", "state", "family", "method", "version", "progress", "intensity", "cost", "departure_step"),
        *("seen", "provisional"),
    )
    told = ({**row._asdict(), "seen": _time(row.seen_s)} for row in rows)
    return csv_text(told, columns)


def families_csv(view: FleetView) -> str:
    """Each family, method and version."""
    columns = (
        *("family", "method", "version", "episodes", "censored", "provisional_episodes", "success_rate", "completion"),
        *("mean_steps", "recovery_cost_mean", "stability_loss_mean", "capacity", "capacity_flag", "dependable"),
        *("tested_up_to", "first_breach", "live_stress", "stress_state", "contract_violated", "violations", "beta"),
        *("beta_p95", "pairs", "learning", "bound_references", "bound_references_needed", "updated"),
    )
    return csv_text((_family_row(family) for family in view.families()), columns)


def levels_csv(view: FleetView) -> str:
    """Each stress level of each family, method and version."""
    columns = (
        *("family", "method", "version", "stress", "state", "episodes", "provisional", "margin", "favourable_margin"),
        *("violations", "judged", "violation_low", "violation_high", "unmeasured"),
    )
    return csv_text((row for family in view.families() for row in _level_rows(family)), columns)


def windows_csv(view: FleetView) -> str:
    """The recent rebound windows over all agents, the newest first."""
    columns = (
        *("agent", "session", "episode", "window", *_TRAITS, "state", "cause", "departed", "departure_step"),
        *("alarm_step", "reentry_step", "length_steps", "length_s", "departure_mode", "lost_cycles", "peak"),
        *("recovery_cost", "cognitive_cost", "physical_cost", "debt_cost", "provisional"),
    )
    return csv_text(
        (
            {
                **_fields(window, columns),
                **_names(window.key, window.traits),
                **_costs(window.costs),
                "departure_mode": clean_label_value(window.departure_mode),
                "window": window.number,
                "departed": _time(window.departure_time_s - view.skew_s(window.key.agent)),
            }
            for window in view.windows()
        ),
        columns,
    )


def episodes_csv(view: FleetView) -> str:
    """The recent episodes over all agents that have ended, the newest first."""
    columns = (
        *("agent", "session", "episode", *_TRAITS, "outcome", "started", "ended", "steps", "unscored_steps"),
        *("missing_steps", "windows", "window_steps", "recovery_cost", "cognitive_cost", "physical_cost", "debt_cost"),
        *("lost_cycles", "final_progress", "final_propositions", "violation", "stability_loss", "interruptions", "gap"),
        *("joined", "extended", "unmoved", "off_rate", "provisional"),
    )
    return csv_text(
        (
            {
                **_fields(episode, columns),
                **_names(episode.key, episode.traits),
                **_costs(episode.costs),
                "started": _time(episode.started_s - view.skew_s(episode.key.agent)),
                "ended": _time(episode.ended_s - view.skew_s(episode.key.agent)),
            }
            for episode in view.episodes()
        ),
        columns,
    )


def compare_csv(groups: "Sequence[GroupFigures]") -> str:
    """The methods and versions of a family, with what each figure rests on and its difference from the first chosen."""
    interval = ("value", "low", "high")
    columns = (
        *("family", "method", "version", "ended", "aborted", "provisional", "tasks", "stress_mix"),
        *(f"success_{name}" for name in interval),
        *("scored", *(f"cost_{name}" for name in interval)),
        *("capacity", "capacity_flag", "dependable", "tested_up_to", "beta", "pairs", "learning"),
        *("success_difference", "success_p", "cost_difference", "cost_p", "shared_tasks"),
    )
    return csv_text(map(_compared_row, groups), columns)


_TRAITS = ("family", "method", "version", "task", "stress", "perturbation", "attack", "reference")
TABLES: Mapping[str, Callable[[FleetView, float], str]] = {
    "fleet": fleet_csv,
    "families": lambda view, _: families_csv(view),
    "levels": lambda view, _: levels_csv(view),
    "windows": lambda view, _: windows_csv(view),
    "episodes": lambda view, _: episodes_csv(view),
}
"""The tables that need no more than what is shown, by the names that they have in addresses."""


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return value if math.isfinite(value) else ""
    return harmless_text(value) if isinstance(value, str) else value


def _time(at_s: float | None) -> str | None:
    try:
        return None if at_s is None else datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None  # no time that there can be


def _fields(struct: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in names if hasattr(struct, name)}


def _names(key: EpisodeKey, traits: EpisodeTraits) -> dict[str, Any]:
    told = {**_fields(key, ("agent", "session", "episode")), **_fields(traits, _TRAITS)}
    named = {name: clean_label_value(value) if isinstance(value, str) else value for name, value in told.items()}
    return named | {"stress": traits.declared_stress}


def _costs(costs: ChannelCosts) -> dict[str, float]:
    return {"cognitive_cost": costs.cognitive, "physical_cost": costs.physical, "debt_cost": costs.debt}


def _family_row(family: FamilyReading) -> Row:
    names = dict(zip(("family", "method", "version"), clean_family(family), strict=True))
    told = {name: getattr(family, name) for name in family.__struct_fields__}
    return told | names | {"learning": family.learning, "updated": _time(family.updated_s)}


def _level_rows(family: FamilyReading) -> Iterable[Row]:
    names = dict(zip(("family", "method", "version"), clean_family(family), strict=True))
    for stress, level in family.levels:
        told = {name: getattr(level, name) for name in level.__struct_fields__}
        yield {
            **told,
            **names,
            "stress": "undeclared" if stress is None else stress,
            "judged": level.judged,
            "unmeasured": " ".join(level.unmeasured),
        }


def _interval_cells(name: str, interval: "Interval | None") -> dict[str, float | None]:
    found = (None, None, None) if interval is None else (interval.value, interval.low, interval.high)
    return {f"{name}_{part}": value for part, value in zip(("value", "low", "high"), found, strict=True)}


def _compared_row(group: "GroupFigures") -> Row:
    from springback.dashboards.live_page.comparing.comparison import mix_text

    reading, difference = group.reading, group.difference
    names = ("capacity", "capacity_flag", "dependable", "tested_up_to", "beta", "pairs", "learning")
    changes = {} if difference is None else {"success": difference.success, "cost": difference.cost}
    return {
        **dict(zip(("family", "method", "version"), group.names, strict=True)),
        **_fields(group.counted, ("ended", "aborted", "provisional")),
        **{"tasks": group.tasks, "stress_mix": mix_text(group.levels), "scored": group.scored},
        **_interval_cells("success", group.success),
        **_interval_cells("cost", group.cost),
        **({} if reading is None else {name: getattr(reading, name) for name in names}),
        **{f"{name}_difference": change.difference for name, change in changes.items()},
        **{f"{name}_p": None if change.tasks is None else change.tasks.p for name, change in changes.items()},
        "shared_tasks": None if difference is None else difference.evidence.paired_tasks,
    }

"""The flat tables of an evaluation: episodes, windows, families and levels, as data frames and CSV files hold them.

Both are made of the rows and columns here, so that they never differ. `columns.md` beside this file lists the columns:

    python -m springback.stream_processors.offline.flat_tables

writes it anew. Source: ours.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from springback.producers.install_hints import MissingExtraError
from springback.stream_processors.offline.tables import EpisodeJson, EvaluationJson, ResilienceJson

if TYPE_CHECKING:
    from pandas import DataFrame  # type: ignore[import-untyped]

REFERENCE = Path(__file__).with_name("columns.md")
TEXT, WHOLE, FIGURE, FLAG, INSTANT = "string", "Int64", "float64", "boolean", "datetime64[us, UTC]"
"""The kinds of columns, by the names that pandas has for them."""
_KINDS = {TEXT: "text", WHOLE: "whole number", FIGURE: "number", FLAG: "yes or no", INSTANT: "time (UTC)"}
Row = dict[str, Any]


class FlatColumn(NamedTuple):
    """A column: its name, its kind, and what it holds. A name that ends in `*` stands for all that begin so."""

    name: str
    kind: str
    meaning: str


class FlatTable(NamedTuple):
    """A table that an evaluation is written as.

    Attributes:
        name: what the frame is called.
        file: the name of its CSV file in a report.
        about: what a row is.
        columns: its columns, in order.
        rows: makes its rows, which have a value for each column; None where there is nothing to say.
    """

    name: str
    file: str
    about: str
    columns: tuple[FlatColumn, ...]
    rows: Callable[[EvaluationJson], Iterator[Row]]

    def columns_of(self, rows: Iterable[Row]) -> list[FlatColumn]:
        """The columns, with those that stand for several replaced by the ones that rows have."""
        names = sorted({name for row in rows for name in row})
        known = {column.name for column in self.columns}
        found: list[FlatColumn] = []
        for column in self.columns:
            if not column.name.endswith("*"):
                found.append(column)
                continue
            own = [name for name in names if name.startswith(column.name[:-1]) and name not in known]
            found += [column._replace(name=name) for name in own]
        return found

    def frame(self, evaluation: EvaluationJson) -> "DataFrame":
        """The table as a pandas data frame. The kinds of its columns do not depend on what they hold.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas
        except ModuleNotFoundError as error:
            raise MissingExtraError(extra="frames", cause=error) from error
        rows = list(self.rows(evaluation))
        return pandas.DataFrame(
            {
                column.name: pandas.Series([row.get(column.name) for row in rows], dtype=column.kind)
                for column in self.columns_of(rows)
            }
        )


def _instant(seconds: float | None) -> datetime | None:
    """Seconds since 1970 as an instant; None where nothing is known."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


_OF_AN_EPISODE = (
    FlatColumn("agent", TEXT, "the agent"),
    FlatColumn("session", TEXT, "one start of its producer"),
    FlatColumn("episode", TEXT, "the episode's id, unique within agent and session"),
)
_OF_A_GROUP = (
    FlatColumn("family", TEXT, "task family"),
    FlatColumn("method", TEXT, "method of the agent"),
    FlatColumn("version", TEXT, "version of the method; `evolution` where versions are the stress"),
)
_OF_A_RUN = (
    *_OF_A_GROUP,
    FlatColumn("task", TEXT, "the task: the same for its clean and its disturbed runs"),
    FlatColumn("reference", FLAG, "whether the episode is a clean one to learn from"),
    FlatColumn("stress", FIGURE, "declared stress λ, 0 to 1; empty is undeclared, which is not 0"),
    FlatColumn("perturbation", TEXT, "kind of the perturbation; `none` where undisturbed"),
    FlatColumn("attack", TEXT, "kind of the attack on a navigation episode; `none` without one"),
)
_COSTS_BY_CHANNEL = tuple(
    FlatColumn(f"cost_{channel}", FIGURE, f"its recovery cost by {words} alone; the three sum to more than the whole")
    for channel, words in (("cognitive", "thinking"), ("physical", "moving"), ("debt", "state debt"))
)


def _fields(known: EpisodeJson | ResilienceJson, columns: Iterable[FlatColumn]) -> Row:
    return {column.name: getattr(known, column.name) for column in columns}


def _episode_rows(evaluation: EvaluationJson) -> Iterator[Row]:
    for episode in evaluation.episodes:
        times = {"started": _instant(episode.started_s), "ended": _instant(episode.ended_s)}
        yield msgspec.structs.asdict(episode) | times | {"windows": len(episode.windows)}


EPISODES = FlatTable(
    "episodes",
    "episodes.csv",
    "An episode, in the order in which they ended.",
    (
        *_OF_AN_EPISODE,
        *_OF_A_RUN,
        FlatColumn("outcome", TEXT, "`success`, `failure`, or `aborted`, whose end was not seen"),
        FlatColumn("started", INSTANT, "time of its first step"),
        FlatColumn("ended", INSTANT, "time of its end"),
        FlatColumn("steps", WHOLE, "steps taken in"),
        FlatColumn("unscored_steps", WHOLE, "those of them that no baseline existed for"),
        FlatColumn("final_progress", FIGURE, "progress after its last step, 0 to 1"),
        FlatColumn("windows", WHOLE, "its closed rebound windows"),
        FlatColumn("recovery_cost", FIGURE, "C_rec (equation 3), no unit; empty where nothing of it could be scored"),
        FlatColumn("lost_cycles", FIGURE, "cycles lost in its windows"),
        FlatColumn("stability_loss", FIGURE, "stability loss (equation 5), no unit; empty where not known"),
        FlatColumn("beta_step", FIGURE, "mean step-to-step change of its terms; empty where not known"),
        FlatColumn(
            "contract_margin", FIGURE, "the monitor m_i (equation 7): below 0 it broke its contract; empty: not known"
        ),
        FlatColumn("interruptions", WHOLE, "cycles that reached the cap on time"),
        FlatColumn("gap", FLAG, "whether too many steps are missing in one place"),
        FlatColumn("joined", FLAG, "whether its beginning was not seen"),
        FlatColumn("extended", FLAG, "whether work was added while it ran"),
        FlatColumn("provisional", FLAG, "whether its family was still learning"),
        FlatColumn("bound_references", WHOLE, "references behind its family's alarm bounds when it ended"),
    ),
    _episode_rows,
)


def _window_rows(evaluation: EvaluationJson) -> Iterator[Row]:
    for episode in evaluation.episodes:
        for window in episode.windows:
            times = {
                "departure_time": _instant(window.departure_time_s),
                "reentry_time": _instant(window.reentry_time_s),
            }
            yield _fields(episode, (*_OF_AN_EPISODE, *_OF_A_RUN)) | msgspec.structs.asdict(window) | times


WINDOWS = FlatTable(
    "windows",
    "windows.csv",
    "A closed rebound window, by episode.",
    (
        *_OF_AN_EPISODE,
        FlatColumn("number", WHOLE, "counts the windows of the episode from 0"),
        *_OF_A_RUN,
        FlatColumn("state", TEXT, "`recovered`, `unrecovered` (the episode ended first), `censored` (no end was seen)"),
        FlatColumn("cause", TEXT, "`effort`, `delay` or `effort+delay`: what raised the alarm"),
        FlatColumn("departure_time", INSTANT, "time of the departure t_d"),
        FlatColumn("reentry_time", INSTANT, "time of the re-entry t_r"),
        FlatColumn("departure_step", WHOLE, "step of the departure"),
        FlatColumn("alarm_step", WHOLE, "step at which the alarm was raised"),
        FlatColumn("reentry_step", WHOLE, "step of the re-entry"),
        FlatColumn("length_steps", WHOLE, "steps from departure to re-entry"),
        FlatColumn("length_s", FIGURE, "seconds from departure to re-entry"),
        FlatColumn("recovery_cost", FIGURE, "C_rec of the window (equation 3), no unit"),
        *_COSTS_BY_CHANNEL,
        FlatColumn("lost_cycles", FIGURE, "cycles lost in it"),
        FlatColumn("peak", FIGURE, "the largest g in it, no unit"),
        FlatColumn("provisional", FLAG, "whether its family was still learning"),
    ),
    _window_rows,
)

_MAPPINGS = ("thresholds", "beta_by_kind", "unpaired", "navigation")


def _family_rows(evaluation: EvaluationJson) -> Iterator[Row]:
    for group in evaluation.resilience:
        row = {name: value for name, value in msgspec.structs.asdict(group).items() if name not in _MAPPINGS}
        for name in _MAPPINGS:
            row |= _spread(name, msgspec.to_builtins(getattr(group, name)))
        yield row


def _spread(name: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What is in a mapping, as columns."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _spread(f"{name}_{key}", value)
        else:
            yield f"{name}_{key}", value


FAMILIES = FlatTable(
    "families",
    "resilience.csv",
    "A family, method and version, and what it withstands.",
    (
        *_OF_A_GROUP,
        FlatColumn("episodes", WHOLE, "episodes seen to end"),
        FlatColumn("censored", WHOLE, "episodes whose end was not seen; no figure counts them"),
        FlatColumn("provisional", WHOLE, "episodes that ended while the family was learning; no margin counts them"),
        FlatColumn("bound_references", WHOLE, "references behind its alarm bounds"),
        FlatColumn("bound_references_needed", WHOLE, "how many it takes not to be learning any more"),
        FlatColumn("success_rate", FIGURE, "share of the episodes seen to end that are successes, clean and disturbed"),
        FlatColumn("spl", FIGURE, "success weighted by path, over every kind of attack"),
        FlatColumn("sel", FIGURE, "success weighted by actions, over every kind of attack"),
        FlatColumn("goal_completion", FIGURE, "share of goals met, over every kind of attack"),
        FlatColumn("beta", FIGURE, "β (equation 6); empty without a pair"),
        FlatColumn("beta_p95", FIGURE, "the 0.95 quantile over the pairs"),
        FlatColumn("beta_difference", FIGURE, "the change of stability loss of the pair that gives β"),
        FlatColumn(
            "stability_repeatability", FIGURE, "how much clean runs of one task differ in it, in 19 of 20 cases"
        ),
        FlatColumn("beta_by_kind_*", FIGURE, "β by the kind of perturbation"),
        FlatColumn("beta_unpaired", FIGURE, "the same ratio against the mean loss of all references"),
        FlatColumn("pairs", WHOLE, "pairs that β is over"),
        FlatColumn("unpaired_*", WHOLE, "disturbed episodes in no pair, by why"),
        FlatColumn("capacity", FIGURE, "λ* (equation 10)"),
        FlatColumn("capacity_flag", TEXT, "what it rests on: `ok`, `open` (not tested above), `none`, `insufficient`"),
        FlatColumn("dependable", FIGURE, "dependable capacity; empty where none, or not known"),
        FlatColumn("tested_up_to", FIGURE, "the largest stress with enough episodes"),
        FlatColumn("first_breach", FIGURE, "the smallest such stress whose margin is negative"),
        FlatColumn("audc", FIGURE, "area under the curve of M + 1, by its width"),
        FlatColumn("audc_from", FIGURE, "the stress that it begins at"),
        FlatColumn("audc_to", FIGURE, "the stress that it ends at"),
        FlatColumn("cliff", FIGURE, "the first stress at which M falls by more than 1 per unit of stress"),
        FlatColumn(
            "contract_violated", FLAG, "whether surely too many episodes break the contract; empty where not known"
        ),
        FlatColumn("thresholds_progress", FIGURE, "the least final progress that its contract asks for"),
        FlatColumn("thresholds_propositions", FIGURE, "the least final share of goal propositions"),
        FlatColumn("thresholds_recovery", FIGURE, "the largest recovery cost; empty where nothing has measured it"),
        FlatColumn("thresholds_stability", FIGURE, "the largest stability loss; empty where nothing has measured it"),
        FlatColumn("thresholds_safety", FIGURE, "the largest violation load; empty where nothing has measured it"),
        FlatColumn("navigation_*", FIGURE, "episodes and scores by kind of attack; `all` over every kind"),
    ),
    _family_rows,
)


def _level_rows(evaluation: EvaluationJson) -> Iterator[Row]:
    for group in evaluation.resilience:
        for stress, level in group.levels:
            told = {"stress": stress, "declared": stress is not None}
            yield _fields(group, _OF_A_GROUP) | msgspec.structs.asdict(level) | told


_ENTRY = "the entry of {} in M: what was reached against what is asked, at most the cap; empty where not measured"
LEVELS = FlatTable(
    "levels",
    "margins.csv",
    "A stress level of a family, method and version, and what it shows.",
    (
        *_OF_A_GROUP,
        FlatColumn("stress", FIGURE, "the level λ, a point of the stress grid; empty for undeclared stress"),
        FlatColumn("declared", FLAG, "whether its episodes declared their stress"),
        FlatColumn("episodes", WHOLE, "episodes that its margin rests on"),
        FlatColumn("provisional", WHOLE, "episodes besides, of a family that was learning: they count in violations"),
        FlatColumn("margin", FIGURE, "M (equation 9): below 0 is outside the contract; empty where not known"),
        FlatColumn("favourable_margin", FIGURE, "M by the most favourable quantiles that so few episodes allow"),
        FlatColumn("state", TEXT, "`kept`, `broken`, `undecided` or `insufficient`"),
        FlatColumn("violations", WHOLE, "episodes that broke the contract, provisional ones too"),
        FlatColumn("violation_low", FIGURE, "lower end of the 95 % interval of their share"),
        FlatColumn("violation_high", FIGURE, "upper end of it"),
        *(
            FlatColumn(name, FIGURE, _ENTRY.format(words))
            for name, words in (
                ("progress", "progress"),
                ("propositions", "goal propositions"),
                ("recovery", "recovery cost"),
                ("stability", "stability loss"),
                ("safety", "violations"),
            )
        ),
    ),
    _level_rows,
)

FLAT_TABLES: Sequence[FlatTable] = (EPISODES, WINDOWS, FAMILIES, LEVELS)
"""All of them."""


def column_reference() -> str:
    """What `columns.md` says."""
    lines = [
        "# Columns of an evaluation",
        "",
        "<!-- Written by `python -m springback.stream_processors.offline.flat_tables`: do not edit. -->",
        "",
        "The data frames of `springback.evaluate(…)` and the CSV files of `springback evaluate --report` have the same",
        "columns. An empty cell (missing in a frame) is unknown, or does not apply; it is never 0. A time is UTC,",
        "in CSV as `2026-11-30T08:00:01.250Z`. A text that a spreadsheet would run as a formula begins with `'` there.",
    ]
    for table in FLAT_TABLES:
        lines += ["", f"## `{table.name}_frame()`, `{table.file}`", "", table.about, ""]
        lines += ["| column | kind | what it holds |", "|---|---|---|"]
        lines += [f"| `{column.name}` | {_KINDS[column.kind]} | {column.meaning} |" for column in table.columns]
    return "\n".join([*lines, ""])


def main() -> int:
    """Writes the reference."""
    REFERENCE.write_text(column_reference(), encoding="utf-8")
    print(f"Written: {REFERENCE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The files of a report: `report.html`, `report.json`, and the tables as CSV."""

import csv
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from springback.dashboards.evaluation_report.report_numbers import Progress, ReportNumbers
from springback.dashboards.evaluation_report.report_page import report_page

PAGE, NUMBERS = "report.html", "report.json"
# A spreadsheet takes a cell that begins like this for a formula, and names come from whoever sends steps.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_report(
    directory: Path, numbers: ReportNumbers, progress: Progress = lambda what, done, total: None
) -> list[Path]:
    """Writes a report into a directory, which is made if it is missing; an earlier report in it is replaced.

    Raises:
        OSError: a file cannot be written.
    """
    texts = {PAGE: report_page(numbers, progress), NUMBERS: json_text(numbers), **csv_texts(numbers)}
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        _replace(directory / name, text)
    return [directory / name for name in texts]


def json_text(numbers: ReportNumbers) -> str:
    """All numbers as JSON."""
    return msgspec.json.format(msgspec.json.encode(numbers), indent=1).decode() + "\n"


def csv_texts(numbers: ReportNumbers) -> dict[str, str]:
    """The tables by the names of their files. An interval is three columns: the figure, `_low` and `_high`."""
    evaluation = numbers.evaluation
    windows = [
        {"agent": episode.agent, "session": episode.session, "episode": episode.episode, **msgspec.to_builtins(window)}
        for episode in evaluation.episodes
        for window in episode.windows
    ]
    margins = [
        {
            "family": row.family,
            "method": row.method,
            "version": row.version,
            "stress": "undeclared",
            **msgspec.to_builtins(level),
        }
        for row in evaluation.resilience
        for level in (*row.margins, row.undeclared)
        if level is not None
    ]
    tables: dict[str, Sequence[Any]] = {
        "groups.csv": numbers.groups,
        "stresses.csv": numbers.stresses,
        "channels.csv": numbers.channels,
        "signatures.csv": numbers.signatures,
        "resilience.csv": [_without(row, "margins", "undeclared") for row in evaluation.resilience],
        "margins.csv": margins,
        "episodes.csv": [_without(episode, "windows") for episode in evaluation.episodes],
        "windows.csv": windows,
    }
    return {name: _csv(rows) for name, rows in tables.items()}


def _without(row: msgspec.Struct, *fields: str) -> dict[str, Any]:
    return {name: value for name, value in msgspec.to_builtins(row).items() if name not in fields}


def _csv(rows: Sequence[Any]) -> str:
    flat = [dict(_flat("", msgspec.to_builtins(row))) for row in rows]
    columns = list(dict.fromkeys(column for row in flat for column in row))
    written = io.StringIO()
    table = csv.DictWriter(written, columns, restval="", lineterminator="\n")
    if columns:
        table.writeheader()
    table.writerows(flat)
    return written.getvalue()


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A nested value as columns; the `value` of an interval has the column of the interval itself."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _flat(name if key == "value" else f"{name}_{key}" if name else key, part)
    elif isinstance(value, str) and value.startswith(_FORMULA):
        yield name, f"'{value}"
    else:
        yield name, value


def _replace(path: Path, text: str) -> None:
    """Writes a file so that a reader never sees half of it."""
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text, encoding="utf-8", newline="")
    os.replace(draft, path)

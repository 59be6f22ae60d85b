"""The files of a report: `report.html`, `report.json`, and the tables as CSV."""

import csv
import io
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from springback.dashboards.evaluation_report.report_numbers import Progress, ReportNumbers
from springback.dashboards.evaluation_report.report_page import report_page
from springback.dashboards.spreadsheet_cells import harmless_text
from springback.producers.whole_file import write_whole
from springback.stream_processors.offline.flat_tables import FLAT_TABLES, FlatTable
from springback.stream_processors.offline.tables import EvaluationJson

PAGE, NUMBERS = "report.html", "report.json"


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
        write_whole(directory / name, text)
    return [directory / name for name in texts]


def json_text(numbers: ReportNumbers) -> str:
    """All numbers as JSON."""
    return msgspec.json.format(msgspec.json.encode(numbers), indent=1).decode() + "\n"


def csv_texts(numbers: ReportNumbers) -> dict[str, str]:
    """The tables by the names of their files. An interval is three columns: the figure, `_low` and `_high`."""
    tables: dict[str, Sequence[msgspec.Struct]] = {
        "contracts.csv": numbers.contracts,
        "outcomes.csv": numbers.outcomes,
        "groups.csv": numbers.groups,
        "stresses.csv": numbers.stresses,
        "channels.csv": numbers.channels,
        "signatures.csv": numbers.signatures,
    }
    return {
        **{name: _csv([dict(_flat("", msgspec.to_builtins(row))) for row in rows]) for name, rows in tables.items()},
        **{table.file: _flat_csv(table, numbers.evaluation) for table in FLAT_TABLES},
    }


def _flat_csv(table: FlatTable, evaluation: EvaluationJson) -> str:
    rows = list(table.rows(evaluation))
    columns = [column.name for column in table.columns_of(rows)]
    return _csv([{name: _cell(row.get(name)) for name in columns} for row in rows], columns)


def _csv(rows: Sequence[dict[str, Any]], columns: Sequence[str] = ()) -> str:
    columns = columns or list(dict.fromkeys(column for row in rows for column in row))
    written = io.StringIO()
    table = csv.DictWriter(written, columns, restval="", lineterminator="\n")
    if columns:
        table.writeheader()
    table.writerows(rows)
    return written.getvalue()


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A nested value as columns; the `value` of an interval has the column of the interval itself."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _flat(name if key == "value" else f"{name}_{key}" if name else key, part)
    else:
        yield name, _cell(value)


def _cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return harmless_text(value) if isinstance(value, str) else value

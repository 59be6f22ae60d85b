"""The files of a report: the tables and the JSON hold the same numbers, and a spreadsheet runs no name as a formula."""

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from springback.dashboards.evaluation_report.report_files import NUMBERS, PAGE, csv_texts, json_text, write_report
from tests.dashboards.evaluation_report.report_readings import fleet, numbers_of, summary_of


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def same(cell: str, value: Any) -> bool:
    if value is None:
        return cell == ""
    return float(cell) == value if isinstance(value, float) else cell == str(value)


def test_a_report_is_a_page_its_numbers_and_tables(tmp_path: Path) -> None:
    numbers = numbers_of(list(fleet(["navigation"], ["one"])))
    seen: list[tuple[str, int, int]] = []
    written = write_report(
        tmp_path / "new" / "report", numbers, lambda what, done, total: seen.append((what, done, total))
    )
    assert {path.name for path in written} == set(os.listdir(tmp_path / "new" / "report"))
    assert {PAGE, NUMBERS} <= {path.name for path in written}
    assert seen[-1] == ("Plots", 5, 5)
    texts = csv_texts(numbers) | {NUMBERS: json_text(numbers)}
    for path in written:
        assert path.name == PAGE or path.read_text(encoding="utf-8") == texts[path.name]


def test_the_tables_hold_what_the_json_holds() -> None:
    numbers = numbers_of(list(fleet()))
    document, texts = json.loads(json_text(numbers)), csv_texts(numbers)

    def table(name: str) -> list[dict[str, str]]:
        return rows_of(texts[f"{name}.csv"])

    for name in ("stresses", "groups", "channels", "signatures", "outcomes", "contracts"):
        rows = table(name)
        assert len(rows) == len(document[name])
        for row, expected in zip(rows, document[name], strict=True):
            for column, value in expected.items():
                if not isinstance(value, dict):
                    assert column not in row or same(row[column], value)
                for part, of_part in value.items() if isinstance(value, dict) else ():
                    assert same(row[column if part == "value" else f"{column}_{part}"], of_part)
    evaluation = document["evaluation"]
    assert [row["margin"] for row in table("margins")] == [
        "" if margin["margin"] is None else str(margin["margin"])
        for resilience in evaluation["resilience"]
        for margin in resilience["margins"]
    ]
    assert len(table("episodes")) == len(evaluation["episodes"])
    assert len(table("windows")) == sum(len(episode["windows"]) for episode in evaluation["episodes"])
    assert [float(row["capacity"]) for row in table("resilience")] == [r["capacity"] for r in evaluation["resilience"]]


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@cmd", "\tx", "\N{FULLWIDTH EQUALS SIGN}1+1"])
def test_a_name_is_no_formula(name: str) -> None:
    [row] = rows_of(csv_texts(numbers_of([summary_of("1", family=name)]))["episodes.csv"])
    assert row["family"] == f"'{name}"
    assert row["recovery_cost"] == "0.0"


def test_an_earlier_report_is_replaced_and_nothing_is_left_over(tmp_path: Path) -> None:
    write_report(tmp_path, numbers_of([]))
    empty = (tmp_path / PAGE).read_bytes()
    write_report(tmp_path, numbers_of([summary_of("1", None)]))
    assert (tmp_path / PAGE).read_bytes() != empty
    assert not list(tmp_path.glob(".*"))

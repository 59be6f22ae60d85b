"""The tables of an evaluation as data frames and CSV: one source of rows and columns, and values worked out by hand."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta

import msgspec
import pandas  # type: ignore[import-untyped]
import pytest

from springback.dashboards.evaluation_report.report_files import csv_texts
from springback.dashboards.evaluation_report.report_numbers import report_numbers
from springback.stream_processors.offline.evaluation import Evaluation, evaluate_frames
from springback.stream_processors.offline.flat_tables import (
    EPISODES,
    FAMILIES,
    FLAT_TABLES,
    REFERENCE,
    FlatTable,
    column_reference,
)
from springback.stream_processors.offline.tables import EvaluationJson
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import NavigationScores
from tests.bare_install import BASE, OF_THE_COMMAND_LINE, run_with
from tests.stream_processors.frame_builders import START_S, frame_of, nominal_rows

STARTED = datetime.fromtimestamp(START_S, UTC)
NOTHING = EvaluationJson(families=[], resilience=[], episodes=[])
ASK = """
from springback.stream_processors.offline.flat_tables import EPISODES
from springback.stream_processors.offline.tables import EvaluationJson
try:
    EPISODES.frame(EvaluationJson(families=[], resilience=[], episodes=[]))
except ImportError as error:
    print(json.dumps(str(error)))
"""


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    """Six even references of twenty seconds, and one run that toils in its eighth step and says no stress."""
    rows = nominal_rows(0, 20)
    rows[7] |= {"travel": 9.0, "risk": 1.0}
    references = [frame_of(nominal_rows(0, 20), "success", episode=f"r{i}", reference=True) for i in range(6)]
    hurt = frame_of(rows, "failure", episode="hurt", task="mug", method="careful", version="2", perturbation="physical")
    return evaluate_frames([*references, hurt], ResilienceConfig())


def test_an_episode_says_who_what_and_when(evaluation: Evaluation) -> None:
    frame = evaluation.episodes_frame()
    assert list(frame.episode) == [*(f"r{i}" for i in range(6)), "hurt"]
    hurt = frame.set_index("episode").loc["hurt"]
    assert (hurt.family, hurt.method, hurt.version, hurt.task) == ("navigation", "careful", "2", "mug")
    assert (hurt.outcome, hurt.steps, hurt.windows, hurt.perturbation) == ("failure", 20, 1, "physical")
    assert pandas.isna(hurt.stress)  # undeclared, which is not 0
    assert hurt.started == STARTED
    assert hurt.ended == STARTED + timedelta(seconds=19)
    assert hurt.final_progress == 1.0
    assert hurt.recovery_cost > 0
    calm = frame[frame.reference]
    assert (calm.recovery_cost == 0).all()
    assert (calm.stress == 0).all()


def test_a_window_carries_its_episode_and_its_times(evaluation: Evaluation) -> None:
    [window] = evaluation.windows_frame().itertuples()
    assert (window.agent, window.session, window.episode, window.number) == ("robot-7", "boot", "hurt", 0)
    assert (window.family, window.method, window.version, window.task) == ("navigation", "careful", "2", "mug")
    assert window.departure_step == 7
    assert window.departure_time == STARTED + timedelta(seconds=7)
    assert window.reentry_step == 8
    assert window.reentry_time == STARTED + timedelta(seconds=8)
    assert (window.length_steps, window.length_s) == (2, 2.0)
    [reading] = evaluation.windows
    assert (window.recovery_cost, window.cost_physical) == (reading.recovery_cost, reading.costs.physical)


def test_families_and_levels_name_what_is_undeclared_and_spread_what_is_nested(evaluation: Evaluation) -> None:
    families = evaluation.families_frame().set_index("method")
    assert list(families.index) == ["careful", "default"]
    assert list(families.provisional) == [1, 6]  # six references are too few: the family is learning
    assert families.loc["default", "thresholds_progress"] == 0.5  # 0.9 of 1, and no more than a half
    levels = evaluation.levels_frame()
    [undeclared] = levels[~levels.declared].itertuples()
    assert (undeclared.method, undeclared.episodes, undeclared.provisional) == ("careful", 0, 1)
    assert pandas.isna(undeclared.stress)
    assert list(levels[levels.method == "default"].stress) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]


def test_what_is_nested_becomes_columns_of_its_own(evaluation: Evaluation) -> None:
    family = evaluation.document.resilience[0]
    pairs = msgspec.structs.replace(
        family,
        beta_by_kind={"physical": 2.5},
        unpaired={"no_twin": 3},
        navigation={"all": NavigationScores(episodes=4, spl=0.5)},
    )
    [row] = FAMILIES.frame(msgspec.structs.replace(NOTHING, resilience=[pairs])).itertuples()
    assert (row.beta_by_kind_physical, row.unpaired_no_twin) == (2.5, 3)
    assert (row.navigation_all_episodes, row.navigation_all_spl) == (4, 0.5)
    assert pandas.isna(row.navigation_all_sel)


@pytest.mark.parametrize("table", FLAT_TABLES, ids=lambda table: table.name)
def test_a_csv_file_has_the_columns_and_values_of_the_frame(table: FlatTable, evaluation: Evaluation) -> None:
    numbers = report_numbers(evaluation.summaries, evaluation.windows, evaluation.families, evaluation.contract_margins)
    frame = getattr(evaluation, f"{table.name}_frame")()
    written = csv_texts(numbers)[table.file]
    rows = list(csv.DictReader(io.StringIO(written)))
    assert list(frame.columns) == list(rows[0])
    read = pandas.read_csv(io.StringIO(written), dtype={c.name: c.kind for c in table.columns if c.kind == "string"})
    assert len(read) == len(frame) > 0
    for name in frame.columns:
        for cell, value in zip(read[name], frame[name], strict=True):
            if pandas.isna(value):
                assert pandas.isna(cell)
            elif isinstance(value, datetime):
                assert datetime.fromisoformat(cell) == value
            else:
                assert cell == value


@pytest.mark.parametrize("table", FLAT_TABLES, ids=lambda table: table.name)
def test_the_kinds_of_columns_do_not_depend_on_what_they_hold(table: FlatTable, evaluation: Evaluation) -> None:
    full, empty = table.frame(evaluation.document), table.frame(NOTHING)
    assert len(empty) == 0
    assert [c.name for c in table.columns if not c.name.endswith("*")] == list(empty.columns)
    assert dict(empty.dtypes) == {name: full.dtypes[name] for name in empty.columns}


@pytest.mark.parametrize("table", FLAT_TABLES, ids=lambda table: table.name)
def test_every_column_is_in_some_row_and_no_row_has_one_that_is_not_told(
    table: FlatTable, evaluation: Evaluation
) -> None:
    rows = list(table.rows(evaluation.document))
    plain = {column.name for column in table.columns if not column.name.endswith("*")}
    patterns = tuple(column.name[:-1] for column in table.columns if column.name.endswith("*"))
    made = {name for row in rows for name in row}
    assert plain <= made
    # What is left out of a table on purpose: times in seconds, which it has as times, and what is nested.
    hidden = {"started_s", "ended_s", "departure_time_s", "reentry_time_s", "margins", "undeclared"}
    assert {name for name in made - plain - hidden if not name.startswith(patterns or ("\0",))} == set()


def test_a_file_from_before_there_were_times_has_none(evaluation: Evaluation) -> None:
    document = json.loads(evaluation.json())
    for episode in document["episodes"]:
        del episode["started_s"], episode["ended_s"], episode["final_progress"], episode["attack"]
    older = EPISODES.frame(msgspec.convert(document, EvaluationJson))
    assert older.started.isna().all()
    assert older.final_progress.isna().all()
    assert set(older.attack) == {"none"}


def test_the_reference_of_columns_is_what_the_tables_say() -> None:
    told = "columns.md is not what the tables say; run: python -m springback.stream_processors.offline.flat_tables"
    assert REFERENCE.read_text(encoding="utf-8") == column_reference(), told


def test_without_pandas_it_says_what_to_install() -> None:
    done = run_with((*BASE, *OF_THE_COMMAND_LINE), ASK)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told.startswith("pandas is not installed; this part needs it: ")
    assert "[frames]'" in told

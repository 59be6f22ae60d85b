from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.producers.contract.columns import ABSENT
from springback.producers.contract.frame import EpisodeEnd, EpisodeHeader, NavigationOutcome, StepFrame, TextColumn
from springback.stream_processors.intake.step_table import ArrivedFrame, RejectedRow, StepTable
from springback.stream_processors.intake.validation import tabulate

NOW = 1_790_000_000.0
HEADER = EpisodeHeader(agent="r", episode="1", family="f")


def frame_of(
    episodes: tuple[EpisodeHeader, ...] = (HEADER,), ends: tuple[EpisodeEnd, ...] = (), **columns: Any
) -> StepFrame:
    rows = max((len(column) for column in columns.values()), default=1)
    given_columns: dict[str, Any] = {
        "episode": np.zeros(rows, dtype=np.int64),
        "step": np.arange(rows),
        "progress": np.linspace(0.0, 0.9, rows),
    }
    for name, cells in columns.items():
        if isinstance(cells[0], str):
            given_columns[name] = TextColumn.of(cells)
        else:
            given_columns[name] = np.array(cells, dtype=np.int64 if name in ("episode", "step") else np.float64)
    return StepFrame(producer="p", session="s", episodes=episodes, steps=given_columns, ends=ends)


def table_of(*frames: StepFrame) -> StepTable:
    return tabulate([ArrivedFrame(frame, NOW) for frame in frames])


def reasons(rejected: list[RejectedRow]) -> list[tuple[int, Any, str]]:
    return [(row.frame, row.row.get("step"), row.reason) for row in rejected]


def test_no_frames_make_an_empty_table() -> None:
    table = tabulate([])
    assert len(table) == 0
    assert table.mode_names == []
    assert len(table_of(StepFrame(producer="p", session="s", episodes=(HEADER,)))) == 0


def test_what_is_left_out_takes_its_default() -> None:
    table = table_of(frame_of(progress=[0.25]))
    assert table.propositions.tolist() == [0.25]
    for loads in (table.planning_s, table.perception_s, table.travel, table.retries, table.risk, table.violation):
        assert loads.tolist() == [0.0]
    for scores in (table.judge_goal, table.judge_rationality, table.judge_efficiency, table.cycle_time_s):
        assert np.isnan(scores).all()
    assert [table.mode_names[code] for code in table.mode] == ["run"]
    assert table.episodes[0].header.traits().task == "1"
    assert table.time_s.tolist() == [NOW]
    assert table.clocked.tolist() == [False]


def test_absent_cells_take_the_same_defaults_as_absent_columns() -> None:
    table = table_of(
        frame_of(travel=[ABSENT, 2.0], propositions=[ABSENT, 0.5], judge_goal=[ABSENT, 1.0], time_s=[ABSENT, NOW]),
        frame_of(progress=[0.5]),
    )
    assert table.travel.tolist() == [0.0, 2.0, 0.0]
    assert table.propositions.tolist() == [0.0, 0.5, 0.5]
    np.testing.assert_array_equal(table.judge_goal, [np.nan, 1.0, np.nan])
    assert not table.rejected


@pytest.mark.parametrize(
    ("column", "bad", "reason"),
    [
        ("progress", 1.01, "out_of_range"),
        ("progress", -1e-3, "out_of_range"),
        ("progress", np.nan, "not_finite"),
        ("progress", ABSENT, "missing"),
        ("propositions", 2.0, "out_of_range"),
        ("judge_goal", -0.5, "out_of_range"),
        ("travel", np.nan, "not_finite"),
        ("travel", np.inf, "not_finite"),
        ("retries", -1.0, "out_of_range"),
        ("risk", 1e200, "out_of_range"),
        ("time_s", np.nan, "not_finite"),
        ("time_s", -np.inf, "not_finite"),
        ("cycle_time_s", 0.0, "out_of_range"),
        ("cycle_time_s", -0.5, "out_of_range"),
        ("cycle_time_s", np.nan, "not_finite"),
        ("step", -1, "out_of_range"),
        ("step", 2**60, "out_of_range"),
        ("episode", 1, "unknown_episode"),
        ("episode", -1, "out_of_range"),
        ("mode", "m" * 65, "too_long"),
        ("action", "a" * 257, "too_long"),
        ("feedback", "f" * 257, "too_long"),
    ],
)
def test_a_bad_value_costs_its_row_alone(column: str, bad: Any, reason: str) -> None:
    good: Any = {"step": 5, "episode": 0, "mode": "m" * 64, "action": "a" * 256, "feedback": "f" * 256}.get(column, 0.5)
    good = NOW if column == "time_s" else good
    cells: dict[str, Any] = {column: [good, bad, good]}
    table = table_of(frame_of(), frame_of(**cells), frame_of())
    assert [(row.frame, row.reason) for row in table.rejected] == [(1, reason)]
    assert column in table.rejected[0].detail
    assert [table.episodes[place].frame for place in table.episode] == [0, 1, 1, 2]


def test_rounding_past_the_ends_of_a_share_is_clipped() -> None:
    table = table_of(frame_of(progress=[1.0 + 1e-10, -1e-10], judge_goal=[1.0 + 1e-10, 0.5]))
    assert table.progress.tolist() == [1.0, 0.0]
    assert table.judge_goal.tolist() == [1.0, 0.5]


def test_rejected_row_shows_its_own_values() -> None:
    frame = frame_of(progress=[0.5, np.inf], travel=[1.0, ABSENT], mode=["go", "stop"])
    (row,) = table_of(frame).rejected
    assert row.row == {"episode": 0, "step": 1, "progress": "Infinity", "travel": None, "mode": "stop"}


def test_rows_are_ordered_by_frame_episode_and_step_and_duplicates_stay() -> None:
    second = EpisodeHeader(agent="r", episode="2", family="f")
    frame = frame_of(
        (HEADER, second), episode=[1, 0, 1, 0, 0], step=[4, 9, 3, 2, 9], travel=[1.0, 2.0, 3.0, 4.0, 5.0],
    )  # fmt: skip
    table = table_of(frame_of(progress=[0.0]), frame)
    assert table.episode.tolist() == [0, 1, 1, 1, 2, 2]
    assert table.step.tolist() == [0, 2, 9, 9, 3, 4]
    assert table.travel.tolist() == [0.0, 4.0, 2.0, 5.0, 3.0, 1.0]


def test_order_holds_where_rows_are_taken_out() -> None:
    table = table_of(frame_of(step=[3, 2, 1], progress=[0.3, np.nan, 0.1]))
    assert table.step.tolist() == [1, 3]
    assert table.progress.tolist() == [0.1, 0.3]


def test_implausible_times_are_replaced_and_counted() -> None:
    booted_in_2000, first_of_2001 = 946_684_900.0, 978_307_200.0
    times = [0.0, booted_in_2000, NOW * 1e3, NOW * 1e9, NOW + 86_401, NOW + 86_399, first_of_2001, ABSENT]
    table = table_of(frame_of(time_s=[NOW]), frame_of(time_s=times))
    assert table.replaced_times.tolist() == [0, 5]
    assert table.clocked.tolist() == [True] + [False] * 5 + [True, True, False]
    assert table.time_s.tolist() == [NOW] + [NOW] * 5 + [NOW + 86_399, first_of_2001, NOW]


def test_producer_without_a_clock_counts_in_cycles() -> None:
    table = table_of(
        frame_of(progress=[0.1]),
        frame_of(progress=[0.1, 0.2], cycle_time_s=[ABSENT, 0.5]),
        frame_of(time_s=[5.0, NOW]),
    )
    np.testing.assert_array_equal(table.cycle_time_s, [np.nan, 1.0, 0.5, 1.0, np.nan])


@pytest.mark.parametrize(
    "header",
    [
        EpisodeHeader(agent="", episode="1", family="f"),
        EpisodeHeader(agent="r", episode="1", family="f" * 257),
        EpisodeHeader(agent="r", episode="1", family="f", stress=1.5),
        EpisodeHeader(agent="r", episode="1", family="f", stress=float("nan")),
        EpisodeHeader(agent="r", episode="1", family="f", magnitude=float("inf")),
        EpisodeHeader(agent="r", episode="1", family="f", instruction="x" * 257),
    ],
)
def test_a_bad_header_takes_its_rows_and_ends_alone(header: EpisodeHeader) -> None:
    ends = (EpisodeEnd(episode=0, outcome="success"), EpisodeEnd(episode=1, outcome="failure"))
    table = table_of(frame_of((header, HEADER), ends, episode=[0, 1, 0]))
    assert [episode.header.agent for episode in table.episodes] == ["r"]
    assert table.episode.tolist() == [0]
    assert [(end.episode, end.end.outcome) for end in table.ends] == [(0, "failure")]
    assert [row.reason for row in table.rejected] == ["invalid_episode"] * 4
    assert reasons(table.rejected)[1:3] == [(0, 0, "invalid_episode"), (0, 2, "invalid_episode")]


def test_ends_have_a_time_and_lead_to_an_episode() -> None:
    ends = tuple(EpisodeEnd(episode=0, outcome="timeout", time_s=time_s) for time_s in (NOW - 5, None, 0.0))
    table = table_of(frame_of(), frame_of(ends=(*ends, EpisodeEnd(episode=3, outcome="success"))))
    assert [(end.episode, end.time_s) for end in table.ends] == [(1, NOW - 5), (1, NOW), (1, NOW)]
    assert [(row.row["ends"], row.reason) for row in table.rejected] == [(3, "unknown_episode")]


def test_broken_navigation_leaves_the_end() -> None:
    navigation = NavigationOutcome(path=1.0, final_distance=float("inf"))
    table = table_of(frame_of(ends=(EpisodeEnd(episode=0, outcome="success", navigation=navigation),)))
    assert [(end.end.outcome, end.end.navigation) for end in table.ends] == [("success", None)]
    assert [row.reason for row in table.rejected] == ["invalid_navigation"]


def test_modes_are_numbered_through_the_batch() -> None:
    table = table_of(frame_of(mode=["go", "turn"]), frame_of(progress=[0.0]), frame_of(mode=["turn", "wait"]))
    assert [table.mode_names[code] for code in table.mode] == ["go", "turn", "run", "turn", "wait"]
    assert sorted(table.mode_names) == ["go", "run", "turn", "wait"]


rows = st.fixed_dictionaries(
    {"progress": st.floats() | st.floats(0.0, 1.0), "travel": st.floats() | st.just(ABSENT), "time_s": st.floats()}
)
batches = st.lists(st.lists(rows, min_size=1, max_size=4), max_size=4)


@given(batches)
def test_frame_by_frame_is_the_same_as_a_batch(batch: list[list[dict[str, float]]]) -> None:
    columns: list[dict[str, Any]] = [{name: [row[name] for row in part] for name in part[0]} for part in batch]
    frames = [frame_of(**cells) for cells in columns]
    whole = table_of(*frames)
    parts = [table_of(frame) for frame in frames]
    for name in ("step", "time_s", "clocked", "cycle_time_s", "progress", "propositions", "travel", "replaced_times"):
        joined = np.concatenate([getattr(part, name) for part in parts]) if parts else np.empty(0)
        np.testing.assert_array_equal(getattr(whole, name), joined)
    assert [row.reason for row in whole.rejected] == [row.reason for part in parts for row in part.rejected]
    assert len(whole) + len(whole.rejected) == sum(map(len, batch))

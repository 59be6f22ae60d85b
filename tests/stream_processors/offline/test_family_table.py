"""The table of an evaluation: what counts, what is left out, and None where there is nothing to take a mean of."""

from typing import Any

import msgspec
import pytest

from springback.stream_processors.offline.tables import FamilyRow, family_table
from springback.stream_processors.resilience.readings import (
    ChannelCosts,
    EpisodeKey,
    EpisodeSummary,
    EpisodeTraits,
    WindowReading,
)


def traits(**fields: Any) -> EpisodeTraits:
    return EpisodeTraits(**{"family": "navigation", "task": "t", **fields})


def summary(outcome: str = "success", cost: float | None = 0.0, lost: float = 0.0, **fields: Any) -> EpisodeSummary:
    return EpisodeSummary(
        key=EpisodeKey("a", "s", "1"),
        traits=traits(**fields),
        outcome=outcome,  # type: ignore[arg-type]
        steps=10,
        unscored_steps=10 if cost is None else 0,
        windows=0,
        recovery_cost=cost,
        costs=ChannelCosts(),
        lost_cycles=lost,
        window_steps=0,
        final_progress=1.0,
        final_propositions=1.0,
        violation=0.0,
        started_s=0.0,
        ended_s=1.0,
    )


def window(state: str = "recovered", cause: str = "effort", length: int = 4, **fields: Any) -> WindowReading:
    return WindowReading(
        key=EpisodeKey("a", "s", "1"),
        traits=traits(**fields),
        number=0,
        state=state,  # type: ignore[arg-type]
        cause=cause,  # type: ignore[arg-type]
        departure_step=0,
        alarm_step=1,
        reentry_step=length - 1,
        departure_time_s=0.0,
        reentry_time_s=1.0,
        departure_mode="run",
        departure_progress_bin=0,
        departure_residual_bin=4,
        length_steps=length,
        length_s=1.0,
        lost_cycles=0.0,
        peak=2.0,
        recovery_cost=1.0,
        costs=ChannelCosts(),
    )


def test_means_leave_out_censored_and_unscored_episodes() -> None:
    [row] = family_table(
        [
            summary("success", 1.0, lost=2.0),
            summary("failure", 3.0, lost=4.0),
            summary("timeout", 8.0, lost=0.0),
            summary("aborted", 100.0, lost=100.0),
            summary("failure", None),
        ],
        [window(), window("unrecovered", "delay", 8), window("censored", "effort+delay", 100)],
    )
    assert row == FamilyRow(
        family="navigation",
        method="default",
        stress=None,
        episodes=5,
        success_rate=0.25,
        censored=1,
        provisional=0,
        unscored=1,
        windows=3,
        windows_by_state={"censored": 1, "recovered": 1, "unrecovered": 1},
        windows_by_cause={"delay": 1, "effort": 1, "effort+delay": 1},
        recovery_cost_mean=4.0,
        recovery_cost_median=3.0,
        lost_cycles_mean=2.0,
        window_length_mean=6.0,
    )


def test_nothing_to_take_a_mean_of_is_none() -> None:
    [row] = family_table([summary("aborted", 5.0)], [window("censored")])
    assert (row.success_rate, row.recovery_cost_mean, row.recovery_cost_median) == (None, None, None)
    assert (row.lost_cycles_mean, row.window_length_mean) == (None, None)
    [row] = family_table([summary("failure", None)], [])
    assert (row.success_rate, row.recovery_cost_mean, row.windows) == (0.0, None, 0)
    assert family_table([], []) == []


def test_rows_are_sorted_by_family_method_and_stress() -> None:
    rows = family_table(
        [
            summary(family="b"),
            summary(family="a", method="z", stress=0.8),
            summary(family="a", method="z", stress=0.2),
            summary(family="a", method="c", stress=1.0),
            summary(family="b", reference=True),
        ],
        [window(family="a", method="z", stress=0.2)],
    )
    assert [(r.family, r.method, r.stress, r.windows) for r in rows] == [
        ("a", "c", 1.0, 0),
        ("a", "z", 0.2, 1),
        ("a", "z", 0.8, 0),
        ("b", "default", 0.0, 0),
        ("b", "default", None, 0),
    ]


@pytest.mark.parametrize(("stress", "point"), [(0.0, 0.0), (0.1, 0.0), (0.11, 0.2), (0.29, 0.2), (0.95, 1.0)])
def test_stress_goes_to_the_nearest_grid_point(stress: float, point: float) -> None:
    assert [row.stress for row in family_table([summary(stress=stress)], [])] == [point]


def test_a_row_can_be_written_as_json() -> None:
    [row] = family_table([summary()], [window()])
    assert msgspec.json.decode(msgspec.json.encode(row), type=FamilyRow) == row

"""Navigation scores against a batch reference that shares nothing with them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.producers.contract.frame import NavigationOutcome
from springback.stream_processors.resilience.families.navigation_safety import NavigationSums, add_navigation
from springback.stream_processors.resilience.readings import NavigationReading, NavigationScores
from tests.stream_processors.resilience.families.summary_builders import random_navigation


def scores_of(*episodes: NavigationReading) -> NavigationScores:
    sums = NavigationSums()
    for episode in episodes:
        sums.add(episode)
    return sums.scores()


def batch_scores(episodes: list[NavigationReading]) -> list[float | None]:
    """SR, SPL, SEL and GC by columns, NaN for what is missing."""
    columns = {
        name: np.array([np.nan if getattr(e, name) is None else float(getattr(e, name)) for e in episodes])
        for name in NavigationReading.__struct_fields__
    }
    with np.errstate(divide="ignore", invalid="ignore"):
        near = np.where(columns["final_distance"] <= 1.5, 1.0, 0.0) * columns["target_in_view"]
        success = np.where(np.isnan(columns["final_distance"]), np.nan, near)

        def share(best: str, gone: str) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
            d, p = columns[best], columns[gone]
            quotient = np.divide(d, np.maximum(d, p))
            return success * np.where((d == 0) & (p == 0), 1.0, quotient)

        goals = np.where(columns["goals_total"] > 0, columns["goals_met"] / columns["goals_total"], np.nan)
        lists = [success, share("shortest_path", "path"), share("shortest_actions", "actions"), goals]
    return [float(np.nanmean(values)) if (~np.isnan(values)).any() else None for values in lists]


@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_streaming_is_the_batch(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    episodes = [random_navigation(rng) for _ in range(count)]
    found = scores_of(*episodes)
    assert found.episodes == count
    values = [found.success_rate, found.spl, found.sel, found.goal_completion]
    for value, expected in zip(values, batch_scores(episodes), strict=True):
        assert value == (None if expected is None else pytest.approx(expected, abs=1e-12))


def test_hand_worked() -> None:
    one = NavigationReading(
        shortest_path=6.0, path=8.0, shortest_actions=20, actions=25, final_distance=1.5, target_in_view=True,
        goals_met=1, goals_total=2,
    )  # fmt: skip
    two = NavigationReading(
        shortest_path=4.0, path=4.0, shortest_actions=10, actions=10, final_distance=1.6, target_in_view=True,
        goals_met=4, goals_total=5,
    )  # fmt: skip
    # s = 1, 0; SPL = (6/8 + 0)/2; SEL = (20/25 + 0)/2; GC = (1/2 + 4/5)/2, each by its own number of goals.
    found = scores_of(one, two)
    assert (found.episodes, found.success_rate, found.spl, found.sel) == (2, 0.5, 0.375, 0.4)
    assert found.goal_completion == pytest.approx(0.65)


@pytest.mark.parametrize(
    ("metres_per_unit", "success", "spl"),
    # 3 cells away after 8 cells where 6 would have done: 3 m, 1.5 m or 0.75 m, of which 1.5 m are near enough; the SPL
    # is 6/8 whatever a cell measures.
    [(None, 0.0, 0.0), (1.0, 0.0, 0.0), (0.5, 1.0, 0.75), (0.25, 1.0, 0.75)],
)
def test_cells_are_metres_by_what_the_source_says(metres_per_unit: float | None, success: float, spl: float) -> None:
    told = NavigationOutcome(
        shortest_path=6.0, path=8.0, shortest_actions=6, actions=12, final_distance=3.0, target_in_view=True,
        metres_per_unit=metres_per_unit,
    )  # fmt: skip
    found = scores_of(NavigationReading.of(told))
    # SEL counts actions, which have no unit: 6/12.
    assert (found.success_rate, found.spl, found.sel) == (success, spl, 0.5 * success)


def test_a_way_of_nothing_counts_in_full_on_success_and_nothing_on_failure() -> None:
    still = NavigationReading(
        shortest_path=0.0, path=0.0, shortest_actions=0, actions=0, final_distance=0.0, target_in_view=True
    )
    assert scores_of(still).spl == scores_of(still).sel == 1.0
    unseen = NavigationReading(
        shortest_path=0.0, path=0.0, shortest_actions=0, actions=0, final_distance=0.0, target_in_view=False
    )
    assert scores_of(unseen).spl == scores_of(unseen).sel == 0.0


def test_a_path_shorter_than_the_shortest_counts_as_one() -> None:
    cut = NavigationReading(shortest_path=6.0, path=5.0, final_distance=0.5, target_in_view=True)
    assert scores_of(cut).spl == 1.0


def test_what_is_missing_enters_no_score() -> None:
    blind = NavigationReading(shortest_path=6.0, path=8.0, final_distance=5.0, goals_met=1)
    nothing = NavigationReading(goals_met=0, goals_total=0)
    assert scores_of(blind, nothing) == NavigationScores(episodes=2)


def test_by_attack_kind() -> None:
    reached = NavigationReading(final_distance=0.5, target_in_view=True)
    missed = NavigationReading(final_distance=3.0, target_in_view=True)
    sums: dict[str, NavigationSums] = {}
    for attack, found in [("none", reached), ("", reached), ("model", missed), ("physical", missed), ("all", reached)]:
        add_navigation(sums, attack, found, memory=2)
    # Room for two kinds: physical is counted as `other`, and so is a kind that bears the name of the whole.
    assert {name: (kind.episodes, kind.scores().success_rate) for name, kind in sums.items()} == {
        "all": (5, 0.6), "none": (2, 1.0), "model": (1, 0.0), "other": (2, 0.5),
    }  # fmt: skip

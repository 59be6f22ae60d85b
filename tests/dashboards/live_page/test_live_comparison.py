"""Methods and versions side by side: figures with what they rest on, differences with what they are worth."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from springback.dashboards.live_page.comparing.comparison import (
    MOST_GROUPS,
    GroupFigures,
    SeenGroup,
    compare_groups,
    difference_sentences,
)
from springback.dashboards.live_page.links import family_token
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.readings import EpisodeSummary, EpisodeTraits
from tests.examples import examples
from tests.reading_builders import episode_summary, family_reading

CONFIG = AggregateConfig()


def episodes(
    method: str, costs: Sequence[float | None], *, stress: float | None = 0.0, first_task: int = 0, failed: int = 0
) -> list[EpisodeSummary]:
    """One episode of each task, the first ones failed."""
    return [
        episode_summary(
            method,
            episode=f"{stress}-{number}",
            traits=EpisodeTraits(
                family="navigation", task=f"t{first_task + number}", method=method, version="1", stress=stress
            ),
            outcome="failure" if number < failed else "success",
            recovery_cost=cost,
        )
        for number, cost in enumerate(costs)
    ]


def group(method: str, seen: list[EpisodeSummary]) -> SeenGroup:
    return SeenGroup(("navigation", method, "1"), seen, family_reading(method=method, version="1"))


def compared(*groups: SeenGroup, base: str | None = None) -> list[GroupFigures]:
    return compare_groups(groups, base, CONFIG)


def sentences(*groups: SeenGroup) -> str:
    first, second = compared(*groups, base=family_token(groups[0].episodes[0].traits))
    assert first.difference is None
    difference = second.difference
    assert difference is not None
    return " ".join(difference_sentences("a", "b", difference))


def test_figures_are_over_the_episodes_that_count_and_say_how_many() -> None:
    seen = episodes("a", [1.0, 2.0, 3.0, None], failed=1)
    aborted = replace(seen[0], key=replace(seen[0].key, episode="aborted"), outcome="aborted", recovery_cost=99.0)
    learning = replace(seen[0], key=replace(seen[0].key, episode="learning"), provisional=True, recovery_cost=99.0)
    (shown,) = compared(group("a", [*seen, aborted, learning]))
    assert (shown.counted.ended, shown.counted.aborted, shown.counted.provisional) == (4, 1, 1)
    assert shown.success is not None
    assert shown.cost is not None
    assert (shown.success.value, shown.cost.value, shown.scored, shown.tasks) == (0.75, 2.0, 3, 4)
    assert shown.cost.low is not None
    assert shown.cost.high is not None
    assert 1.0 <= shown.cost.low < 2.0 < shown.cost.high <= 3.0
    assert shown.levels == {0.0: 4}
    assert shown.difference is None


def test_that_all_succeeded_does_not_say_that_all_will() -> None:
    (shown,) = compared(group("a", episodes("a", [1.0] * 8)))
    assert shown.success is not None
    # Wilson's lower bound of 8 of 8 is 8 / (8 + 1.96^2).
    assert (shown.success.value, shown.success.high) == (1.0, 1.0)
    assert shown.success.low == pytest.approx(8 / (8 + 1.96**2), abs=1e-4)


def test_runs_of_one_task_have_no_interval() -> None:
    runs = [replace(one, traits=replace(one.traits, task="mug")) for one in episodes("a", [1.0, 2.0, 3.0])]
    (shown,) = compared(group("a", runs))
    assert shown.cost is not None
    assert (shown.cost.value, shown.cost.low, shown.tasks) == (2.0, None, 1)
    told = sentences(group("a", runs), group("b", runs))
    assert "Recovery cost 2.00 against 2.00, of too few tasks to tell it from chance." in told


def test_a_dearer_method_on_the_same_tasks_is_told_from_chance() -> None:
    cheap = [1.0 + number / 10 for number in range(8)]
    told = sentences(group("a", episodes("a", cheap)), group("b", episodes("b", [cost + 2.0 for cost in cheap])))
    # Of eight pairs all are dearer: the two-sided p of the signed ranks is 2 / 2^8.
    assert "Recovery cost 3.35 against 1.35: higher, the difference between 2.00 and 2.00 (p 0.0078, pairs" in told
    assert "Success 100\u202f% against 100\u202f%: that may be chance" in told
    assert "They share 8 tasks at the same stress." in told


def test_other_stress_is_named_and_not_compared() -> None:
    calm, stressed = episodes("a", [1.0] * 6), episodes("b", [9.0] * 6, stress=0.6)
    told = sentences(group("a", calm), group("b", stressed))
    assert told.startswith("They have no episodes that count at the same stress: nothing of them can be compared.")
    assert "Left out are the episodes of a at stress 0.0 (6): the other has none there." in told
    assert "Left out are the episodes of b at stress 0.6 (6): the other has none there." in told
    assert "higher" not in told


def test_a_mix_of_more_stress_is_no_difference_of_its_own() -> None:
    # Both cost 1 at stress 0 and 5 at 0.4; the second was run at 0.4 more often.
    first = episodes("a", [1.0] * 9) + episodes("a", [5.0] * 3, stress=0.4, first_task=20)
    second = episodes("b", [1.0] * 3) + episodes("b", [5.0] * 9, stress=0.4, first_task=20)
    shown = compared(group("a", first), group("b", second), base=family_token(first[0].traits))
    assert [one.cost and one.cost.value for one in shown] == [2.0, 4.0]
    difference = shown[1].difference
    assert difference is not None
    assert difference.cost.difference == pytest.approx(0.0)
    assert "Recovery cost 2.00 against 2.00: that may be chance" in " ".join(difference_sentences("a", "b", difference))


def test_other_tasks_and_what_counts_in_no_figure_are_named() -> None:
    aborted = [replace(one, outcome="aborted") for one in episodes("b", [1.0] * 2, first_task=60)]
    told = sentences(
        group("a", episodes("a", [1.0, 2.0, 3.0])), group("b", episodes("b", [1.0, 2.0, 3.0], first_task=40) + aborted)
    )
    assert "They share no task at the same stress: what differs may be their tasks." in told
    assert "In no figure are 2 aborted episodes of b." in told


def test_the_one_that_is_asked_for_is_held_against_else_that_of_most_episodes() -> None:
    groups = [group("a", episodes("a", [1.0] * 3)), group("b", episodes("b", [1.0] * 5))]
    assert [one.difference is None for one in compared(*groups)] == [False, True]
    token = family_token(groups[0].episodes[0].traits)
    assert [one.difference is None for one in compared(*groups, base=token)] == [True, False]
    assert [one.difference is None for one in compared(*groups, base="nonsense")] == [False, True]
    assert compared() == []


def test_one_of_which_no_episode_was_seen_is_shown_by_its_reading_alone() -> None:
    shown = compared(group("a", episodes("a", [1.0] * 3)), group("b", []))
    assert (shown[1].counted.episodes, shown[1].success, shown[1].cost, shown[1].levels) == (0, None, None, {})
    assert shown[1].reading is not None


def test_no_more_are_compared_than_can_be() -> None:
    groups = [group(f"m{number}", episodes(f"m{number}", [1.0])) for number in range(MOST_GROUPS + 5)]
    assert len(compared(*groups)) == MOST_GROUPS


@settings(max_examples=examples(20))
@given(st.data())
def test_the_order_of_episodes_and_groups_does_not_matter(data: st.DataObject) -> None:
    costs = st.lists(st.one_of(st.none(), st.floats(0, 1e6)), max_size=8)
    groups = [
        group(name, episodes(name, data.draw(costs)) + episodes(name, data.draw(costs), stress=0.2, first_task=4))
        for name in ("a", "b", "c")
    ]
    chance = random.Random(data.draw(st.integers(0, 2**32)))
    shuffled = [one._replace(episodes=chance.sample(one.episodes, len(one.episodes))) for one in groups]
    chance.shuffle(shuffled)
    base = family_token(family_reading(method="b", version="1"))
    assert compared(*shuffled, base=base) == compared(*groups, base=base)

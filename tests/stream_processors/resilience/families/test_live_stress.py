"""The live stress by hand: which state is seen, and when it counts."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.families.live_stress import (
    LiveWatch,
    contract_violated,
    live_stress,
    stress_state,
)
from springback.stream_processors.resilience.families.sample_bounds import wilson_interval
from springback.stream_processors.resilience.readings import (
    ExtensibilityRatios,
    LevelFigures,
    StressMargin,
    StressState,
)
from tests.stream_processors.resilience.families.test_stress_capacity import curve_of

CONFIG = AggregateConfig()


def test_live_stress_is_the_quantile_of_the_active_on_the_grid() -> None:
    assert live_stress([], CONFIG) is None
    assert live_stress([0.4], CONFIG) == 0.4
    # Ten values: the ninth, 0.8.
    assert live_stress([i / 10 for i in range(10)], CONFIG) == 0.8
    # Situation 3: 0.25 goes to the level of 0.2, where its episodes are.
    assert live_stress([0.0, 0.25], CONFIG) == 0.2


@pytest.mark.parametrize(
    ("live", "curve", "expected"),
    [
        (0.2, curve_of(0.5, 0.1, -0.2), "within"),
        (0.4, curve_of(0.5, 0.1, -0.2), "breach"),
        (0.6, curve_of(0.5, 0.1, -0.2), "breach"),  # above a level that is broken
        (0.2, curve_of(0.5, None, 0.3), "within"),  # a higher level holds
        (0.2, curve_of(0.5, "undecided", 0.3), "within"),
        (0.2, curve_of(0.5, -0.1, 0.3), "breach"),  # whatever a higher level shows
        (0.4, curve_of(0.5, -0.1, 0.3), "breach"),
        (0.0, curve_of(0.5, -0.1, 0.3), "within"),  # below the broken level
        (0.4, curve_of(0.5, 0.1, None), "untested"),
        (0.4, curve_of(0.5, 0.1, "insufficient"), "untested"),
        (0.2, curve_of(0.5, "too_many"), "untested"),  # a margin alone makes no level withstood
        (0.4, curve_of(0.5, 0.1, "undecided"), "untested"),  # neither shown to hold nor to break
        (0.2, curve_of(0.5, None, -0.2), "untested"),
        (0.0, curve_of(None), "untested"),
        (0.0, curve_of(0.0), "within"),
        (0.0, curve_of(-0.1), "breach"),
    ],
)
def test_state_of_the_live_stress(live: float, curve: tuple[StressMargin, ...], expected: StressState) -> None:
    assert stress_state(live, curve) == expected


def level(violations: int, episodes: int) -> LevelFigures:
    low, high = wilson_interval(violations, episodes)
    return LevelFigures(
        episodes=episodes, margin=0.5, state="kept", ratios=ExtensibilityRatios(), violations=violations,
        violation_low=low, violation_high=high,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("violations", "episodes", "violated"),
    [
        (1, 1, False),  # the bound is 0.21, but of one episode nothing is said
        (4, 4, False),
        (1, 5, False),  # bound 0.036
        (2, 5, True),  # bound 0.118
        (4, 20, False),  # bound 0.081
        (5, 20, True),  # bound 0.112
        (28, 200, False),  # bound 0.0987
        (29, 200, True),  # bound 0.1029
    ],
)
def test_a_contract_is_violated_where_surely_more_episodes_break_it_than_alpha(
    violations: int, episodes: int, violated: bool
) -> None:
    assert contract_violated([level(0, 50), level(violations, episodes)], CONFIG) is violated


def seen_at(watch: LiveWatch, *looks: tuple[float, StressState | None]) -> list[str | None]:
    found: list[str | None] = []
    for at_s, state in looks:
        watch.look(state, False, at_s, CONFIG)
        found.append(watch.state)
    return found


def test_a_state_counts_once_it_has_held_and_a_breach_ends_after_longer() -> None:
    watch = LiveWatch()
    assert seen_at(watch, (0, "within"), (29.9, "within"), (30, "within")) == [None, None, "within"]
    assert seen_at(watch, (40, "breach"), (69.9, "breach"), (70, "breach")) == [None, None, "breach"]
    assert seen_at(watch, (80, "within"), (139.9, "within"), (140, "within")) == ["breach", "breach", "within"]
    assert seen_at(watch, (200, "untested"), (229, "untested"), (230, "untested")) == [None, None, "untested"]
    assert (watch.breach.beginnings, watch.breach.counts) == (1, False)


def test_a_burst_of_looks_within_30_milliseconds_does_nothing() -> None:
    watch = LiveWatch()
    seen_at(watch, (0, "within"), (40, "within"))
    assert set(seen_at(watch, *[(40 + i / 1000, "breach") for i in range(30)])) == {None}
    assert watch.breach.beginnings == 0
    assert not watch.is_due(69.9, CONFIG)
    assert watch.is_due(70.0, CONFIG)


def test_the_moment_between_two_episodes_does_not_start_the_clock_anew() -> None:
    watch = LiveWatch()
    seen_at(watch, (0, "within"), (40, "within"))
    # Twenty seconds of a breach and half a second of something else, time and again: 20 - 0.5 + 10.5 = 30 s.
    assert seen_at(watch, (40, "breach"), (60, "within"), (60.5, "breach"), (70.9, "breach"), (71, "breach")) == [
        None, "within", None, None, "breach",
    ]  # fmt: skip


def test_a_stress_that_has_just_risen_is_not_within_for_what_held_before() -> None:
    watch = LiveWatch()
    seen_at(watch, (0, "within"), (40, "within"))
    assert seen_at(watch, (41, "untested"), (42, "within")) == [None, "within"]


def test_half_of_the_time_is_no_breach() -> None:
    watch = LiveWatch()
    looks: list[tuple[float, StressState | None]] = [(20 * i, "within" if i % 2 else "breach") for i in range(20)]
    assert "breach" not in seen_at(watch, *looks)


def test_while_nothing_runs_the_clock_stands_and_at_last_all_ends() -> None:
    watch = LiveWatch()
    # 20 s, a pause of 59, 10 s more: 30 s in all.
    assert seen_at(watch, (0, "breach"), (20, None), (79, "breach"), (89, "breach")) == [None, None, None, "breach"]
    # A breach stays for a minute after the last episode.
    assert seen_at(watch, (100, None), (159.9, None), (160, None)) == ["breach", "breach", None]
    assert watch.breach.beginnings == 1
    # What was on its way is forgotten too.
    assert seen_at(watch, (200, "breach"), (220, None), (280, None), (290, "breach"), (319, "breach")) == [None] * 5


def test_without_an_alert_nothing_is_said_while_nothing_runs() -> None:
    watch = LiveWatch()
    assert seen_at(watch, (0, "within"), (40, None), (50, "within")) == [None, None, "within"]


def test_a_clock_that_was_put_back_takes_nothing_in() -> None:
    watch = LiveWatch()
    assert seen_at(watch, (1000, "breach"), (0, "breach"), (29, "breach")) == [None, None, None]
    assert seen_at(watch, (30, "breach")) == ["breach"]


def test_a_violated_contract_has_the_same_inertia() -> None:
    watch = LiveWatch()
    said = []
    for at_s, violated in ((0, True), (29, True), (30, True), (31, False), (90, False), (91, False)):
        watch.look(None, violated, at_s, CONFIG)
        said.append(watch.violated.counts)
    assert said == [False, False, True, True, True, False]
    assert watch.violated.beginnings == 1


@given(
    st.lists(
        st.tuples(
            st.integers(0, 100), st.sampled_from([None, "within", "untested", "breach"]), st.booleans()
        ),
        min_size=1, max_size=30,
    ),
    st.integers(1, 7),
)  # fmt: skip
def test_it_makes_no_difference_how_often_one_looks(looks: list[tuple[int, Any, bool]], every_s: int) -> None:
    seldom, often = LiveWatch(), LiveWatch()
    now_s = 0
    for wait_s, state, violated in looks:
        for tick_s in range(now_s, now_s + wait_s, every_s):
            if often.is_due(tick_s, CONFIG):
                often.pass_time(tick_s, CONFIG)
        now_s += wait_s
        seldom.look(state, violated, now_s, CONFIG)
        often.look(state, violated, now_s, CONFIG)
        assert often == seldom
        stored = msgspec.msgpack.decode(msgspec.msgpack.encode(often), type=LiveWatch)
        assert stored == often


def test_a_group_that_is_let_go_leaves_no_alert() -> None:
    watch = LiveWatch()
    assert not watch.end()
    seen_at(watch, (0, "breach"), (30, "breach"))
    assert watch.end()
    assert (watch.state, watch.breach.beginnings) == (None, 1)
    assert not math.isfinite(LiveWatch().at_s)

"""A rebound window in a sentence, which never says what its figures deny."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springback.dashboards.live_page.window_words import (
    EFFORT,
    MADE_UP,
    NO_NEARER,
    SLOWER,
    cause_words,
    dominant_channel,
    window_figures,
    window_sentence,
)
from springback.stream_processors.resilience.readings import ChannelCosts, WindowReading
from tests.dashboards.live_page.fake_fleet import window
from tests.examples import examples

LOST = st.one_of(
    st.floats(-500, 500),
    st.floats(-0.02, 0.02),
    st.integers(-300, 300).map(float),
    st.floats(-0.02, 0.02).map(lambda off: 11.0 + off),
    st.floats(-0.6, 0.6).map(lambda off: 150.0 + off),
)


@pytest.mark.parametrize(
    ("state", "end"),
    [
        ("recovered", "and re-entered at step 52, after 12 steps."),
        ("unrecovered", "and had not re-entered when its episode ended, 12 steps on."),
        ("censored", "and was lost sight of after 12 steps: whether it recovered is not known."),
        ("open", "and has not re-entered yet."),
    ],
)
def test_a_window_is_told_in_a_sentence(state: str, end: str) -> None:
    told = window_sentence(window("robot-7", state=state, cause="effort"))
    assert told == f"robot-7 departed from its baseline at step 41, with more effort than is normal there, {end}"


@pytest.mark.parametrize(
    ("lost_cycles", "told"),
    [
        (11.0, "as its task came no nearer"),  # all of the 11 cycles from step 41 to step 52
        (30.0, "as its task came no nearer"),
        (10.99, "as its task came nearer more slowly than is normal"),
        (0.01, "as its task came nearer more slowly than is normal"),
        (0.004, "as its task came no nearer for a while, which it has made up for since"),  # shown as 0.00
        (-19.0, "as its task came no nearer for a while, which it has made up for since"),
    ],
)
def test_what_became_of_a_delay_follows_the_lost_cycles(lost_cycles: float, told: str) -> None:
    assert cause_words(window("robot-7", cause="delay", lost_cycles=lost_cycles)) == told
    both = cause_words(window("robot-7", cause="effort+delay", lost_cycles=lost_cycles))
    assert both == f"with more effort than is normal there, and {told}"


@st.composite
def windows(draw: st.DrawFn) -> WindowReading:
    departure, cycles = draw(st.integers(0, 1000)), draw(st.integers(0, 400))
    return window(
        "robot-7",
        state=draw(st.sampled_from(["open", "recovered", "unrecovered", "censored"])),
        cause=draw(st.sampled_from(["effort", "delay", "effort+delay"])),
        departure_step=departure,
        reentry_step=departure + cycles,
        length_steps=cycles + 1,
        lost_cycles=draw(LOST),
    )


@settings(max_examples=examples(200))
@given(windows())
def test_no_sentence_denies_its_figures(reading: WindowReading) -> None:
    told = window_sentence(reading)
    cause, _, shown, _, _ = window_figures(reading)
    lost = float(shown.replace(",", "").replace("\N{MINUS SIGN}", "-"))
    cycles = reading.reentry_step - reading.departure_step
    assert (EFFORT in told) == ("effort" in cause)
    says = {words for words in (NO_NEARER + ",", SLOWER + ",", MADE_UP + ",") if words in told}
    if "delay" not in cause:
        assert says == set()
    elif lost <= 0:
        assert says == {MADE_UP + ","}
    else:
        assert says == {(NO_NEARER if lost >= cycles else SLOWER) + ","}


def test_the_dominant_channel_is_the_one_that_cost_most() -> None:
    assert dominant_channel(ChannelCosts(cognitive=0.5, physical=0.25, debt=0.75)) == "debt"
    assert dominant_channel(ChannelCosts()) is None

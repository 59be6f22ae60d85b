"""Figures in words: nothing says more than is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from springback.stream_processors.metrics.figure_words import (
    beta_sentences,
    capacity_sentence,
    capacity_text,
    dependable_text,
    learning_text,
    live_sentence,
    live_state,
    live_word,
    within_noise,
)
from springback.stream_processors.resilience.readings import FamilyReading, StressState
from tests.reading_builders import family_reading


def known_up_to(dependable: float | None, tested_up_to: float | None, first_breach: float | None) -> FamilyReading:
    return family_reading(dependable=dependable, tested_up_to=tested_up_to, first_breach=first_breach)


@pytest.mark.parametrize(
    ("dependable", "tested_up_to", "first_breach", "text", "sentence"),
    [
        (None, None, None, "not known", "Too few episodes at any declared stress to say what it withstands."),
        (
            *(0.0, 0.0, None, "at least 0.0; not tested above"),
            "It keeps its contract without stress. Above 0.0 there are too few episodes to tell.",
        ),
        (
            *(0.4, 0.4, None, "at least 0.4; not tested above"),
            "It keeps its contract at every tested level up to 0.4. Above 0.4 there are too few episodes to tell.",
        ),
        (
            *(0.4, 0.6, 0.6, "0.4"),
            "It keeps its contract at every tested level up to 0.4; the first with a negative margin is 0.6. "
            "Above 0.6 there are too few episodes to tell.",
        ),
        (1.0, 1.0, None, "1.0", "It keeps its contract at every tested level up to 1.0."),
        (
            *(None, 1.0, 0.0, "none"),
            "Not even its lowest tested level is kept; the first with a negative margin is 0.0.",
        ),
    ],
)
def test_a_capacity_says_no_more_than_was_tested(
    dependable: float | None, tested_up_to: float | None, first_breach: float | None, text: str, sentence: str
) -> None:
    reading = known_up_to(dependable, tested_up_to, first_breach)
    assert dependable_text(reading) == text
    assert capacity_sentence(reading) == sentence


@given(st.sampled_from((None, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0)), st.sampled_from((None, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0)))
def test_a_bare_number_stands_only_where_more_was_tried(dependable: float | None, tested_up_to: float | None) -> None:
    text = dependable_text(known_up_to(dependable, tested_up_to, None))
    bare = text.replace(".", "").isdigit()
    assert not bare or (tested_up_to is not None and (tested_up_to > (dependable or 0.0) or tested_up_to == 1.0))


def test_lambda_star_is_at_least_what_was_tested() -> None:
    """Situation 2: 0.0 while only clean episodes ran, then 0.2, 0.4 as the demo goes on."""
    assert [capacity_text(tried, "open") for tried in (0.0, 0.2)] == [
        "at least 0.0; not tested above",
        "at least 0.2; not tested above",
    ]
    assert capacity_text(0.4, "ok") == "0.4"
    assert capacity_text(0.0, "none") == "none"
    assert capacity_text(None, "insufficient") == "not known"


def test_where_no_declared_stress_runs_nothing_is_within() -> None:
    idle = family_reading(live_stress=None, stress_state=None, active_undeclared=0)
    assert (live_state(idle), live_sentence(idle)) == ("none_declared", "No declared stress running.")
    one = replace(idle, active_undeclared=1)
    assert live_sentence(one) == "No declared stress running (1 episode undeclared)."


def test_a_state_that_has_not_held_for_long_enough_is_none_yet() -> None:
    begun = family_reading(live_stress=0.8, stress_state=None)
    assert (live_state(begun), live_sentence(begun)) == ("unsettled", "Its agents work at 0.8 now: not settled yet.")


def test_a_breach_goes_on_for_a_while_after_its_last_episode() -> None:
    ending = family_reading(live_stress=None, stress_state="breach")
    assert (live_state(ending), live_sentence(ending)) == ("breach", "When last at work: breach.")


@pytest.mark.parametrize("state", ["within", "untested", "breach"])
def test_a_state_is_its_own_word(state: StressState) -> None:
    reading = family_reading(live_stress=0.4, stress_state=state)
    assert live_state(reading) == live_word(reading) == state
    assert live_sentence(reading) == f"Its agents work at 0.4 now: {state}."


@pytest.mark.parametrize(
    ("difference", "repeatability", "noise"),
    [(0.5, 0.5, True), (0.5000001, 0.5, False), (0.5, None, False), (None, 0.5, False)],
)
def test_what_is_within_noise_at_the_boundary(
    difference: float | None, repeatability: float | None, noise: bool
) -> None:
    found = family_reading(beta_difference=difference, stability_repeatability=repeatability)
    assert within_noise(found) == noise


def test_beta_says_when_it_says_nothing_and_what_it_does_not_know_of() -> None:
    """Situation 6: 39.3 is 7.86 / 0.2, where two clean runs of a task differ by 8."""
    noise = family_reading(
        beta=39.3,
        beta_difference=7.86,
        stability_repeatability=8.0,
        pairs=10,
        unpaired={"no_twin": 26, "let_go": 0, "other_version": 4},
    )
    assert beta_sentences(noise) == [
        "β 39.30 over 10 pairs says nothing: within run-to-run noise (its change of loss 7.86, repeatability 8.00).",
        "30 unpaired: 26 no twin, 4 other version.",
    ]
    assert beta_sentences(replace(noise, stability_repeatability=0.5, unpaired={"no_twin": 0})) == [
        "β 39.30 over 10 pairs (its change of loss 7.86, repeatability 0.50)."
    ]
    assert beta_sentences(replace(noise, stability_repeatability=None, pairs=1, unpaired={})) == [
        "β 39.30 over 1 pair; how much clean runs differ is not known."
    ]
    assert beta_sentences(replace(noise, beta=None, unpaired={})) == [
        "β is not known: no pair of a clean and a perturbed run of one task."
    ]


def test_learning_ends_with_the_last_reference_that_is_needed() -> None:
    assert [learning_text(number, 20) for number in (0, 19, 20, 25)] == [
        "learning: 0 of 20",
        "learning: 19 of 20",
        None,
        None,
    ]


def test_the_words_do_not_depend_on_the_rest_of_the_reading() -> None:
    reading = known_up_to(0.4, 0.6, None)
    assert dependable_text(reading) == dependable_text(replace(reading, live_stress=None, episodes=0))

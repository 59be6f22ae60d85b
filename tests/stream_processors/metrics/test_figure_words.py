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
    violated_sentences,
    within_noise,
    worst_level,
)
from springback.stream_processors.metrics.glossary import meaning
from springback.stream_processors.resilience.readings import (
    ExtensibilityRatios,
    FamilyReading,
    LevelState,
    StressMargin,
    StressState,
)
from tests.reading_builders import family_reading


def known_up_to(dependable: float | None, tested_up_to: float | None, first_breach: float | None) -> FamilyReading:
    return family_reading(dependable=dependable, tested_up_to=tested_up_to, first_breach=first_breach)


@pytest.mark.parametrize(
    ("dependable", "tested_up_to", "first_breach", "text", "sentence"),
    [
        (None, None, None, "not known", "Too few episodes at any declared stress to say what it withstands."),
        (
            *(0.0, 0.0, None, "at least 0.0; not tested above"),
            "The level without stress is kept. Above 0.0 there are too few episodes to tell.",
        ),
        (
            *(0.4, 0.4, None, "at least 0.4; not tested above"),
            "Every tested level up to 0.4 is kept. Above 0.4 there are too few episodes to tell.",
        ),
        (
            *(0.4, 0.6, 0.6, "0.4"),
            "Every tested level up to 0.4 is kept; the first with a negative margin is 0.6. "
            "Above 0.6 there are too few episodes to tell.",
        ),
        (1.0, 1.0, None, "1.0", "Every tested level up to 1.0 is kept."),
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
    begun = family_reading(live_stress=0.8, stress_state=None, active_undeclared=0)
    assert (live_state(begun), live_sentence(begun)) == ("unsettled", "Its agents work at 0.8 now: not settled yet.")


def test_a_breach_goes_on_for_a_while_after_its_last_episode() -> None:
    ending = family_reading(live_stress=None, stress_state="breach", active_undeclared=0)
    assert (live_state(ending), live_sentence(ending)) == ("breach", "When last at work: breach.")


@pytest.mark.parametrize("state", ["within", "untested", "breach"])
def test_a_state_is_its_own_word(state: StressState) -> None:
    reading = family_reading(live_stress=0.4, stress_state=state, active_undeclared=0)
    assert live_state(reading) == live_word(reading) == state
    assert live_sentence(reading) == f"Its agents work at 0.4 now: {state}."


def test_what_is_said_of_the_declared_is_not_said_of_the_undeclared() -> None:
    # One clean run and nine that nobody says the stress of: "within" is said of one episode in ten.
    mixed = family_reading(live_stress=0.0, stress_state="within", active_episodes=10, active_undeclared=9)
    assert live_sentence(mixed) == "Its agents work at 0.0 now: within (9 episodes undeclared)."
    over = replace(mixed, live_stress=None, stress_state="breach", active_episodes=1, active_undeclared=1)
    assert live_sentence(over) == "When last at work: breach (1 episode undeclared)."


def level(stress: float, violations: int, episodes: int, low: float, state: LevelState = "kept") -> StressMargin:
    return StressMargin(
        stress=stress,
        episodes=episodes,
        margin=0.0,
        state=state,
        ratios=ExtensibilityRatios(),
        violations=violations,
        violation_low=low,
        violation_high=1.0,
    )


def test_a_contract_that_is_violated_at_a_level_with_a_margin_above_0_is_said_to_be() -> None:
    """Situation 1: every episode ends with q 0.26 of 0.5: M = (0.52 + 1.5)/2 - 1 = 0.01, and all broke it."""
    found = family_reading(
        dependable=0.0,
        tested_up_to=0.4,
        first_breach=None,
        contract_violated=True,
        margins=(level(0.0, 0, 20, 0.0), level(0.4, 10, 10, 0.7225, "undecided")),
        undeclared=None,
    )
    assert capacity_sentence(found) == (
        "The level without stress is kept; at the next too many episodes break the contract. "
        "Above 0.4 there are too few episodes to tell."
    )
    lowest = replace(found, dependable=None, tested_up_to=1.0)
    assert capacity_sentence(lowest) == (
        "Not even its lowest tested level is kept; there too many episodes break the contract."
    )
    assert violated_sentences(found) == [
        "Contract violated: under stress 0.4 10 of 10 (72 to 100 %) episodes broke it."
    ]
    assert violated_sentences(replace(found, contract_violated=False)) == []
    assert violated_sentences(replace(found, margins=())) == ["Contract violated."]
    assert "single ones may break the contract" in meaning("kept")


def test_no_contract_is_said_to_be_violated_by_a_level_with_too_few_episodes() -> None:
    # Three of three are 44 % at least by Wilson, 20 of 60 are 23 %; it is the latter that count.
    few, enough = level(0.8, 3, 3, 0.4385, "insufficient"), level(0.4, 20, 60, 0.2273, "broken")
    found = family_reading(margins=(enough, few), undeclared=None)
    assert worst_level(found) == (0.4, enough)
    assert worst_level(replace(found, margins=(few,))) == (0.8, few)


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

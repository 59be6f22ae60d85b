"""The words: each is explained once, in a sentence, and every word that figures are put in has its explanation."""

from typing import get_args

import pytest

from springback.stream_processors.metrics.figure_words import NOT_TESTED_ABOVE, UNDECLARED
from springback.stream_processors.metrics.glossary import (
    CONTRACT_VIOLATED,
    GLOSSARY,
    LEVEL_STATES,
    LIVE_STATES,
    NOTHING_DECLARED,
    UNSETTLED,
    WITHIN_NOISE,
    glossary_table,
    meaning,
)
from springback.stream_processors.metrics.spec import UNPAIRED_REASONS
from springback.stream_processors.resilience.readings import StressState


def test_every_word_that_is_shown_is_explained() -> None:
    shown = {*LEVEL_STATES, *get_args(StressState), *(reason.replace("_", " ") for reason in UNPAIRED_REASONS)}
    shown |= {NOTHING_DECLARED, UNSETTLED, WITHIN_NOISE, CONTRACT_VIOLATED, UNDECLARED, NOT_TESTED_ABOVE}
    assert shown <= GLOSSARY.keys()


def test_the_states_of_live_stress_are_those_of_a_reading_and_two_where_it_has_none() -> None:
    assert LIVE_STATES == (*get_args(StressState), "unsettled", "none_declared")


@pytest.mark.parametrize("word", GLOSSARY)
def test_a_word_is_explained_in_one_sentence(word: str) -> None:
    told = meaning(word)
    assert told.endswith(".")
    assert ". " not in told
    assert "|" not in told + GLOSSARY[word].of


def test_the_table_has_every_word_once() -> None:
    rows = [line for line in glossary_table().splitlines() if line.startswith("| *")]
    assert len(rows) == len(GLOSSARY)
    assert all(f"| *{word}* |" in row for word, row in zip(GLOSSARY, rows, strict=True))

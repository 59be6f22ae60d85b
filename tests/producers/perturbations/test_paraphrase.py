"""Instructions in other words: the meaning stays, the severity says how much changes, and the seed what."""

from itertools import chain

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from springback.producers.perturbations.paraphrase import ASIDES, COURTESIES, LEXICON, Paraphrase, paraphrase, plain

COLOURS = [forms[0] for forms in LEXICON["colour"]]
PLACES = ["", *(" " + forms[0] for forms in LEXICON["place"])]
NAMED = st.builds(
    lambda article, colour, thing, place: f"{article} {colour}{thing}{place}",
    st.sampled_from(["the", "a"]),
    st.sampled_from(["", *(colour + " " for colour in COLOURS)]),
    st.sampled_from(["door", "ball", "box", "key", "object"]),
    st.sampled_from(PLACES),
)
ACTS = st.one_of(
    st.builds("{} {}".format, st.sampled_from(["go to", "pick up", "open"]), NAMED),
    st.builds("put {} next to {}".format, NAMED, NAMED),
)
CLAUSES = st.one_of(ACTS, st.builds("{} and {}".format, ACTS, ACTS))
MISSIONS = st.one_of(
    CLAUSES, st.builds("{}, then {}".format, CLAUSES, CLAUSES), st.builds("{} after you {}".format, CLAUSES, CLAUSES)
)
FORMS = sorted(set(chain.from_iterable(chain.from_iterable(LEXICON.values()))))
ANY_SENTENCE = st.builds(
    lambda words, stop: " ".join(words).replace(" ,", ",") + stop,
    st.lists(st.sampled_from([*FORMS, "the", "and", ", then", "after you", "Past", "lamp,", *COURTESIES]), max_size=9),
    st.sampled_from(["", "."]),
)
SEEDS = st.integers(0, 2**31)
SEVERITIES = st.floats(0.0, 1.0)


def babyai(mission: str, severity: float, seed: int) -> Paraphrase:
    return paraphrase(mission, severity, seed=seed, free_order=True)


@given(MISSIONS, SEVERITIES, SEEDS)
def test_the_meaning_of_a_mission_is_kept(mission: str, severity: float, seed: int) -> None:
    assert plain(babyai(mission, severity, seed).text) == mission


@given(ANY_SENTENCE, SEVERITIES, SEEDS)
@example(", then adjacent to", 1.0, 0)  # half of a sentence
@example("please after you adjacent to", 1.0, 0)
@example("please adjacent to, then adjacent to", 1.0, 0)  # polite before it was reworded
@example("adjacent to adjacent to television deposit", 1.0, 1)  # "tv set down": a set, or to set down
def test_any_sentence_means_what_it_meant(sentence: str, severity: float, seed: int) -> None:
    assert plain(paraphrase(sentence, severity, seed=seed).text) == plain(sentence)


@given(MISSIONS, SEVERITIES, SEEDS)
def test_the_same_seed_says_the_same_words(mission: str, severity: float, seed: int) -> None:
    assert babyai(mission, severity, seed) == babyai(mission, severity, seed)


@given(MISSIONS, SEEDS)
def test_severity_zero_changes_nothing(mission: str, seed: int) -> None:
    told = babyai(mission, 0.0, seed)
    assert (told.text, told.edits, told.share) == (mission, (), 0.0)


@given(MISSIONS, SEVERITIES, SEVERITIES, SEEDS)
def test_a_harsher_severity_makes_all_changes_of_a_milder_one(
    mission: str, one: float, other: float, seed: int
) -> None:
    milder, harsher = (babyai(mission, severity, seed) for severity in sorted((one, other)))
    assert harsher.edits[: len(milder.edits)] == milder.edits
    assert milder.share <= harsher.share


@given(MISSIONS, SEVERITIES, SEEDS)
def test_the_severity_is_the_share_that_is_changed_rounded_up(mission: str, severity: float, seed: int) -> None:
    told = babyai(mission, severity, seed)
    assert severity - 1e-9 <= told.share < severity + 1 / told.possible + 1e-9


def test_other_seeds_say_other_words() -> None:
    assert len({babyai("go to the red ball", 1.0, seed).text for seed in range(20)}) > 10


def test_hand_worked() -> None:
    # What can be changed: go to, red, ball, open, door, the order, a courtesy, an aside.
    told = babyai("go to the red ball, then open the door", 1.0, seed=1)
    assert told.possible == len(told.edits) == 8
    by_kind = {(edit.kind, edit.plain): edit for edit in told.edits}
    said = {plain_word: edit.said for (_, plain_word), edit in by_kind.items() if plain_word}
    courtesy, aside = by_kind["courtesy", ""].said, by_kind["aside", ""].said
    assert told.text == (
        f"{courtesy} before you {said['open']} the {said['door']}, first {said['go to']} the {said['red']} "
        f"{said['ball']}, and by the way {aside}"
    )
    assert {name: by_kind[kind, name].thing for kind, name in by_kind if kind in ("thing", "colour")} == {
        "red": 0, "ball": 0, "door": 1,
    }  # fmt: skip


def test_a_clause_after_another_and_clauses_in_any_order() -> None:
    after = babyai("open the door after you go to the ball", 1.0, seed=2)
    assert ", but not before you " in after.text
    free = babyai("open the door and go to the ball", 1.0, seed=2)
    first, last = free.text.split(", and by the way ")[0].split(", and also ")
    assert plain(first).endswith("go to the ball")
    assert plain(last) == "open the door"
    bound = paraphrase("open the door and go to the ball", 1.0, seed=2)  # in a way, "and" says an order
    assert ", and also " not in bound.text


def test_a_sentence_keeps_its_capital_and_its_stop() -> None:
    told = paraphrase("Walk past the sofa.", 1.0, seed=5)
    assert told.text[0].isupper()
    assert told.text.endswith(".")
    assert told.text.count(".") == 1


def test_nothing_to_say_stays_nothing() -> None:
    assert paraphrase("", 1.0) == Paraphrase("")


def test_each_form_means_one_thing() -> None:
    forms = list(chain.from_iterable(chain.from_iterable(LEXICON.values())))
    assert len(forms) == len(set(forms))
    assert len({*COURTESIES, *ASIDES, *forms}) == len(COURTESIES) + len(ASIDES) + len(forms)


def test_two_forms_side_by_side_mean_what_they_mean_alone() -> None:
    plain_of = {form: forms[0] for forms in chain.from_iterable(LEXICON.values()) for form in forms}
    for one in FORMS:
        assert [plain(f"{one} {other}") for other in FORMS] == [f"{plain_of[one]} {plain_of[other]}" for other in FORMS]


def test_a_severity_beyond_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a severity lies in \[0, 1\]"):
        paraphrase("go to the door", 1.1)

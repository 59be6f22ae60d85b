import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.sinks.fleet.labels import LONGEST_VALUE, LabelBound, clean_label_value, closed_label_value

# Any character at all, lone surrogates and control characters among them.
ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=300)


@pytest.mark.parametrize(
    "harmless",
    ["robot-7", "kitchen 3/left", "größe", "ロボット", "🤖", 'a"quoted"\\one', "家\N{ZERO WIDTH JOINER}族"],
)
def test_harmless_ids_stay_as_they_are(harmless: str) -> None:
    assert clean_label_value(harmless) == harmless


@pytest.mark.parametrize("empty", ["", " ", "\n\t"])
def test_an_empty_id_is_unknown(empty: str) -> None:
    assert clean_label_value(empty) == "unknown"


@pytest.mark.parametrize(
    "harmful",
    ["a\nb", "a\rb", "a\x00b", "a\ud800b", "a\u2028b", "a\u202eb", "a\x85b", "other", "x" * 10_000],
)
def test_harmful_ids_are_changed_and_marked(harmful: str) -> None:
    clean = clean_label_value(harmful)
    assert clean.isprintable()
    assert clean[-9] == "~"


@given(ANY_TEXT)
def test_every_id_becomes_short_one_line_utf_8(raw: str) -> None:
    clean = clean_label_value(raw)
    assert 0 < len(clean) <= LONGEST_VALUE
    assert len(clean.splitlines()) == 1
    clean.encode("utf-8")
    assert clean == clean_label_value(raw)


@given(st.lists(ANY_TEXT.filter(str.strip), unique=True, max_size=30))
def test_different_ids_stay_different(ids: list[str]) -> None:
    assert len({clean_label_value(raw) for raw in ids}) == len(ids)


def test_long_ids_with_one_beginning_stay_different() -> None:
    assert clean_label_value("x" * 10_000) != clean_label_value("x" * 10_001)


def test_a_closed_label_takes_only_its_own_values() -> None:
    assert closed_label_value("outcome", "timeout") == "timeout"
    assert closed_label_value("outcome", "exploded") == "other"


def test_a_bound_keeps_whoever_came_first() -> None:
    bound = LabelBound(2)
    first, second, third = ((clean_label_value(name),) for name in "abc")
    assert [bound.admit(value) for value in (first, second, third, first)] == [first, second, ("other",), first]

"""Dead letters are read as the stage writes them: whole messages and parts apart, and notes of what was sent again."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springback.producers.contract.codec import encode_msgpack
from springback.stream_processors.dead_letters.letters import (
    SENT_AGAIN,
    Letter,
    Place,
    group_letters,
    is_wanted,
    letter_of,
    parse_position,
)
from springback.stream_processors.errors import DeadLetterError
from springback.stream_processors.exact.port import Output, StageEvent
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.stages.track_steps import TrackSteps
from springback.stream_processors.topics import DEAD_LETTER
from tests.examples import examples
from tests.stream_processors.frame_builders import START_S, frame_of_parts, header_of, nominal_rows


def written(value: bytes, key: bytes = b"robot-7", offset: int = 7) -> list[Letter]:
    """The letters that the first stage writes for a message, read back."""
    stage = TrackSteps(ResilienceConfig())
    outputs = stage.apply([StageEvent("lab.steps", 2, offset, key, value, START_S)], [stage.blank()])
    return [read(output, place) for place, output in enumerate(each for each in outputs if each.topic == DEAD_LETTER)]


def read(output: Output, offset: int = 0) -> Letter:
    letter = letter_of(0, offset, 1_790_000_000_500, output.key, output.value, output.headers)
    assert isinstance(letter, Letter)
    return letter


def test_a_message_that_cannot_be_read_is_whole() -> None:
    (letter,) = written(b'{"schema_version": 99}')
    assert letter.whole
    assert (letter.reason, letter.value) == ("unsupported_schema_version", b'{"schema_version": 99}')
    assert letter.source == Place("lab.steps", 2, 7)
    assert (letter.position, letter.time_s, letter.producer) == ("0:0", 1_790_000_000.5, "robot-7")


def test_a_frame_under_a_wrong_key_is_of_the_producer_that_it_names() -> None:
    data = encode_msgpack(frame_of_parts([(header_of(), nominal_rows(0, 3), None)]))
    (letter,) = written(data, key=b"someone")
    assert letter.whole
    assert (letter.reason, letter.producer, letter.key) == ("wrong_key", "robot-7", b"someone")


def test_a_row_and_steps_that_are_not_used_are_parts() -> None:
    rows = nominal_rows(0, 3)
    rows[1]["progress"] = 7.0
    (row,) = written(encode_msgpack(frame_of_parts([(header_of(), rows, None)])))
    assert (row.reason, row.whole) == ("out_of_range", False)
    rows = nominal_rows(0, 3)
    ended = [(header_of(), rows, "success"), (header_of(), [{**rows[0], "step": 9}], None)]
    stage = TrackSteps(ResilienceConfig())
    state = stage.blank()
    frames = [encode_msgpack(frame_of_parts([part])) for part in ended]  # type: ignore[list-item]
    outputs = [
        output
        for offset, data in enumerate(frames)
        for output in stage.apply([StageEvent("steps", 0, offset, b"robot-7", data, START_S)], [state])
    ]
    (late,) = [read(output) for output in outputs if output.topic == DEAD_LETTER]
    assert (late.reason, late.whole) == ("after_end", False)


def test_a_frame_of_very_many_faults_is_whole() -> None:
    rows = [{**row, "progress": 7.0} for row in nominal_rows(0, 150, 300)]
    (letter,) = written(encode_msgpack(frame_of_parts([(header_of(), rows, None)])))
    assert (letter.reason, letter.whole) == ("too_many_faults", True)


def test_a_note_of_what_was_sent_again_is_no_letter() -> None:
    place = Place("steps", 3, 44)
    assert letter_of(0, 1, 0, None, b"{}", [(SENT_AGAIN, place.text().encode())]) == place
    assert letter_of(0, 1, 0, None, b"{}", [("other", b"1")]) is None


@settings(max_examples=examples(60))
@given(st.from_regex(r"[a-zA-Z0-9._-]+", fullmatch=True), st.integers(0, 999), st.integers(0, 2**62))
def test_a_place_is_the_place_that_its_text_tells(topic: str, partition: int, offset: int) -> None:
    place = Place(topic, partition, offset)
    assert Place.of_text(place.text()) == place


@settings(max_examples=examples(60))
@given(st.text(), st.lists(st.tuples(st.text(), st.binary())))
def test_whatever_the_headers_are_nothing_is_raised(reason: str, more: list[tuple[str, bytes]]) -> None:
    headers = [("reason", reason.encode("utf-8", "replace")), *more]
    letter = letter_of(0, 0, 0, b"k", b"v", headers)
    assert letter is None or isinstance(letter, Letter | Place)


@pytest.mark.parametrize("text", ["", "1", "a:1", "1:", ":1", "-1:2", "1:2:3", "\u0661:2"])
def test_a_position_that_is_none_is_told(text: str) -> None:
    with pytest.raises(DeadLetterError, match="expected PARTITION:OFFSET"):
        parse_position(text)


def letter(reason: str, producer: str, time_s: float, offset: int) -> Letter:
    return Letter(f"0:{offset}", time_s, producer.encode(), b"{}", reason, f"at {offset}", Place("steps", 0, offset))


def test_letters_are_grouped_by_reason_the_most_first() -> None:
    letters = [letter("late", "a", 3.0, 0), letter("late", "b", 2.0, 1), letter("bad", "a", 1.0, 2)]
    late, bad = group_letters(letters, {Place("steps", 0, 1)})
    assert (late.reason, late.letters, late.sent_again, late.newest.position) == ("late", 2, 1, "0:0")
    assert dict(late.producers) == {"a": 1, "b": 1}
    assert (bad.reason, bad.letters, bad.sent_again) == ("bad", 1, 0)


def test_what_is_asked_for_is_chosen_by_all_that_is_said() -> None:
    one = letter("late", "a", 3.0, 5)
    assert is_wanted(one, {})
    assert is_wanted(one, {"reason": frozenset(), "producer": frozenset(["a"]), "position": frozenset(["0:5"])})
    assert not is_wanted(one, {"reason": frozenset(["bad"]), "producer": frozenset(["a"])})

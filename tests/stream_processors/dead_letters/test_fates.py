"""What is foretold of a frame is what the first stage then does with it."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springback.producers.contract.codec import encode_msgpack
from springback.producers.contract.frame import StepFrame
from springback.stream_processors.dead_letters.fates import Forecast, KnownEpisodes, forecast
from springback.stream_processors.exact.port import StageEvent
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import decode_reading
from springback.stream_processors.stages.track_steps import TrackSteps
from springback.stream_processors.topics import STATUS, SUMMARIES
from tests.examples import examples
from tests.stream_processors.frame_builders import START_S, Part, frame_of_parts, header_of, nominal_rows


def piece(first: int, stop: int, outcome: str | None = None, session: str = "boot", episode: str = "1") -> StepFrame:
    part: Part = (header_of(episode=episode), nominal_rows(first, stop), outcome)  # type: ignore[assignment]
    return frame_of_parts([part], session=session)


def foretold_and_done(history: Sequence[StepFrame], frame: StepFrame) -> tuple[Forecast, int]:
    """The forecast after a history, and how many steps the stage then takes in."""
    stage = TrackSteps(ResilienceConfig(status_interval_s=0.0))
    state, known = stage.blank(), KnownEpisodes()
    for offset, each in enumerate([*history, frame]):
        last = offset == len(history)
        before = stage.fates["taken"]
        told = forecast(each, known, START_S) if last else None
        event = StageEvent("steps", 0, offset, b"robot-7", encode_msgpack(each), START_S + 10.0 * offset)
        for output in stage.apply([event], [state]):
            if output.topic in (STATUS, SUMMARIES) and output.value is not None:
                known.take(decode_reading(output.value))
        stage.settle(written=True)
        if told is not None:
            return told, stage.fates["taken"] - before
    raise AssertionError


def test_what_nobody_knows_of_counts() -> None:
    assert foretold_and_done([], piece(0, 5)) == (Forecast("counts", 5, 5, ""), 5)


def test_what_goes_on_counts_and_what_overlaps_counts_in_part() -> None:
    assert foretold_and_done([piece(0, 5)], piece(5, 9)) == (Forecast("counts", 4, 4, ""), 4)
    told, done = foretold_and_done([piece(0, 5)], piece(3, 9))
    assert (told.fate, told.counted, done) == ("in part", 4, 4)
    assert told.why == "2 at or below the last step that has come"


def test_what_was_overtaken_is_late() -> None:
    told, done = foretold_and_done([piece(0, 3), piece(6, 9)], piece(3, 6))
    assert (told.fate, told.counted, done) == ("late", 0, 0)


def test_what_comes_after_the_end_is_late() -> None:
    told, done = foretold_and_done([piece(0, 3, "success")], piece(3, 6))
    assert (told.fate, told.counted, done, told.why) == ("late", 0, 0, "3 after the end of their episode")


def test_an_older_session_is_late_and_one_that_nobody_knows_would_end_what_runs() -> None:
    told, done = foretold_and_done([piece(0, 3, session="one"), piece(0, 3, session="two")], piece(3, 6, session="one"))
    assert (told.fate, done) == ("late", 0)
    told, done = foretold_and_done([piece(0, 3, session="two")], piece(0, 3, session="one"))
    assert (told.fate, told.counted, done) == ("harmful", 0, 3)
    assert told.why == "agent robot-7 is in session two now, which this one would end"


def test_rows_that_would_be_refused_again_are_told() -> None:
    rows = nominal_rows(0, 4)
    rows[2]["progress"] = 40.0
    told, done = foretold_and_done([], frame_of_parts([(header_of(), rows, None)]))
    assert (told.fate, told.counted, done) == ("in part", 3, 3)
    assert told.why.startswith("1 as before (out_of_range: ")


def test_two_frames_of_one_episode_are_foretold_one_after_the_other() -> None:
    known = KnownEpisodes()
    assert forecast(piece(0, 5, "success"), known, START_S).fate == "counts"
    assert forecast(piece(0, 5, "success"), known, START_S).fate == "late"


def test_an_end_alone_counts() -> None:
    assert foretold_and_done([piece(0, 5)], piece(5, 5, "success"))[0].fate == "counts"


FRAMES = st.builds(
    lambda first, length, ends, episode: piece(first, first + length, "success" if ends else None, episode=episode),
    st.integers(0, 12),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from("12"),
)


@pytest.mark.timeout(300)
@settings(max_examples=examples(60), deadline=None)
@given(st.lists(FRAMES, max_size=4), FRAMES)
def test_whatever_came_before_in_a_session_as_many_steps_count_as_foretold(
    history: list[StepFrame], frame: StepFrame
) -> None:
    told, done = foretold_and_done(history, frame)
    assert told.counted == done

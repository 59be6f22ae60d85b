"""What could not be read of a recording: shown as far as a person would read it, counted whole."""

from springback.deploy.commands.input_files import LeftOut
from springback.producers.recordings.step_frames import UnreadablePart


def told_of(parts: int) -> list[str]:
    lines: list[str] = []
    left_out = LeftOut(lines.append)
    for number in range(1, parts + 1):
        left_out(UnreadablePart("run.jsonl", number, "truncated", "ends early"))
    left_out.finish()
    assert left_out.count == parts
    return lines


def test_every_part_is_shown_where_there_are_few() -> None:
    assert told_of(2) == [f"left out  run.jsonl:{number}: truncated: ends early" for number in (1, 2)]
    assert len(told_of(20)) == 20


def test_a_file_that_is_no_recording_does_not_flood_the_terminal() -> None:
    lines = told_of(5000)
    assert len(lines) == 21
    assert lines[-1] == "left out  4980 more, not shown here"

"""Records as JSON Lines, plain or gzip: one JSON value a line, of any shape."""

from collections.abc import Iterator

from springback.producers.mapping.timed_message import TimedMessage
from springback.producers.recordings.opening import OpenRecording, json_value
from springback.producers.recordings.step_frames import recording_lines
from springback.producers.recordings.table_rows import row_message


def read_messages(recording: OpenRecording) -> Iterator[TimedMessage]:
    """The records in order; a line that is no JSON is left out."""
    for number, line in recording_lines(recording.stream, recording.source, recording.report):
        try:
            value = json_value(line)
        except ValueError as error:
            recording.unreadable(number, "not_json", str(error))
        else:
            yield row_message(recording, number, value)

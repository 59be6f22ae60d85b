"""Records as JSON Lines, plain or gzip: one JSON value a line, of any shape."""

from collections.abc import Iterator

from producers.recording_formats.open_recording import OpenRecording, json_value
from producers.recording_formats.table_rows import row_message
from producers.recording_reader import recording_lines
from producers.signal_mapping import TimedMessage


def read_messages(recording: OpenRecording) -> Iterator[TimedMessage]:
    """The records in order; a line that is no JSON is left out."""
    for number, line in recording_lines(recording.stream, recording.source, recording.report):
        try:
            value = json_value(line)
        except ValueError as error:
            recording.unreadable(number, "not_json", str(error))
        else:
            yield row_message(recording, number, value)

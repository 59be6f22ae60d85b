"""Recordings as frames that can be gone through more than once, without holding them."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from producers.recording_reader import ReportUnreadable, UnreadablePart, log_unreadable, read_frames
from producers.step_frame import StepFrame


class RecordedFrames:
    """The frames of several recordings, as one input in the order given; each time through reads the files anew.

    What can be read only once (standard input, a pipe) is held in memory instead.

    Args:
        paths: Files of JSON Lines, plain or gzip; `-` is standard input.
        report_unreadable: Called for each part that cannot be read, the first time that it is met.
    """

    def __init__(self, paths: Iterable[str | Path], report_unreadable: ReportUnreadable = log_unreadable) -> None:
        self._paths = [str(path) for path in paths]
        self._report_unreadable = report_unreadable
        self._told: set[UnreadablePart] = set()
        self._held: dict[str, list[StepFrame]] = {}

    def __iter__(self) -> Iterator[StepFrame]:
        """All frames that can be read.

        Raises:
            OSError: A file cannot be opened.
        """
        for path in self._paths:
            if path != "-" and Path(path).is_file():
                yield from self._read(path)
            else:
                if path not in self._held:
                    self._held[path] = list(self._read(path))
                yield from self._held[path]

    def _read(self, path: str) -> Iterator[StepFrame]:
        return (recorded.frame for recorded in read_frames([path], self._report_once))

    def _report_once(self, part: UnreadablePart) -> None:
        if part not in self._told:
            self._told.add(part)
            self._report_unreadable(part)

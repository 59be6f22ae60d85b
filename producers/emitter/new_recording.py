"""Makes a recording of agents that play: a file of step frames that `evaluate` and `replay` take."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from springback.producers.emitter.publishers import JsonLinesPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.errors import PublishError
from springback.producers.whole_file import whole_file

_FLUSH_S = 60.0


class NewRecording:
    """A recording whose frames depend on nothing but what is played.

    Args:
        path: the file to make, JSON Lines, compressed when its name ends in `.gz`.
        producer: id of the producer.
        seed: of what is played; it names the session.
        frame_steps: steps per frame at most, by the player's `cut`s.

    Raises:
        FileExistsError: there is such a file already.
    """

    def __init__(self, path: str | os.PathLike[str], *, producer: str, seed: int, frame_steps: int) -> None:
        self.path = Path(path)
        if self.path.exists():
            message = f"{self.path} exists already; remove it or choose another name"
            raise FileExistsError(message)
        self._producer, self._seed, self._frame_steps = producer, seed, frame_steps

    @contextlib.contextmanager
    def emitter(self, clock: Callable[[], float]) -> Iterator[StepEmitter]:
        """What the agents play into. The file is there once all of it has been written; what fails leaves nothing.

        Frames are cut by `cut`: the emitter itself would cut them by the wall clock.

        Args:
            clock: by which steps are timed, s UTC epoch.

        Raises:
            PublishError: the file could not be written.
            OSError: likewise; `filename` is the file.
        """
        with whole_file(self.path) as draft:
            emitter = StepEmitter(
                JsonLinesPublisher(draft),
                producer=self._producer,
                session=f"seed-{self._seed}",
                max_steps=2 * self._frame_steps,
                linger_s=3600.0,
                clock=clock,
            )
            try:
                with emitter:
                    yield emitter
            except PublishError as error:
                message = str(error).replace(str(draft), str(self.path))
                raise PublishError(message) from error
            if emitter.report.steps_dropped:
                message = f"{self.path} could not be written whole: {emitter.report.last_error}"
                raise PublishError(message.replace(str(draft), str(self.path)))

    def cut(self, emitter: StepEmitter) -> None:
        """Has the next step begin a new frame.

        Raises:
            PublishError: the file could not be written.
        """
        if not emitter.flush(_FLUSH_S):
            message = f"{self.path} could not be written: {emitter.report.last_error}"
            raise PublishError(message)

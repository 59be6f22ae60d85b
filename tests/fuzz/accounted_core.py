"""The first stage without a broker; after each batch it must account for everything that it was given."""

from typing import Any

from springback.producers.contract.codec import decode_frame
from springback.producers.errors import UnreadableFrameError
from springback.stream_processors.exact.port import Output, StageEvent
from springback.stream_processors.resilience.baseline.codec import decode_contribution
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import decode_reading
from springback.stream_processors.resilience.tracking.bounds import BoundsConfig
from springback.stream_processors.stages.dead_letters import MOST_FAULTS
from springback.stream_processors.stages.track_steps import TrackSteps
from springback.stream_processors.topics import CONTRIBUTIONS, DEAD_LETTER, LARGEST_RECORD_BYTES
from tests.stream_processors.frame_builders import START_S, nominal_baseline, ready

CONFIG = ResilienceConfig(
    idle_timeout_s=60.0,
    open_episodes=3,
    remembered_episodes=6,
    forget_agent_s=300.0,
    bounds=BoundsConfig(agents=8, episodes=16, text_bytes=20_000, producers=2, crowded_idle_s=30.0, state_bytes=60_000),
)
"""Small, so that every bound is met."""
_STATE_BYTES = 400_000
"""What open episodes alone may come to within those bounds."""


def rows_of(data: bytes) -> tuple[bytes, int | None]:
    """The key that the frame belongs under, and its rows; None where it cannot be read."""
    try:
        frame = decode_frame(data)
    except UnreadableFrameError:
        return b"p", None
    return frame.producer.encode("utf-8", "replace"), frame.n_steps


class AccountedCore:
    """Takes frames in, batch by batch, through state that is written and read again after each.

    Attributes:
        frames: how many it was given.
        unreadable: how many of them cannot be read.
        sent: the rows of all others.
    """

    def __init__(self, batch: int = 16) -> None:
        baseline = ready(nominal_baseline(CONFIG, 12), CONFIG)
        self._reducer = TrackSteps(CONFIG, baseline)
        self._state: Any = self._reducer.blank()
        self._batch = batch
        self._events: list[StageEvent] = []
        self._letters = 0
        self.frames = self.unreadable = self.sent = 0

    @property
    def fates(self) -> dict[str, int]:
        """What became of the rows."""
        return dict(self._reducer.fates)

    def feed(self, data: bytes) -> None:
        """Takes a frame in."""
        key, rows = rows_of(data)
        self.unreadable += rows is None
        self.sent += rows or 0
        now_s = START_S + 0.5 * self.frames
        self._events.append(StageEvent("steps", 0, self.frames, key, data, now_s))
        self.frames += 1
        if len(self._events) >= self._batch:
            self.flush()

    def flush(self) -> None:
        """Works on what waits, and checks the account."""
        events, self._events = self._events, []
        self._check(self._reducer.apply(events, [self._state] * len(events)), len(events))
        self._check(self._reducer.tick(self._state, START_S + 0.5 * self.frames) or [], 1)
        self._reducer.settle(True)
        written = self._reducer.encode(self._state)
        assert len(written) <= _STATE_BYTES, f"the state has {len(written)} bytes"
        self._state = self._reducer.decode(written)
        assert sum(self.fates.values()) == self.sent, f"{self.fates} is not {self.sent}"
        assert min(self.fates.values()) >= 0
        assert self._letters >= self.unreadable

    def _check(self, outputs: list[Output], events: int) -> None:
        for output in outputs:
            assert output.value is not None
            assert len(output.value) <= LARGEST_RECORD_BYTES
            if output.topic == CONTRIBUTIONS:
                decode_contribution(output.value)
            elif output.topic != DEAD_LETTER:
                decode_reading(output.value)
        letters = sum(output.topic == DEAD_LETTER for output in outputs)
        assert letters <= 3 * MOST_FAULTS * events
        self._letters += letters

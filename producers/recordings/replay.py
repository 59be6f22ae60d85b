"""Recordings played back into Kafka at a chosen speed, each time as a new session."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from springback.producers.contract.frame import StepFrame
from springback.producers.emitter.delivery import DeliveryWindow
from springback.producers.emitter.publishers import FramePublisher
from springback.producers.emitter.step_emitter import new_session
from springback.producers.errors import FrameRefusedError
from springback.producers.recordings.step_frames import RecordedFrame, UnreadablePart

LONGEST_PAUSE_S: Final = 60.0
_LONGEST_SESSION_KEPT: Final = 200

SessionPolicy = Literal["fresh", "keep"]


@dataclass
class _Pacer:
    """When a frame is due: recorded time on a wall clock, at `speed` recorded seconds per second.

    A recording that goes back in time (another robot's part of the file, a clock that was reset) or leaps ahead goes on
    at once from there: nobody wants to wait for the years between 1970 and a robot's first contact with a time server.
    """

    speed: float
    recorded_s: float = math.nan
    wall_s: float = math.nan

    def due_s(self, time_s: float, now_s: float) -> float:
        """The instant of the wall clock at which a frame of this recorded time is due."""
        due_s = self.wall_s + (time_s - self.recorded_s) / self.speed
        on_time = abs(time_s - self.recorded_s) <= LONGEST_PAUSE_S
        if not on_time:  # the first frame too: nothing is near to NaN
            due_s = now_s
        if not on_time or time_s > self.recorded_s:
            self.recorded_s, self.wall_s = time_s, due_s
        return due_s


@dataclass
class ReplaySummary:
    """What a replay has handed over so far.

    Attributes:
        frames, steps, size_bytes: how much; what was refused counts too.
        arrived: frames that Kafka has acknowledged.
        refused: frames that Kafka will never take, and why.
        producers: whose frames they were.
        sessions: the session as which each recorded one was sent.
    """

    frames: int = 0
    steps: int = 0
    size_bytes: int = 0
    arrived: int = 0
    refused: list[UnreadablePart] = field(default_factory=list)
    producers: set[str] = field(default_factory=set)
    sessions: dict[str, str] = field(default_factory=dict)


def replay(
    frames: Iterable[RecordedFrame],
    publisher: FramePublisher,
    *,
    speed: float = 1.0,
    session: SessionPolicy = "fresh",
    on_sent: Callable[[ReplaySummary], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> ReplaySummary:
    """Sends recorded frames to Kafka, in the order of the recording, and waits until Kafka has them all.

    Everything but the session is sent as it was recorded, even what a worker will reject.

    Args:
        frames: the frames, such as those of `read_recordings`.
        publisher: where they go; it stays open.
        speed: recorded seconds per second, by the frames' own times; 0 for as fast as Kafka takes them.
        session: `fresh` gives every recorded session a new id for this replay, since a worker rightly drops steps that
            it has seen before; `keep` sends the recorded one.
        on_sent: called after each frame with the summary so far.
        clock: seconds of a clock that only rises.
        pause: waits for so many seconds.

    Returns:
        what was sent. A frame that Kafka refuses for good (too large, say) is noted there, and the rest goes on.

    Raises:
        PublishError: Kafka did not take a frame, or no longer answers.
        ValueError: the speed is negative or not finite.
    """
    if not 0.0 <= speed < math.inf:
        message = f"speed is {speed}; expected 0 (as fast as possible) or recorded seconds per second, such as 1 or 20"
        raise ValueError(message)
    token = new_session()
    summary = ReplaySummary()
    window = DeliveryWindow(publisher)
    pacer = _Pacer(speed) if speed else None
    for recorded in frames:
        frame = recorded.frame
        if pacer is not None and (time_s := _end_time_s(frame)) is not None:
            wait_s = pacer.due_s(time_s, clock()) - clock()
            if wait_s > 0.0:
                pause(wait_s)
        if frame.session not in summary.sessions:
            fresh = session == "fresh"
            summary.sessions[frame.session] = _fresh_session(frame.session, token) if fresh else frame.session
        data = recorded.data if session == "keep" else _with_session(recorded.data, summary.sessions[frame.session])
        window.publish(frame.producer.encode(), data, _noting(summary, recorded))
        summary.frames += 1
        summary.steps += frame.n_steps
        summary.size_bytes += len(data)
        summary.producers.add(frame.producer)
        if on_sent is not None:
            on_sent(summary)
    window.drain()
    return summary


def _noting(summary: ReplaySummary, recorded: RecordedFrame) -> Callable[[FrameRefusedError | None], None]:
    def note(error: FrameRefusedError | None) -> None:
        if error is None:
            summary.arrived += 1
        else:
            summary.refused.append(UnreadablePart(recorded.source, recorded.line, "refused_by_kafka", str(error)))

    return note


def _end_time_s(frame: StepFrame) -> float | None:
    """The time of the frame's last step that has one, before which the frame was not complete."""
    times = frame.numbers("time_s")
    if times is None:
        return None
    known = times[np.isfinite(times)]
    return float(known[-1]) if known.size else None


def _fresh_session(recorded: str, token: str) -> str:
    """The same for all frames of a recorded session, and within the wire's limit for an identifier."""
    if len(recorded) > _LONGEST_SESSION_KEPT:
        recorded = hashlib.blake2s(recorded.encode(errors="replace"), digest_size=16).hexdigest()
    return f"{recorded}+{token}"


def _with_session(data: bytes, session: str) -> bytes:
    # With the standard library, which passes on the NaN that Python clients write, as `decode_frame` accepts it.
    document = json.loads(data.decode("utf-8-sig", errors="replace"))
    document["session"] = session
    return json.dumps(document, separators=(",", ":")).encode()

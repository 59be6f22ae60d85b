"""The first stage: step frames in; windows, summaries, agent statuses, baseline contributions and dead letters out."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from springback.producers.contract.codec import decode_frame
from springback.producers.errors import UnreadableFrameError
from springback.stream_processors.exact.port import Output, StageEvent
from springback.stream_processors.exact.state import decode_versioned
from springback.stream_processors.intake.step_table import ArrivedFrame, StepTable
from springback.stream_processors.intake.validation import tabulate
from springback.stream_processors.resilience.baseline.codec import encode_contribution
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline, materialise
from springback.stream_processors.resilience.baseline.stage_baseline import StageBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import encode_reading
from springback.stream_processors.resilience.stability.value_function import ValueModel
from springback.stream_processors.resilience.tracking.batch import UnusedSteps
from springback.stream_processors.resilience.tracking.bounds import fit
from springback.stream_processors.resilience.tracking.episode_tracker import EpisodeTracker, TrackerOutputs
from springback.stream_processors.resilience.tracking.tracker_state import (
    TRACKER_SCHEMA_VERSION,
    TrackerState,
    state_of_version_2,
    state_of_version_3,
)
from springback.stream_processors.stages.dead_letters import (
    MOST_FAULTS,
    TOO_MANY_FAULTS,
    WRONG_KEY,
    dead_message,
    dead_row,
    refused_message,
)
from springback.stream_processors.suspicions.batch_signs import SuspicionCounts
from springback.stream_processors.topics import CONTRIBUTIONS, STATUS, SUMMARIES, WINDOWS


class TrackSteps:
    """The reducer of `track_steps`: the episode tracker between encoded frames and encoded readings.

    Args:
        config: settings of the core.
        baseline: what `apply` scores by; None leaves every step unscored. A worker scores by `apply_by`.
        model: values states; None for the mean returns by anchor.

    Attributes:
        steps: valid rows taken in since the worker began; those of a batch that comes again count again.
        sheddings: times that a bucket was made smaller.
        told_losses: steps that producers say they have lost, in frames whose state is written; each counts once.
        suspicions: counts the signs of mistakes of whoever sends.
        fates: what became of the rows of frames whose state is written: taken, rejected, or the reason why unused.
    """

    def __init__(
        self,
        config: ResilienceConfig,
        baseline: MaterialisedBaseline | None = None,
        model: ValueModel | None = None,
    ) -> None:
        self._tracker = EpisodeTracker(config, model, bounded=True)
        self._bounds = config.bounds
        self._baseline = baseline or materialise(
            StageBaseline(grid=config.grid), config.baseline, config.window.fixed_bounds()
        )
        self.steps = 0
        self.sheddings = 0
        self.fates: Counter[str] = Counter()
        self._new_fates: Counter[str] = Counter()
        self.suspicions = SuspicionCounts()
        self.told_losses = self._new_told_losses = 0

    def blank(self) -> TrackerState:
        """A bucket without agents."""
        return TrackerState()

    def encode(self, state: TrackerState) -> bytes:
        """The bucket as MessagePack; one that has grown too large is made smaller."""
        data, shed = fit(state, msgspec.msgpack.encode, self._bounds)
        self.sheddings += shed
        return data

    def decode(self, data: bytes) -> TrackerState:
        """The bucket in the bytes.

        Raises:
            StateFormatError: this version cannot read it.
        """
        return decode_versioned(
            data,
            TrackerState,
            TRACKER_SCHEMA_VERSION,
            older={1: state_of_version_2, 2: state_of_version_2, 3: state_of_version_3},
        )

    def apply(self, events: Sequence[StageEvent], states: Sequence[TrackerState]) -> list[Output]:
        """Takes in a batch of frames in one pass of the core; what cannot be used goes to the dead letters."""
        return self.apply_by(events, states, self._baseline)

    def apply_by(
        self, events: Sequence[StageEvent], states: Sequence[TrackerState], baseline: MaterialisedBaseline
    ) -> list[Output]:
        """As `apply`, scored by a given baseline."""
        dead: list[Output] = []
        sources: list[StageEvent] = []
        arrived: list[ArrivedFrame] = []
        buckets: list[TrackerState] = []
        for event, state in zip(events, states, strict=True):
            try:
                frame = decode_frame(event.value)
            except UnreadableFrameError as error:
                dead.append(dead_message(event, error.reason, str(error)))
                self.suspicions.note("unreadable_part")
                continue
            key = _key(frame.producer)
            if event.key != key:
                # Frames of one producer that lie on several partitions would be pieces of episodes to each of them.
                dead.append(dead_message(event, WRONG_KEY, _wrong_key(event.key, key)))
                self.suspicions.note("wrong_key")
                continue
            if frame.lost_steps:
                self._new_told_losses += state.note_losses(frame.producer, frame.session, frame.lost_steps)
            sources.append(event)
            arrived.append(ArrivedFrame(frame, event.time_s))
            buckets.append(state)
        table = tabulate(arrived, MOST_FAULTS)
        found = self._tracker.track(table, buckets, baseline)
        self.steps += len(table.step)
        self._count(table, found.unused)
        self.suspicions.follow(table, found, [event.value for event in sources])
        dead += _rejected_messages(sources, table)
        dead += _unused_messages(sources, found.unused)
        return [*_messages(found), *dead]

    def settle(self, written: bool) -> None:
        """Notes that the frames applied since the last call are in a written state, or that they will come again."""
        if written:
            self.fates.update(self._new_fates)
            self.told_losses += self._new_told_losses
        self._new_fates.clear()
        self.suspicions.settle(written)
        self._new_told_losses = 0

    def _count(self, table: StepTable, unused: Sequence[UnusedSteps]) -> None:
        rows = Counter[str](rejected=int(table.rejected_rows.sum()), taken=len(table.step))
        for steps in unused:
            rows[steps.reason] += steps.steps
            rows["taken"] -= steps.steps
        self._new_fates.update(rows)

    def tick(self, state: TrackerState, now_s: float) -> list[Output] | None:
        """Closes what has been silent for longer than the idle timeout."""
        return list(_messages(self._tracker.close_idle(state, now_s))) or None

    def reject(self, event: StageEvent, error: Exception) -> list[Output]:
        """A frame that the core fails on goes whole to the dead letters."""
        return [refused_message(event, error)]


def _messages(found: TrackerOutputs) -> Iterator[Output]:
    for begun in found.begun:
        yield Output(SUMMARIES, _key(begun.traits.family), encode_reading(begun))
    for window in found.windows:
        yield Output(WINDOWS, _key(window.key.agent), encode_reading(window))
    for summary in found.summaries:
        yield Output(SUMMARIES, _key(summary.traits.family), encode_reading(summary))
    for status in found.statuses:
        yield Output(STATUS, _key(status.agent), encode_reading(status))
    for contribution in found.contributions:
        yield Output(CONTRIBUTIONS, _key(contribution.family), encode_contribution(contribution))


def _rejected_messages(sources: list[StageEvent], table: StepTable) -> Iterator[Output]:
    """What was taken out, one by one; a frame with very much of it once and whole: its good rows are taken in."""
    whole = set(np.flatnonzero(np.maximum(table.rejected_rows, table.rejected_parts) > MOST_FAULTS).tolist())
    told: set[int] = set()
    for rejected in table.rejected:
        frame = rejected.frame
        if frame not in whole:
            yield dead_row(sources[frame], rejected.row, rejected.reason, rejected.detail)
        elif frame not in told:
            told.add(frame)
            rows, parts = table.rejected_rows[frame], table.rejected_parts[frame]
            detail = (
                f"{rows} of {table.frames[frame].frame.n_steps} rows and {parts} other parts are faulty and left out, "
                f"the first: {rejected.reason}: {rejected.detail}"
            )
            yield dead_message(sources[frame], TOO_MANY_FAULTS, detail)


def _unused_messages(sources: list[StageEvent], unused: Sequence[UnusedSteps]) -> Iterator[Output]:
    """The steps of each episode that were not taken in, but for copies; a frame with very many once and whole."""
    lost = [steps for steps in unused if steps.reason != "duplicate"]
    episodes = Counter(steps.frame for steps in lost)
    told: set[int] = set()
    for steps in lost:
        if episodes[steps.frame] <= MOST_FAULTS:
            yield _unused_message(sources[steps.frame], steps)
        elif steps.frame not in told:
            told.add(steps.frame)
            detail = f"steps of {episodes[steps.frame]} episodes are not used, the first: {steps.detail}"
            yield dead_message(sources[steps.frame], steps.reason, detail)


def _unused_message(event: StageEvent, steps: UnusedSteps) -> Output:
    row = {
        "agent": steps.key.agent,
        "session": steps.key.session,
        "episode": steps.key.episode,
        "steps": steps.steps,
        "lowest_step": steps.lowest,
        "highest_step": steps.highest,
    }
    return dead_row(event, row, steps.reason, steps.detail)


def _wrong_key(given: bytes, expected: bytes) -> str:
    came = f"under key {given!r}" if given else "without a key"
    return f"a frame of producer {expected!r} came {came}: send it under the producer's id, in UTF-8"


def _key(text: str) -> bytes:
    return text.encode("utf-8", "replace")

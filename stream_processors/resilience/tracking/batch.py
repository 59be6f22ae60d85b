"""The admitted rows of a batch of frames: one object that scoring, stability, learning and the tracker all read.

Names become small integers here, once: `families` and `mode_names` say what they stand for.
"""

import itertools
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from springback.producers.contract.frame import NavigationOutcome, TextColumn
from springback.stream_processors.intake.step_table import ArrivedFrame, StepTable
from springback.stream_processors.resilience.anchor import N_SIGNALS, AnchorGrid, Bools, Floats, Ints, cycle_times
from springback.stream_processors.resilience.columns import one_back, run_begins
from springback.stream_processors.resilience.readings import EpisodeKey, Outcome, UnusedReason
from springback.stream_processors.resilience.tracking.tracker_state import OpenEpisode, TrackedAgent


@dataclass(slots=True)
class TouchedEpisode:
    """An open episode that a batch touches, and how it ends in this batch, if it does.

    `opened_in` is the frame that it begins in, None if it began before this batch. `begun_s` is the broker's time of
    the frame that it begins in, or goes on in after silence had closed it; None if it does neither. `ended_s` is None
    where nobody said when: its last step's time stands then.
    """

    agent: TrackedAgent
    state: OpenEpisode
    outcome: Outcome | None = None
    ended_s: float | None = None
    navigation: NavigationOutcome | None = None
    realised_magnitude: float | None = None
    opened_in: int | None = None
    begun_s: float | None = None

    @property
    def ended(self) -> bool:
        """Whether its end was seen in this batch: an aborted episode just stops."""
        return self.outcome not in (None, "aborted")


_WHAT_HAPPENED: dict[UnusedReason, str] = {
    "duplicate": "came before",
    "overtaken": "came after a later step of it: send the frames of one producer in order, under one key",
    "after_end": "came after its end: give what is run again an episode id of its own",
    "old_session": "came after another session of this agent had begun: give two programs two names, if there are two",
    "session_again": "came before with other content: give every start of a program a session id of its own",
    "over_bounds": "found no room: its producer, or all that share a bucket of the state, have as many agents, open "
    "episodes or bytes of ids and names as `resilience.bounds` allows",
}


@dataclass(frozen=True, slots=True)
class UnusedSteps:
    """Valid steps of one episode in one frame that are not taken in, for one reason: so many, between these numbers."""

    frame: int
    key: EpisodeKey
    reason: UnusedReason
    steps: int
    lowest: int
    highest: int

    @property
    def detail(self) -> str:
        """What happened, in words, and what to do about it."""
        numbers = f"step {self.lowest}" if self.lowest == self.highest else f"steps {self.lowest} to {self.highest}"
        return f"{numbers} of episode {self.key.episode!r} of {self.key.agent!r} {_WHAT_HAPPENED[self.reason]}"


@dataclass(frozen=True, slots=True)
class Batch:
    """The admitted rows, episode by episode and by step inside one, with what stood before each step.

    Shape: (n,) for n rows where nothing else is said; k episodes are touched.

    Attributes:
        episodes: the episodes touched, those without a row too.
        agents: the agents named in the frames.
        forgotten: the agents that were forgotten to make room for others.
        unused: the valid rows that were not admitted.
        families: the names of the families; `family_of` is each episode's position in them (k,).
        mode_names: what the codes in `mode` stand for.
        grid: the bins of the anchors.
        starts, stops: the rows of each episode, by its position: an empty range where it has none (k,).
        frames: the frames of the batch.
        episode: position of the row's episode in `episodes`.
        frame, frame_row: which frame the row came in, and where it stands there.
        arrived_s: the broker's time of the row's frame.
        missing: steps that never came before this one.
        signals: the vector x; its cycle time is NaN where unknown (n, 8).
        progress_before, propositions_before: p and q that the step started from; the bins are those of the anchor.
        clock_reset: the producer's clock ran backwards here.
        judge: scores of goal, rationality and efficiency, NaN where there is none (n, 3).
    """

    episodes: list[TouchedEpisode]
    agents: list[TrackedAgent]
    forgotten: list[TrackedAgent]
    unused: list[UnusedSteps]
    families: list[str]
    family_of: Ints
    mode_names: list[str]
    grid: AnchorGrid
    starts: Ints
    stops: Ints
    frames: list[ArrivedFrame]
    episode: Ints
    frame: Ints
    frame_row: Ints
    step: Ints
    time_s: Floats
    arrived_s: Floats
    clocked: Bools
    mode: Ints
    missing: Ints
    progress: Floats
    propositions: Floats
    violation: Floats
    signals: Floats
    progress_before: Floats
    propositions_before: Floats
    progress_bin: Ints
    residual_bin: Ints
    clock_reset: Bools
    judge: Floats

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.step)

    @property
    def family(self) -> Ints:
        """The position of each row's family in `families` (n,)."""
        return self.family_of[self.episode]

    @property
    def present(self) -> Ints:
        """The positions of the episodes that have rows, rising."""
        return np.flatnonzero(self.starts < self.stops)

    def texts(self, column: str, at: list[int]) -> list[str]:
        """What the rows' own frames say in a text column that is not joined; empty where they say nothing."""
        found: list[str] = []
        rows = zip(self.frame[at].tolist(), self.frame_row[at].tolist(), strict=True)
        for frame, of_frame in itertools.groupby(rows, key=itemgetter(0)):
            told = self.frames[frame].frame.steps.get(column)
            if isinstance(told, TextColumn):
                found += [told.values[told.codes.item(row)] for _, row in of_frame]
            else:
                found += ["" for _ in of_frame]
        return found

    def take(self, at: Ints) -> "Batch":
        """The same batch with the rows at these positions alone, which rise."""
        if len(at) == len(self):
            return self
        rows = {name: getattr(self, name)[at] for name in _ROW_COLUMNS}
        starts, stops = _ranges(rows["episode"], len(self.episodes))
        return replace(self, starts=starts, stops=stops, **rows)


_ROW_COLUMNS = Batch.__slots__[Batch.__slots__.index("episode") :]


def gather(
    table: StepTable,
    taken: Ints,
    places: Ints,
    episodes: list[TouchedEpisode],
    agents: list[TrackedAgent],
    forgotten: list[TrackedAgent],
    unused: list[UnusedSteps],
    grid: AnchorGrid,
) -> Batch:
    """Gathers the rows taken out of the table, and works out what stood before each.

    Args:
        table: the rows of the frames.
        taken: which of them count, episode by episode and by step inside one (n,).
        places: the position of each one's episode in `episodes`, rising (n,).
        episodes: the episodes touched.
        agents: the agents named in the frames.
        forgotten: the agents that were forgotten to make room for others.
        unused: the valid rows that are not taken.
        grid: the bins of the anchors.
    """
    begins = np.flatnonzero(run_begins(places))

    def before(column: np.ndarray, remembered: list[float]) -> np.ndarray:
        shifted = one_back(column)
        shifted[begins] = np.array(remembered, dtype=column.dtype)[places[begins]]
        return shifted

    states = [episode.state for episode in episodes]
    step, time_s, clocked = table.step[taken], table.time_s[taken], table.clocked[taken]
    progress, propositions = table.progress[taken], table.propositions[taken]
    progress_before = before(progress, [state.progress for state in states])
    propositions_before = before(propositions, [state.propositions for state in states])
    missing = step - before(step, [state.last_step for state in states]) - 1
    clocked_before = before(clocked, [state.last_clocked for state in states])
    time_before = before(time_s, [state.last_time_s for state in states])
    cycle_s, clock_reset = cycle_times(
        table.cycle_time_s[taken], time_s, time_before, clocked & clocked_before & (missing == 0)
    )
    signals = np.empty((len(taken), N_SIGNALS))
    columns = (
        table.planning_s[taken],
        table.perception_s[taken],
        table.travel[taken],
        table.retries[taken],
        progress - progress_before,
        propositions - propositions_before,
        table.risk[taken],
        cycle_s,
    )
    for position, column in enumerate(columns):
        signals[:, position] = column
    frame = np.array([entry.frame for entry in table.episodes], dtype=np.int64)[table.episode[taken]]
    frame_times_s = np.array([arrived.broker_time_s for arrived in table.frames], dtype=np.float64)
    number = {name: i for i, name in enumerate(dict.fromkeys(state.traits.family for state in states))}
    starts, stops = _ranges(places, len(episodes))
    return Batch(
        episodes=episodes,
        agents=agents,
        forgotten=forgotten,
        unused=unused,
        families=list(number),
        family_of=np.array([number[state.traits.family] for state in states], dtype=np.int64),
        mode_names=table.mode_names,
        grid=grid,
        starts=starts,
        stops=stops,
        frames=table.frames,
        episode=places,
        frame=frame,
        frame_row=table.frame_row[taken],
        step=step,
        time_s=time_s,
        arrived_s=frame_times_s[frame],
        clocked=clocked,
        mode=table.mode[taken],
        missing=missing,
        progress=progress,
        propositions=propositions,
        violation=table.violation[taken],
        signals=signals,
        progress_before=progress_before,
        propositions_before=propositions_before,
        progress_bin=grid.progress_bin(progress_before),
        residual_bin=grid.residual_bin(propositions_before),
        clock_reset=clock_reset,
        judge=np.column_stack([table.judge_goal, table.judge_rationality, table.judge_efficiency])[taken],
    )


def _ranges(places: Ints, count: int) -> tuple[Ints, Ints]:
    numbers = np.arange(count)
    return np.searchsorted(places, numbers, "left"), np.searchsorted(places, numbers, "right")

"""What the episode tracker remembers of its agents: plain structs that MessagePack carries as they are."""

from collections.abc import Iterable

import msgspec
import numpy as np

from springback.producers.contract.columns import LARGEST_INTEGER
from springback.stream_processors.resilience.anchor import N_SAMPLE, Floats
from springback.stream_processors.resilience.baseline.moments import Moments, sums_about_mean
from springback.stream_processors.resilience.baseline.stage_baseline import (
    N_STABILITY,
    CellKey,
    PolicySums,
    policy_matrix,
    sums_matrix,
)
from springback.stream_processors.resilience.readings import (
    AgentCounts,
    ChannelCosts,
    EpisodeKey,
    EpisodeTraits,
    OpenWindow,
)
from springback.stream_processors.resilience.rebound.rebound_window import DetectorState, UninterruptedSums
from springback.stream_processors.resilience.rebound.recovery_cost import Tally
from springback.stream_processors.resilience.stability.stability_state import ReturnTraces, StabilityState
from springback.stream_processors.resilience.tracking.progress_rise import ProgressRise
from springback.stream_processors.resilience.tracking.seen_steps import SeenSteps

TRACKER_SCHEMA_VERSION = 4
"""2: gaps, interruptions, unseen beginnings, references behind the bounds. Version 1 is read as having none of them.
3: the steps that were seen of each episode, and episodes that silence has closed (see `state_of_version_2`).
4: sums of what an open episode would teach that are the same however batches are cut (see `state_of_version_3`)."""


MOST_LOSING_SESSIONS = 1024
"""Of so many sessions of a bucket that have lost steps it is known how many those are."""
_LEAST_CYCLES = 8
"""From so many cycle times on an episode says how often it decides (ours)."""


class EpisodeCosts(msgspec.Struct):
    """Sums over the closed windows of an episode."""

    windows: int = 0
    total: float = 0.0
    cognitive: float = 0.0
    physical: float = 0.0
    debt: float = 0.0
    lost: float = 0.0
    steps: int = 0

    def add(self, tally: Tally) -> None:
        """Takes in a window that has closed."""
        costs = tally.channel_costs()
        self.windows += 1
        self.total += tally.cost()
        self.cognitive += costs.cognitive
        self.physical += costs.physical
        self.debt += costs.debt
        self.lost += tally.lost
        self.steps += tally.length_steps

    def by_channel(self) -> ChannelCosts:
        """The channels' costs as a reading carries them."""
        return ChannelCosts(cognitive=self.cognitive, physical=self.physical, debt=self.debt)


class LearningState(msgspec.Struct):
    """What an open episode would teach if it ends well.

    Sums of the cells passed through, as `sums_in_order` makes them; the work left is counted down from 0 here and
    shifted once the end is known. `pending` holds samples that a window may yet claim (learn_from = success only).
    `sums` serves calibration. `returns` and `policy` are what the value model and the stability covariance learn from;
    the latter are sums of stability vectors, made likewise.
    """

    cells: dict[CellKey, bytes] = msgspec.field(default_factory=dict)
    pending: list[tuple[CellKey, bytes]] = msgspec.field(default_factory=list)
    sums: UninterruptedSums = msgspec.field(default_factory=UninterruptedSums)
    returns: ReturnTraces = msgspec.field(default_factory=ReturnTraces)
    policy: dict[CellKey, bytes] = msgspec.field(default_factory=dict)


class ScoredStep(msgspec.Struct, frozen=True, array_like=True):
    """The last scored step of an episode: its number, its mode, and the progress and propositions it started from."""

    step: int
    mode: str
    progress_before: float
    propositions_before: float


StepWords = tuple[str, str, str]
"""The mode, the action and the feedback of a step."""


class KeptSteps(msgspec.Struct, array_like=True):
    """Scored steps of an open episode that the evidence of a window may need (see `evidence_rows`), 96 at most.

    A row of `numbers` is 10 float64; `words` has the texts of each.
    """

    numbers: bytes = b""
    words: list[StepWords] = msgspec.field(default_factory=list)


class OpenEpisode(msgspec.Struct, kw_only=True):
    """An episode that has begun and not ended.

    `joined` says that its beginning was not seen, `gap` that there is a stretch in it which was not (see
    `WindowConfig.gap_steps`). `provisional` says that a window's alarm was raised while the family was learning;
    `bound_references` is how many references stood behind its bounds at the episode's last batch. `extended` is what
    its end says. `revision` counts how often it has gone on after silence had closed it. `progress_span`, its lowest
    and its highest progress, is None where steps were seen before it was kept. `cycles` are its first known cycle
    times, `off_rate` says whether they are far from the baseline's, None before that is decided (`decision_rate`).
    """

    key: EpisodeKey
    traits: EpisodeTraits
    started_s: float
    seen_s: float
    last_time_s: float
    last_clocked: bool = False
    last_step: int = -1
    seen: SeenSteps = msgspec.field(default_factory=SeenSteps)
    revision: int = 0
    cycles: list[float] = msgspec.field(default_factory=list)
    off_rate: bool | None = None
    progress: float = 0.0
    rise: ProgressRise = msgspec.field(default_factory=ProgressRise)
    progress_span: tuple[float, float] | None = None
    propositions: float = 0.0
    mode: str = ""
    steps: int = 0
    unscored: int = 0
    missing: int = 0
    violation: float = 0.0
    joined: bool = False
    gap: bool = False
    extended: bool = False
    interruptions: int = 0
    provisional: bool = False
    bound_references: int | None = None
    scored: ScoredStep | None = None
    intensity: tuple[float, float, float, float] | None = None
    detectors: DetectorState = msgspec.field(default_factory=DetectorState)
    costs: EpisodeCosts = msgspec.field(default_factory=EpisodeCosts)
    learning: LearningState | None = None
    stability: StabilityState = msgspec.field(default_factory=StabilityState)
    kept: KeptSteps = msgspec.field(default_factory=KeptSteps)

    @property
    def unmoved(self) -> bool:
        """Whether its progress is known to have been the same after all its steps, of which there are several."""
        span = self.progress_span
        return self.steps > 1 and span is not None and span[0] == span[1]

    def cycle_s(self) -> float | None:
        """The median of its first cycle times, in seconds; None where fewer than 8 are known."""
        return float(np.median(self.cycles)) if len(self.cycles) >= _LEAST_CYCLES else None

    def open_window(self) -> OpenWindow | None:
        """The window that the episode is in, as a status shows it."""
        window = self.detectors.window
        if window is None:
            return None
        return OpenWindow(
            number=self.costs.windows,
            cause=window.cause,
            departure_step=window.tally.departure_step,
            departure_time_s=window.tally.departure_time_s,
            recovery_cost=window.tally.cost(),
            provisional=window.provisional,
        )


class TrackedAgent(msgspec.Struct, kw_only=True):
    """One agent: its session, its open episodes, and what is needed to recognise old copies.

    `ended` holds what was seen of ended episodes by a hash of their key, oldest first. `silent` holds those that
    silence has closed, as they were before that, since they may go on. `began_s` is when the session began, by its own
    clock where it has one. `reported_s` is the broker's time of the last status; `changed` says that there is something
    newer to report. `progress_s` is when an episode last began or ended; `step_s`, `abandoned` and `contested_s` are
    those of `AgentStatus`.
    """

    agent: str
    producer: str
    session: str
    closed_sessions: list[str] = msgspec.field(default_factory=list)
    open: dict[str, OpenEpisode] = msgspec.field(default_factory=dict)
    ended: dict[int, SeenSteps] = msgspec.field(default_factory=dict)
    silent: dict[str, OpenEpisode] = msgspec.field(default_factory=dict)
    began_s: float = 0.0
    counts: AgentCounts = AgentCounts()
    clock_skew_s: float | None = None
    seen_s: float = 0.0
    time_s: float = 0.0
    step_s: float = 0.0
    progress_s: float = 0.0
    abandoned: bool = False
    contested_s: float | None = None
    reported_s: float = 0.0
    changed: bool = False

    def count(self, **more: int) -> None:
        """Raises the named counts by the numbers given."""
        self.counts = msgspec.structs.replace(
            self.counts, **{name: getattr(self.counts, name) + by for name, by in more.items()}
        )


class TrackerState(msgspec.Struct, kw_only=True):
    """The state of one bucket of agents. `TrackerState()` is the blank one.

    `losses` is how many steps each session said last that it has lost, by a checksum of producer and session: those
    that have lost any, `MOST_LOSING_SESSIONS` of them, oldest first.
    """

    agents: dict[str, TrackedAgent] = msgspec.field(default_factory=dict)
    losses: dict[int, int] = msgspec.field(default_factory=dict)
    schema_version: int = TRACKER_SCHEMA_VERSION

    def note_losses(self, producer: str, session: str, steps: int) -> int:
        """Takes down what a session says that it has lost so far, and says how many of these steps are new.

        >>> state = TrackerState()
        >>> [state.note_losses("r7", session, lost) for session, lost in (("a", 3), ("a", 3), ("a", 5), ("b", 1))]
        [3, 0, 2, 1]
        """
        mark = EpisodeKey(producer, session, "").mark()
        known = self.losses.pop(mark, 0)
        self.losses[mark] = max(known, steps)
        if len(self.losses) > MOST_LOSING_SESSIONS:
            del self.losses[next(iter(self.losses))]
        return max(0, steps - known)


def state_of_version_2(data: bytes) -> TrackerState:
    """The state of versions 1 and 2, which knew nothing of an episode's steps but the last one.

    What comes of an ended episode counts as a copy, as it did then; of an open one so do the steps up to its last.
    """
    plain = msgspec.msgpack.decode(data)
    for agent in plain["agents"].values():
        agent["ended"] = {mark: SeenSteps(last_step=LARGEST_INTEGER) for mark in agent["ended"]}
        for episode in agent["open"].values():
            episode["seen"] = SeenSteps(last_step=episode["last_step"])
            episode["rise"] = ProgressRise(episode["highest_progress"], last=episode["progress"])
    return state_of_version_3(msgspec.msgpack.encode(plain))


def state_of_version_3(data: bytes) -> TrackerState:
    """The state of version 3, whose open episodes had sums of cells (n, mean, M2), merged batch by batch."""
    state = msgspec.msgpack.decode(data, type=TrackerState)
    for agent in state.agents.values():
        for episode in [*agent.open.values(), *agent.silent.values()]:
            learning = episode.learning
            if learning is not None and learning.cells:
                learning.cells = _about_mean(learning.cells, sums_matrix(b"".join(learning.cells.values())), N_SAMPLE)
            if learning is not None and learning.policy:
                rows = policy_matrix(b"".join(learning.policy.values()))
                learning.policy = _about_mean(
                    learning.policy, PolicySums.unpacked(rows).stability.packed(), N_STABILITY
                )
    state.schema_version = TRACKER_SCHEMA_VERSION
    return state


def _about_mean(cells: Iterable[CellKey], sums: Floats, dimension: int) -> dict[CellKey, bytes]:
    return dict(zip(cells, sums_about_mean(Moments.unpacked(sums, dimension)), strict=True))

"""What the core has found: the contract between stream_processors and everything downstream.

Every reading is a plain, immutable struct that MessagePack carries over Kafka. A reading is a function of the state
that made it, so a repetition after a crash has the same `identity`, and a sink that remembers identities drops it.

First come the readings of single windows, episodes and agents, then what is known of a whole family, method and
version. Units are in the names: `_s` is seconds. Steps are step numbers of the producer. Costs are dimensionless
(equation 3).
"""

import hashlib
from typing import Literal

import msgspec

from springback.producers.contract.frame import EpisodeTraits as EpisodeTraits
from springback.producers.contract.frame import NavigationOutcome
from springback.producers.contract.frame import Outcome as Outcome
from springback.stream_processors.resilience.window_evidence import WindowEvidence

READING_SCHEMA_VERSION = 2
"""2: levels by state, live stress by state, undeclared stress, provisional. See `decode_reading` for version 1."""

WindowState = Literal["open", "recovered", "unrecovered", "censored"]
WindowCause = Literal["effort", "delay", "effort+delay"]
CapacityFlag = Literal["ok", "open", "none", "insufficient"]
LevelState = Literal["insufficient", "kept", "undecided", "broken"]
"""What the episodes of one stress level say of its contract (see `LevelFigures`; ours)."""
StressState = Literal["within", "untested", "breach"]
"""The live stress of a group against what its levels have shown (ours)."""

UnusedReason = Literal["duplicate", "overtaken", "after_end", "old_session", "session_again", "over_bounds"]
"""Why a valid step is not taken in (ours): it came before; a later one of its episode came first; its episode had
ended; another session of its agent had begun; its agent, session and episode had been used before, for other content;
or its producer had as much as it may."""

UnpairedReason = Literal["no_twin", "twin_unmeasured", "other_version", "let_go", "no_magnitude", "unmeasured"]
"""Why a perturbed episode is no pair: no reference episode of its task; one whose loss is not known; only ones of other
methods and versions; dropped before one came, for want of room; nothing to divide by; its own loss is not known."""


class EpisodeKey(msgspec.Struct, frozen=True, array_like=True):
    """What makes an episode itself: ids are unique only together (a reboot is a new session)."""

    agent: str
    session: str
    episode: str

    def mark(self) -> int:
        """A number that stands for the episode in a state, which remembers thousands of them and is written often.

        Two different episodes share one by a chance of 2^-64.

        >>> EpisodeKey("a", "bc", "d").mark() == EpisodeKey("ab", "c", "d").mark()
        False
        """
        text = f"{len(self.agent)}:{len(self.session)}:{self.agent}{self.session}{self.episode}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


class ChannelCosts(msgspec.Struct, frozen=True, kw_only=True):
    """A recovery cost by channel: each is computed with g^u/sqrt(3) alone in place of g^rec (ours)."""

    cognitive: float = 0.0
    physical: float = 0.0
    debt: float = 0.0


class WindowReading(msgspec.Struct, frozen=True, kw_only=True, tag="window"):
    """A rebound window, once when its alarm opens it and once when it closes.

    `number` counts the windows of the episode from 0. While `state` is open, `reentry_step` is the last step seen and
    the figures run up to it. `peak` is the largest g^rec; `lost_cycles` sums c over the steps after the departure.
    `provisional` says that the family was still learning: the window counts in no alert, capacity or comparison. What
    silence has closed as censored may go on with its episode: the closing of the largest `revision` holds. `evidence`
    has the steps around it; None in readings that were made before there was any.
    """

    key: EpisodeKey
    traits: EpisodeTraits
    number: int
    state: WindowState
    cause: WindowCause
    departure_step: int
    alarm_step: int
    reentry_step: int
    departure_time_s: float
    reentry_time_s: float
    departure_mode: str
    departure_progress_bin: int
    departure_residual_bin: int
    length_steps: int
    length_s: float
    lost_cycles: float
    peak: float
    recovery_cost: float
    costs: ChannelCosts
    provisional: bool = False
    revision: int = 0
    evidence: WindowEvidence | None = None
    schema_version: int = READING_SCHEMA_VERSION

    @property
    def identity(self) -> tuple[EpisodeKey, int, bool, int]:
        """The same for every repetition of this reading: opened and closed are two readings."""
        return window_identity(self.key, self.number, opened=self.state == "open", revision=self.revision)


def window_identity(
    key: EpisodeKey, number: int, *, opened: bool, revision: int = 0
) -> tuple[EpisodeKey, int, bool, int]:
    """What tells the opening or a closing of a window from all other readings of windows."""
    return key, number, opened, 0 if opened else revision


class NavigationReading(msgspec.Struct, frozen=True, kw_only=True):
    """What a navigation episode said of its own path at its end. None where the producer did not say.

    Units: paths and distance in metres; actions and goals are counts.
    """

    shortest_path: float | None = None
    path: float | None = None
    actions: float | None = None
    shortest_actions: float | None = None
    final_distance: float | None = None
    target_in_view: bool | None = None
    goals_met: float | None = None
    goals_total: float | None = None

    @classmethod
    def of(cls, told: NavigationOutcome) -> "NavigationReading":
        """What an episode's end says, in metres: its distances times its `metres_per_unit`."""
        fields = msgspec.structs.asdict(told)
        metres_per_unit = fields.pop("metres_per_unit") or 1.0
        for name in ("shortest_path", "path", "final_distance"):
            if fields[name] is not None:
                fields[name] *= metres_per_unit
        return cls(**fields)


class EpisodeBegun(msgspec.Struct, frozen=True, kw_only=True, tag="begun"):
    """An episode has begun: its family's live stress counts it from here to its summary.

    A `revision` above 0 says that it goes on: silence had closed it for the so many-th time, and its summary of the
    revision before is taken back.
    """

    key: EpisodeKey
    traits: EpisodeTraits
    time_s: float
    revision: int = 0
    schema_version: int = READING_SCHEMA_VERSION

    @property
    def identity(self) -> tuple[EpisodeKey, str, int]:
        """The same for every repetition of this reading."""
        return self.key, "begun", self.revision


class EpisodeSummary(msgspec.Struct, frozen=True, kw_only=True, tag="episode"):
    """A whole episode at its end. `recovery_cost` is None where no step could be scored: unknown is not calm.

    `steps` counts the steps taken in; `unscored_steps` those that no baseline existed for. `censored` says that the
    end was not seen (aborted, silent): such episodes are left out of cost means.

    `stability_loss` is l(pi, z) of equation 5, `beta_step` the mean step-to-step change of its terms (ours); both are
    None where no step of the episode had a value and a stability covariance to be measured by. `realised_magnitude` is
    the size of the perturbation as it really was, where the producer knew: it stands in place of the traits' magnitude.

    `provisional` says that its family was still learning: `bound_references` reference episodes stood behind its alarm
    bounds when it ended, of `bound_references_needed`. `interruptions` counts the cycles that reached the cap on time.
    `gap` says that more steps were missing in one place than any course could be judged across, `joined` that its
    beginning was not seen, `extended` that work was added to it while it ran, `unmoved` that its progress was the same
    after all its steps.

    `cycle_s` is the median of its first 64 cycle times, None where fewer than 8 are known. `off_rate` says that it is
    far from that of the family's baseline, so that the steps were left unscored.

    The episode may have gone on after silence had closed it: the summary of the largest `revision` is the one that
    holds, and all before it, which said aborted, are taken back.
    """

    key: EpisodeKey
    traits: EpisodeTraits
    outcome: Outcome
    steps: int
    unscored_steps: int
    windows: int
    recovery_cost: float | None
    costs: ChannelCosts
    lost_cycles: float
    window_steps: int
    final_progress: float
    final_propositions: float
    violation: float
    started_s: float
    ended_s: float
    missing_steps: int = 0
    stability_loss: float | None = None
    beta_step: float | None = None
    navigation: NavigationReading | None = None
    realised_magnitude: float | None = None
    interruptions: int = 0
    cycle_s: float | None = None
    off_rate: bool = False
    gap: bool = False
    joined: bool = False
    extended: bool = False
    unmoved: bool = False
    provisional: bool = False
    bound_references: int | None = None
    bound_references_needed: int | None = None
    revision: int = 0
    schema_version: int = READING_SCHEMA_VERSION

    @property
    def identity(self) -> tuple[EpisodeKey, int]:
        """The same for every repetition of this reading."""
        return self.key, self.revision

    @property
    def censored(self) -> bool:
        """Whether the end of the episode was not seen."""
        return self.outcome == "aborted"


class OpenWindow(msgspec.Struct, frozen=True, kw_only=True):
    """The window that an agent is in just now, as far as it has run. `provisional` is that of its `WindowReading`."""

    number: int
    cause: WindowCause
    departure_step: int
    departure_time_s: float
    recovery_cost: float
    provisional: bool = False


class EpisodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """An open episode of an agent, as of its last step. The counts run from the episode's start."""

    key: EpisodeKey
    traits: EpisodeTraits
    step: int
    steps: int
    unscored_steps: int
    progress: float
    propositions: float
    mode: str
    intensity: float | None
    intensity_by_channel: tuple[float, float, float] | None
    window: OpenWindow | None
    beta_step: float | None = None
    revision: int = 0


class AgentCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an agent's input since its state began. Only ever rises.

    Of its valid steps `steps` were taken in; the others are counted by `UnusedReason`. `reopened_episodes` are those of
    the aborted ones that have gone on.
    """

    steps: int = 0
    duplicate_steps: int = 0
    overtaken_steps: int = 0
    after_end_steps: int = 0
    old_session_steps: int = 0
    session_again_steps: int = 0
    over_bounds_steps: int = 0
    missing_steps: int = 0
    replaced_times: int = 0
    clock_resets: int = 0
    aborted_episodes: int = 0
    reopened_episodes: int = 0


class AgentStatus(msgspec.Struct, frozen=True, kw_only=True, tag="status"):
    """How an agent is doing: the latest replaces those before it; at most one a second per agent.

    `clock_skew_s` is the estimate of agent clock minus broker clock. `seen_s` is the broker's time of the last event,
    `step_s` that of the last step which was no copy, `progress_s` that of the last rise of an open episode's progress
    above all before it (but for a value that was taken back soon), or of the last beginning or end. `abandoned` says
    that silence closed the agent's last open episode, and that it has neither begun nor continued one since.
    `contested_s` is when an older session of the agent last sent what was new although another one had begun: two
    programs report under one name.
    """

    agent: str
    session: str
    producer: str
    seen_s: float
    time_s: float
    clock_skew_s: float
    counts: AgentCounts
    episodes: tuple[EpisodeStatus, ...] = ()
    step_s: float | None = None
    progress_s: float | None = None
    abandoned: bool = False
    contested_s: float | None = None
    schema_version: int = READING_SCHEMA_VERSION


class ExtensibilityRatios(msgspec.Struct, frozen=True, kw_only=True):
    """The entries of r_f (equation 8), each capped. None where no episode of the bin had the quantity."""

    progress: float | None = None
    propositions: float | None = None
    recovery: float | None = None
    stability: float | None = None
    safety: float | None = None


class LevelFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What the latest episodes of one stress level come to: M_f (equation 9), and what that shows (ours).

    Attributes:
        episodes: how many it holds.
        margin: M_f; None where fewer entries than it needs are measured.
        state: *kept* (margin not negative, and `violation_low` at most the share that may break the contract),
            *broken* (even the favourable margin is negative), *undecided* between, or *insufficient* (too few episodes
            to decide anything).
        ratios: the entries of the margin.
        favourable_margin: the margin with the most favourable quantiles that so many episodes allow.
        violations: its episodes that broke the contract, provisional ones too; `violation_low` and `violation_high`
            bound their share.
        unmeasured: the entries that are left out because nothing has measured them.
        provisional: episodes besides, which ended while the family was learning: by their progress, propositions and
            violations they count in the violations and their share, and in nothing else.
    """

    episodes: int
    margin: float | None
    state: LevelState
    ratios: ExtensibilityRatios
    favourable_margin: float | None = None
    violations: int = 0
    violation_low: float | None = None
    violation_high: float | None = None
    unmeasured: tuple[str, ...] = ()
    provisional: int = 0

    @property
    def judged(self) -> int:
        """Of how many episodes it is known whether they broke the contract."""
        return self.episodes + self.provisional

    @property
    def sufficient(self) -> bool:
        """Whether it has enough episodes to say anything."""
        return self.state != "insufficient"

    @property
    def violation_share(self) -> float | None:
        """The share of its episodes that broke the contract, provisional ones included; None without one."""
        return self.violations / self.judged if self.judged else None


class StressMargin(LevelFigures, frozen=True, kw_only=True):
    """One point of the stress-response curve: the figures at this point of the stress grid."""

    stress: float


class NavigationScores(msgspec.Struct, frozen=True, kw_only=True):
    """Navigation safety over the episodes of one attack kind; each score None where no episode had what it needs."""

    episodes: int
    success_rate: float | None = None
    spl: float | None = None
    sel: float | None = None
    goal_completion: float | None = None


class ContractThresholds(msgspec.Struct, frozen=True, kw_only=True):
    """The contract that a family is held to, with `auto` resolved; None where there is nothing to resolve it by yet."""

    progress: float
    propositions: float
    recovery: float | None
    stability: float | None
    safety: float | None


class FamilyReading(msgspec.Struct, frozen=True, kw_only=True, tag="family"):
    """What is known of one family, method and version: stability, graceful extensibility and outcome.

    The latest replaces those before it (`sequence` rises with every change). Equations 6 and 8 to 10; the rest is ours.

    Attributes:
        episodes: episodes seen to end; `censored` ones are counted apart and enter nothing.
        violations: episodes whose monitor m_i (equation 7) fell below 0 by the thresholds at its end, since it began;
            those of the latest episodes by the thresholds of now are the levels' own.
        beta: the sup of the ratio of equation 6 over pairs; `beta_p95` its 0.95 quantile; None without a pair.
        beta_by_kind: the sup by perturbation kind.
        beta_unpaired: the same ratio against the family's mean reference loss: an estimate for fleets without twins.
        pairs: perturbed episodes that had their clean twin; `tasks_let_go`: unpaired tasks that memory had no room for.
        unpaired: perturbed episodes that are no pair, by `UnpairedReason`.
        stability_repeatability: the 0.95 quantile of the difference of losses between reference runs of one task: a
            difference within it says nothing. `beta_difference` is that of the pair that gives beta.
        capacity: lambda*_f, 0 with flag `none` where every margin is negative, None with `insufficient` where no level
            can say; `open` where nothing above it was tested.
        dependable: the largest stress below and at which every level that can say is kept; None where the lowest is
            not, or none can say.
        tested_up_to: the largest stress of a level that can say.
        first_breach: the smallest stress of such a level with a negative margin.
        margins: the levels of the stress grid; `undeclared` the one of episodes that declared no stress.
        live_stress: the level of the 0.9 quantile of declared stress over the group's own active episodes; None without
            one. `active_episodes` run just now, `active_undeclared` of them without a declared stress.
        stress_state: the live stress against the levels; None while nothing with a declared stress runs (but for a
            breach, which ends a while after), and until a state has held for the set time.
        breaches: how often it has become `breach`.
        contract_violated: whether at some level, the undeclared one too, more episodes break the contract than it
            allows; `contract_violations` counts its beginnings.
        bound_references: references behind the family's alarm bounds, of `bound_references_needed`: it is learning as
            long as they are fewer. None where nothing said so. `provisional_episodes` ended while it was learning: of
            the figures here they count in `episodes`, in those of outcome and navigation, in the violations and their
            shares, and so in `contract_violated`.
        navigation: by attack kind; `all` over every kind.
    """

    family: str
    method: str
    version: str
    sequence: int
    updated_s: float
    episodes: int
    censored: int
    violations: int
    success_rate: float | None
    completion: float | None
    mean_steps: float | None
    recovery_cost_mean: float | None
    stability_loss_mean: float | None
    beta: float | None
    beta_p95: float | None
    beta_by_kind: dict[str, float]
    beta_unpaired: float | None
    pairs: int
    tasks_let_go: int
    capacity: float | None
    capacity_flag: CapacityFlag
    first_breach: float | None
    margins: tuple[StressMargin, ...]
    thresholds: ContractThresholds
    live_stress: float | None
    stress_state: StressState | None
    breaches: int
    navigation: dict[str, NavigationScores]
    unpaired: dict[str, int] = {}
    stability_repeatability: float | None = None
    beta_difference: float | None = None
    dependable: float | None = None
    tested_up_to: float | None = None
    undeclared: LevelFigures | None = None
    active_episodes: int = 0
    active_undeclared: int = 0
    contract_violated: bool = False
    contract_violations: int = 0
    bound_references: int | None = None
    bound_references_needed: int | None = None
    provisional_episodes: int = 0
    schema_version: int = READING_SCHEMA_VERSION

    @property
    def identity(self) -> tuple[str, str, str]:
        """What the reading is of."""
        return self.family, self.method, self.version

    @property
    def in_breach(self) -> bool:
        """Whether the live stress is at or above a level that is known to be broken."""
        return self.stress_state == "breach"

    @property
    def levels(self) -> list[tuple[float | None, LevelFigures]]:
        """The levels with their stress, the undeclared one last: its stress is None."""
        undeclared = [] if self.undeclared is None else [(None, self.undeclared)]
        return [*((margin.stress, margin) for margin in self.margins), *undeclared]

    @property
    def violated(self) -> bool | None:
        """`contract_violated`; None where no level has enough episodes to say so, which is not the same as a no."""
        known = self.contract_violated or any(level.sufficient for _, level in self.levels)
        return self.contract_violated if known else None

    @property
    def learning(self) -> bool:
        """Whether too few references stand behind the family's alarm bounds for its windows to count."""
        needed = self.bound_references_needed
        return needed is not None and (self.bound_references or 0) < needed


Reading = WindowReading | EpisodeBegun | EpisodeSummary | AgentStatus | FamilyReading

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Reading)


def encode_reading(reading: Reading) -> bytes:
    """The reading as MessagePack, tagged with its kind."""
    return _encoder.encode(reading)


def decode_reading(data: bytes) -> Reading:
    """The reading in a message's value; of version 1 too, but for a family's, whose levels had no states.

    Raises:
        msgspec.ValidationError: the bytes are no reading of a known kind and version.
    """
    return _decoder.decode(data)

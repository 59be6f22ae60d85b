"""Offline evaluation: the reducers of the stream over recordings, without Kafka. The stream is tested against it.

With no baseline given, the reference successes are gone through four times before anything is scored: first they
teach the cells; then the sums that alarm bounds are calibrated by, each episode scored by references that it is not
among; then, scored by all, returns; and then, with values, the stability covariance. So the order of episodes plays no
part. Advantages are exact to the episode's end, where the stream takes a fixed lag.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from springback.producers.contract.columns import EARLIEST_TIME_S
from springback.producers.contract.frame import StepFrame
from springback.producers.mapping.signal_mapping import SignalMapping, load_mapping
from springback.producers.recordings.any_format import ReadingProgress, RecordedFrames, check_without_mapping
from springback.producers.recordings.step_frames import ReportUnreadable, log_unreadable
from springback.stream_processors.baseline_file import read_baseline
from springback.stream_processors.errors import StreamError
from springback.stream_processors.intake.step_table import ArrivedFrame, RejectedRow, StepTable
from springback.stream_processors.intake.validation import recorded_arrival_s, tabulate
from springback.stream_processors.offline.flat_tables import EPISODES, FAMILIES, LEVELS, WINDOWS
from springback.stream_processors.offline.tables import EvaluationJson, evaluation_json
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline, materialise
from springback.stream_processors.resilience.baseline.stage_baseline import (
    EpisodeContribution,
    FamilyBaseline,
    LargestSums,
    StageBaseline,
    sums_matrix,
)
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.families.family_aggregate import aggregate, in_order, monitors
from springback.stream_processors.resilience.readings import (
    AgentStatus,
    EpisodeBegun,
    EpisodeKey,
    EpisodeSummary,
    FamilyReading,
    UnusedReason,
    WindowReading,
)
from springback.stream_processors.resilience.stability.value_function import ValueModel
from springback.stream_processors.resilience.tracking.batch import UnusedSteps
from springback.stream_processors.resilience.tracking.episode_tracker import EpisodeTracker, TrackerOutputs
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState
from springback.stream_processors.value_models import find_value_model

if TYPE_CHECKING:
    from pandas import DataFrame  # type: ignore[import-untyped]

BATCH_FRAMES = 512
LEARNING_PASSES = 3
FOLDS = 5


class NoFramesError(StreamError, ValueError):
    """There is not one step frame in the recordings that were given."""


@dataclass
class StepAccount:
    """What became of the steps that frames held: `sent` = `used` + `rejected` + the sum of `unused`.

    Attributes:
        sent: all of them.
        used: those taken in.
        rejected: those whose values, or whose episode, are not what they must be.
        unused: valid ones that were not taken in, by reason; `examples` tells of the first of each in words, and
            `episodes` of how many steps of which episodes, in the order in which they came.
    """

    sent: int = 0
    used: int = 0
    rejected: int = 0
    unused: Counter[UnusedReason] = field(default_factory=Counter)
    examples: dict[UnusedReason, str] = field(default_factory=dict)
    episodes: dict[UnusedReason, Counter[EpisodeKey]] = field(default_factory=dict)

    def add(self, table: StepTable, unused: Iterable[UnusedSteps]) -> None:
        """Takes in a batch of frames."""
        sent = sum(arrived.frame.n_steps for arrived in table.frames)
        self.sent += sent
        self.rejected += sent - len(table)
        self.used += len(table)
        for steps in unused:
            self.used -= steps.steps
            self.unused[steps.reason] += steps.steps
            self.examples.setdefault(steps.reason, steps.detail)
            self.episodes.setdefault(steps.reason, Counter())[steps.key] += steps.steps


@dataclass
class Evaluation:
    """What recordings come to. What they leave open is closed as aborted at their end.

    Attributes:
        config: the settings that it was made with.
        baseline: what the steps were scored by.
        begun: the beginnings of the episodes.
        summaries: the episodes, in the order in which they ended.
        windows: the closed rebound windows, in the order in which they closed.
        rejected: the rows that could not be used.
        steps: how many steps the frames held, and what became of them.
    """

    config: ResilienceConfig
    baseline: StageBaseline
    begun: list[EpisodeBegun] = field(default_factory=list)
    summaries: list[EpisodeSummary] = field(default_factory=list)
    windows: list[WindowReading] = field(default_factory=list)
    rejected: list[RejectedRow] = field(default_factory=list)
    steps: StepAccount = field(default_factory=StepAccount)
    _statuses: dict[tuple[str, str], AgentStatus] = field(default_factory=dict)

    @property
    def statuses(self) -> list[AgentStatus]:
        """The last status of each agent."""
        return list(self._statuses.values())

    def take(self, outputs: TrackerOutputs, table: StepTable | None = None) -> None:
        """Adds what a batch came to, and its rows."""
        self.begun += outputs.begun
        self.summaries += outputs.summaries
        self.windows += [window for window in outputs.windows if window.state != "open"]
        self._statuses |= {(status.producer, status.agent): status for status in outputs.statuses}
        if table is not None:
            self.rejected += table.rejected
            self.steps.add(table, outputs.unused)

    @cached_property
    def families(self) -> list[FamilyReading]:
        """What each family, method and version withstands: stability, margins, stress capacity, navigation."""
        return aggregate(in_order(self.begun, self.summaries), self.config.aggregate)

    @cached_property
    def contract_margins(self) -> dict[EpisodeKey, float]:
        """The monitor m_i (equation 7) of each episode that was seen to end: below 0, it broke its contract."""
        return monitors(self.summaries, self.config.aggregate)

    @cached_property
    def document(self) -> EvaluationJson:
        """Tables and episodes, as `springback evaluate --json` writes them."""
        return evaluation_json(self.summaries, self.windows, self.families, self.contract_margins)

    def json(self) -> bytes:
        """The document as JSON, indented."""
        return msgspec.json.format(msgspec.json.encode(self.document), indent=1)

    def episodes_frame(self) -> "DataFrame":
        """The episodes as a pandas data frame, one a row. `offline/columns.md` says what the columns hold.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return EPISODES.frame(self.document)

    def windows_frame(self) -> "DataFrame":
        """The closed rebound windows as a pandas data frame, with what is known of their episodes.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return WINDOWS.frame(self.document)

    def families_frame(self) -> "DataFrame":
        """What each family, method and version withstands, as a pandas data frame.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return FAMILIES.frame(self.document)

    def levels_frame(self) -> "DataFrame":
        """What each stress level of each family, method and version shows, as a pandas data frame.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return LEVELS.frame(self.document)


def evaluate(
    *paths: str | Path,
    mapping: SignalMapping | str | Path | None = None,
    baseline: StageBaseline | str | Path | None = None,
    value_model: ValueModel | str | Path | None = None,
    config: ResilienceConfig | None = None,
    report_unreadable: ReportUnreadable = log_unreadable,
    progress: ReadingProgress = lambda source, share: None,
) -> Evaluation:
    """Evaluates recordings: recovery costs, rebound windows, and what stress families withstand.

    The figures are those that the stream finds on the same episodes.

    Args:
        paths: files, or folders of ROS 2 bags and LeRobot datasets; several are one input; `-` is standard input.
        mapping: which field is which signal, for recordings of other formats than step frames: a mapping, its file, or
            the name of one that comes with springback.
        baseline: what to score by: a baseline, or a file of `springback baseline export`; learned from the reference
            episodes of the recordings themselves if None.
        value_model: what values states: a model, the name of an installed one, or a file of `springback fit-value`;
            the mean return by anchor if None.
        config: settings of the core; the defaults if None.
        report_unreadable: called for each part of a recording that cannot be read.
        progress: told how far the reading of recordings with a mapping is.

    Raises:
        NoFramesError: the recordings hold no step frame.
        MappingError: the mapping cannot be used, or a recording needs one.
        SettingsError: the baseline or the value model cannot be used.
        OSError: a recording cannot be opened.
    """
    settings = config or ResilienceConfig()
    given = baseline
    if isinstance(given, str | Path):
        given = read_baseline(Path(given), settings.grid, "baseline")
    model = find_value_model(str(value_model)) if isinstance(value_model, str | Path) else value_model
    known = load_mapping(mapping) if isinstance(mapping, str | Path) else mapping
    if known is None:
        for path in paths:
            check_without_mapping(Path(path))
    frames = RecordedFrames(paths, report_unreadable, known, progress)
    if next(iter(frames), None) is None:
        message = "there is no step frame in what was given"
        if known is None:
            message += "; recordings of other kinds need a mapping (--mapping)"
        raise NoFramesError(message)
    return evaluate_frames(frames, settings, given, model=model)


def evaluate_frames(
    frames: Iterable[StepFrame],
    config: ResilienceConfig,
    baseline: StageBaseline | None = None,
    batch_frames: int = BATCH_FRAMES,
    model: ValueModel | None = None,
    *,
    lagged: bool = False,
) -> Evaluation:
    """Evaluates step frames that are at hand.

    Args:
        frames: the frames; gone through five times where the baseline is learned from them.
        config: settings of the core.
        baseline: what to score by; learned from the frames themselves if None.
        batch_frames: frames taken at a time; changes no result.
        model: what values states; the mean returns by anchor if None.
        lagged: take advantages with the stream's lag instead of exactly.

    Raises:
        TypeError: the baseline is to be learned from an iterator, which can be gone through only once.
    """
    learned = learn_baseline(frames, config, batch_frames, model) if baseline is None else baseline
    ready = materialise(learned, config.baseline, config.window.fixed_bounds())
    evaluation = Evaluation(config, learned)
    scoring = config if lagged else exact(config)
    for outputs, table in run(frames, ready, scoring, batch_frames, model):
        evaluation.take(outputs, table)
    return evaluation


def learn_baseline(
    frames: Iterable[StepFrame],
    config: ResilienceConfig,
    batch_frames: int = BATCH_FRAMES,
    model: ValueModel | None = None,
) -> StageBaseline:
    """The baseline that the recording's own reference successes teach.

    Raises:
        TypeError: `frames` is an iterator, which can be gone through only once.
    """
    if iter(frames) is frames:
        message = f"got a {type(frames).__name__}, but the frames are gone through more than once: pass a list of them"
        raise TypeError(message)
    learned = StageBaseline(grid=config.grid)
    sums: Mapping[EpisodeKey, LargestSums] = {}
    for number in range(LEARNING_PASSES):
        ready = materialise(learned, config.baseline, config.window.fixed_bounds())
        contributions: list[EpisodeContribution] = []
        tasks: dict[EpisodeKey, str] = {}
        for outputs, _table in run(frames, ready, exact(config), batch_frames, model):
            contributions += outputs.contributions
            tasks |= {summary.key: summary.traits.task for summary in outputs.summaries}
        if number == 0:
            sums = sums_by_folds(frames, contributions, tasks, config, batch_frames)
        learned = StageBaseline(grid=config.grid)
        for contribution in contributions:
            # Its own sums are by a baseline that it has taught itself.
            learned.add(msgspec.structs.replace(contribution, largest=None), config.baseline)
        family_of = {contribution.key: contribution.family for contribution in contributions}
        for key, largest in sums.items():
            if key in family_of:
                learned.families[family_of[key]].largest.append(largest)
    return learned


def sums_by_folds(
    frames: Iterable[StepFrame],
    contributions: Iterable[EpisodeContribution],
    tasks: Mapping[EpisodeKey, str],
    config: ResilienceConfig,
    batch_frames: int = BATCH_FRAMES,
) -> dict[EpisodeKey, LargestSums]:
    """The largest sums of reference episodes, each scored by references that it is not among (ours).

    Tasks are dealt into five folds by a hash of their names, so that runs of one task stay together, and each fold is
    scored by the other four. A family all of whose tasks fall into one fold, of a single task say, is dealt episode by
    episode instead.

    Args:
        frames: the recording; gone through once.
        contributions: what its reference episodes teach.
        tasks: the task of each of its episodes.
        config: settings of the core.
        batch_frames: frames taken at a time; changes no result.
    """
    whole = StageBaseline(grid=config.grid)
    accepted = [contribution for contribution in contributions if whole.add(contribution, config.baseline)]
    folds: dict[str, dict[EpisodeKey, int]] = {name: {} for name in whole.families}
    for contribution in accepted:
        folds[contribution.family][contribution.key] = fold_of(tasks[contribution.key])
    for family, fold in folds.items():
        if len(set(fold.values())) == 1:
            folds[family] = {key: fold_of(str(key.mark())) for key in fold}
    parts = [StageBaseline(grid=config.grid) for _ in range(FOLDS)]
    for contribution in accepted:
        parts[folds[contribution.family][contribution.key]].add(contribution, config.baseline)
    # Each fold of a family goes under a name of its own, whose baseline is that of the family's other folds.
    others = StageBaseline(grid=config.grid)
    names: dict[EpisodeKey, str] = {}
    for number, (family, fold) in enumerate(folds.items()):
        names |= {key: f"{number}/{left_out}" for key, left_out in fold.items()}
        for left_out in set(fold.values()):
            taught = [
                part.families[family] for i, part in enumerate(parts) if i != left_out and family in part.families
            ]
            others.families[f"{number}/{left_out}"] = merged(taught)
    ready = materialise(others, config.baseline, config.window.fixed_bounds())
    found: dict[EpisodeKey, LargestSums] = {}
    for outputs, _table in run(_renamed(frames, names), ready, exact(config), batch_frames):
        found |= {c.key: c.largest for c in outputs.contributions if c.key in names and c.largest is not None}
    return found


def fold_of(name: str) -> int:
    """The fold that a task's name falls into, the same in every process.

    >>> [fold_of(name) for name in ("kitchen-041", "kitchen-042", "kitchen-043")]
    [4, 2, 4]
    """
    return zlib.crc32(name.encode("utf-8", "replace")) % FOLDS


def merged(parts: Iterable[FamilyBaseline]) -> FamilyBaseline:
    """What several parts of a family's references teach together: their cells, and how many they are."""
    whole = FamilyBaseline()
    for part in parts:
        whole.references += part.references
        whole.cycles += part.cycles
        whole.merge_cells(part.cells, sums_matrix(b"".join(part.cells.values())))
    return whole


def _renamed(frames: Iterable[StepFrame], names: Mapping[EpisodeKey, str]) -> Iterator[StepFrame]:
    """The frames with other names for the families of some episodes."""
    for frame in frames:
        keys = [EpisodeKey(header.agent, frame.session, header.episode) for header in frame.episodes]
        episodes = tuple(
            msgspec.structs.replace(header, family=names.get(key, header.family))
            for key, header in zip(keys, frame.episodes, strict=True)
        )
        yield msgspec.structs.replace(frame, episodes=episodes)


def exact(config: ResilienceConfig) -> ResilienceConfig:
    """The same settings, with advantages exact to the episode's end."""
    return msgspec.structs.replace(config, stability=msgspec.structs.replace(config.stability, lag=0))


def run(
    frames: Iterable[StepFrame],
    baseline: MaterialisedBaseline,
    config: ResilienceConfig,
    batch_frames: int = BATCH_FRAMES,
    model: ValueModel | None = None,
) -> Iterator[tuple[TrackerOutputs, StepTable | None]]:
    """Tracks all frames by one fixed baseline, batch by batch; what is still open at the end is closed as aborted.

    Yields:
        what was found, and the rows that it was found in; the closing at the end has none.
    """
    tracker, state = EpisodeTracker(config, model), TrackerState()
    arrived = arrivals(frames)
    while batch := list(islice(arrived, batch_frames)):
        table = tabulate(batch)
        yield tracker.track(table, [state] * len(batch), baseline), table
    yield tracker.close_idle(state, now_s=float("inf")), None


def arrivals(frames: Iterable[StepFrame]) -> Iterator[ArrivedFrame]:
    """The frames as if each had reached the broker at the time of its last step, where that can be a time at all."""
    now_s = EARLIEST_TIME_S
    for frame in frames:
        now_s = recorded_arrival_s(frame, now_s)
        yield ArrivedFrame(frame, now_s)

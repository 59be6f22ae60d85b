"""`python -m tests.benchmarks.calibration`: how often clean episodes alarm, and how often costly disturbances do.

Some clean episodes of a recording teach, the other ones and the disturbed ones of other tasks are scored: a window in
a clean episode is a false alarm, one in an episode that its disturbance made longer, or made fail, is a finding. The
alarm bounds come from five places in turn:

- `fixed`: none but those of a family that has none of its own;
- `in sample`: the sums of the episodes that taught the baseline, as it used to be offline;
- `folds`: sums by the references of other folds, as it is offline;
- `live, all`: references learned one by one, the sums of all of them from 20 on, as it used to be on the stream;
- `live`: the same, but the sums of the later half alone, from 10 on, as it is on the stream.
"""

import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args

import msgspec
import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from springback.producers.contract.frame import StepFrame
from springback.producers.emitter.signal_checks import rows_of
from springback.producers.recordings.step_frames import read_frames
from springback.stream_processors.offline.evaluation import evaluate_frames, learn_baseline, run
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline, materialise
from springback.stream_processors.resilience.baseline.stage_baseline import BaselineConfig, StageBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import EpisodeKey, EpisodeSummary
from tests.program import run_program

Bounds = Literal["fixed", "in sample", "folds", "live, all", "live"]
ALL_THAT_CAME = BaselineConfig(calibration_share=0.0, calibration_episodes=20)
LEAST_HELD_OUT = 10
"""Clean episodes that must be left to be scored."""


class Recorded(NamedTuple):
    """The episodes of one family: frames of each, and what was seen of it."""

    frames: dict[EpisodeKey, list[StepFrame]]
    clean: dict[str, EpisodeSummary]
    disturbed: list[EpisodeSummary]

    def is_costly(self, summary: EpisodeSummary, extra_steps: int) -> bool:
        """Whether the disturbance cost the episode's success, or so many steps over the clean run of its task."""
        twin = self.clean.get(summary.traits.task)
        longer = twin is not None and summary.steps - twin.steps >= extra_steps
        return longer or summary.outcome != "success"


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """What was found with so many references, over all draws of them.

    Attributes:
        recording, family: of which episodes.
        references: how many taught.
        bounds: where the bounds came from.
        draws: how many times references were drawn.
        effort, delay: the bounds, the mean over draws.
        behind: references behind the bounds, the mean over draws.
        clean, clean_with_window: clean episodes scored, and those of them with a window.
        costly, costly_found: the same of disturbances that cost something.
    """

    recording: str
    family: str
    references: int
    bounds: Bounds
    draws: int
    effort: float
    delay: float
    behind: float
    clean: int
    clean_with_window: int
    costly: int
    costly_found: int


def episodes_of(frames: Iterable[StepFrame]) -> dict[EpisodeKey, list[StepFrame]]:
    """The frames cut up by episode."""
    found: dict[EpisodeKey, list[StepFrame]] = defaultdict(list)
    for frame in frames:
        for place, header in enumerate(frame.episodes):
            rows = np.flatnonzero(np.asarray(frame.steps["episode"]) == place) if frame.n_steps else np.zeros(0, int)
            steps = {name: rows_of(column, rows) for name, column in frame.steps.items()}
            own = {**steps, "episode": np.zeros(len(rows), dtype=np.int64)} if len(rows) else {}
            ends = tuple(msgspec.structs.replace(end, episode=0) for end in frame.ends if end.episode == place)
            key = EpisodeKey(header.agent, frame.session, header.episode)
            found[key].append(msgspec.structs.replace(frame, episodes=(header,), steps=own, ends=ends, faults=()))
    return dict(found)


def families_of(frames: Sequence[StepFrame], config: ResilienceConfig) -> dict[str, Recorded]:
    """The recording by family: of each task the first clean success, and every disturbed episode that ended."""
    parts = episodes_of(frames)
    families: dict[str, Recorded] = defaultdict(lambda: Recorded({}, {}, []))
    for summary in evaluate_frames(frames, config, StageBaseline(grid=config.grid)).summaries:
        family = families[summary.traits.family]
        family.frames[summary.key] = parts[summary.key]
        if summary.traits.reference and summary.outcome == "success":
            family.clean.setdefault(summary.traits.task, summary)
        elif not summary.traits.reference and not summary.censored:
            family.disturbed.append(summary)
    return dict(families)


def learned_live(parts: Iterable[Sequence[StepFrame]], config: ResilienceConfig) -> StageBaseline:
    """The baseline of references that came one after the other, each scored by those before it."""
    learned = StageBaseline(grid=config.grid)
    for frames in parts:
        ready = made_ready(learned.mature(config.baseline), config)
        for outputs, _ in run(frames, ready, config):
            for contribution in outputs.contributions:
                learned.add(contribution, config.baseline)
    return learned.mature(config.baseline)


def in_sample(learned: StageBaseline, frames: Sequence[StepFrame], config: ResilienceConfig) -> StageBaseline:
    """The same baseline, with the largest sums of the references by the baseline that they have taught."""
    sums = defaultdict(list)
    for outputs, _ in run(frames, made_ready(learned, config), config):
        for contribution in outputs.contributions:
            if contribution.largest is not None:
                sums[contribution.family].append(contribution.largest)
    families = {name: msgspec.structs.replace(family, largest=sums[name]) for name, family in learned.families.items()}
    return msgspec.structs.replace(learned, families=families)


def made_ready(learned: StageBaseline, config: ResilienceConfig) -> MaterialisedBaseline:
    """The baseline with its bounds."""
    return materialise(learned, config.baseline, config.window.fixed_bounds())


def baselines(parts: Sequence[Sequence[StepFrame]], config: ResilienceConfig) -> dict[Bounds, MaterialisedBaseline]:
    """What these references teach, with bounds from each place."""
    frames = [frame for part in parts for frame in part]
    folds = learn_baseline(frames, config)
    all_that_came = msgspec.structs.replace(config, baseline=ALL_THAT_CAME)
    blank = {name: msgspec.structs.replace(family, largest=[]) for name, family in folds.families.items()}
    return {
        "fixed": made_ready(msgspec.structs.replace(folds, families=blank), config),
        "in sample": made_ready(in_sample(folds, frames, config), config),
        "folds": made_ready(folds, config),
        "live, all": made_ready(learned_live(parts, all_that_came), all_that_came),
        "live": made_ready(learned_live(parts, config), config),
    }


def with_windows(
    summaries: Sequence[EpisodeSummary],
    frames: Mapping[EpisodeKey, Sequence[StepFrame]],
    baseline: MaterialisedBaseline,
    config: ResilienceConfig,
) -> int:
    """How many of the episodes have a window by this baseline."""
    every = [frame for summary in summaries for frame in frames[summary.key]]
    found = [summary for outputs, _ in run(every, baseline, config) for summary in outputs.summaries]
    return sum(summary.windows > 0 for summary in found)


def measured(
    recording: str, family: str, recorded: Recorded, references: int, draws: int, extra_steps: int, seed: int
) -> Iterator[Shares]:
    """Draws references so many times, and counts what is found in the other episodes; nothing if there are too few."""
    config = ResilienceConfig()
    tasks = sorted(recorded.clean)
    if len(tasks) < references + LEAST_HELD_OUT:
        return
    rng = np.random.default_rng(seed)
    counts: dict[Bounds, list[list[float]]] = defaultdict(list)
    for _ in range(draws):
        drawn = [tasks[place] for place in rng.permutation(len(tasks))[:references]]
        known = set(drawn)
        clean = [summary for task, summary in recorded.clean.items() if task not in known]
        costly = [
            summary
            for summary in recorded.disturbed
            if summary.traits.task not in known and recorded.is_costly(summary, extra_steps)
        ]
        for name, baseline in baselines([recorded.frames[recorded.clean[t].key] for t in drawn], config).items():
            index = baseline.families[family]
            found = [with_windows(some, recorded.frames, baseline, config) for some in (clean, costly)]
            counts[name].append([*index.bounds, index.bound_references, len(clean), found[0], len(costly), found[1]])
    for name in get_args(Bounds):
        effort, delay, behind = np.mean([row[:3] for row in counts[name]], axis=0).tolist()
        n_clean, alarmed, n_costly, found_costly = (
            np.sum([row[3:] for row in counts[name]], axis=0).astype(int).tolist()
        )
        yield Shares(
            recording=recording,
            family=family,
            references=references,
            bounds=name,
            draws=draws,
            effort=effort,
            delay=delay,
            behind=behind,
            clean=n_clean,
            clean_with_window=alarmed,
            costly=n_costly,
            costly_found=found_costly,
        )


def shares_table(found: Sequence[Shares]) -> Table:
    """What was found, a line for each number of references."""
    table = Table(title="Clean episodes with a window / costly disturbances found, in %")
    for heading in ("recording", "family", "references", *get_args(Bounds)):
        table.add_column(heading, justify="left" if heading in ("recording", "family") else "right")
    groups: dict[tuple[str, str, int], dict[Bounds, Shares]] = defaultdict(dict)
    for shares in found:
        groups[shares.recording, shares.family, shares.references][shares.bounds] = shares
    for (recording, family, references), by_bounds in groups.items():
        table.add_row(recording, family, str(references), *(_cell(by_bounds[name]) for name in get_args(Bounds)))
    return table


def _cell(shares: Shares) -> str:
    found = f"{100 * shares.costly_found / shares.costly:.0f}" if shares.costly else "-"
    return f"{100 * shares.clean_with_window / shares.clean:.0f} / {found}"


def recorded_testbed(directory: Path, tasks: int) -> Path:
    """A recording of the BabyAI testbed: so many tasks a family, clean and at stress 0.6."""
    from springback.producers.babyai_testbed.recording import record  # needs an extra of its own

    path = directory / "babyai.frames.jsonl.gz"
    record(path, episodes=tasks, stresses=(0.0, 0.6))
    return path


def calibration(
    files: Annotated[list[Path] | None, typer.Argument(metavar="FILE…", help="Recordings of step frames.")] = None,
    babyai: Annotated[
        int, typer.Option(min=0, metavar="TASKS", help="Record so many tasks per family of the BabyAI testbed too.")
    ] = 0,
    references: Annotated[str, typer.Option(metavar="N,N,…", help="How many clean episodes teach.")] = "10,20,40,100",
    draws: Annotated[int, typer.Option(min=1, help="How many times they are drawn.")] = 10,
    extra_steps: Annotated[int, typer.Option(min=1, help="Steps from which on a disturbance is costly.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws.")] = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", dir_okay=False, help="Write the figures here too.")
    ] = None,
) -> None:
    """Say how often clean episodes alarm, and how often costly disturbances do, by where the alarm bounds come from.

    A family with too few clean tasks for a number of references has no line for it.

    Example: python -m tests.benchmarks.calibration --babyai 150 producers/recordings/habitat_twins.frames.jsonl.gz
    """
    numbers = [int(part) for part in references.split(",")]
    config = ResilienceConfig()
    found: list[Shares] = []
    bar = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with tempfile.TemporaryDirectory() as directory, Progress(*bar, console=Console(stderr=True)) as progress:
        paths = list(files or [])
        if babyai:
            paths.append(recorded_testbed(Path(directory), babyai))
        for path in paths:
            families = families_of([recorded.frame for recorded in read_frames([path])], config)
            name = path.name.partition(".")[0]
            task = progress.add_task(name, total=len(families) * len(numbers))
            for family, recorded in sorted(families.items()):
                for number in numbers:
                    found += measured(name, family, recorded, number, draws, extra_steps, seed)
                    progress.advance(task)
    Console(width=None if sys.stdout.isatty() else 120).print(shares_table(found))
    if json_file is not None:
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")


if __name__ == "__main__":
    sys.exit(run_program(calibration, "calibration"))

"""`python -m tests.benchmarks.alert_rates`: how often the alerts of a family are false, and how soon they are true.

Episodes of one stress level are drawn one by one, bad ones with a known rate, and after each of them the core is asked
what it asks after each episode: whether the level is broken, and whether its contract is violated. A level keeps its
latest episodes, as on the stream. What is bad about an episode is one of two things:

- `nothing reached`: it ends at no progress and no proposition;
- `one quantity`: one of progress, propositions, recovery cost and violations is far off its threshold, the rest fine.

The contract allows a tenth of the episodes to be bad. So rates below 0.1 are to raise no alarm, rates above it are.
`margin < 0` is for comparison: what would be called broken without the favourable margin.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args

import msgspec
import numpy as np
import numpy.typing as npt
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.families.live_stress import contract_violated
from springback.stream_processors.resilience.families.operational_margin import Quantities, StressLevel, level_figures
from springback.stream_processors.resilience.readings import ContractThresholds
from tests.program import run_program

Trouble = Literal["nothing reached", "one quantity"]
Alert = Literal["broken", "violated", "margin < 0"]

FALSE_RATE, FALSE_BOUND = 0.05, 0.05
"""Levels with this rate of bad episodes are to be called broken in at most this share of repeats, at every number."""
TRUE_RATE, TRUE_BOUND, FOUND_BY = 0.4, 0.9, 20
"""Levels with this rate are to be called broken in at least this share of repeats, by this many episodes."""

CONFIG = AggregateConfig()
THRESHOLDS = ContractThresholds(progress=0.5, propositions=0.5, recovery=5.0, stability=5.0, safety=5.0)
GOOD = Quantities(progress=1.0, propositions=1.0, recovery=0.0, stability=1.0, safety=0.0)
NOTHING = GOOD._replace(progress=0.0, propositions=0.0)
ONE = (
    GOOD._replace(progress=0.0),
    GOOD._replace(propositions=0.0),
    GOOD._replace(recovery=50.0),
    GOOD._replace(safety=50.0),
)


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """What an alert said at each number of episodes.

    Attributes:
        trouble: what is bad about bad episodes.
        rate: how many are bad.
        alert: which alert.
        first: the number of episodes that the first share is of; the others follow one by one.
        at: share of repeats in which it was on.
        by: share of repeats in which it had been on.
    """

    trouble: Trouble
    rate: float
    alert: Alert
    first: int
    at: list[float]
    by: list[float]

    def share(self, episodes: int, *, by: bool) -> float:
        """The share at, or by, so many episodes."""
        return (self.by if by else self.at)[episodes - self.first]


class Bounds(NamedTuple):
    """The largest share of false breaches over all numbers of episodes, and that of true ones found in time."""

    false_breaches: float
    found_in_time: float

    @property
    def broken(self) -> list[str]:
        """Which bounds do not hold, in words."""
        told = []
        if self.false_breaches > FALSE_BOUND:
            told.append(f"{self.false_breaches:.1%} of levels with {FALSE_RATE:.0%} bad episodes are called broken")
        if self.found_in_time < TRUE_BOUND:
            told.append(f"{self.found_in_time:.1%} of levels with {TRUE_RATE:.0%} bad ones are found by {FOUND_BY}")
        return told


def measured(
    trouble: Trouble, rate: float, most: int, repeats: int, rng: np.random.Generator, advance: Callable[[], None]
) -> Iterator[Rates]:
    """What each alert says of levels with this rate of bad episodes."""
    first = CONFIG.min_episodes
    said = np.zeros((repeats, most - first + 1, len(get_args(Alert))), dtype=bool)
    for repeat in range(repeats):
        level = StressLevel()
        for number, bad in enumerate(rng.random(most) < rate, start=1):
            level.add(_episode(trouble, bool(bad), rng), CONFIG.level_generation)
            if number >= first:
                said[repeat, number - first] = _alerts(level)
        advance()
    ever = np.logical_or.accumulate(said, axis=1)
    for place, alert in enumerate(get_args(Alert)):
        at, by = _shares(said[:, :, place]), _shares(ever[:, :, place])
        yield Rates(trouble=trouble, rate=rate, alert=alert, first=first, at=at, by=by)


def bounds_of(found: Sequence[Rates]) -> Bounds:
    """How far the bounds are kept, over both kinds of trouble for false breaches, for total failures where true."""
    false = [max(rates.at) for rates in found if rates.alert == "broken" and rates.rate == FALSE_RATE]
    true = [
        rates.share(FOUND_BY, by=True)
        for rates in found
        if (rates.alert, rates.rate, rates.trouble) == ("broken", TRUE_RATE, "nothing reached")
    ]
    return Bounds(max(false), min(true))


def rates_table(found: Sequence[Rates], numbers: Sequence[int]) -> Table:
    """What was found, a line for each trouble, rate and alert."""
    table = Table(title="Share of levels with an alert after so many episodes, in %")
    ever = (f"ever by {FOUND_BY}", f"ever by {len(found[0].by) - 1 + found[0].first}")
    for heading in ("bad episodes", "rate", "alert", *map(str, numbers), "most at any", *ever):
        table.add_column(heading, justify="left" if heading in ("bad episodes", "alert") else "right")
    for rates in found:
        shares = [rates.share(number, by=False) for number in numbers]
        shares += [max(rates.at), rates.share(FOUND_BY, by=True), rates.by[-1]]
        table.add_row(rates.trouble, f"{rates.rate:g}", rates.alert, *(f"{100 * share:.1f}" for share in shares))
    return table


def _episode(trouble: Trouble, bad: bool, rng: np.random.Generator) -> Quantities:
    if not bad:
        return GOOD
    return NOTHING if trouble == "nothing reached" else ONE[rng.integers(len(ONE))]


def _alerts(level: StressLevel) -> tuple[bool, bool, bool]:
    """In the order of `Alert`."""
    figures = level_figures(level, THRESHOLDS, CONFIG)
    return figures.state == "broken", contract_violated([figures], CONFIG), (figures.margin or 0.0) < 0


def _shares(said: npt.NDArray[np.bool_]) -> list[float]:
    return [float(share) for share in said.mean(axis=0)]


def alert_rates(
    repeats: Annotated[int, typer.Option(min=1, help="How often each series of episodes is drawn.")] = 1000,
    most: Annotated[int, typer.Option(min=FOUND_BY, help="Episodes of a series.")] = 200,
    rates: Annotated[
        str, typer.Option(metavar="P,P,…", help="Rates of bad episodes, besides 0.05 and 0.4.")
    ] = "0.1,0.2",
    seed: Annotated[int, typer.Option(min=0, help="Of the draws.")] = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", dir_okay=False, help="Write the figures here too.")
    ] = None,
) -> None:
    """Say how often a level is called broken, or its contract violated, by the rate of its bad episodes.

    Exits with 1 where, of levels with a rate of 5 %, more than 5 % are called broken at some number of episodes, or, of
    levels at which 40 % reach nothing, fewer than 90 % by 20 episodes. Takes some minutes.

    Example: python -m tests.benchmarks.alert_rates --repeats 100 --most 50
    """
    chosen = sorted({FALSE_RATE, TRUE_RATE, *(float(part) for part in rates.split(",") if part)})
    rng, found = np.random.default_rng(seed), list[Rates]()
    bar = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*bar, console=Console(stderr=True)) as progress:
        for trouble in get_args(Trouble):
            for rate in chosen:
                task = progress.add_task(f"{trouble}, {rate:g}", total=repeats)

                def advance(task: TaskID = task) -> None:
                    progress.advance(task)

                found += measured(trouble, rate, most, repeats, rng, advance)
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(rates_table(found, [n for n in (5, 6, 8, 10, 15, 20, 30, 50, 100, 200) if n <= most]))
    bounds = bounds_of(found)
    if json_file is not None:
        written = {"bounds": bounds._asdict(), "broken": bounds.broken, "rates": found}
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(written), indent=1) + b"\n")
    for told in bounds.broken:
        console.print(told)
    raise typer.Exit(1 if bounds.broken else 0)


if __name__ == "__main__":
    sys.exit(run_program(alert_rates, "alert_rates"))

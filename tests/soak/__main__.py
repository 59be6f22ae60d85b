"""`make soak`: the pipeline at what one core gives, for minutes, and whether anything grows, lags or is lost."""

import json
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tests.program import run_program
from tests.soak.soak_figures import broken_bounds, growth_table, growths, write_plot
from tests.soak.soak_run import Soak, SoakPlan, SoakSample


def soak(
    minutes: Annotated[float, typer.Option(min=0.1, max=10_000, help="How long.")] = 20.0,
    broker: Annotated[
        Literal["kafka", "embedded"], typer.Option(help="A real Kafka, or the embedded broker, whose memory grows.")
    ] = "kafka",
    sample: Annotated[float, typer.Option(min=0.5, max=60, help="Look at the processes every so many seconds.")] = 5.0,
    most: Annotated[float, typer.Option(min=64, help="The most steps per second, if the core could do more.")] = 1e6,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Draw it to this PNG.")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", dir_okay=False, help="Write samples and figures here.")
    ] = None,
) -> None:
    """Run the pipeline at what one core gives, and watch it.

    Two producers, each a vector of 64 environments, send as many steps as a worker that is held to one core takes in;
    an exporter reads what comes out. Memory, descriptors and threads of every process are looked at again and again,
    and at the end the exporter's counters must be what the producers have reported, exactly. A soak of five minutes or
    more is also judged by growth: memory of a process by no more than a tenth and 20 MB from its second quarter to its
    last, descriptors and threads not at all but for a few.

    Ends with 1 if anything was wrong. Example: make soak ARGS="--minutes 60 --plot soak.png"
    """
    console = Console(width=None if sys.stdout.isatty() else 120)
    plan = SoakPlan(minutes=minutes, broker=broker, sample_s=sample, most_steps_per_s=most)
    bar = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    directory = Path(tempfile.mkdtemp(prefix="springback-soak-"))
    with Progress(*bar, console=Console(stderr=True)) as progress:
        task = progress.add_task("starting", total=60 * minutes)

        def tell(seen: SoakSample) -> None:
            told = f"{seen.steps_per_s:,.0f} steps/s, {seen.frames_behind} frames behind"
            progress.update(task, description=told, completed=seen.at_s)

        result = Soak(plan, directory, tell).run()
    samples = result.samples
    console.print(growth_table(samples))
    rates = [seen.steps_per_s for seen in samples[len(samples) // 4 :]]
    behind = [seen.frames_behind for seen in samples]
    counts = result.counts
    assert counts is not None
    speed = f"{statistics.median(rates):,.0f} steps/s (median after the first quarter)"
    console.print(
        f"{speed}, at most {max(behind)} frames behind; "
        f"{counts.steps:,} steps, {sum(counts.ends.values()):,} episodes, {counts.refusable:,} rows refused on purpose."
    )
    wrong = [*result.wrong, *broken_bounds(samples)]
    for text in wrong:
        console.print(text, markup=False, highlight=False)
    console.print("Counters are exact." if not result.wrong else "Counters are not exact.")
    if plot is not None:
        write_plot(samples, plot)
    if json_file is not None:
        told = {"plan": plan, "wrong": wrong, "counts": counts, "growth": growths(samples), "samples": samples}
        json_file.write_text(json.dumps(msgspec.to_builtins(told), indent=1) + "\n")
    if wrong:
        console.print(f"Its logs: {directory}", markup=False)
        raise typer.Exit(1)
    shutil.rmtree(directory)


if __name__ == "__main__":
    os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:+UseSerialGC")
    sys.exit(run_program(soak, "make soak"))

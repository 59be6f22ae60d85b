"""`springback replay`: send recordings to Kafka."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from springback.deploy.commands.input_files import LeftOut, MappingOption, RecordingsArgument, read_mapping_option
from springback.deploy.commands.shared_options import (
    BrokerOption,
    PrefixOption,
    SettingsOption,
    step_publisher,
    stream_settings,
)

if TYPE_CHECKING:
    from springback.producers.recordings.replay import ReplaySummary


def parse_speed(text: str) -> float:
    """The speed that a user gave: `max` stands for 0.

    Raises:
        typer.BadParameter: it is neither a finite number of 0 or more nor `max`.
    """
    try:
        speed = 0.0 if text == "max" else float(text)
    except ValueError:
        speed = -1.0
    if not 0.0 <= speed < float("inf"):
        message = f"{text!r} is neither a number of 0 or more, such as 1 or 20, nor max"
        raise typer.BadParameter(message)
    return speed


def replay(
    files: RecordingsArgument,
    mapping: MappingOption = None,
    broker: BrokerOption = None,
    prefix: PrefixOption = None,
    speed: Annotated[
        float,
        typer.Option(
            parser=parse_speed,
            metavar="NUMBER|max",
            help="Recorded seconds per second, by the frames' own times; 0 or max for as fast as Kafka takes them.",
        ),
    ] = 1.0,
    keep_session: Annotated[
        bool,
        typer.Option(
            "--keep-session", help="Send the recorded session ids; a worker that has seen them drops every step."
        ),
    ] = False,
    settings: SettingsOption = None,
) -> None:
    """Send recordings to Kafka at a chosen speed, each time as a session of its own.

    A pause of more than a minute in the recording, or a jump of its clock, is not waited for. What cannot be read (a
    file that was cut off, a bad line) is reported and left out. Ctrl-C stops it and says what was sent.

    Examples: springback replay --speed 20 monday.frames.jsonl.gz tuesday.frames.jsonl.gz

    springback replay --speed max --mapping nav2 monday.mcap
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    from springback.producers.recordings.any_format import in_time_order, read_recordings
    from springback.producers.recordings.replay import ReplaySummary
    from springback.producers.recordings.replay import replay as send
    from springback.producers.recordings.step_frames import count_lines, read_frames

    console = Console(stderr=True)
    left_out = LeftOut(lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True))
    started_s = time.monotonic()
    summary = ReplaySummary()
    given = read_mapping_option(mapping, files)
    publisher = step_publisher(stream_settings(broker, prefix, settings))
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn() if given is None else TaskProgressColumn(),
        TextColumn("frames, {task.fields[steps]} steps" if given is None else "{task.fields[steps]} steps"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("Replaying", total=count_lines(files) if given is None else len(files), steps=0)
        read: dict[str, float] = {}

        def show(sent: ReplaySummary) -> None:
            nonlocal summary
            summary = sent
            done = sent.frames if given is None else sum(read.values())
            progress.update(task, completed=done, steps=sent.steps)

        def note_read(source: str, share: float | None) -> None:
            read[source] = read.get(source, 0.0) if share is None else share

        broken_off = False
        try:
            send(
                read_frames(in_time_order(files), left_out)
                if given is None
                else read_recordings(files, given, left_out, note_read),
                publisher,
                speed=speed,
                session="keep" if keep_session else "fresh",
                on_sent=show,
            )
        except Exception:
            broken_off = True  # why is told after it
            raise
        finally:
            publisher.close()
            progress.stop()
            for part in summary.refused:
                left_out(part)
            left_out.finish()
            if not broken_off:
                typer.echo(_sent(summary, left_out.count, time.monotonic() - started_s))
            elif summary.arrived:
                sessions = ", ".join(dict.fromkeys(summary.sessions.values()))
                typer.echo(f"Broken off: {summary.arrived} frames have arrived; sessions: {sessions}", err=True)
    if left_out.count and not summary.arrived:
        raise typer.Exit(2)


def _sent(summary: "ReplaySummary", left_out: int, seconds: float) -> str:
    sessions = ", ".join(dict.fromkeys(summary.sessions.values())) or "none"
    missing = summary.frames - summary.arrived - len(summary.refused)
    return (
        f"Sent {summary.frames} frames ({summary.steps} steps, {summary.size_bytes / 1e6:.1f} MB) of "
        f"{len(summary.producers)} producers in {seconds:.1f} s"
        + (f", of which {missing} were not acknowledged" if missing else "")
        + f"; left out {left_out}; sessions: {sessions}"
    )

"""`springback check`: what in recordings, or on the topic of steps, looks like a mistake of whoever sends."""

import asyncio
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from springback.deploy.commands.input_files import (
    BaselineOption,
    MappingOption,
    check_recordings,
    read_baseline_option,
    read_mapping_option,
    reading_progress,
)
from springback.deploy.commands.shared_options import (
    BrokerOption,
    PrefixOption,
    SettingsOption,
    silence_kafka_clients,
    stream_settings,
)

if TYPE_CHECKING:
    from springback.producers.recordings.step_frames import UnreadablePart
    from springback.stream_processors.settings import WorkerSettings
    from springback.stream_processors.suspicions.findings import Findings, Suspicion
    from springback.stream_processors.suspicions.watcher import SuspicionWatcher

_BATCH = 512
_NOTED = ("no_such_topic", "not_closed", "topic_not_read", "unknown")
"""What a mapping leaves alone, or does not find, often on purpose."""

_NOTHING = "there is no step frame in what was given"


def check(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            callback=lambda files: check_recordings(files or []),
            show_default=False,
            help="Recordings of every kind that `evaluate` reads, or step frames as JSON; - is standard input. "
            "None: look at the broker.",
        ),
    ] = None,
    mapping: MappingOption = None,
    baseline: BaselineOption = None,
    broker: BrokerOption = None,
    prefix: PrefixOption = None,
    seconds: Annotated[
        float, typer.Option(min=1.0, max=86_400.0, metavar="SECONDS", help="How long to look at what is being sent.")
    ] = 30.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON, in place of lines.")] = False,
    settings: SettingsOption = None,
) -> None:
    """Say what looks like a mistake in steps that are to be sent (FILE…), or that are being sent (--broker).

    A worker takes in much that was not meant so: a misspelt column is ignored, a time in milliseconds is replaced, a
    session that is used again makes steps into copies. This looks for 34 kinds of such mistakes and prints, the
    most damaging first, what arrived, what was expected, what goes wrong and what to do, with an example. It speaks
    only on so much evidence as its kind of mistake needs; a few frames may be too few to tell.

    With files it reads them once. With --broker it reads the topic of steps for a while from now on, in no consumer
    group: it commits nothing, and workers do not notice.

    Exit codes: 0 nothing looks wrong; 1 something would go wrong without a word; 2 bad input, or not one step frame.

    Examples: springback check monday.frames.jsonl.gz

    springback check --mapping nav2 monday.mcap

    springback check --broker 127.0.0.1:9092 --seconds 60
    """
    from springback.stream_processors.suspicions.watcher import SuspicionWatcher

    chosen = stream_settings(broker, prefix, settings)
    learned = None if baseline is None else read_baseline_option(baseline, chosen.resilience, "--baseline")
    watcher = SuspicionWatcher(chosen.resilience, learned, live=not files)
    if files:
        _read_files(watcher, files, mapping)
    else:
        if mapping is not None:
            message = "a mapping is for recordings; on the topic there are step frames"
            raise typer.BadParameter(message, param_hint="--mapping")
        _read_topic(watcher, chosen, seconds, quiet=as_json)
    findings = watcher.finish()
    _print(findings, as_json=as_json)
    if not findings.looked_at.frames and (files or not findings.suspicions):
        where = f"no message came to {chosen.prefix}steps within {seconds:g} s" if not files else _NOTHING
        typer.echo(f"springback: {where}", err=True)
        raise typer.Exit(2)
    raise typer.Exit(1 if findings.suspicions else 0)


def _read_files(watcher: "SuspicionWatcher", files: list[Path], mapping: str | None) -> None:
    from springback.producers.recordings.any_format import read_recordings
    from springback.stream_processors.suspicions.watcher import Message

    recordings = [file for file in files if not _is_document(file)]
    known = read_mapping_option(mapping, recordings)
    for file in files:
        if file not in recordings:
            watcher.watch([Message(data, f"{file} [{place}]") for place, data in enumerate(_frames_of_document(file))])

    def left_out(part: "UnreadablePart") -> None:
        if part.note or part.reason in _NOTED:
            watcher.note(str(part))
        else:
            place = f"{part.source}:{part.line}" if part.line else part.source
            watcher.unreadable(place, part.reason, part.detail)

    with reading_progress(known is not None) as progress:
        frames = read_recordings(recordings, known, left_out, progress)
        while batch := list(islice(frames, _BATCH)):
            watcher.watch([Message(each.data, f"{each.source}:{each.line}", frame=each.frame) for each in batch])


def _is_document(file: Path) -> bool:
    """Whether a file is JSON that is laid out over many lines, or an array: frames as they are written by hand."""
    from springback.producers.contract.codec import MAX_FRAME_BYTES

    if not file.is_file() or file.stat().st_size > MAX_FRAME_BYTES:
        return False
    with file.open("rb") as stream:
        start = stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    return start[:1] == b"[" or start.partition(b"\n")[0].strip() == b"{"


def _frames_of_document(file: Path) -> list[bytes]:
    import msgspec

    data = file.read_bytes()
    if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] != b"[":
        return [data]
    try:
        return [bytes(frame) for frame in msgspec.json.decode(data, type=list[msgspec.Raw])]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return [data]  # what is wrong with it is told when it is decoded


def _read_topic(watcher: "SuspicionWatcher", settings: "WorkerSettings", seconds: float, *, quiet: bool) -> None:
    from springback.stream_processors.service.topic_look import look_at_topic
    from springback.stream_processors.suspicions.watcher import Message
    from springback.stream_processors.topics import STEPS, topic_name

    silence_kafka_clients()
    topic = topic_name(STEPS, settings.prefix)

    async def look() -> None:
        if not quiet:
            typer.echo(f"Looking at {topic} at {settings.kafka.bootstrap} for {seconds:g} s …", err=True)
        async for records in look_at_topic(settings.kafka, topic, seconds):
            watcher.watch(
                [
                    Message(
                        record.value or b"",
                        f"{topic} partition {record.partition} offset {record.offset}",
                        record.timestamp / 1000,
                        record.key or b"",
                    )
                    for record in records
                ]
            )

    asyncio.run(look())


def _print(findings: "Findings", *, as_json: bool) -> None:
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(findings), indent=1).decode())
        return
    for suspicion in findings.suspicions:
        for line in _lines(suspicion):
            typer.echo(line)
        typer.echo()
    for note in findings.notes:
        typer.echo(f"noted: {note}")
    seen = findings.looked_at
    looked = (
        f"{_counted(seen.frames, 'frame')} with {_counted(seen.steps, 'step')} of {_counted(seen.episodes, 'episode')} "
        f"({seen.ended} ended, {_counted(seen.references, 'reference')}), {_counted(seen.agents, 'agent')}, "
        f"{seen.families} {'family' if seen.families == 1 else 'families'}"
    )
    if findings.suspicions:
        typer.echo(f"{_counted(len(findings.suspicions), 'kind')} of mistake, in {looked}.")
    elif seen.frames:
        typer.echo(f"Nothing suspicious in {looked}.")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _lines(suspicion: "Suspicion") -> Iterator[str]:
    times = f", {suspicion.count} times" if suspicion.count > 1 else ""
    yield f"{suspicion.kind}{times}: {suspicion.subject}: {suspicion.arrived}"
    yield f"  expected  {suspicion.expected}"
    yield f"  damage    {suspicion.damage}"
    yield f"  do        {suspicion.advice}"
    if suspicion.example:
        yield f"  example   {suspicion.example}"
    for other in suspicion.also:
        yield f"  also      {other}"

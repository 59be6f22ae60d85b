"""`springback dead-letters`: what the workers could not use, by reason, one by one, and sent again after a fix."""

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from springback.deploy.commands.shared_options import (
    BrokerOption,
    PrefixOption,
    SettingsOption,
    silence_kafka_clients,
    stream_settings,
)

if TYPE_CHECKING:
    from springback.stream_processors.dead_letters.dead_letter_topic import DeadLetterTopic, Resending
    from springback.stream_processors.dead_letters.letters import Letter, ReasonGroup
    from springback.stream_processors.settings import WorkerSettings

_MOST_PRODUCERS = 3

app = typer.Typer(
    name="dead-letters",
    help="What the workers could not use: by reason, one by one, and sent again after a fix.",
    no_args_is_help=True,
)

ReasonOption = Annotated[
    list[str] | None, typer.Option("--reason", metavar="REASON", help="Only those of this reason. Repeatable.")
]
ProducerOption = Annotated[
    list[str] | None, typer.Option("--producer", metavar="ID", help="Only those of this producer. Repeatable.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]
PositionArgument = Annotated[
    str, typer.Argument(metavar="PARTITION:OFFSET", show_default=False, help="Which one, as `list` shows it.")
]


@app.command("list")
def list_(
    reason: ReasonOption = None,
    producer: ProducerOption = None,
    as_json: JsonOption = False,
    broker: BrokerOption = None,
    prefix: PrefixOption = None,
    settings: SettingsOption = None,
) -> None:
    """List the dead letters by reason: how many, of whom, when the newest came, what is wrong with it, and its place.

    Kafka keeps them for 30 days. The reasons are those of `springback_dead_letters_total`.

    Example: springback dead-letters list --producer robot-7
    """
    from springback.stream_processors.dead_letters.letters import group_letters, is_wanted

    chosen = {"reason": frozenset(reason or ()), "producer": frozenset(producer or ())}

    async def read(settings: "WorkerSettings") -> list["ReasonGroup"]:
        found = await (await _opened(settings)).find(lambda letter: is_wanted(letter, chosen))
        return group_letters(found.letters, found.sent_again)

    groups = asyncio.run(read(_settings(broker, prefix, settings)))
    if as_json:
        _print_json([_group_json(group) for group in groups])
        return
    if not groups:
        typer.echo("No dead letters.")
    for group in groups:
        typer.echo(_group_lines(group))


@app.command()
def show(
    position: PositionArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            dir_okay=False,
            help="Write the whole message to this new file too, as JSON where it can be read: mend it there, for "
            "`resend --edit`.",
        ),
    ] = None,
    as_json: JsonOption = False,
    broker: BrokerOption = None,
    prefix: PrefixOption = None,
    settings: SettingsOption = None,
) -> None:
    """Show one dead letter whole: what is wrong, where it came from, whether it was sent again, and what it holds.

    Of a part of a message, such as a row, the message that it came of is there as long as Kafka keeps it (7 days).

    Example: springback dead-letters show 0:12 --out frame.json
    """
    if out is not None and out.exists():
        message = f"{out} exists already; remove it or choose another name"
        raise typer.BadParameter(message, param_hint="--out")

    named = _place(position)

    async def read(settings: "WorkerSettings") -> tuple["Letter", bytes | None, bool]:
        topic = await _opened(settings)
        found = await topic.find(lambda letter: letter.position == named, [named])
        (letter,) = found.letters
        return letter, await topic.message_of(letter), letter.source in found.sent_again

    letter, message_bytes, sent_again = asyncio.run(read(_settings(broker, prefix, settings)))
    if out is not None:
        if message_bytes is None:
            typer.echo(f"springback: the message of {position} is not kept any more; nothing is written", err=True)
            raise typer.Exit(1)
        from springback.producers.whole_file import write_whole

        write_whole(out, _readable(message_bytes))
    told = _letter_json(letter) | {"sent_again": sent_again, "holds": "message" if letter.whole else "part"}
    if as_json:
        _print_json(told | {"value": _content(letter.value)})
        return
    for name, value in told.items():
        typer.echo(f"{name:<11} {_shown(value) if isinstance(value, str) else json.dumps(value)}")
    typer.echo(json.dumps(_content(letter.value), indent=2))
    if out is not None:
        typer.echo(f"Wrote {out}")


@app.command()
def resend(
    position: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PARTITION:OFFSET]...", show_default=False, help="Which ones, as `list` shows them."),
    ] = None,
    reason: ReasonOption = None,
    producer: ProducerOption = None,
    edit: Annotated[
        Path | None,
        typer.Option(
            "--edit",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="The corrected frame, as JSON or MessagePack, in place of the message of the one that is named.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Send. Without it is only told what would be sent.")] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Send also what would not count or do harm, and what was sent again before."),
    ] = False,
    as_json: JsonOption = False,
    broker: BrokerOption = None,
    prefix: PrefixOption = None,
    settings: SettingsOption = None,
) -> None:
    """Send the messages of dead letters again, in the order in which they came, after a fix; tell first what would be.

    Each goes to where it came from, under its producer's id. What was sent again is noted in the topic of dead
    letters, and no later run sends it; two at the same time may, and the workers take the second for copies. Of each
    is told what would become of it, by what the workers have said of its agents: steps at or below the last of their
    episode, or after its end, do not count any more, and a frame of an older start of the agent would end what it has
    running. Such messages, and those that would be refused as before, are left out.

    Examples: springback dead-letters resend --reason wrong_key --yes

    springback dead-letters resend 0:12 --edit frame.json --yes
    """
    from springback.stream_processors.dead_letters.letters import is_wanted

    positions = frozenset(map(_place, position or ()))
    if not (positions or reason or producer):
        message = "name what to send: PARTITION:OFFSET, --reason or --producer"
        raise typer.BadParameter(message)
    if edit is not None and len(positions) != 1:
        message = "a corrected frame stands in place of one message: name its place, PARTITION:OFFSET"
        raise typer.BadParameter(message, param_hint="--edit")
    chosen = {
        "position": positions,
        "reason": frozenset(reason or ()),
        "producer": frozenset(producer or ()),
    }
    corrected = None if edit is None else edit.read_bytes()

    async def run(settings: "WorkerSettings") -> list[dict[str, Any]]:
        topic = await _opened(settings)
        found = await topic.find(lambda letter: is_wanted(letter, chosen), positions)
        plan = await topic.plan(found.letters, corrected)
        again = [each for each in plan if each.letter.source in found.sent_again]
        sendable = [each for each in plan if each.frame is not None and (force or (each.useful and each not in again))]
        sent: dict[str, str] = {}
        if yes:
            async for each, place in topic.send(sendable, edited=edit is not None):
                sent[each.letter.position] = place.text()
        return [
            _plan_json(each, was_sent=each in again, sends=each in sendable, sent=sent.get(each.letter.position))
            for each in plan
        ]

    plan = asyncio.run(run(_settings(broker, prefix, settings)))
    if as_json:
        _print_json(plan)
        return
    for told in plan:
        typer.echo(_plan_line(told))
    typer.echo(_plan_end(plan, yes))


def _settings(broker: str | None, prefix: str | None, file: Path | None) -> "WorkerSettings":
    silence_kafka_clients()
    return stream_settings(broker, prefix, file)


def _place(text: str) -> str:
    """`PARTITION:OFFSET` as letters have it, without zeros before a number."""
    from springback.stream_processors.dead_letters.letters import parse_position

    return ":".join(map(str, parse_position(text)))


async def _opened(settings: "WorkerSettings") -> "DeadLetterTopic":
    from springback.stream_processors.dead_letters.dead_letter_topic import DeadLetterTopic

    return await DeadLetterTopic.open(settings)


def _clock(time_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time_s))


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2))


def _content(value: bytes) -> Any:
    """What a letter holds, as JSON can carry it: bytes that are neither a frame nor JSON as text, with escapes."""
    try:
        return json.loads(_readable(value))
    except (ValueError, RecursionError):
        return value.decode("utf-8", "backslashreplace")


def _readable(value: bytes) -> bytes:
    """A frame as JSON, and anything else as it is."""
    from springback.producers.contract.codec import decode_frame, encode_json
    from springback.producers.errors import UnreadableFrameError

    if value[:1] in (b"{", b"["):
        return value  # as it was written, with what is wrong
    try:
        return encode_json(decode_frame(value))
    except UnreadableFrameError:
        return value


def _letter_json(letter: "Letter") -> dict[str, Any]:
    return {
        "position": letter.position,
        "time": _clock(letter.time_s),
        "reason": letter.reason,
        "detail": letter.detail,
        "producer": letter.producer,
        "source": None if letter.source is None else letter.source.text(),
    }


def _group_json(group: "ReasonGroup") -> dict[str, Any]:
    return {
        "reason": group.reason,
        "letters": group.letters,
        "sent_again": group.sent_again,
        "producers": dict(group.producers.most_common()),
        "newest": _letter_json(group.newest),
    }


def _group_lines(group: "ReasonGroup") -> str:
    most = group.producers.most_common(_MOST_PRODUCERS)
    named = ", ".join(f"{_shown(name)} ({count})" for name, count in most)
    more = f" and {len(group.producers) - len(most)} more" if len(group.producers) > len(most) else ""
    again = f", {group.sent_again} sent again" if group.sent_again else ""
    newest = group.newest
    return (
        f"{group.reason}: {group.letters}{again}; producers {named}{more}\n"
        f"  newest {_clock(newest.time_s)} at {newest.position}: {_shown(newest.detail)}"
    )


def _shown(text: str) -> str:
    """Text from outside, that must neither break a line nor steer the terminal."""
    return json.dumps(text)[1:-1].replace('\\"', '"')


def _plan_json(each: "Resending", *, was_sent: bool, sends: bool, sent: str | None) -> dict[str, Any]:
    outlook = each.outlook
    return {
        **_letter_json(each.letter),
        "fate": "refused" if outlook is None else outlook.fate,
        "steps": None if outlook is None else outlook.steps,
        "counted": None if outlook is None else outlook.counted,
        "why": each.problem if outlook is None else outlook.why,
        "sent_before": was_sent,
        "chosen": sends,
        "sent_to": sent,
    }


def _plan_line(told: dict[str, Any]) -> str:
    does = f"sent to {told['sent_to']}" if told["sent_to"] else "to be sent" if told["chosen"] else "left out"
    if told["sent_before"]:
        does += ", was sent again before"
    counted = "" if told["steps"] is None else f", {told['counted']} of {told['steps']} steps would count"
    why = f": {_shown(told['why'])}" if told["why"] else ""
    return f"{told['position']} {told['reason']} of {_shown(told['producer'])}: {does}{counted}{why}"


def _plan_end(plan: Sequence[dict[str, Any]], yes: bool) -> str:
    chosen = sum(told["chosen"] for told in plan)
    left = len(plan) - chosen
    if not plan:
        return "No dead letters are like that."
    if yes:
        return f"Sent {chosen} messages again; left out {left}."
    return f"Nothing was sent: {chosen} messages would be, {left} left out. --yes sends them."

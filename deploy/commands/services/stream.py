"""`springback topics`, `worker` and `judge`: the parts of the stream."""

import asyncio
from typing import Annotated, Any

import typer

from springback.deploy.commands.input_files import BaselineOption
from springback.deploy.commands.shared_options import (
    BrokerOption,
    PrefixOption,
    ReadyFileOption,
    SettingsOption,
    silence_kafka_clients,
    stream_settings,
)


def topics(
    broker: BrokerOption = None,
    prefix: PrefixOption = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            min=1, max=1000, help="Partitions of each topic: the most workers that can share the load. 4 if not given."
        ),
    ] = None,
    replication: Annotated[
        int | None,
        typer.Option(
            min=1, max=10, help="Copies of each partition: 3 on a cluster that must not lose any. 1 if not given."
        ),
    ] = None,
    acls: Annotated[
        bool,
        typer.Option(
            "--acls", help="Declare nothing: print the commands of kafka-acls that grant each part what it needs."
        ),
    ] = False,
    principal: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART=PRINCIPAL",
            help="For --acls: who runs a part, such as worker=User:w1, or all=User:demo for all parts in one. "
            "Repeatable; without it every part has a user of its own, User:springback-PART.",
        ),
    ] = None,
    settings: SettingsOption = None,
) -> None:
    """Declare every topic that springback uses, with its partitions, retention and cleanup policy.

    Topics that exist already are checked and left as they are, so it can be run again at any time. Run it once before
    the first worker, and give the worker the same settings. With --acls it asks no broker, and prints what an
    administrator of one that has access rules is to run.

    Examples: springback topics --broker kafka-1:9092 --partitions 8 --replication 3

    springback topics --acls --principal worker=User:w1 --principal producer=User:robot-7
    """
    from springback.stream_processors.topics import declare_topics_for

    chosen = stream_settings(broker, prefix, settings, partitions=partitions, replication=replication)
    if principal and not acls:
        message = "goes with --acls, which is missing"
        raise typer.BadParameter(message, param_hint="--principal")
    if acls:
        from springback.stream_processors.access_rights import acl_commands

        for line in acl_commands(_principals(principal or []), chosen):
            typer.echo(line)
        return
    silence_kafka_clients()
    declared = asyncio.run(declare_topics_for(chosen))
    width = max(map(len, declared))
    for name, count in sorted(declared.items()):
        typer.echo(f"{name:<{width}}  {count} partition{'s' if count > 1 else ''}")


def _principals(given: list[str]) -> dict[str, list[str]]:
    from springback.stream_processors.access_rights import EVERY_PART, PARTS

    if not given:
        return {part: [f"User:springback-{part}"] for part in PARTS}
    found: dict[str, list[str]] = {}
    for text in given:
        part, _, who = text.partition("=")
        if part not in (*PARTS, EVERY_PART) or ":" not in who:
            message = (
                f"{text!r} is not PART=PRINCIPAL, such as worker=User:w1; the parts are {', '.join(PARTS)} and "
                f"{EVERY_PART}"
            )
            raise typer.BadParameter(message, param_hint="--principal")
        found.setdefault(part, []).append(who)
    return found


def worker(
    broker: BrokerOption = None,
    prefix: PrefixOption = None,
    baseline: BaselineOption = None,
    settings: SettingsOption = None,
    ready_file: ReadyFileOption = None,
) -> None:
    """Run one worker: step frames in, rebound windows, costs and baselines out, until Ctrl-C or SIGTERM.

    Start as many as there are partitions, on as many machines as you like: they share the load, and take over from one
    that dies without losing or doubling a step. Run `springback topics` once before the first.

    The user and the file with the password come from SPRINGBACK_KAFKA__SASL_USERNAME and
    SPRINGBACK_KAFKA__SASL_PASSWORD_FILE, or from the settings file; never from here.

    Example: springback worker --broker kafka-1:9092 --baseline clean.baseline
    """
    from springback.stream_processors.worker.app import run_worker

    frozen = None if baseline is None else str(baseline)
    run_worker(stream_settings(broker, prefix, settings, frozen_baseline=frozen), ready_file)


def judge(
    broker: BrokerOption = None,
    prefix: PrefixOption = None,
    endpoint: Annotated[
        str | None,
        typer.Option(metavar="URL", help="An OpenAI-compatible endpoint, such as http://127.0.0.1:11434/v1."),
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="The model's name there.")] = None,
    settings: SettingsOption = None,
    ready_file: ReadyFileOption = None,
) -> None:
    """Let a language model score steps, from the topic steps to judged-steps, until Ctrl-C or SIGTERM.

    Start the workers with SPRINGBACK_JUDGED=true, so that they read what it passes on. No step waits longer than the
    judge's deadline; what has no score by then is scored by the rubric. Start several to share the load.

    The endpoint's key comes from SPRINGBACK_JUDGE_API_KEY, or from the file that judge.api_key_file of the settings
    names; never from here.

    Example: springback judge --endpoint http://127.0.0.1:11434/v1 --model qwen3:8b
    """
    from springback.stream_processors.judging.process import run_judge

    given: dict[str, Any] = {
        key: value for key, value in {"base_url": endpoint, "model": model}.items() if value is not None
    }
    run_judge(stream_settings(broker, prefix, settings, judge=given), ready_file)

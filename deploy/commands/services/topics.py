"""`springback topics`: declare every topic on the broker."""

import asyncio
from typing import Annotated

import typer

from springback.deploy.commands.shared_options import (
    BrokerOption,
    PrefixOption,
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
    settings: SettingsOption = None,
) -> None:
    """Declare every topic that springback uses, with its partitions, retention and cleanup policy.

    Topics that exist already are checked and left as they are, so it can be run again at any time. Run it once before
    the first worker, and give the worker the same settings.

    Example: springback topics --broker kafka-1:9092 --partitions 8 --replication 3
    """
    from springback.stream_processors.topics import declare_topics_for

    silence_kafka_clients()
    chosen = stream_settings(broker, prefix, settings, partitions=partitions, replication=replication)
    declared = asyncio.run(declare_topics_for(chosen))
    width = max(map(len, declared))
    for name, count in sorted(declared.items()):
        typer.echo(f"{name:<{width}}  {count} partition{'s' if count > 1 else ''}")

"""`springback bridge` and `gateway`: how steps arrive that no agent of ours sends to Kafka."""

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from springback.deploy.commands.input_files import MappingOption, read_mapping_option
from springback.deploy.commands.shared_options import (
    BrokerOption,
    PrefixOption,
    ReadyFileOption,
    SettingsOption,
    SpoolOption,
    step_publisher,
    stream_settings,
)

if TYPE_CHECKING:
    from springback.producers.emitter.publishers import FramePublisher
    from springback.producers.mapping.signal_mapping import SignalMapping
    from springback.stream_processors.settings import WorkerSettings


def parse_options(given: list[str]) -> dict[str, str]:
    """The options as a table.

    Raises:
        typer.BadParameter: one is not KEY=VALUE.

    >>> parse_options(["host=10.0.0.2", "port=1883"])
    {'host': '10.0.0.2', 'port': '1883'}
    """
    options: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            message = f"{text!r} is not KEY=VALUE"
            raise typer.BadParameter(message, param_hint="--option")
        options[key] = value
    return options


def bridge(
    name: Annotated[
        str, typer.Argument(metavar="NAME", show_default=False, help="Which bridge; `springback sources` lists them.")
    ],
    mapping: MappingOption = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-o",
            metavar="KEY=VALUE",
            help="A setting of the bridge, above those of [source.NAME] in the mapping. May be given more than once.",
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="Write the steps to this file, as a recording, instead of sending them to Kafka.",
        ),
    ] = None,
    spool: SpoolOption = None,
    broker: BrokerOption = None,
    prefix: PrefixOption = None,
    settings: SettingsOption = None,
) -> None:
    """Make steps of what robots say over ROS, MQTT or another protocol, until Ctrl-C or SIGTERM.

    The mapping says which field of which topic is which signal. A password is never given here: the bridge takes it
    from a file that an option names.

    Example: springback bridge mqtt --mapping fleet.toml --option host=10.0.0.2
    """
    from springback.producers.sources import find_source

    run = find_source(name, "bridge").load()
    chosen = read_mapping_option(mapping)
    _check_sources(chosen)
    options = parse_options(option or [])
    publisher = _publisher(record, spool, broker, prefix, settings)
    try:
        with _stop_on_signal() as stop:
            said = run(chosen, publisher, options, stop)
    finally:
        publisher.close()
    if said is not None:
        typer.echo(str(said))


def _check_sources(mapping: "SignalMapping | None") -> None:
    from springback.producers.sources import sources_of

    known = sources_of("bridge")
    if mapping is None:
        return
    for name in mapping.sources:
        if name not in known:
            message = f"[source.{name}] of {mapping.file} names no bridge; there are {', '.join(known)}"
            raise typer.BadParameter(message, param_hint="--mapping")


def _publisher(
    record: Path | None, spool: Path | None, broker: str | None, prefix: str | None, settings: Path | None
) -> "FramePublisher":
    if record is not None:
        if spool is not None:
            message = "a recording is a file already; --spool is for what goes to Kafka"
            raise typer.BadParameter(message, param_hint="--spool")
        from springback.producers.emitter.publishers import JsonLinesPublisher

        return JsonLinesPublisher(record)
    chosen = stream_settings(broker, prefix, settings)
    publisher = step_publisher(chosen, spool)
    _look_at_broker(chosen)
    return publisher


def _look_at_broker(settings: "WorkerSettings") -> None:
    """Says in the log if Kafka cannot be used, though no step has come yet; the bridge begins meanwhile."""
    from springback.producers.broker_fault import FaultLog, find_fault

    faults = FaultLog("what comes over the bridge", logging.getLogger(__name__))

    def look() -> None:
        faults.note(find_fault(settings.kafka.bootstrap, settings.kafka.producer_options()))

    threading.Thread(target=look, name="springback-bridge-look", daemon=True).start()


@contextmanager
def _stop_on_signal() -> Iterator[threading.Event]:
    stop = threading.Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def gateway(
    broker: BrokerOption = None,
    prefix: PrefixOption = None,
    host: Annotated[
        str, typer.Option(help="Where it listens; 0.0.0.0 for other machines too, which needs --token-file.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Its port; 0 takes a free one.")] = 8090,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Requests must bear the token in this file."),
    ] = None,
    tls_certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Serve HTTPS with this certificate (PEM).")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Its key, if not in the same file.")
    ] = None,
    body_bytes: Annotated[int, typer.Option(min=1024, help="The largest body of a request, unpacked.")] = 8388608,
    connections: Annotated[int, typer.Option(min=1, help="The most connections at a time.")] = 500,
    spool: SpoolOption = None,
    settings: SettingsOption = None,
    ready_file: ReadyFileOption = None,
) -> None:
    """Take step frames by POST /v1/frames and bring them to Kafka, until Ctrl-C or SIGTERM.

    An answer comes once Kafka has acknowledged the frames, or with --spool once they are on disk, and says of each
    that was not taken why. It serves /healthz, /readyz, /metrics and /v1/schema as well. --ready-file gets its address.

    Example: springback gateway, then
    curl -H 'Content-Type: application/json' --data-binary @frame.json http://127.0.0.1:8090/v1/frames
    """
    from springback.producers.gateway.options import GatewayOptions, read_token
    from springback.producers.gateway.server import serve_gateway
    from springback.producers.serving import tls_context
    from springback.stream_processors.service.run import run_until_signalled, write_ready_file

    if tls_key is not None and tls_certificate is None:
        message = "--tls-key needs --tls-certificate"
        raise typer.BadParameter(message)
    chosen = stream_settings(broker, prefix, settings)
    options = GatewayOptions(
        bootstrap=chosen.kafka.bootstrap,
        topic=f"{chosen.prefix}steps",
        client_options=chosen.kafka.client_options(),
        spool=spool,
        spool_client_options={} if spool is None else chosen.kafka.producer_options(),
        host=host,
        port=port,
        token=None if token_file is None else read_token(token_file),
        tls=None if tls_certificate is None else tls_context(tls_certificate, tls_key),
        most_body_bytes=body_bytes,
        most_connections=connections,
    )

    def say_address(address: str) -> None:
        typer.echo(f"Gateway: {address}/v1/frames")
        if ready_file is not None:
            write_ready_file(ready_file, {"gateway": address})

    run_until_signalled(lambda stop: serve_gateway(options, stop, say_address))

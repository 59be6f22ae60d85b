"""`springback gateway`: step frames by HTTP, for any language."""

from pathlib import Path
from typing import Annotated

import typer

from springback.deploy.commands.shared_options import (
    BrokerOption,
    PrefixOption,
    ReadyFileOption,
    SettingsOption,
    stream_settings,
)


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
    settings: SettingsOption = None,
    ready_file: ReadyFileOption = None,
) -> None:
    """Take step frames by POST /v1/frames and bring them to Kafka, until Ctrl-C or SIGTERM.

    An answer comes once Kafka has acknowledged the frames, and says of each that was not taken why. It serves
    /healthz, /readyz, /metrics and /v1/schema as well. --ready-file gets its address.

    Example: springback gateway, then
    curl -H 'Content-Type: application/json' --data-binary @frame.json http://127.0.0.1:8090/v1/frames
    """
    from springback.producers.gateway.options import GatewayOptions, read_token
    from springback.producers.gateway.server import serve_gateway
    from springback.producers.serving import tls_context
    from springback.stream_processors.service.run import configure_logging, run_until_signalled, write_ready_file

    if tls_key is not None and tls_certificate is None:
        message = "--tls-key needs --tls-certificate"
        raise typer.BadParameter(message)
    configure_logging()
    chosen = stream_settings(broker, prefix, settings)
    options = GatewayOptions(
        bootstrap=chosen.kafka.bootstrap,
        topic=f"{chosen.prefix}steps",
        client_options=chosen.kafka.client_options(),
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

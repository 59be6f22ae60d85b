"""`springback live`: the fleet on a page that is brought up to date by itself."""

from pathlib import Path
from typing import Annotated

import typer

from springback.deploy.commands.shared_options import (
    BrokerOption,
    PrefixOption,
    ReadyFileOption,
    SettingsOption,
    SilentAfterOption,
    StalledAfterOption,
    TlsCertificateOption,
    TlsKeyOption,
    check_tls_key,
    stream_settings,
)


def live(
    broker: BrokerOption = None,
    prefix: PrefixOption = None,
    host: Annotated[
        str, typer.Option(help="Where the page is served. Beyond this machine it wants a --password-file.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Its port; 0 takes a free one.")] = 9460,
    password_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="A file with the password that the page asks for."),
    ] = None,
    tls_cert: TlsCertificateOption = None,
    tls_key: TlsKeyOption = None,
    silent_after: SilentAfterOption = 60.0,
    stalled_after: StalledAfterOption = 300.0,
    settings: SettingsOption = None,
    ready_file: ReadyFileOption = None,
) -> None:
    """Serve the live page, until Ctrl-C or SIGTERM: fleet, agents, families, rebound windows, pipeline.

    It reads the topics itself, needs neither the exporter nor Prometheus, and nothing from the internet. Over a network
    that others can listen to, give a certificate too, or put it behind a proxy with TLS that passes the Host header on.

    Example: springback live, then open http://127.0.0.1:9460/
    """
    from springback.dashboards.live_page.access import read_password
    from springback.dashboards.live_page.live_server import TlsFiles, serve_live_page
    from springback.producers.serving import open_socket
    from springback.sinks.fleet.agent_state import StateTimes
    from springback.stream_processors.service.run import configure_logging, run_until_signalled

    check_tls_key(tls_cert, tls_key)
    configure_logging()
    chosen = stream_settings(broker, prefix, settings)
    password = read_password(host, password_file)
    listening = open_socket(host, port, what="live page")
    run_until_signalled(
        lambda stop: serve_live_page(
            chosen,
            listening,
            stop,
            password=password,
            tls=None if tls_cert is None else TlsFiles(tls_cert, tls_key),
            times=StateTimes(silent_s=silent_after, stalled_s=stalled_after),
            ready_file=ready_file,
            on_ready=lambda address: typer.echo(f"Live page: {address}"),
        )
    )

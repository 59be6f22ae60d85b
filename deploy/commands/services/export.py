"""`springback export`: readings as Prometheus metrics."""

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


def export(
    broker: BrokerOption = None,
    prefix: PrefixOption = None,
    host: Annotated[str, typer.Option(help="Where the metrics page is served; 0.0.0.0 for other machines too.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Its port; 0 takes a free one.")] = 9464,
    agents: Annotated[
        int, typer.Option(min=0, help="The most agents with series of their own; the rest share agent=other.")
    ] = 500,
    groups: Annotated[
        int, typer.Option(min=0, help="The most families, by method and version, with series of their own.")
    ] = 100,
    agent_ttl: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="Silence after which an agent's series go away.")
    ] = 900.0,
    silent_after: SilentAfterOption = 60.0,
    stalled_after: StalledAfterOption = 300.0,
    tls_cert: TlsCertificateOption = None,
    tls_key: TlsKeyOption = None,
    auth_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="Ask for a user and a password: lines USER:PASSWORD, or USER:HASH as "
            "python -m springback.sinks.basic_auth prints them.",
        ),
    ] = None,
    sink: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            envvar="SPRINGBACK_SINKS",
            help="Write the readings to this sink of a third party too; `springback sources` lists them. Repeatable.",
        ),
    ] = None,
    sink_option: Annotated[
        list[str] | None, typer.Option(metavar="NAME.KEY=VALUE", help="An option of such a sink. Repeatable.")
    ] = None,
    settings: SettingsOption = None,
    ready_file: ReadyFileOption = None,
) -> None:
    """Export all readings as Prometheus metrics, until Ctrl-C or SIGTERM.

    With the bounds as they are the page has at most 120,000 series, 20,000 of them of single agents. /-/healthy and
    /-/ready are for probes and want no password.

    One exporter serves one set of topics: it reads all of their partitions, so start one, not one per worker. After a
    restart it reads again what Kafka keeps, so counters go on where they were. --ready-file gets the page's address.

    Example: springback export --port 9464, then curl http://127.0.0.1:9464/metrics
    """
    from springback.sinks.exporter import export_readings
    from springback.sinks.fleet.agent_state import StateTimes
    from springback.sinks.fleet.series_bounds import SeriesBounds
    from springback.sinks.metrics_server import ServerAccess
    from springback.sinks.third_party import make_sinks
    from springback.stream_processors.service.run import configure_logging, run_until_signalled

    check_tls_key(tls_cert, tls_key)
    configure_logging()
    chosen = stream_settings(broker, prefix, settings)
    more_sinks = make_sinks(sink or (), sink_option or ())
    run_until_signalled(
        lambda stop: export_readings(
            chosen.kafka.bootstrap,
            stop,
            host=host,
            port=port,
            prefix=chosen.prefix,
            group=chosen.group,
            judged=chosen.judged,
            bounds=SeriesBounds(agents=agents, groups=groups, agent_ttl_s=agent_ttl),
            times=StateTimes(silent_s=silent_after, stalled_s=stalled_after),
            access=ServerAccess(tls_cert, tls_key, auth_file),
            more_sinks=more_sinks,
            ready_file=ready_file,
            on_ready=lambda address: typer.echo(f"Metrics: {address}"),
            client_options=chosen.kafka.client_options(),
        )
    )

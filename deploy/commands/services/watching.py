"""`springback export`, `live` and `annotate`: readings to Prometheus, to the live page and to Grafana."""

from pathlib import Path
from typing import Annotated

import typer

from springback.deploy.commands.shared_options import (
    DEFAULT_GRAFANA,
    AlertmanagerOption,
    BrokerOption,
    CaFileOption,
    GrafanaOption,
    PrefixOption,
    ReadyFileOption,
    SettingsOption,
    SilentAfterOption,
    StalledAfterOption,
    TlsCertificateOption,
    TlsKeyOption,
    TokenFileOption,
    check_tls_key,
    grafana_connection,
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

    With the bounds as they are the page has at most 150,000 series, 20,000 of them of single agents. /-/healthy and
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
    from springback.stream_processors.service.run import run_until_signalled

    check_tls_key(tls_cert, tls_key)
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
    alertmanager: AlertmanagerOption = None,
    settings: SettingsOption = None,
    ready_file: ReadyFileOption = None,
) -> None:
    """Serve the live page, until Ctrl-C or SIGTERM: fleet, agents, families, rebound windows, alerts, pipeline.

    It reads the topics itself, needs neither the exporter nor Prometheus, and nothing from the internet. Over a network
    that others can listen to, give a certificate too, or put it behind a proxy with TLS that passes the Host header on.

    Example: springback live, then open http://127.0.0.1:9460/
    """
    from springback.dashboards.live_page.access import read_password
    from springback.dashboards.live_page.alerts.alertmanager import AlertmanagerAddress
    from springback.dashboards.live_page.live_server import TlsFiles, serve_live_page
    from springback.deploy.alert_files import runbook_text
    from springback.producers.serving import open_socket
    from springback.sinks.fleet.agent_state import StateTimes
    from springback.stream_processors.service.run import run_until_signalled

    check_tls_key(tls_cert, tls_key)
    chosen = stream_settings(broker, prefix, settings)
    password = read_password(host, password_file)
    manager = None if alertmanager is None else AlertmanagerAddress.of(alertmanager)
    listening = open_socket(host, port, what="live page")
    run_until_signalled(
        lambda stop: serve_live_page(
            chosen,
            listening,
            stop,
            password=password,
            tls=None if tls_cert is None else TlsFiles(tls_cert, tls_key),
            times=StateTimes(silent_s=silent_after, stalled_s=stalled_after),
            runbook=runbook_text(),
            alertmanager=manager,
            ready_file=ready_file,
            on_ready=lambda address: typer.echo(f"Live page: {address}"),
        )
    )


def annotate(
    broker: BrokerOption = None,
    prefix: PrefixOption = None,
    url: GrafanaOption = DEFAULT_GRAFANA,
    token_file: TokenFileOption = None,
    ca_file: CaFileOption = None,
    history_h: Annotated[
        float, typer.Option("--history", min=0.0, metavar="HOURS", help="What ended longer ago than this has no mark.")
    ] = 24.0,
    rate: Annotated[
        float, typer.Option("--rate", min=0.1, metavar="NUMBER", help="The most requests to Grafana in a second.")
    ] = 10.0,
    settings: SettingsOption = None,
    ready_file: ReadyFileOption = None,
) -> None:
    """Mark rebound windows, breaches and violated contracts in Grafana as they come, until Ctrl-C or SIGTERM.

    The dashboards of `springback dashboards` show these marks. After a restart nothing is marked twice; run one for a
    Grafana. The token is taken as `springback dashboards publish` takes it; the role Editor is enough.

    Example: springback annotate --url http://127.0.0.1:3000 --token-file grafana.token
    """
    from springback.sinks.grafana.annotations_sink import AnnotationBounds, annotate_readings
    from springback.stream_processors.service.run import run_until_signalled

    chosen = stream_settings(broker, prefix, settings)
    with grafana_connection(url, token_file, ca_file) as grafana:
        run_until_signalled(
            lambda stop: annotate_readings(
                chosen.kafka.bootstrap,
                stop,
                grafana,
                prefix=chosen.prefix,
                bounds=AnnotationBounds(history_s=3600 * history_h, rate_per_s=rate),
                ready_file=ready_file,
                on_ready=lambda address: typer.echo(f"Marks go to {address}"),
                client_options=chosen.kafka.client_options(),
            )
        )

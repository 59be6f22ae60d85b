"""`springback annotate`: rebound windows and breaches as annotations in Grafana."""

from typing import Annotated

import typer

from springback.deploy.commands.shared_options import (
    DEFAULT_GRAFANA,
    BrokerOption,
    CaFileOption,
    GrafanaOption,
    PrefixOption,
    ReadyFileOption,
    SettingsOption,
    TokenFileOption,
    grafana_connection,
    stream_settings,
)


def annotate(
    broker: BrokerOption = None,
    prefix: PrefixOption = None,
    url: GrafanaOption = DEFAULT_GRAFANA,
    token_file: TokenFileOption = None,
    ca_file: CaFileOption = None,
    history_h: Annotated[
        float, typer.Option("--history", min=0.0, metavar="HOURS", help="How far back windows and breaches are marked.")
    ] = 24.0,
    rate: Annotated[
        float, typer.Option("--rate", min=0.1, metavar="NUMBER", help="The most requests to Grafana in a second.")
    ] = 10.0,
    settings: SettingsOption = None,
    ready_file: ReadyFileOption = None,
) -> None:
    """Mark rebound windows and breaches in Grafana as they come, until Ctrl-C or SIGTERM.

    The dashboards of `springback dashboards` show these marks. After a restart nothing is marked twice; run one for a
    Grafana. The token is taken as `springback dashboards publish` takes it; the role Editor is enough.

    Example: springback annotate --url http://127.0.0.1:3000 --token-file grafana.token
    """
    from springback.sinks.grafana.annotations_sink import AnnotationBounds
    from springback.sinks.grafana.annotator import annotate_readings
    from springback.stream_processors.service.run import configure_logging, run_until_signalled

    configure_logging()
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

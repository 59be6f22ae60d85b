"""`springback export`: readings as Prometheus metrics."""

from typing import Annotated

import typer

from deploy.commands.shared_options import BrokerOption, PrefixOption, ReadyFileOption, SettingsOption, stream_settings


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
    settings: SettingsOption = None,
    ready_file: ReadyFileOption = None,
) -> None:
    """Export all readings as Prometheus metrics, until Ctrl-C or SIGTERM.

    One exporter serves one set of topics: it reads all of their partitions, so start one, not one per worker. After a
    restart it reads again what Kafka keeps, so counters go on where they were. --ready-file gets the page's address.

    Example: springback export --port 9464, then curl http://127.0.0.1:9464/metrics
    """
    from sinks.exporter import export_readings
    from sinks.series_bounds import SeriesBounds
    from stream_processors.service_log import configure_logging
    from stream_processors.service_run import run_until_signalled

    configure_logging()
    chosen = stream_settings(broker, prefix, settings)
    run_until_signalled(
        lambda stop: export_readings(
            chosen.kafka.bootstrap,
            stop,
            host=host,
            port=port,
            prefix=chosen.prefix,
            group=chosen.group,
            judged=chosen.judged,
            bounds=SeriesBounds(agents=agents),
            ready_file=ready_file,
            on_ready=lambda address: typer.echo(f"Metrics: {address}"),
            client_options=chosen.kafka.client_options(),
        )
    )

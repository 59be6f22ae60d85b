"""`springback worker`: one worker of the stream."""

from springback.deploy.commands.input_files import BaselineOption
from springback.deploy.commands.shared_options import (
    BrokerOption,
    PrefixOption,
    ReadyFileOption,
    SettingsOption,
    stream_settings,
)


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
    from springback.stream_processors.service.run import configure_logging
    from springback.stream_processors.worker.app import run_worker

    configure_logging()
    frozen = None if baseline is None else str(baseline)
    run_worker(stream_settings(broker, prefix, settings, frozen_baseline=frozen), ready_file)

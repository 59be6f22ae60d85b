"""`springback judge`: the optional stage that lets a language model score steps."""

from typing import Annotated, Any

import typer

from springback.deploy.commands.shared_options import (
    BrokerOption,
    PrefixOption,
    ReadyFileOption,
    SettingsOption,
    stream_settings,
)


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
    from springback.stream_processors.service.run import configure_logging

    configure_logging()
    given: dict[str, Any] = {
        key: value for key, value in {"base_url": endpoint, "model": model}.items() if value is not None
    }
    run_judge(stream_settings(broker, prefix, settings, judge=given), ready_file)

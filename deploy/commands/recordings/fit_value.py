"""`springback fit-value`: a value network from recordings."""

from pathlib import Path
from typing import Annotated

import typer

from springback.deploy.commands.input_files import (
    BaselineOption,
    LeftOut,
    MappingOption,
    RecordingsArgument,
    read_baseline_option,
    read_mapping_option,
    reading_progress,
)
from springback.deploy.commands.shared_options import SettingsOption, stream_settings
from springback.producers.whole_file import write_whole


def _widths(text: str) -> tuple[int, ...]:
    try:
        widths = tuple(int(part) for part in text.split(","))
    except ValueError:
        widths = ()
    if not 1 <= len(widths) <= 2 or not all(1 <= width <= 1024 for width in widths):
        message = f"{text!r} is not one or two widths from 1 to 1024 with a comma between, such as 32,32"
        raise typer.BadParameter(message, param_hint="--hidden")
    return widths


def fit_value(
    files: RecordingsArgument,
    out: Annotated[
        Path,
        typer.Option(
            metavar="MODEL", dir_okay=False, help="The file to write; the loss curve goes next to it (MODEL.loss.png)."
        ),
    ],
    hidden: Annotated[str, typer.Option(metavar="LIST", help="Widths of one or two hidden layers.")] = "32,32",
    epochs: Annotated[int, typer.Option(min=1, help="The most passes over the episodes; it stops by itself.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="The same seed makes the same network of the same episodes.")] = 0,
    mapping: MappingOption = None,
    baseline: BaselineOption = None,
    settings: SettingsOption = None,
) -> None:
    """Fit a value network by TD(lambda) to the reference episodes of recordings that ended in success.

    It takes the place of the mean return by anchor where `--value-model` (`evaluate`, `compare`) or the setting
    `value_model` of the workers names it. A fifth of the episodes is held out, and says when to stop.

    Example: springback fit-value --out clean.value monday.frames.jsonl.gz
    """
    # Asked for first: the extra that is named for it brings what the others want, too.
    import sklearn  # type: ignore[import-untyped] # noqa: F401
    from rich.console import Console
    from rich.progress import Progress

    from springback.dashboards.evaluation_report.loss_curve import write_loss_curve
    from springback.producers.recordings.any_format import RecordedFrames
    from springback.stream_processors.offline.evaluation import learn_baseline
    from springback.stream_processors.offline.value_fitting import (
        EpochErrors,
        FittingConfig,
        fit_value,
        reward_trajectories,
    )
    from springback.stream_processors.resilience.stability.network_value import dump_network

    config = stream_settings(None, None, settings).resilience
    fitting = FittingConfig(
        hidden=_widths(hidden),
        discount=config.stability.discount,
        trace=config.stability.trace,
        epochs=epochs,
        seed=seed,
    )
    given = None if baseline is None else read_baseline_option(baseline, config, "--baseline")
    left_out = LeftOut(lambda line: typer.echo(line, err=True))
    chosen = read_mapping_option(mapping, files)
    with reading_progress(chosen is not None) as progress:
        frames = list(RecordedFrames(files, left_out, chosen, progress))
    left_out.finish()
    learned = learn_baseline(frames, config) if given is None else given
    references_only = config.learn_from == "reference"
    recorded = reward_trajectories(frames, config, learned, references_only=references_only)
    trajectories = [trajectory for trajectory in recorded if trajectory.success]
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("Fitting", total=epochs)

        def show(errors: EpochErrors) -> None:
            bar.update(task, completed=errors.epoch, description=f"Fitting: held-out error {errors.held_out:.3g}")

        fitted = fit_value(trajectories, fitting, show)
    write_whole(out, dump_network(fitted.network))
    plot = out.with_name(f"{out.name}.loss.png")
    write_loss_curve(plot, fitted)
    steps = sum(len(trajectory.rewards) for trajectory in trajectories)
    typer.echo(
        f"Fitted {out} to {fitted.train_episodes} episodes, {fitted.held_out_episodes} held out ({steps} steps)\n"
        f"RMS error of values against returns: train {fitted.best.train:.3g}, held out {fitted.best.held_out:.3g} "
        f"(a constant: {fitted.spread:.3g})\n"
        f"Kept epoch {fitted.best.epoch} of {fitted.errors[-1].epoch}; loss curve in {plot}"
    )

"""The plot of how a value network was fitted: its errors epoch by epoch, and the epoch that was kept."""

from pathlib import Path

from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from springback.producers.whole_file import whole_file
from springback.stream_processors.offline.value_fitting import FittedValue

_TRAIN, _HELD_OUT, _MUTED = "#0072b2", "#d55e00", "#777777"


def write_loss_curve(path: Path, fitted: FittedValue) -> None:
    """Writes the plot as an image, in the format that the file's name ends in.

    Raises:
        OSError: the file cannot be written.
    """
    epochs = [errors.epoch for errors in fitted.errors]
    # Laid over the defaults: no settings of the user get into the plot.
    with style.context("default"):
        figure = Figure(figsize=(7.0, 4.2), layout="constrained", dpi=150)
        axes = figure.add_subplot()
        axes.axhline(fitted.spread, color=_MUTED, linestyle=":", label="a constant, on the held-out episodes")
        axes.plot(
            epochs,
            [errors.train for errors in fitted.errors],
            color=_TRAIN,
            label=f"{fitted.train_episodes} episodes learned from",
        )
        axes.plot(
            epochs,
            [errors.held_out for errors in fitted.errors],
            color=_HELD_OUT,
            linestyle="--",
            label=f"{fitted.held_out_episodes} episodes held out",
        )
        axes.plot(
            fitted.best.epoch,
            fitted.best.held_out,
            color=_HELD_OUT,
            marker="o",
            linestyle="none",
            label=f"kept: epoch {fitted.best.epoch}, {fitted.best.held_out:.3g}",
        )
        axes.set(
            title="Error of the value network against discounted returns", xlabel="epoch", ylabel="RMS error (return)"
        )
        axes.set_ylim(bottom=0.0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
        with whole_file(path) as draft:
            figure.savefig(draft)

"""What several plots share: axes of recovery cost, which spans from nothing to tens, and of stress; the legend."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

_LINEAR_TO = 0.1
_LONG_NAME = 18
_TICKS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


def cost_scale(axes: Axes, which: str, largest: float) -> None:
    """Make an axis one of recovery cost: even up to 0.1, logarithmic beyond, from a little under 0."""
    axis: Axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("symlog", linthresh=_LINEAR_TO, linscale=0.6)
    top = max(1.0, largest * 1.4)
    (axes.set_xlim if which == "x" else axes.set_ylim)(-0.02, top)
    ticks = [tick for tick in _TICKS if tick <= top]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter([f"{tick:g}" for tick in ticks]))
    axis.set_minor_locator(NullLocator())


def stress_axis(axes: Axes, grid: Sequence[float]) -> None:
    """Make the x axis one of stress, with the grid's points marked."""
    axes.set_xlim(min(grid) - 0.06, max(grid) + 0.06)
    axes.set_xticks(list(grid), [f"{point:g}" for point in grid])
    axes.set_xlabel("stress λ (0 clean, 1 hardest)")


def legend_above(axes: Axes) -> None:
    """Put the legend above the plot, where no mark can be under it."""
    names = axes.get_legend_handles_labels()[1]
    columns = 1 if max(map(len, names)) > _LONG_NAME else 2
    axes.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=columns, columnspacing=1.0)

"""How plots look, and how one becomes SVG inside the page: the same bytes for the same numbers.

Plots are drawn in stand-in colours, which are then replaced by the page's own (CSS variables): so they follow the
reader's light or dark. The palette keeps apart under the common kinds of colour-blindness; marks differ in shape too.
Several plots share the axes of recovery cost, which spans from nothing to tens, and of stress, and the legend.
"""

import io
import json
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib import style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

INK, MUTED, GRID, SURFACE = "#0a0b01", "#0a0b02", "#0a0b03", "#0a0b04"
SERIES = ("#0a0b11", "#0a0b12", "#0a0b13", "#0a0b14", "#0a0b15", "#0a0b16")
MARKERS = ("o", "s", "^", "D", "v", "P")
_VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    SURFACE: "surface",
    **{colour: f"series-{number}" for number, colour in enumerate(SERIES, start=1)},
}
PANEL_WIDTH, PANEL_HEIGHT = 3.7, 2.7
"""Inches of 72 points. A phone shows a panel at about this size, so letters stay as large as text."""
_LINEAR_TO = 0.1
_TICKS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
_LONG_NAME = 18

# Laid over the defaults of Matplotlib: no settings of the user get into a report.
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "springback",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "text.parse_math": False,
    "text.color": INK,
    "axes.facecolor": "none",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.8,
    "hatch.linewidth": 0.6,
}
_TOLD = "told:"
_SVG = "{http://www.w3.org/2000/svg}"
ET.register_namespace("", "http://www.w3.org/2000/svg")
ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


@dataclass(frozen=True, slots=True)
class Panel:
    """A plot with its title, which says what it shows, and a note below. All but `svg` is plain text."""

    title: str
    svg: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class PlotSection:
    """Plots of one kind. `missing` says why there is none, or which are left out; `scales` explain axes one by one."""

    heading: str
    explanation: str
    panels: Sequence[Panel]
    missing: Sequence[str] = ()
    scales: Sequence[tuple[str, str]] = ()


def draw(
    plot: Callable[[Axes], None], *, height: float = PANEL_HEIGHT, width: float = PANEL_WIDTH, polar: bool = False
) -> str:
    """What `plot` draws onto axes, as an SVG element without a size of its own.

    Args:
        plot: draws onto the axes that it is given.
        height: in inches.
        width: in inches.
        polar: whether the axes are polar.
    """
    # A name in a script that the measuring font lacks is fine: the browser draws it with its own fonts.
    with style.context(["default", _STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        figure = Figure(figsize=(width, height), layout="constrained", facecolor="none")
        plot(figure.add_subplot(polar=polar))
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata=_NO_METADATA)
    return _for_the_page(written.getvalue())


def tell(artist: Artist, texts: Sequence[str]) -> None:
    """Says what each mark of an artist is, in plain text, for who points at it: of a line each marker, or a bar."""
    artist.set_gid(_TOLD + json.dumps(list(texts)))


def unique_ids(svg: str, prefix: str) -> str:
    """The element with its ids and the references to them made its own: many share one page."""
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    return re.sub(r'(url\(|href=")#', rf"\1#{prefix}-", svg)


def series_style(number: int) -> dict[str, Any]:
    """Colour and marker of the n-th series."""
    return {"color": SERIES[number % len(SERIES)], "marker": MARKERS[number % len(MARKERS)]}


def cost_scale(axes: Axes, which: str, largest: float) -> None:
    """Makes an axis one of recovery cost: even up to 0.1, logarithmic beyond, from a little under 0."""
    axis: Axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("symlog", linthresh=_LINEAR_TO, linscale=0.6)
    top = max(1.0, largest * 1.4)
    (axes.set_xlim if which == "x" else axes.set_ylim)(-0.02, top)
    ticks = [tick for tick in _TICKS if tick <= top]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter([f"{tick:g}" for tick in ticks]))
    axis.set_minor_locator(NullLocator())


def stress_axis(axes: Axes, grid: Sequence[float]) -> None:
    """Makes the x axis one of stress, with the grid's points marked."""
    axes.set_xlim(min(grid) - 0.06, max(grid) + 0.06)
    axes.set_xticks(list(grid), [f"{point:g}" for point in grid])
    axes.set_xlabel("stress λ (0 clean, 1 hardest)")


def count_ticks(axes: Axes, places: Sequence[float], names: Sequence[str], counts: Sequence[int | None]) -> None:
    """Labels the x axis by names, and under each name how many episodes are behind it; None is of several methods."""
    lines = [name if count is None else f"{name}\n{count}" for name, count in zip(names, counts, strict=True)]
    axes.set_xticks(list(places), lines)
    if any(count is not None for count in counts):
        axes.set_xlabel("stress λ (0 clean, 1 hardest), below it n")


def legend_above(axes: Axes) -> None:
    """Puts the legend above the plot, where no mark can be under it."""
    names = axes.get_legend_handles_labels()[1]
    columns = 1 if max(map(len, names)) > _LONG_NAME else 2
    axes.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=columns, columnspacing=1.0)


def _for_the_page(document: str) -> str:
    svg = _with_titles(document)
    svg = re.sub(r"<svg[^>]*?(viewBox=\"[^\"]*\")[^>]*>", r'<svg \1 aria-hidden="true">', svg, count=1)
    svg = re.sub(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>", "", svg, count=1, flags=re.DOTALL)
    svg = svg.replace("xlink:href", "href").replace("'DejaVu Sans'", "system-ui, sans-serif")
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var(--{variable})")
    return svg.strip()


def _with_titles(document: str) -> str:
    """The element of an SVG document, with a title in each mark that something was told of."""
    root = ET.fromstring(document)
    for number, group in enumerate(list(_told(root))):
        texts = json.loads(group.attrib["id"].removeprefix(_TOLD))
        group.set("id", f"marks_{number}")
        marks = _marks(group)
        halves = len(marks) // max(len(texts), 1)  # a half-filled marker is drawn as two, one row after the other
        for mark, text in zip(marks, texts * halves, strict=True):
            ET.SubElement(mark, f"{_SVG}title").text = text
    return ET.tostring(root, encoding="unicode")


def _told(root: ET.Element) -> Iterator[ET.Element]:
    return (element for element in root.iter(f"{_SVG}g") if element.get("id", "").startswith(_TOLD))


def _marks(group: ET.Element) -> list[ET.Element]:
    """The markers of a line; of a bar its only path."""
    return list(group.iter(f"{_SVG}use")) or list(group.iter(f"{_SVG}path"))

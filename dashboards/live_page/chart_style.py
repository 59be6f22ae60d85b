"""How all charts of the page look. Colours are the style sheet's variables, so that they follow dark and light."""

from collections.abc import Mapping
from typing import Any

from nicegui import ui

INK, MUTED, LINE, CARD = (f"var(--sb-{name})" for name in ("ink", "muted", "line", "card"))

Options = dict[str, Any]
"""Options of Apache ECharts."""

# By name: the width of a text is measured apart from the page, where nothing can be inherited.
FONT = {"fontFamily": "system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, sans-serif", "fontSize": 12}


class LiveChart:
    """A chart that is sent to the browser again only when it has changed.

    Args:
        label: what it shows, for whoever does not see it.
        classes: of its element.
    """

    def __init__(self, label: str, classes: str = "sb-chart") -> None:
        self._chart = ui.echart({"series": []}, renderer="svg").classes(classes)
        self._chart.props["role"], self._chart.props["aria-label"] = "img", label

    def show(self, options: Options) -> None:
        """Show this."""
        if self._chart.options != options:
            self._chart.options.clear()
            self._chart.options.update(options)
            self._chart.update()


def base_options() -> Options:
    """What every chart has."""
    return {
        "animation": False,
        "textStyle": FONT | {"color": INK},
        "grid": {"left": 44, "right": 16, "top": 36, "bottom": 28},
        "legend": {
            **{"top": 0, "left": 0, "itemWidth": 24, "itemHeight": 8, "itemGap": 18, "itemStyle": {"opacity": 0}},
            "textStyle": FONT | {"color": INK},
            "inactiveColor": MUTED,
        },
        "tooltip": {
            "trigger": "axis",
            "confine": True,
            "backgroundColor": CARD,
            "borderColor": LINE,
            "textStyle": FONT | {"color": INK},
            "axisPointer": {"lineStyle": {"color": MUTED}},
        },
    }


def value_axis(**options: Any) -> Options:
    """An axis of numbers, upward."""
    return {
        "type": "value",
        "axisLabel": FONT | {"color": MUTED},
        "splitLine": {"lineStyle": {"color": LINE}},
        "splitNumber": 4,
        "nameTextStyle": FONT | {"color": MUTED},
        **options,
    }


def line_series(name: str, colour: str, data: list[Any], style: str = "solid", width: float = 2) -> Options:
    """A line; told from others by its dashes too, not by its colour alone."""
    return {
        "name": name,
        "type": "line",
        "symbol": "none",
        "connectNulls": False,
        "color": colour,
        "lineStyle": {"color": colour, "width": width, "type": style},
        "data": data,
    }


def mark_line(value: Mapping[str, float], text: str, colour: str, style: str, **label: Any) -> Options:
    """A straight line across the chart, with its meaning beside it."""
    return {
        **value,
        "lineStyle": {"color": colour, "type": style, "width": 1.5},
        "label": FONT | {"formatter": text, "color": colour, "position": "insideEndTop", **label},
    }

"""An agent's last minutes as charts: g by channel, what recovering costs, p and q; rebound windows are shaded."""

from collections.abc import Sequence
from typing import Any

from springback.dashboards.live_page.agent_history import AgentHistory, Span
from springback.dashboards.live_page.chart_style import (
    FONT,
    INK,
    MUTED,
    Options,
    base_options,
    line_series,
    mark_line,
    value_axis,
)

_CHANNELS = (("cognitive", "solid"), ("physical", "dashed"), ("debt", "dotted"))
_SHORTEST_AXIS_S = 60.0


def intensity_chart(history: AgentHistory, spans: Sequence[Span], calm: float, threshold: float | None) -> Options:
    """g^rec and its channels, with the level at or below which an agent re-enters.

    Args:
        history: what is shown.
        spans: of rebound windows.
        calm: that level.
        threshold: the level of the alarm, where a detector has one.
    """
    series = [line_series("g", INK, _points(history, "total"), width=2.5)]
    series += [line_series(name, f"var(--sb-{name})", _points(history, name), style, 1.75) for name, style in _CHANNELS]
    lines = [mark_line({"yAxis": calm}, "re-entry", MUTED, "dashed", position="insideStartTop")]
    if threshold is not None:
        lines.append(mark_line({"yAxis": threshold}, "alarm", "var(--sb-rebound)", "dashed", position="insideStartTop"))
    series[0]["markLine"] = {"silent": True, "symbol": "none", "data": lines}
    return _over_time(history, spans, series, value_axis(min=0))


def cost_chart(history: AgentHistory, spans: Sequence[Span]) -> Options:
    """The recovery cost of the open window, running up."""
    cost = line_series("recovery cost of the open window", "var(--sb-rebound)", _points(history, "cost"))
    cost["areaStyle"] = {"color": "var(--sb-rebound)", "opacity": 0.12}
    return _over_time(history, spans, [cost], value_axis(min=0))


def progress_chart(history: AgentHistory, spans: Sequence[Span]) -> Options:
    """Progress p and the share q of goal propositions that hold."""
    series = [
        line_series("progress p", "var(--sb-calm)", _points(history, "progress")),
        line_series("propositions q", "var(--sb-cognitive)", _points(history, "propositions"), "dashed"),
    ]
    return _over_time(history, spans, series, value_axis(min=0, max=1, interval=0.25))


def _points(history: AgentHistory, name: str) -> list[Any]:
    return [[round(time_s * 1000), None if y is None else round(y, 4)] for time_s, y in history.series(name)]


def _over_time(history: AgentHistory, spans: Sequence[Span], series: list[Options], axis: Options) -> Options:
    extent = history.extent
    first_s, last_s = extent if extent is not None else (0.0, 0.0)
    shades = [[{"xAxis": round(1000 * s)}, {"xAxis": round(1000 * e)}] for s, e in spans if e >= first_s]
    series[0]["markArea"] = {"silent": True, "itemStyle": {"color": "var(--sb-window)"}, "data": shades}
    return {
        **base_options(),
        "xAxis": {
            "type": "time",
            "min": round(1000 * min(first_s, last_s - _SHORTEST_AXIS_S)),
            "max": round(1000 * last_s),
            "axisLine": {"lineStyle": {"color": MUTED}},
            "axisLabel": FONT
            | {"color": MUTED, "hideOverlap": True, "formatter": "{HH}:{mm}:{ss}"}
            | {"showMinLabel": False, "showMaxLabel": False},
        },
        "yAxis": axis,
        "series": series,
    }

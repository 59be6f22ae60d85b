"""The stress-response curve of one family: the margin M_f over stress, where it holds, and where the family is now."""

from springback.dashboards.live_page.chart_style import (
    CARD,
    INK,
    MUTED,
    Options,
    base_options,
    line_series,
    mark_line,
    value_axis,
)
from springback.stream_processors.resilience.family_readings import FamilyReading, StressMargin

_COLOUR = "var(--sb-cognitive)"
# Either side of their lines, which may be one and the same.
_LEFT = {"position": "end", "align": "right", "padding": [0, 4]}
_RIGHT = {"position": "end", "align": "left", "padding": [0, 4]}


def stress_curve(family: FamilyReading) -> Options:
    """The curve (equation 9) with the stress capacity and the live stress. Hollow points stand on too few episodes."""
    points = [_point(margin) for margin in family.margins if margin.margin is not None]
    curve = line_series("margin M", _COLOUR, points)
    curve |= {"symbol": "circle", "symbolSize": 9}
    lines = [mark_line({"yAxis": 0}, "contract", MUTED, "solid", position="insideStartBottom")]
    if family.capacity is not None and family.capacity_flag == "ok":
        name = f"λ* {family.capacity:.1f}"
        lines.append(mark_line({"xAxis": family.capacity}, name, "var(--sb-calm)", "solid", **_LEFT))
    if family.live_stress is not None:
        name = f"live {family.live_stress:.1f}"
        colour = "var(--sb-rebound)" if family.in_breach else INK
        lines.append(mark_line({"xAxis": family.live_stress}, name, colour, "dashed", **_RIGHT))
    curve["markLine"] = {"silent": True, "symbol": "none", "data": lines}
    axis = value_axis(min=0, max=1, name="stress λ", nameLocation="middle", nameGap=26)
    options = base_options()
    options["grid"] = {"left": 60, "right": 28, "top": 28, "bottom": 44}
    del options["legend"]
    return {
        **options,
        "xAxis": axis | {"splitLine": {"show": False}, "axisLine": {"show": True, "onZero": False}, "splitNumber": 5},
        "yAxis": value_axis(name="margin M", nameLocation="middle", nameGap=40),
        "series": [curve],
    }


def curve_words(family: FamilyReading) -> str:
    """The curve in words."""
    if family.capacity is None:
        return "Too few episodes at any stress to say what it withstands."
    if family.capacity_flag == "none":
        return "It keeps its contract at no stress that was seen."
    breach = "" if family.first_breach is None else f", and first breaks it at {family.first_breach:.1f}"
    now = "" if family.live_stress is None else f" Its agents work at {family.live_stress:.1f} now."
    alarm = ""
    if family.in_breach:
        alarm = " When last seen at work they were beyond it." if not now else " That is more than it withstands."
    return f"It keeps its contract up to stress {family.capacity:.1f}{breach}.{now}{alarm}"


def _point(margin: StressMargin) -> Options:
    fill = _COLOUR if margin.sufficient else CARD
    return {
        "value": [margin.stress, round(margin.margin or 0.0, 4)],
        "itemStyle": {"color": fill, "borderColor": _COLOUR, "borderWidth": 2},
    }

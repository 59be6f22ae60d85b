"""How families stand stress: the response curve M_f as a heat map and as bars, and capacity against live stress."""

from grafana_foundation_sdk.builders.bargauge import Panel as BarGauge
from grafana_foundation_sdk.builders.heatmap import HeatmapColorOptions
from grafana_foundation_sdk.builders.heatmap import Panel as Heatmap
from grafana_foundation_sdk.builders.statetimeline import Panel as StateTimeline
from grafana_foundation_sdk.builders.timeseries import Panel as TimeSeries
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from springback.dashboards.grafana_parts.board_layout import Section
from springback.dashboards.grafana_parts.colour_scheme import BAD, GOOD, WARNING, thresholds, yes_no
from springback.dashboards.grafana_parts.metric_query import MetricQueries
from springback.dashboards.grafana_parts.panel_kinds import (
    SERIES_OF_GROUP,
    ask,
    ask_now,
    bars,
    describe,
    heat_map,
    time_line,
    time_series,
)
from springback.stream_processors.resilience import family_metrics as families
from springback.stream_processors.resilience.metric_spec import MetricSpec

_MARGIN_SHOWN = 2.0
"""The colours reach from minus to plus this, with 0, where the contract breaks, in their middle."""


_SUFFICIENT = "Levels without episodes enough decide nothing: they are not shown."


def stress_section(queries: MetricQueries) -> Section:
    """All of it."""
    return Section(
        "Stress",
        [
            _live_stress(queries),
            _response_over_time(queries),
            _margins_now(queries),
            _ratios_now(queries),
            _episodes_now(queries),
            _breaches(queries),
        ],
    )


def _live_stress(queries: MetricQueries) -> TimeSeries:
    panel = time_series(
        "Capacity λ* against live stress",
        describe(
            families.STRESS_CAPACITY,
            families.LIVE_STRESS,
            note="Dashed: what the family stands. Solid: what it meets now. Solid above dashed is a breach.",
        ),
        ask(queries.shown(families.LIVE_STRESS), f"live {SERIES_OF_GROUP}"),
        ask(queries.shown(families.STRESS_CAPACITY), f"λ* {SERIES_OF_GROUP}"),
    )
    dashes = DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [10, 6]})
    return panel.override_by_query("B", [dashes]).min(0).max(1).height(9)


def _response_over_time(queries: MetricQueries) -> Heatmap:
    panel = heat_map(
        "Stress response M_f",
        describe(
            families.STRESS_MARGIN,
            note=f"The smallest margin of the selected families at each level. Blue holds, red breaks. {_SUFFICIENT}",
        ),
        ask(f"min by (stress) ({_sufficient(queries, families.STRESS_MARGIN)})", "{{stress}}"),
        axis="stress λ",
    )
    # Grafana turns this scheme round; reversed, low is red again.
    colours = HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("RdBu").reverse(True).steps(64)
    return panel.color(colours.min(-_MARGIN_SHOWN).max(_MARGIN_SHOWN))


def _margins_now(queries: MetricQueries) -> BarGauge:
    return _by_stress(
        "Margin M_f by stress, now",
        describe(families.STRESS_MARGIN, note=_SUFFICIENT),
        _sufficient(queries, families.STRESS_MARGIN),
        "λ {{stress}}: " + SERIES_OF_GROUP,
    ).thresholds(thresholds(BAD, (0, GOOD)))


def _ratios_now(queries: MetricQueries) -> BarGauge:
    return _by_stress(
        "Lowest ratio by quantity and stress, now",
        describe(families.EXTENSIBILITY_RATIO, families.CONTRACT_THRESHOLD, note=_SUFFICIENT),
        f"min by (stress, quantity) ({_sufficient(queries, families.EXTENSIBILITY_RATIO)})",
        "λ {{stress}}: {{quantity}}",
    ).thresholds(thresholds(BAD, (1, WARNING), (1.5, GOOD)))


def _episodes_now(queries: MetricQueries) -> BarGauge:
    return _by_stress(
        "Episodes by stress",
        describe(families.STRESS_EPISODES, families.STRESS_SUFFICIENT),
        queries.shown(families.STRESS_EPISODES),
        "λ {{stress}}: " + SERIES_OF_GROUP,
    ).min(0)


def _sufficient(queries: MetricQueries, spec: MetricSpec) -> str:
    """What a metric shows at the stress levels that have episodes enough."""
    return f"{queries.shown(spec)} and ignoring (quantity) {queries.shown(families.STRESS_SUFFICIENT)} == 1"


def _by_stress(title: str, description: str, query: str, legend: str) -> BarGauge:
    return bars(title, description, ask_now(query, legend)).height(9)


def _breaches(queries: MetricQueries) -> StateTimeline:
    panel = time_line(
        "Breaches of stress capacity",
        describe(families.IN_STRESS_BREACH, families.STRESS_BREACHES),
        ask(queries.shown(families.IN_STRESS_BREACH), SERIES_OF_GROUP),
    )
    return panel.mappings(yes_no("in breach", "holds")).height(5)

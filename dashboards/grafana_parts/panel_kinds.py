"""The kinds of panel that dashboards are made of: each with its queries, units and a description from the catalogue.

Grafana draws a grid of 24 columns; a panel's width and height are in its units. Where it stands: `board_layout`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from grafana_foundation_sdk.builders.bargauge import Panel as BarGauge
from grafana_foundation_sdk.builders.common import ReduceDataOptions, VizLegendOptions, VizTooltipOptions
from grafana_foundation_sdk.builders.dashboard import FieldColor
from grafana_foundation_sdk.builders.heatmap import HeatmapColorOptions, YAxisConfig
from grafana_foundation_sdk.builders.heatmap import Panel as Heatmap
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.stat import Panel as Stat
from grafana_foundation_sdk.builders.statetimeline import Panel as StateTimeline
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.timeseries import Panel as TimeSeries
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    TooltipDisplayMode,
    VisibilityMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import (
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
)
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from springback.dashboards.grafana_parts.colour_scheme import GOOD, fixed_colour, thresholds
from springback.stream_processors.metrics.glossary import meaning
from springback.stream_processors.metrics.spec import MetricSpec

DATA_SOURCE_UID = "springback-prometheus"
"""The data source that every panel asks. The provisioning files in `deploy/grafana/` give it this uid."""

DATA_SOURCE = DataSourceRef("prometheus", DATA_SOURCE_UID)

P = TypeVar("P", BarGauge, Heatmap, Stat, StateTimeline, Table, TimeSeries)

PERCENT, SECONDS, NUMBER, PER_SECOND, CLOCK = "percentunit", "s", "short", "cps", "dateTimeFromNow"

SERIES_OF_GROUP = "{{family}} / {{method}} / {{version}}"
"""The name of a series that has these labels."""

DASHED = DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [10, 6]})
"""Tells a line from those that it is compared with."""


def ask(expression: str, legend: str = "__auto", *, exemplar: bool = False) -> Dataquery:
    """A query over the dashboard's time range."""
    return Dataquery().expr(expression).legend_format(legend).range().exemplar(exemplar)


def ask_now(expression: str, legend: str = "__auto") -> Dataquery:
    """A query for the values at the end of the time range."""
    return Dataquery().expr(expression).legend_format(legend).instant()


def buckets(expression: str) -> Dataquery:
    """A query for the buckets of a histogram over time, as a heat map takes them."""
    return ask(expression, "{{le}}").format(PromQueryFormat.HEATMAP)


def describe(*specs: MetricSpec, note: str = "") -> str:
    """What a panel shows, in the catalogue's words, and where the formulas come from."""
    told = {spec.name: f"{spec.help} (`{spec.name}`; source: {spec.source}.)" for spec in specs}
    return "\n\n".join(filter(None, (note, *told.values())))


def explained(*words: str) -> str:
    """What words mean, in the glossary's own."""
    return "\n\n".join(f"*{word}*: {meaning(word)}" for word in words)


def stat(title: str, description: str, *queries: Dataquery, unit: str = NUMBER) -> Stat:
    """Big numbers, as of now."""
    panel = Stat().title(title).description(description).unit(unit).span(6).height(4)
    panel = panel.color_mode(BigValueColorMode.VALUE).graph_mode(BigValueGraphMode.NONE)
    return _filled(panel.thresholds(thresholds(GOOD)).reduce_options(_last()), queries)


def time_series(title: str, description: str, *queries: Dataquery, unit: str = NUMBER) -> TimeSeries:
    """Lines over time."""
    panel = TimeSeries().title(title).description(description).unit(unit).span(12).height(8)
    panel = panel.line_width(1.5).fill_opacity(0).show_points(VisibilityMode.AUTO)
    legend = VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM)
    tooltip = VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING)
    return _filled(panel.legend(legend.show_legend(True)).tooltip(tooltip), queries)


def bars(title: str, description: str, *queries: Dataquery, unit: str = NUMBER) -> BarGauge:
    """One bar for each series, as of now."""
    panel = BarGauge().title(title).description(description).unit(unit).span(8).height(8)
    panel = panel.orientation(VizOrientation.HORIZONTAL).thresholds(thresholds(GOOD))
    return _filled(panel.reduce_options(_last()), queries)


def time_line(title: str, description: str, *queries: Dataquery) -> StateTimeline:
    """One lane for each series, coloured by its state."""
    panel = StateTimeline().title(title).description(description).span(24).height(10)
    panel = panel.color_scheme(FieldColor().mode(FieldColorModeId.THRESHOLDS)).show_value(VisibilityMode.NEVER)
    return _filled(panel.merge_values(True).fill_opacity(85).line_width(0), queries)


def heat_map(title: str, description: str, query: Dataquery, *, axis: str, scheme: str = "Oranges") -> Heatmap:
    """Time against rows that the query has by itself: buckets of a histogram, or a label's values."""
    colour = HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme(scheme).steps(64)
    panel = Heatmap().title(title).description(description).unit(NUMBER).calculate(False).span(12).height(9)
    return _filled(panel.color(colour).y_axis(YAxisConfig().axis_label(axis)).cell_gap(1), (query,))


def table(
    title: str, description: str, join_on: str, keep: Sequence[str], columns: Mapping[str, tuple[str, str]]
) -> Table:
    """A row for each value of a label, a column for each query, as of now.

    Args:
        title: of the panel.
        description: of the panel.
        join_on: the label whose values are the rows; the first query brings the labels to be shown.
        keep: the labels to show, in their order.
        columns: expression and unit by the column's title. A column without unit is not shown.
    """
    names = {f"Value #{letter}": name for letter, name in zip(_letters(), columns, strict=False)}
    shown = {field: name for field, name in names.items() if columns[name][1]}
    panel = Table().title(title).description(description).span(24).height(12)
    queries = [ask_now(expression, "").format(PromQueryFormat.TABLE) for expression, _ in columns.values()]
    panel = panel.transformations(
        [
            DataTransformerConfig("joinByField", options={"byField": join_on, "mode": "outer"}),
            DataTransformerConfig("filterFieldsByName", options={"include": {"names": [*keep, *shown]}}),
            DataTransformerConfig(
                "organize",
                options={
                    "indexByName": {field: place for place, field in enumerate((*keep, *shown))},
                    "renameByName": shown,
                },
            ),
        ]
    )
    for name, (_, unit) in columns.items():
        if unit:
            panel = panel.override_by_name(name, [DynamicConfigValue("unit", unit)])
    return _filled(panel.filterable(True), queries)


def coloured(panel: P, colours: Mapping[str, str]) -> P:
    """The panel with fixed colours for series by their names."""
    for name, colour in colours.items():
        panel.override_by_name(name, [fixed_colour(colour)])
    return panel


def _filled(panel: P, queries: Iterable[Dataquery]) -> P:
    """The panel with its queries, lettered as Grafana does."""
    for letter, query in zip(_letters(), queries, strict=False):
        panel.with_target(query.datasource(DATA_SOURCE).ref_id(letter))
    return panel.datasource(DATA_SOURCE)


def _letters() -> str:
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _last() -> ReduceDataOptions:
    return ReduceDataOptions().calcs(["lastNotNull"]).values(False)

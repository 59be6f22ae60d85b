"""Recovery cost C_rec and rebound windows: how they are distributed, what causes them, how they end."""

from grafana_foundation_sdk.builders.common import StackingConfig
from grafana_foundation_sdk.builders.timeseries import Panel as TimeSeries
from grafana_foundation_sdk.models.common import GraphDrawStyle, StackingMode
from springback.dashboards.grafana_parts.board_layout import Section
from springback.dashboards.grafana_parts.colour_scheme import CHANNEL_COLOURS
from springback.dashboards.grafana_parts.metric_query import RATE_WINDOW, WHOLE_RANGE, MetricQueries
from springback.dashboards.grafana_parts.panel_kinds import (
    NUMBER,
    SECONDS,
    ask,
    ask_now,
    bars,
    buckets,
    coloured,
    describe,
    heat_map,
    time_series,
)
from springback.stream_processors.resilience import metric_catalogue as metrics
from springback.stream_processors.resilience.metric_spec import MetricSpec

_RANKS = {0.5: "median", 0.9: "p90", 0.99: "p99"}


def cost_section(queries: MetricQueries) -> Section:
    """What recovery costs."""
    spread = heat_map(
        "C_rec of episodes",
        describe(metrics.EPISODE_COST, note="How many episodes ended with which cost."),
        buckets(queries.distribution(metrics.EPISODE_COST)),
        axis="C_rec",
    )
    whole = bars(
        "C_rec of episodes in the range shown, by perturbation",
        describe(metrics.EPISODE_COST),
        *(
            ask_now(
                queries.quantile(rank, metrics.EPISODE_COST, ("perturbation",), window=WHOLE_RANGE),
                f"{name} {{{{perturbation}}}}",
            )
            for rank, name in _RANKS.items()
        ),
    )
    channels = time_series(
        "Cost by channel",
        describe(metrics.CHANNEL_COST, note="Which kind of effort recovery goes into."),
        ask(queries.rise(metrics.CHANNEL_COST, ("channel",)), "{{channel}}"),
    )
    return Section(
        "Recovery cost",
        [
            spread,
            _quantiles(queries, "Quantiles of C_rec of windows", metrics.WINDOW_COST, NUMBER).height(9),
            whole.span(12).min(0),
            _stacked(coloured(channels, CHANNEL_COLOURS)),
        ],
    )


def window_section(queries: MetricQueries) -> Section:
    """Rebound windows."""
    opened = time_series(
        "Windows opened, and open",
        describe(metrics.WINDOWS_OPENED, metrics.OPEN_WINDOWS),
        ask(queries.rise(metrics.WINDOWS_OPENED), "opened"),
        ask(queries.total(metrics.OPEN_WINDOWS), "open"),
    )
    by_cause = time_series(
        "Windows closed by cause",
        describe(metrics.WINDOWS),
        ask(queries.rise(metrics.WINDOWS, ("cause",)), "{{cause}}"),
    )
    by_state = time_series(
        "Windows closed by how they ended",
        describe(metrics.WINDOWS),
        ask(queries.rise(metrics.WINDOWS, ("state",)), "{{state}}"),
    )
    lost = time_series(
        "Lost cycles",
        describe(metrics.LOST_CYCLES),
        ask(queries.rise(metrics.LOST_CYCLES, ("family",)), "{{family}}"),
    )
    return Section(
        "Rebound windows",
        [
            opened.span(8).min(0),
            _stacked(by_cause).span(8),
            _stacked(by_state).span(8),
            _quantiles(queries, "Length in steps", metrics.WINDOW_STEPS, NUMBER).span(8),
            _quantiles(queries, "Length in seconds", metrics.WINDOW_SECONDS, SECONDS).span(8),
            _stacked(lost).span(8),
        ],
    )


def _quantiles(queries: MetricQueries, title: str, spec: MetricSpec, unit: str) -> TimeSeries:
    asked = (
        ask(queries.quantile(rank, spec, window=RATE_WINDOW), name, exemplar=True) for rank, name in _RANKS.items()
    )
    return time_series(title, describe(spec, note="Of those that closed within a few scrapes."), *asked, unit=unit).min(
        0
    )


def _stacked(panel: TimeSeries) -> TimeSeries:
    bars_ = panel.draw_style(GraphDrawStyle.BARS).stacking(StackingConfig().mode(StackingMode.NORMAL))
    return bars_.fill_opacity(70).line_width(0).min(0)

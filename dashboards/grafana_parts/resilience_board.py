"""The Resilience dashboard: what recovery costs, which stress a family withstands, and what success alone hides.

It shows the distribution, causes and ends of recovery costs C_rec and rebound windows, the response curve M_f as a heat
map and as bars, and stress capacity against live stress.
"""

from grafana_foundation_sdk.builders.bargauge import Panel as BarGauge
from grafana_foundation_sdk.builders.common import StackingConfig
from grafana_foundation_sdk.builders.heatmap import HeatmapColorOptions
from grafana_foundation_sdk.builders.heatmap import Panel as Heatmap
from grafana_foundation_sdk.builders.statetimeline import Panel as StateTimeline
from grafana_foundation_sdk.builders.timeseries import Panel as TimeSeries
from grafana_foundation_sdk.models.common import AxisPlacement, GraphDrawStyle, StackingMode
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode

from springback.dashboards.grafana_parts.board_layout import BREACH_MARKS, OF_GROUPS, Board, Section, group_variables
from springback.dashboards.grafana_parts.colour_scheme import (
    BAD,
    BLUE,
    CHANNEL_COLOURS,
    GOOD,
    VERMILLION,
    WARNING,
    fixed_colour,
    thresholds,
    yes_no,
)
from springback.dashboards.grafana_parts.metric_query import RATE_WINDOW, WHOLE_RANGE, MetricQueries
from springback.dashboards.grafana_parts.panel_kinds import (
    NUMBER,
    PERCENT,
    SECONDS,
    SERIES_OF_GROUP,
    ask,
    ask_now,
    bars,
    buckets,
    coloured,
    describe,
    heat_map,
    table,
    time_line,
    time_series,
)
from springback.stream_processors.metrics import catalogue as metrics
from springback.stream_processors.metrics import families
from springback.stream_processors.metrics.catalogue import UNSCORED_SHARE
from springback.stream_processors.metrics.spec import GROUP, MetricSpec

_MARGIN_SHOWN = 2.0
"""The colours reach from minus to plus this, with 0, where the contract breaks, in their middle."""

_RANKS = {0.5: "median", 0.9: "p90", 0.99: "p99"}
_SUFFICIENT = "Levels with too few episodes decide nothing: they are not shown."


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


def resilience_board() -> Board:
    """The whole dashboard."""
    return Board(
        uid="springback-resilience",
        title="Springback / Resilience",
        description=(
            "What recovery costs and how long it takes, how stable policies stay, and up to which stress they hold, "
            "by family, method and version. Success beside cost shows what success alone hides."
        ),
        refresh="30s",
        span="3h",
        variables=group_variables(),
        annotations=[BREACH_MARKS],
        sections=[
            _outcome(OF_GROUPS),
            stress_section(OF_GROUPS),
            cost_section(OF_GROUPS),
            window_section(OF_GROUPS),
            _stability(OF_GROUPS),
            _navigation(OF_GROUPS),
        ],
    )


def _outcome(queries: MetricQueries) -> Section:
    # A row needs one label that is its own.
    def by_group(spec: MetricSpec) -> str:
        return f'label_join({queries.shown(spec)}, "group", " / ", {", ".join(f"{label!r}" for label in GROUP)})'

    columns: dict[str, tuple[str, str]] = {
        "Episodes": (by_group(families.FAMILY_EPISODES), "none"),
        "Success rate": (by_group(families.SUCCESS_RATIO), PERCENT),
        "Completion": (by_group(families.COMPLETION_RATIO), PERCENT),
        "Mean C_rec": (by_group(families.MEAN_COST), "none"),
        "Contract broken": (by_group(families.CONTRACT_VIOLATIONS), "none"),
        "β": (by_group(families.BETA), "none"),
        "Capacity λ*": (by_group(families.STRESS_CAPACITY), "none"),
        "Live stress": (by_group(families.LIVE_STRESS), "none"),
        "First breach": (by_group(families.FIRST_BREACH), "none"),
        "In breach": (by_group(families.IN_STRESS_BREACH), "none"),
        "Breaches": (by_group(families.STRESS_BREACHES), "none"),
        "Unscored": (by_group(UNSCORED_SHARE), PERCENT),
    }
    rows = table(
        "Families, methods and versions",
        describe(
            families.SUCCESS_RATIO,
            families.MEAN_COST,
            families.STRESS_CAPACITY,
            UNSCORED_SHARE,
            note="An empty cell is not known. Two rows with the same success can differ tenfold in what it cost.",
        ),
        "group",
        ("group",),
        columns,
    ).height(8)
    rows = rows.override_by_name("In breach", [DynamicConfigValue("mappings", yes_no("yes", "no"))])
    both = time_series(
        "Success hides cost",
        describe(
            families.SUCCESS_RATIO,
            families.MEAN_COST,
            note="Left, blue: success. Right, vermillion: what it cost. Cost that rises under level success is wear.",
        ),
        ask(queries.shown(families.SUCCESS_RATIO), f"SR {SERIES_OF_GROUP}"),
        ask(queries.shown(families.MEAN_COST), f"C_rec {SERIES_OF_GROUP}"),
    )
    both = both.override_by_query(
        "A",
        [
            DynamicConfigValue("unit", PERCENT),
            DynamicConfigValue("min", 0),
            DynamicConfigValue("max", 1),
            fixed_colour(BLUE),
        ],
    )
    both = both.override_by_query(
        "B",
        [
            DynamicConfigValue("custom.axisPlacement", AxisPlacement.RIGHT),
            DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [10, 6]}),
            DynamicConfigValue("min", 0),
            fixed_colour(VERMILLION),
        ],
    )
    return Section("Outcome and what it cost", [rows, both.span(24)])


def _stability(queries: MetricQueries) -> Section:
    beta = time_series(
        "β and its 95th percentile",
        describe(families.BETA, families.BETA_UPPER, families.BETA_UNPAIRED),
        ask(queries.shown(families.BETA), f"β {SERIES_OF_GROUP}"),
        ask(queries.shown(families.BETA_UPPER), f"p95 {SERIES_OF_GROUP}"),
        ask(queries.shown(families.BETA_UNPAIRED), f"unpaired {SERIES_OF_GROUP}"),
    )
    by_kind = bars(
        "β by perturbation",
        describe(families.BETA_BY_PERTURBATION),
        ask_now(queries.shown(families.BETA_BY_PERTURBATION), f"{{{{perturbation}}}}: {SERIES_OF_GROUP}"),
    )
    pairs = bars(
        "Pairs behind β",
        describe(families.STABILITY_PAIRS, families.TASKS_LET_GO),
        ask_now(queries.shown(families.STABILITY_PAIRS), f"pairs {SERIES_OF_GROUP}"),
        ask_now(queries.shown(families.TASKS_LET_GO), f"let go {SERIES_OF_GROUP}"),
    )
    return Section("Stability of the policy", [beta.min(0), by_kind.span(6).min(0), pairs.span(6).min(0)])


def _navigation(queries: MetricQueries) -> Section:
    scores = {
        "SR": families.NAVIGATION_SUCCESS,
        "SPL": families.NAVIGATION_SPL,
        "SEL": families.NAVIGATION_SEL,
        "GC": families.NAVIGATION_GOALS,
    }
    panels = [
        bars(
            f"{name} by attack",
            describe(spec),
            ask_now(f"sort_desc({queries.shown(spec)})", f"{{{{attack}}}}: {SERIES_OF_GROUP}"),
            unit=PERCENT,
        )
        .span(6)
        .min(0)
        .max(1)
        for name, spec in scores.items()
    ]
    counts = bars(
        "Navigation episodes by attack",
        describe(families.NAVIGATION_EPISODES),
        ask_now(queries.shown(families.NAVIGATION_EPISODES), f"{{{{attack}}}}: {SERIES_OF_GROUP}"),
    )
    return Section("Navigation safety", [*panels, counts.span(24).height(5).min(0)])

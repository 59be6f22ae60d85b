"""The Resilience dashboard: what recovery costs, which stress a family withstands, and what success alone hides.

It shows the distribution, causes and ends of recovery costs C_rec and rebound windows, the response curve M_f as a heat
map and as bars, what each stress level shows, and the dependable capacity against the live stress (`stress_section`).
"""

from grafana_foundation_sdk.builders.common import StackingConfig
from grafana_foundation_sdk.builders.timeseries import Panel as TimeSeries
from grafana_foundation_sdk.models.common import AxisPlacement, GraphDrawStyle, StackingMode
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue

from springback.dashboards.grafana_parts.board_layout import (
    BREACH_MARKS,
    CONTRACT_MARKS,
    OF_GROUPS,
    Board,
    Section,
    group_variables,
)
from springback.dashboards.grafana_parts.colour_scheme import (
    BLUE,
    CHANNEL_COLOURS,
    FLAG_COLOURS,
    FLAG_NUMBERS,
    LIVE_STATE_COLOURS,
    LIVE_STATE_NUMBERS,
    VERMILLION,
    fixed_colour,
    numbered,
    yes_no,
)
from springback.dashboards.grafana_parts.metric_query import (
    RATE_WINDOW,
    WHOLE_RANGE,
    MetricQueries,
    capacity_flag_number,
    live_state_number,
)
from springback.dashboards.grafana_parts.panel_kinds import (
    DASHED,
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
    explained,
    heat_map,
    table,
    time_series,
)
from springback.dashboards.grafana_parts.stress_section import stress_section
from springback.stream_processors.metrics import catalogue as metrics
from springback.stream_processors.metrics import families, stress
from springback.stream_processors.metrics.catalogue import UNSCORED_SHARE
from springback.stream_processors.metrics.spec import GROUP, MetricSpec

_RANKS = {0.5: "median", 0.9: "p90", 0.99: "p99"}
_FLAG_WORDS = {"ok": "exact", "open": "at least; not tested above", "none": "none", "insufficient": "not known"}


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
        describe(metrics.WINDOWS_OPENED, metrics.OPEN_WINDOWS, metrics.PROVISIONAL_WINDOWS),
        ask(queries.rise(metrics.WINDOWS_OPENED), "opened"),
        ask(queries.total(metrics.OPEN_WINDOWS), "open"),
        ask(queries.rise(metrics.PROVISIONAL_WINDOWS), "closed, provisional"),
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
    learned = bars(
        "References behind the alarm bounds",
        describe(
            families.BOUND_REFERENCES,
            families.BOUND_REFERENCES_NEEDED,
            families.PROVISIONAL_EPISODES,
            note=explained("learning", "provisional"),
        ),
        ask_now(queries.shown(families.BOUND_REFERENCES), SERIES_OF_GROUP),
        ask_now(queries.shown(families.BOUND_REFERENCES_NEEDED), f"needed: {SERIES_OF_GROUP}"),
    )
    broken_off = time_series(
        "Interruptions, gaps, joined and unmoved episodes",
        describe(metrics.INTERRUPTIONS, metrics.EPISODES_WITH_GAP, metrics.EPISODES_JOINED, metrics.EPISODES_UNMOVED),
        ask(queries.rise(metrics.INTERRUPTIONS), "interruptions"),
        ask(queries.rise(metrics.EPISODES_WITH_GAP), "episodes with a gap"),
        ask(queries.rise(metrics.EPISODES_JOINED), "episodes joined"),
        ask(queries.rise(metrics.EPISODES_UNMOVED), "successes without progress"),
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
            learned.span(12).min(0),
            _stacked(broken_off).span(12),
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
        annotations=[BREACH_MARKS, CONTRACT_MARKS],
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
    def labelled(query: str) -> str:
        return f'label_join({query}, "group", " / ", {", ".join(f"{label!r}" for label in GROUP)})'

    def by_group(spec: MetricSpec) -> str:
        return labelled(queries.shown(spec))

    columns: dict[str, tuple[str, str]] = {
        "Episodes": (by_group(families.FAMILY_EPISODES), "none"),
        "Success rate": (by_group(families.SUCCESS_RATIO), PERCENT),
        "Completion": (by_group(families.COMPLETION_RATIO), PERCENT),
        "Mean C_rec": (by_group(families.MEAN_COST), "none"),
        "Broke the contract": (by_group(stress.CONTRACT_VIOLATIONS), "none"),
        "Contract violated": (by_group(stress.CONTRACT_VIOLATED), "none"),
        "β": (by_group(families.BETA), "none"),
        "Dependable": (by_group(stress.DEPENDABLE_CAPACITY), "none"),
        "Tested up to": (by_group(stress.TESTED_UP_TO), "none"),
        "λ*": (by_group(stress.STRESS_CAPACITY), "none"),
        "λ* is": (labelled(capacity_flag_number(queries)), "none"),
        "First breach": (by_group(stress.FIRST_BREACH), "none"),
        "Live stress": (by_group(stress.LIVE_STRESS), "none"),
        "Stress is": (labelled(live_state_number(queries)), "none"),
        "Breaches": (by_group(stress.STRESS_BREACHES), "none"),
        "Learning": (by_group(families.LEARNING), "none"),
        "Unscored": (by_group(UNSCORED_SHARE), PERCENT),
    }
    rows = table(
        "Families, methods and versions",
        describe(
            families.SUCCESS_RATIO,
            families.MEAN_COST,
            stress.DEPENDABLE_CAPACITY,
            stress.STRESS_CAPACITY,
            stress.STRESS_STATE,
            families.LEARNING,
            UNSCORED_SHARE,
            note=(
                "An empty cell is not known. Two rows with the same success can differ tenfold in what it cost. A "
                "capacity is no more than what was tested: read it with the columns beside it."
            ),
        ),
        "group",
        ("group",),
        columns,
    ).height(8)
    flags = {_FLAG_WORDS[flag]: number for flag, number in FLAG_NUMBERS.items()}
    colours = {_FLAG_WORDS[flag]: colour for flag, colour in FLAG_COLOURS.items()}
    for column, mappings in {
        "Contract violated": yes_no("yes", "no"),
        "λ* is": numbered(flags, colours),
        "Stress is": numbered(LIVE_STATE_NUMBERS, LIVE_STATE_COLOURS),
        "Learning": yes_no("yes: provisional", "no"),
    }.items():
        rows = rows.override_by_name(column, [DynamicConfigValue("mappings", mappings)])
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
            DASHED,
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
        "Pairs behind β, and episodes in none",
        describe(families.STABILITY_PAIRS, families.UNPAIRED, families.TASKS_LET_GO),
        ask_now(queries.shown(families.STABILITY_PAIRS), f"pairs {SERIES_OF_GROUP}"),
        ask_now(f"{queries.shown(families.UNPAIRED)} > 0", f"unpaired, {{{{why}}}}: {SERIES_OF_GROUP}"),
    )
    noise = time_series(
        "Change of loss behind β against run-to-run noise",
        describe(
            families.BETA_DIFFERENCE,
            families.REPEATABILITY,
            note="Solid at or below dashed: β says nothing, for two clean runs of one task differ as much.",
        ),
        ask(queries.shown(families.BETA_DIFFERENCE), f"change {SERIES_OF_GROUP}"),
        ask(queries.shown(families.REPEATABILITY), f"noise {SERIES_OF_GROUP}"),
    )
    noise = noise.override_by_query("B", [DASHED]).min(0)
    return Section("Stability of the policy", [beta.min(0), noise, by_kind.span(12).min(0), pairs.span(12).min(0)])


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

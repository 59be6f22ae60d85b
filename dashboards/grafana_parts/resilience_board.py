"""The Resilience dashboard: what recovery costs, what stress holds, and what success alone does not show."""

from grafana_foundation_sdk.models.common import AxisPlacement
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue
from springback.dashboards.grafana_parts.board_layout import Board, Section
from springback.dashboards.grafana_parts.board_marks import BREACH_MARKS
from springback.dashboards.grafana_parts.board_variables import OF_GROUPS, group_variables
from springback.dashboards.grafana_parts.colour_scheme import BLUE, VERMILLION, fixed_colour, yes_no
from springback.dashboards.grafana_parts.metric_query import MetricQueries
from springback.dashboards.grafana_parts.panel_kinds import (
    PERCENT,
    SERIES_OF_GROUP,
    ask,
    ask_now,
    bars,
    describe,
    table,
    time_series,
)
from springback.dashboards.grafana_parts.stress_panels import stress_section
from springback.dashboards.grafana_parts.window_panels import cost_section, window_section
from springback.stream_processors.resilience import family_metrics as families
from springback.stream_processors.resilience import navigation_metrics as navigation
from springback.stream_processors.resilience.metric_catalogue import UNSCORED_SHARE
from springback.stream_processors.resilience.metric_spec import GROUP, MetricSpec


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
        "SR": navigation.NAVIGATION_SUCCESS,
        "SPL": navigation.NAVIGATION_SPL,
        "SEL": navigation.NAVIGATION_SEL,
        "GC": navigation.NAVIGATION_GOALS,
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
        describe(navigation.NAVIGATION_EPISODES),
        ask_now(queries.shown(navigation.NAVIGATION_EPISODES), f"{{{{attack}}}}: {SERIES_OF_GROUP}"),
    )
    return Section("Navigation safety", [*panels, counts.span(24).height(5).min(0)])

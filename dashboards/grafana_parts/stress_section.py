"""The stress section of the Resilience dashboard: what each level shows, what is dependable, and what runs now."""

from grafana_foundation_sdk.builders.bargauge import Panel as BarGauge
from grafana_foundation_sdk.builders.heatmap import HeatmapColorOptions
from grafana_foundation_sdk.builders.heatmap import Panel as Heatmap
from grafana_foundation_sdk.builders.statetimeline import Panel as StateTimeline
from grafana_foundation_sdk.builders.timeseries import Panel as TimeSeries
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode

from springback.dashboards.grafana_parts.board_layout import Section
from springback.dashboards.grafana_parts.colour_scheme import (
    BAD,
    GOOD,
    LEVEL_STATE_COLOURS,
    LEVEL_STATE_NUMBERS,
    LIVE_STATE_COLOURS,
    LIVE_STATE_NUMBERS,
    WARNING,
    numbered,
    thresholds,
)
from springback.dashboards.grafana_parts.metric_query import MetricQueries, level_state_number, live_state_number
from springback.dashboards.grafana_parts.panel_kinds import (
    DASHED,
    PERCENT,
    SERIES_OF_GROUP,
    ask,
    ask_now,
    bars,
    describe,
    explained,
    heat_map,
    time_line,
    time_series,
)
from springback.stream_processors.metrics import stress
from springback.stream_processors.metrics.figure_words import UNDECLARED
from springback.stream_processors.metrics.glossary import LEVEL_STATES, NOTHING_DECLARED, UNSETTLED
from springback.stream_processors.metrics.spec import MetricSpec

_MARGIN_SHOWN = 1.0
"""The colours reach from minus to plus this, with 0, where the contract breaks, in their middle."""

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
            _violations_now(queries),
            _levels(queries),
            _live_states(queries),
        ],
    )


def _live_stress(queries: MetricQueries) -> TimeSeries:
    panel = time_series(
        "Dependable capacity against live stress",
        describe(
            stress.LIVE_STRESS,
            stress.DEPENDABLE_CAPACITY,
            stress.TESTED_UP_TO,
            note=(
                "Solid: what it meets now. Dashed: what it stands dependably. Dotted: the highest level tested, above "
                "which nothing is known. Where no stress is declared there is no solid line."
            ),
        ),
        ask(queries.shown(stress.LIVE_STRESS), f"live {SERIES_OF_GROUP}"),
        ask(queries.shown(stress.DEPENDABLE_CAPACITY), f"dependable {SERIES_OF_GROUP}"),
        ask(queries.shown(stress.TESTED_UP_TO), f"tested up to {SERIES_OF_GROUP}"),
    )
    dots = DynamicConfigValue("custom.lineStyle", {"fill": "dot", "dash": [0, 8]})
    return panel.override_by_query("B", [DASHED]).override_by_query("C", [dots]).min(0).max(1).height(9)


def _response_over_time(queries: MetricQueries) -> Heatmap:
    panel = heat_map(
        "Stress response M_f",
        describe(
            stress.STRESS_MARGIN,
            note=f"The smallest of the selected families at each level; red is negative. {_SUFFICIENT}",
        ),
        ask(f"min by (stress) ({_sufficient(queries, stress.STRESS_MARGIN)})", "{{stress}}"),
        axis="stress λ",
    )
    # Grafana turns this scheme round; reversed, low is red again.
    colours = HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("RdBu").reverse(True).steps(64)
    return panel.color(colours.min(-_MARGIN_SHOWN).max(_MARGIN_SHOWN))


def _margins_now(queries: MetricQueries) -> BarGauge:
    return _by_stress(
        "Margin M_f by stress, now",
        describe(
            stress.STRESS_MARGIN,
            note=f"{_SUFFICIENT} Whether a level is kept is its state: a negative margin may be chance, and with one "
            "that is not negative too many episodes may break the contract.",
        ),
        _sufficient(queries, stress.STRESS_MARGIN),
        "λ {{stress}}: " + SERIES_OF_GROUP,
    ).thresholds(thresholds(BAD, (0, GOOD)))


def _ratios_now(queries: MetricQueries) -> BarGauge:
    return _by_stress(
        "Lowest ratio by quantity and stress, now",
        describe(stress.EXTENSIBILITY_RATIO, stress.CONTRACT_THRESHOLD, note=_SUFFICIENT),
        f"min by (stress, quantity) ({_sufficient(queries, stress.EXTENSIBILITY_RATIO)})",
        "λ {{stress}}: {{quantity}}",
    ).thresholds(thresholds(BAD, (1, GOOD)))


def _episodes_now(queries: MetricQueries) -> BarGauge:
    return _by_stress(
        "Episodes by stress",
        describe(stress.STRESS_EPISODES, stress.LEVEL_STATE),
        queries.shown(stress.STRESS_EPISODES),
        "λ {{stress}}: " + SERIES_OF_GROUP,
    ).min(0)


def _violations_now(queries: MetricQueries) -> BarGauge:
    ends = {
        "at least": stress.VIOLATION_RATIO_LOW,
        "seen": stress.VIOLATION_RATIO,
        "at most": stress.VIOLATION_RATIO_HIGH,
    }
    return (
        bars(
            "Episodes that broke the contract, by stress",
            describe(*ends.values(), stress.CONTRACT_VIOLATED, note="One in ten may: the contract is about the tenth."),
            *(
                ask_now(queries.shown(spec), f"λ {{{{stress}}}}, {name}: {SERIES_OF_GROUP}")
                for name, spec in ends.items()
            ),
            unit=PERCENT,
        )
        .span(24)
        .min(0)
        .max(1)
        .thresholds(thresholds(GOOD, (0.1, WARNING)))
    )


def _sufficient(queries: MetricQueries, spec: MetricSpec) -> str:
    """What a metric shows at the stress levels that have episodes enough."""
    too_few = queries.shown(stress.LEVEL_STATE, state="insufficient")
    return f"{queries.shown(spec)} unless ignoring (quantity, state) {too_few} == 1"


def _by_stress(title: str, description: str, query: str, legend: str) -> BarGauge:
    return bars(title, description, ask_now(query, legend)).height(9)


def _levels(queries: MetricQueries) -> StateTimeline:
    panel = time_line(
        "What each stress level shows",
        describe(stress.LEVEL_STATE, stress.FAVOURABLE_MARGIN, note=explained(*LEVEL_STATES, UNDECLARED)),
        ask(level_state_number(queries), f"λ {{{{stress}}}}: {SERIES_OF_GROUP}"),
    )
    return panel.mappings(numbered(LEVEL_STATE_NUMBERS, LEVEL_STATE_COLOURS)).height(9)


def _live_states(queries: MetricQueries) -> StateTimeline:
    panel = time_line(
        "Live stress against the levels",
        describe(
            stress.STRESS_STATE,
            stress.STRESS_BREACHES,
            stress.ACTIVE_EPISODES,
            note=explained("within", "untested", "breach", UNSETTLED, NOTHING_DECLARED),
        ),
        ask(live_state_number(queries), SERIES_OF_GROUP),
    )
    return panel.mappings(numbered(LIVE_STATE_NUMBERS, LIVE_STATE_COLOURS)).height(5)

"""The Fleet dashboard: who is where, who is in rebound, who is silent."""

from grafana_foundation_sdk.builders.bargauge import Panel as BarGauge
from grafana_foundation_sdk.builders.common import StackingConfig
from grafana_foundation_sdk.models.common import StackingMode
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue

from springback.dashboards.grafana_parts.board_layout import (
    BREACH_MARKS,
    CONTRACT_MARKS,
    OF_AGENTS,
    WINDOW_MARKS,
    Board,
    Section,
    agents_variable,
    group_variables,
)
from springback.dashboards.grafana_parts.colour_scheme import (
    BAD,
    GOOD,
    STATE_COLOURS,
    STATE_NUMBERS,
    WARNING,
    named_states,
    numbered,
    thresholds,
)
from springback.dashboards.grafana_parts.metric_query import highest, since, state_number
from springback.dashboards.grafana_parts.panel_kinds import (
    CLOCK,
    PERCENT,
    SECONDS,
    ask,
    ask_now,
    bars,
    coloured,
    describe,
    stat,
    table,
    time_line,
    time_series,
)
from springback.stream_processors.metrics import agents
from springback.stream_processors.metrics.catalogue import OPEN_WINDOWS
from springback.stream_processors.metrics.spec import GROUP, MetricSpec
from springback.stream_processors.metrics.stress import CONTRACT_VIOLATED, STRESS_STATE

_SHOWN_BARS = 15
_NOT_FINE = "0 does not say that all is well: stress may be untested, or not declared."
_TO_AGENT = "/d/springback-agent?${family:queryparam}&${method:queryparam}&${version:queryparam}&${__url_time_range}"


def fleet_board() -> Board:
    """The whole dashboard."""
    return Board(
        uid="springback-fleet",
        title="Springback / Fleet",
        description="Who is where, who is in rebound, who is silent. An agent's name leads to its own dashboard.",
        refresh="10s",
        span="30m",
        variables=[*group_variables(), agents_variable()],
        annotations=[WINDOW_MARKS, BREACH_MARKS, CONTRACT_MARKS],
        sections=[_now(), _over_time(), _agents(), _waiting()],
    )


def link_to_agent(agent: str) -> DynamicConfigValue:
    """What leads to an agent's own dashboard; `agent` is Grafana's name for where its id stands."""
    address = f"{_TO_AGENT}&var-agent=${{{agent}:percentencode}}"
    return DynamicConfigValue("links", [{"title": "Open this agent", "url": address}])


def _now() -> Section:
    states = stat(
        "Agents by state",
        describe(agents.AGENTS, note="All agents, whatever is selected above."),
        ask_now(OF_AGENTS.shown(agents.AGENTS), "{{state}}"),
    )
    windows = stat("Open windows", describe(OPEN_WINDOWS), ask_now(OF_AGENTS.total(OPEN_WINDOWS)))
    breaches = stat(
        "Families in breach",
        describe(STRESS_STATE, note=_NOT_FINE),
        ask_now(OF_AGENTS.total(STRESS_STATE, state="breach")),
    )
    untested = stat(
        "Under untested stress", describe(STRESS_STATE), ask_now(OF_AGENTS.total(STRESS_STATE, state="untested"))
    )
    violated = stat(
        "Contract violated",
        describe(CONTRACT_VIOLATED, note="Of families that declare no stress this is what there is to go by."),
        ask_now(OF_AGENTS.total(CONTRACT_VIOLATED)),
    )
    return Section(
        "Now",
        [
            coloured(states, STATE_COLOURS).span(12),
            windows.thresholds(thresholds(GOOD, (1, WARNING))).span(3),
            breaches.thresholds(thresholds(GOOD, (1, BAD))).span(3),
            untested.thresholds(thresholds(GOOD, (1, WARNING))).span(3),
            violated.thresholds(thresholds(GOOD, (1, BAD))).span(3),
        ],
    )


def _over_time() -> Section:
    counts = time_series(
        "Agents by state over time",
        describe(agents.AGENT_STATE, agents.AGENT_INFO, note="The selected agents that have series of their own."),
        ask(f"sum by (state) ({OF_AGENTS.selected(OF_AGENTS.of_agents(agents.AGENT_STATE))})", "{{state}}"),
    )
    counts = counts.stacking(StackingConfig().mode(StackingMode.NORMAL)).fill_opacity(60).line_width(0).min(0)
    intensities = time_series(
        "Highest intensities",
        describe(agents.AGENT_INTENSITY, note="The ten highest at each instant. 0 is as on clean runs."),
        ask(highest(10, OF_AGENTS.selected(OF_AGENTS.of_agents(agents.AGENT_INTENSITY))), "{{agent}}"),
    )
    lanes = time_line(
        "Who was in which state",
        describe(agents.AGENT_STATE),
        ask(OF_AGENTS.selected(state_number(OF_AGENTS)), "{{agent}}"),
    )
    return Section(
        "Over time",
        [
            coloured(counts, STATE_COLOURS),
            intensities.min(0),
            lanes.mappings(numbered(STATE_NUMBERS, STATE_COLOURS)).per_page(20),
        ],
    )


def _agents() -> Section:
    state = OF_AGENTS.with_group(f"{OF_AGENTS.of_agents(agents.AGENT_STATE)} == 1")
    rows = table(
        "Agents",
        describe(agents.AGENT_STATE, note="A click on an agent leads to its dashboard. The headings sort and filter."),
        "agent",
        ("agent", "state", *GROUP),
        {
            "State": (state, ""),
            "Progress p": (_selected(agents.AGENT_PROGRESS), PERCENT),
            "Propositions q": (_selected(agents.AGENT_PROPOSITIONS), PERCENT),
            "Intensity": (_selected(agents.AGENT_INTENSITY), "none"),
            "Running cost": (_selected(agents.AGENT_RUNNING_COST), "none"),
            "Last seen": (f"({_selected(agents.AGENT_LAST_SEEN)}) * 1000", CLOCK),
            "Last progress": (f"({_selected(agents.AGENT_LAST_PROGRESS)}) * 1000", CLOCK),
        },
    )
    rows = rows.override_by_name("agent", [link_to_agent("__value.raw")])
    coloured_text = DynamicConfigValue("custom.cellOptions", {"type": "color-text"})
    rows = rows.override_by_name("state", [DynamicConfigValue("mappings", named_states()), coloured_text])
    return Section("Agents", [rows])


def _waiting() -> Section:
    silent = _ages(
        "Silent for",
        agents.AGENT_LAST_SEEN,
        "Of all families: an agent that fell silent long ago has lost its family's label.",
        OF_AGENTS.of_agents(agents.AGENT_LAST_SEEN),
    )
    stuck = _ages("No progress for", agents.AGENT_LAST_PROGRESS, "", _selected(agents.AGENT_LAST_PROGRESS))
    windows = _ages("In a window for", agents.AGENT_WINDOW_DEPARTED, "", _selected(agents.AGENT_WINDOW_DEPARTED))
    return Section(
        f"The {_SHOWN_BARS} longest of agents with an open episode",
        [
            silent.thresholds(thresholds(GOOD, (30, WARNING), (60, BAD))),
            stuck.thresholds(thresholds(GOOD, (150, WARNING), (300, BAD))),
            windows.thresholds(thresholds(GOOD, (60, WARNING), (300, BAD))),
        ],
    )


def _ages(title: str, spec: MetricSpec, note: str, timestamps: str) -> BarGauge:
    # Whose episodes have ended owes nobody a sign of life.
    running = f"{OF_AGENTS.of_agents(agents.AGENT_STATE, state='ended')} == 0"
    ages = highest(_SHOWN_BARS, f"{since(timestamps)} and on (agent) {running}")
    return bars(title, describe(spec, note=note), ask_now(ages, "{{agent}}"), unit=SECONDS).min(0).no_value("none")


def _selected(spec: MetricSpec) -> str:
    return OF_AGENTS.selected(OF_AGENTS.of_agents(spec))

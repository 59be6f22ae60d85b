"""The Agent dashboard: one agent's progress, intensity by channel, windows and running cost."""

from grafana_foundation_sdk.builders.stat import Panel as Stat
from grafana_foundation_sdk.builders.timeseries import Panel as TimeSeries
from grafana_foundation_sdk.models.common import BigValueTextMode

from springback.dashboards.grafana_parts.board_layout import (
    OF_ONE_AGENT,
    WINDOWS_OF_ONE_AGENT,
    Board,
    Section,
    group_variables,
    one_agent_variable,
)
from springback.dashboards.grafana_parts.colour_scheme import (
    BLUE,
    CHANNEL_COLOURS,
    ORANGE,
    STATE_COLOURS,
    STATE_NUMBERS,
    numbered,
    yes_no,
)
from springback.dashboards.grafana_parts.metric_query import state_number
from springback.dashboards.grafana_parts.panel_kinds import (
    CLOCK,
    PERCENT,
    SECONDS,
    ask,
    ask_now,
    coloured,
    describe,
    stat,
    time_line,
    time_series,
)
from springback.stream_processors.metrics import agents
from springback.stream_processors.metrics.spec import GROUP, MetricSpec


def one_agent_board() -> Board:
    """The whole dashboard."""
    return Board(
        uid="springback-agent",
        title="Springback / Agent",
        description="One agent: how far it is, what its steps cost, and when it was in a rebound window.",
        refresh="10s",
        span="15m",
        variables=[*group_variables(agents.AGENT_INFO), one_agent_variable()],
        annotations=[WINDOWS_OF_ONE_AGENT],
        sections=[_now(), _over_time()],
    )


def _now() -> Section:
    state = stat("State", describe(agents.AGENT_STATE), ask_now(state_number(OF_ONE_AGENT)))
    info = stat(
        "What it does",
        describe(agents.AGENT_INFO),
        ask_now(OF_ONE_AGENT.shown(agents.AGENT_INFO), " / ".join(f"{{{{{label}}}}}" for label in GROUP)),
    )
    return Section(
        "Now",
        [
            state.mappings(numbered(STATE_NUMBERS, STATE_COLOURS)).span(4),
            info.text_mode(BigValueTextMode.NAME).span(8),
            _instant("Last seen", agents.AGENT_LAST_SEEN),
            _instant("Last progress", agents.AGENT_LAST_PROGRESS),
            _instant("In a window since", agents.AGENT_WINDOW_DEPARTED).no_value("in none"),
        ],
    )


def _instant(title: str, spec: MetricSpec) -> Stat:
    return stat(title, describe(spec), ask_now(f"{OF_ONE_AGENT.shown(spec)} * 1000"), unit=CLOCK).span(4)


def _over_time() -> Section:
    progress = time_series(
        "Progress p and propositions q",
        describe(agents.AGENT_PROGRESS, agents.AGENT_PROPOSITIONS),
        ask(OF_ONE_AGENT.shown(agents.AGENT_PROGRESS), "p"),
        ask(OF_ONE_AGENT.shown(agents.AGENT_PROPOSITIONS), "q"),
        unit=PERCENT,
    )
    channels = time_series(
        "Intensity g by channel",
        describe(agents.AGENT_CHANNEL_INTENSITY, agents.AGENT_INTENSITY),
        ask(OF_ONE_AGENT.shown(agents.AGENT_CHANNEL_INTENSITY), "{{channel}}"),
        ask(OF_ONE_AGENT.shown(agents.AGENT_INTENSITY), "g^rec"),
    )
    windows = time_line(
        "Rebound windows",
        describe(agents.AGENT_IN_REBOUND),
        ask(OF_ONE_AGENT.shown(agents.AGENT_IN_REBOUND), "window"),
    )
    states = time_line("State over time", describe(agents.AGENT_STATE), ask(state_number(OF_ONE_AGENT), "state"))
    cost = time_series(
        "Recovery cost of the open window",
        describe(agents.AGENT_RUNNING_COST),
        ask(OF_ONE_AGENT.shown(agents.AGENT_RUNNING_COST), "running cost"),
    )
    return Section(
        "Over time",
        [
            coloured(progress, {"p": BLUE, "q": ORANGE}).min(0).max(1),
            coloured(channels, CHANNEL_COLOURS).min(0),
            windows.mappings(yes_no("in rebound", "calm")).height(4),
            states.mappings(numbered(STATE_NUMBERS, STATE_COLOURS)).height(4),
            coloured(cost, {"running cost": ORANGE}).min(0).fill_opacity(25),
            _line("Change of stability from step to step", agents.AGENT_BETA_STEP, "none").span(6).min(0),
            _line("Clock skew", agents.AGENT_CLOCK_SKEW, SECONDS).span(6),
        ],
    )


def _line(title: str, spec: MetricSpec, unit: str) -> TimeSeries:
    return time_series(title, describe(spec), ask(OF_ONE_AGENT.shown(spec), title.lower()), unit=unit)

"""The state of agents as one number each, which is what a time line and a big number can show by name and colour."""

from springback.dashboards.grafana_parts.colour_scheme import STATE_NUMBERS
from springback.dashboards.grafana_parts.metric_query import MetricQueries
from springback.stream_processors.resilience.agent_metrics import AGENT_STATE


def state_number(queries: MetricQueries) -> str:
    """The number of the state that each agent is in."""
    states = (f"{queries.of_agents(AGENT_STATE, state=state)} * {number}" for state, number in STATE_NUMBERS.items())
    return f"max by (agent) ({' or '.join(states)})"

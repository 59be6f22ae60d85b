"""What can be selected on a dashboard, and what that means for its queries."""

from grafana_foundation_sdk.builders.dashboard import QueryVariable
from grafana_foundation_sdk.models.dashboard import VariableOption, VariableRefresh, VariableSort
from springback.dashboards.grafana_parts.metric_query import MetricQueries
from springback.dashboards.grafana_parts.panel_kinds import DATA_SOURCE
from springback.stream_processors.resilience.agent_metrics import AGENT_INFO
from springback.stream_processors.resilience.metric_catalogue import EPISODES_BEGUN
from springback.stream_processors.resilience.metric_spec import GROUP, MetricSpec

_GROUP_SCOPE = {label: f'=~"${label}"' for label in GROUP}

OF_GROUPS = MetricQueries(_GROUP_SCOPE)
"""Queries of the selected families, methods and versions."""

OF_AGENTS = MetricQueries({**_GROUP_SCOPE, "agent": '=~"$agent"'})
"""Queries of those and of the selected agents."""

OF_ONE_AGENT = MetricQueries({"agent": '="$agent"'})
"""Queries of one agent. Equality: Grafana escapes no regular expression in a variable of one value."""


def group_variables(spec: MetricSpec = EPISODES_BEGUN) -> list[QueryVariable]:
    """Family, method and version, each of those that the ones before it leave, any number of them or all."""
    return [_many(spec, label, GROUP[:place]) for place, label in enumerate(GROUP)]


def agents_variable() -> QueryVariable:
    """Agents of the selected families, methods and versions, any number of them or all."""
    return _many(AGENT_INFO, "agent", GROUP)


def one_agent_variable() -> QueryVariable:
    """One agent of the selected families, methods and versions."""
    return _variable(AGENT_INFO, "agent", GROUP).multi(False).include_all(False)


def _many(spec: MetricSpec, label: str, given: tuple[str, ...]) -> QueryVariable:
    # All is `.*`: a list of every agent would make addresses and queries too long.
    everything = VariableOption(selected=True, text=["All"], value=["$__all"])
    return _variable(spec, label, given).multi(True).include_all(True).all_value(".*").current(everything)


def _variable(spec: MetricSpec, label: str, given: tuple[str, ...]) -> QueryVariable:
    found = MetricQueries({name: _GROUP_SCOPE[name] for name in given}).series(spec)
    return (
        QueryVariable(label)
        .label(label.capitalize())
        .datasource(DATA_SOURCE)
        .query({"query": f"label_values({found}, {label})", "refId": f"springback-{label}"})
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.NATURAL_ASC)
    )

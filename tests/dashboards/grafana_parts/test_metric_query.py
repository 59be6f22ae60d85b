"""Queries are made from the catalogue: what it does not declare fails the build."""

import pytest

from springback.dashboards.errors import MetricQueryError
from springback.dashboards.grafana_parts.board_layout import OF_AGENTS, OF_GROUPS, OF_ONE_AGENT
from springback.dashboards.grafana_parts.metric_query import MetricQueries
from springback.stream_processors.metrics.agents import AGENT_STATE, AGENTS
from springback.stream_processors.metrics.catalogue import EPISODE_COST, FRAMES_BEHIND, OPEN_WINDOWS, STEPS
from springback.stream_processors.metrics.services import WORKER_FRAMES, WORKER_READY

ALL = MetricQueries({})


def test_a_scope_is_laid_on_the_metrics_that_have_its_labels() -> None:
    assert OF_GROUPS.series(STEPS) == (
        'springback_steps_total{family=~"$family",method=~"$method",version=~"$version"}'
    )
    assert OF_AGENTS.series(AGENTS) == "springback_agents"
    assert OF_ONE_AGENT.series(AGENT_STATE, state="calm") == 'springback_agent_state{agent="$agent",state="calm"}'


def test_what_two_exporters_show_is_taken_once_before_it_is_added_up() -> None:
    assert ALL.total(OPEN_WINDOWS, ("family",)) == (
        "sum by (family) (max by (family, method, version) (springback_open_rebound_windows))"
    )
    assert ALL.rate(STEPS) == (
        "sum(max by (family, method, version) (rate(springback_steps_total[$__rate_interval]))) or vector(0)"
    )


def test_workers_are_added_up_each_by_itself() -> None:
    assert ALL.of_each(WORKER_READY) == "max by (instance) (springback_worker_ready)"
    assert ALL.rate_of_each(WORKER_FRAMES) == (
        "sum(max by (instance) (rate(springback_worker_frames_total[$__rate_interval]))) or vector(0)"
    )


def test_agents_are_without_the_one_that_is_none() -> None:
    assert OF_ONE_AGENT.of_agents(AGENT_STATE) == (
        'max by (agent, state) (springback_agent_state{agent="$agent",agent!="other"})'
    )


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda: ALL.series(STEPS, partition="0"), "has no label 'partition'"),
        (lambda: ALL.total(FRAMES_BEHIND, ("family",)), "has no label 'family'"),
        (lambda: ALL.rise(STEPS, ("channel",)), "has no label 'channel'"),
        (lambda: ALL.quantile(0.5, EPISODE_COST, ("channel",)), "has no label 'channel'"),
        (lambda: ALL.distribution(EPISODE_COST, ("channel",)), "has no label 'channel'"),
        (lambda: ALL.of_agents(STEPS), "has no label 'agent'"),
        (lambda: ALL.series(AGENT_STATE, state="asleep"), "state is never 'asleep'"),
        (lambda: ALL.series(EPISODE_COST), "is a histogram"),
        (lambda: ALL.series(STEPS, "_bucket"), "has no series"),
        (lambda: ALL.rate(FRAMES_BEHIND), "only counters and histograms rise"),
        (lambda: ALL.quantile(0.5, STEPS), "has no series"),
    ],
)
def test_what_the_catalogue_does_not_declare_is_refused(ask: "object", told: str) -> None:
    assert callable(ask)
    with pytest.raises(MetricQueryError, match=told):
        ask()

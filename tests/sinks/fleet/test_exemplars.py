"""Exemplars: which episode a bucket's latest value came from, in OpenMetrics alone and never too long."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.samples import Exemplar

from springback.sinks.fleet.series import LONGEST_EXEMPLAR, origin_of
from springback.stream_processors.resilience.readings import EpisodeKey
from tests.examples import examples
from tests.sinks.fleet.agent_page import AgentPage

Make = Callable[..., Any]

# Any character at all, lone surrogates and control characters among them; and what exposition formats are made of.
ANY_TEXT = st.text(st.one_of(st.characters(exclude_categories=[]), st.sampled_from('"\\\n#{}, =')), max_size=200)


def exemplars(registry: CollectorRegistry, bucket: str) -> dict[str, Exemplar]:
    """The exemplars of a histogram's buckets, by their upper bounds, as a reader of OpenMetrics finds them."""
    page = generate_openmetrics(registry).decode("utf-8")  # type: ignore[no-untyped-call]
    return {
        sample.labels["le"]: sample.exemplar
        for family in parse_openmetrics(page)  # type: ignore[no-untyped-call]
        for sample in family.samples
        if sample.name == f"springback_{bucket}_bucket" and sample.exemplar is not None
    }


def test_each_bucket_names_the_latest_episode(summary: Make) -> None:
    page = AgentPage().after(
        summary(episode="1", recovery_cost=1.5, ended_s=101.0),
        summary(episode="2", recovery_cost=1.75, ended_s=102.5),
        summary(agent="robot-8", episode="3", recovery_cost=0.0, ended_s=103.0),
    )
    found = exemplars(page.registry, "episode_recovery_cost")
    assert {bound: (exemplar.labels, exemplar.value) for bound, exemplar in found.items()} == {
        "0.0": ({"agent": "robot-8", "episode": "3"}, 0.0),
        "2.0": ({"agent": "robot-7", "episode": "2"}, 1.75),
    }
    assert float(found["2.0"].timestamp or 0) == 102.5
    assert b"episode=" not in generate_latest(page.registry)


def test_an_exemplar_is_by_the_brokers_clock(status: Make, summary: Make, window: Make) -> None:
    page = AgentPage().after(
        status(clock_skew_s=-900.0), summary(recovery_cost=1.75, ended_s=100.0), window(reentry_time_s=90.0)
    )
    for bucket, instant_s in (("episode_recovery_cost", 1000.0), ("rebound_window_steps", 990.0)):
        [found] = exemplars(page.registry, bucket).values()
        assert float(found.timestamp or 0) == instant_s


@pytest.mark.parametrize(
    "histogram",
    ["episode_stability_loss", "rebound_window_recovery_cost", "rebound_window_steps", "rebound_window_seconds"],
)
def test_every_histogram_has_them(window: Make, summary: Make, histogram: str) -> None:
    page = AgentPage().after(window(), summary(stability_loss=2.0))
    [found] = exemplars(page.registry, histogram).values()
    assert found.labels == {"agent": "robot-7", "episode": "1"}


def test_the_order_of_arrival_does_not_matter(summary: Make) -> None:
    ended = [summary(episode=str(n), recovery_cost=1.5 + n / 16, ended_s=100.0 + n // 2) for n in range(4)]
    pages = [AgentPage().after(*order) for order in itertools.permutations(ended)]
    shown = [exemplars(page.registry, "episode_recovery_cost") for page in pages]
    assert all(found == shown[0] for found in shown)


def test_an_agents_clock_that_is_ahead_makes_no_exemplar_of_the_future(summary: Make) -> None:
    page = AgentPage().after(summary(ended_s=5000.0))
    [found] = exemplars(page.registry, "episode_recovery_cost").values()
    assert float(found.timestamp or 0) == 1010


@pytest.mark.parametrize("time_s", [float("nan"), float("inf"), -1.0])
def test_without_a_time_that_can_be_there_is_none(summary: Make, time_s: float) -> None:
    page = AgentPage().after(summary(ended_s=time_s))
    assert exemplars(page.registry, "episode_recovery_cost") == {}
    assert page("episode_recovery_cost_count", family="navigation", method="default", version="0", perturbation="none")


@settings(max_examples=examples(100), deadline=None)
@given(agent=ANY_TEXT, episode=ANY_TEXT)
def test_no_id_makes_an_exemplar_that_cannot_be_read(summary: Make, agent: str, episode: str) -> None:
    page = AgentPage().after(summary(agent=agent, episode=episode))
    [found] = exemplars(page.registry, "episode_recovery_cost").values()
    assert sum(len(name) + len(value) for name, value in found.labels.items()) <= LONGEST_EXEMPLAR
    assert len("".join(found.labels.values()).splitlines()) == 1


@given(st.lists(ANY_TEXT.filter(str.strip), unique=True, max_size=20))
def test_different_episodes_stay_different(ids: list[str]) -> None:
    assert len({origin_of(EpisodeKey("robot-7", "boot", episode), 1.0, 2.0) for episode in ids}) == len(ids)

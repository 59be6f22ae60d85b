from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from springback.sinks import prometheus_sink
from springback.sinks.fleet import agents, families
from springback.sinks.fleet.series_bounds import SeriesBounds
from springback.sinks.prometheus_sink import PrometheusSink
from springback.sinks.sink import DeadLetter
from springback.stream_processors.metrics import catalogue
from springback.stream_processors.metrics.catalogue import METRIC_CATALOGUE
from springback.stream_processors.metrics.spec import GROUP as GROUP_LABELS
from springback.stream_processors.metrics.spec import ReadMetric
from springback.stream_processors.resilience.readings import (
    AgentCounts,
    AgentStatus,
    EpisodeStatus,
    EpisodeSummary,
    EpisodeTraits,
    FamilyReading,
    Reading,
    WindowReading,
)
from tests.examples import examples

Make = Callable[..., Any]

GROUP = {"family": "navigation", "method": "default", "version": "0"}
CALM = {**GROUP, "perturbation": "none"}


class Page:
    """A sink at 1010 s, and what its page shows."""

    def __init__(self, **bounds: Any) -> None:
        self.registry = CollectorRegistry()
        self.sink = PrometheusSink(self.registry, bounds=SeriesBounds(**bounds), clock=lambda: 1010.0)
        self.sink.caught_up()

    def after(self, *readings: Reading) -> "Page":
        for reading in readings:
            self.sink.write(reading)
        return self

    def __call__(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"springback_{name}", labels)

    def folded(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in self.registry.collect()
            if not family.name.startswith("springback_exporter")
            for sample in family.samples
        }


def test_steps_are_counted_while_the_episode_runs_and_completed_by_its_summary(
    status: Make, running: Make, summary: Make
) -> None:
    page = Page().after(status(episodes=(running(steps=5),)))
    assert page("steps_total", **GROUP) == 5
    page.after(status(seen_s=1001.0, episodes=(running(steps=12, unscored_steps=1),)))
    assert page("steps_total", **GROUP) == 12
    page.after(summary(steps=20, unscored_steps=2))
    assert page("steps_total", **GROUP) == 20
    assert page("unscored_steps_total", **GROUP) == 2
    assert page("unscored_steps_ratio", **GROUP) == 0.1


def test_a_status_that_comes_after_the_summary_counts_no_step_again(status: Make, running: Make, summary: Make) -> None:
    page = Page().after(summary(steps=20), status(episodes=(running(steps=18),)))
    assert page("steps_total", **GROUP) == 20


def test_repeated_statuses_of_an_episode_count_no_step_again(status: Make, running: Make) -> None:
    told = [status(seen_s=1000.0 + steps, episodes=(running(steps=steps, unscored_steps=1),)) for steps in (2, 4, 6)]
    page = Page().after(*told, *told)
    assert page("steps_total", **GROUP) == 6
    assert page("unscored_steps_total", **GROUP) == 1
    assert page("exporter_refused_values_total", metric="springback_steps_total") is None


def test_a_repeated_summary_counts_once(summary: Make) -> None:
    page = Page().after(summary(), summary())
    assert page("episodes_total", **CALM, outcome="success") == 1
    assert page("episode_recovery_cost_count", **CALM) == 1
    assert page("exporter_repeated_readings_total", kind="episode") == 1
    assert page("exporter_readings_total", kind="episode") == 2


def test_episodes_of_two_sessions_of_an_agent_are_two(summary: Make) -> None:
    page = Page().after(summary(session="first"), summary(session="second"))
    assert page("episodes_total", **CALM, outcome="success") == 2


def test_a_window_is_open_from_its_opening_to_its_closing(window: Make, status: Make) -> None:
    page = Page().after(status(), window(state="open"))
    assert page("open_rebound_windows", **GROUP) == 1
    assert page("agent_in_rebound", agent="robot-7") == 1
    page.after(window(state="open"), window(), window())
    assert page("open_rebound_windows", **GROUP) == 0
    assert page("agent_in_rebound", agent="robot-7") == 0
    assert page("rebound_windows_opened_total", **CALM) == 1
    assert page("rebound_windows_total", **CALM, cause="effort", state="recovered") == 1
    assert page("rebound_window_steps_sum", **CALM) == 8
    assert page("rebound_window_seconds_sum", **CALM) == 3.5
    assert page("rebound_window_recovery_cost_sum", **CALM) == 1.5
    assert page("channel_recovery_cost_total", **GROUP, channel="physical") == 1
    assert page("lost_cycles_total", **GROUP) == 2.5


def test_a_window_whose_opening_was_lost_counts_as_opened_once(window: Make) -> None:
    page = Page().after(window(), window(state="open"))
    assert page("rebound_windows_opened_total", **CALM) == 1
    assert page("open_rebound_windows", **GROUP) == 0


def test_the_end_of_the_episode_ends_its_windows_in_either_order(window: Make, summary: Make, status: Make) -> None:
    for readings in ((window(state="open"), summary()), (summary(), window(state="open"))):
        page = Page().after(status(), *readings)
        assert page("agent_in_rebound", agent="robot-7") == 0
        assert page("rebound_windows_opened_total", **CALM) == 1


def test_what_was_cut_short_is_counted_but_left_out_of_the_costs(window: Make, summary: Make) -> None:
    page = Page().after(window(state="censored"), summary(outcome="aborted"))
    assert page("rebound_windows_total", **CALM, cause="effort", state="censored") == 1
    assert page("episodes_total", **CALM, outcome="aborted") == 1
    for name in ("rebound_window_recovery_cost_count", "rebound_window_steps_count", "episode_recovery_cost_count"):
        assert page(name, **CALM) is None


def test_an_episode_that_could_not_be_scored_is_not_one_without_cost(summary: Make) -> None:
    page = Page().after(summary(recovery_cost=None))
    assert page("episodes_total", **CALM, outcome="success") == 1
    assert page("episode_recovery_cost_count", **CALM) is None


def test_the_stability_loss_of_an_episode_that_ended_is_observed(summary: Make) -> None:
    page = Page().after(
        summary(stability_loss=2.25),
        summary(episode="2", stability_loss=None),
        summary(episode="3", stability_loss=9.0, outcome="aborted"),
    )
    assert page("episode_stability_loss_count", **CALM) == 1
    assert page("episode_stability_loss_sum", **CALM) == 2.25
    assert page("episode_stability_loss_bucket", **CALM, le="2.0") == 0
    assert page("episode_stability_loss_bucket", **CALM, le="2.5") == 1


def test_a_beginning_counts_once_also_where_its_summary_alone_is_left(begun: Make, summary: Make) -> None:
    page = Page().after(begun(), begun(), summary(), begun(), summary(episode="2"), begun(episode="3"))
    assert page("episodes_begun_total", **CALM) == 3
    assert page("episodes_total", **CALM, outcome="success") == 2
    assert page("exporter_repeated_readings_total", kind="begun") == 2


def test_a_cost_of_nothing_has_a_bucket_of_its_own(summary: Make) -> None:
    page = Page().after(summary(recovery_cost=0.0), summary(episode="2", recovery_cost=0.05))
    assert page("episode_recovery_cost_bucket", **CALM, le="0.0") == 1
    assert page("episode_recovery_cost_bucket", **CALM, le="0.1") == 2


def test_a_value_that_is_not_finite_leaves_the_rest_of_its_reading_in(window: Make) -> None:
    page = Page().after(window(recovery_cost=float("nan")), window(number=1, recovery_cost=2.0))
    assert page("rebound_windows_total", **CALM, cause="effort", state="recovered") == 2
    assert page("rebound_window_recovery_cost_sum", **CALM) == 2
    refused = page("exporter_refused_values_total", metric="springback_rebound_window_recovery_cost")
    assert refused == 1


def test_a_window_that_gained_cycles_lost_none(window: Make) -> None:
    page = Page().after(window(lost_cycles=-3.0))
    assert page("lost_cycles_total", **GROUP) == 0
    assert page("exporter_refused_values_total", metric="springback_lost_cycles_total") is None


def test_a_repeated_dead_letter_counts_once_and_reasons_are_bounded() -> None:
    page = Page(reasons=2)
    for reason, identity in (("nan", b"1"), ("nan", b"1"), ("nan", b"2"), ("late", b"3"), ("odd", b"4"), ("new", b"5")):
        page.sink.write_dead_letter(DeadLetter(reason, identity))
    assert page("dead_letters_total", reason="nan") == 2
    assert page("dead_letters_total", reason="other") == 2
    assert page("exporter_overflow_readings_total", bound="reason") == 2


def test_groups_beyond_the_bound_share_one(summary: Make) -> None:
    page = Page(groups=2)
    for number in range(5):
        traits = EpisodeTraits(family=f"family-{number}", task="t")
        page.after(summary(episode=str(number), traits=traits))
    assert page("steps_total", family="family-1", method="default", version="0") == 20
    assert page("steps_total", family="other", method="other", version="other") == 60
    assert page("exporter_overflow_readings_total", bound="group") == 3


def test_an_unknown_perturbation_makes_no_new_series(summary: Make) -> None:
    page = Page().after(summary(traits=EpisodeTraits(family="navigation", task="t", perturbation="ghost")))
    assert page("episodes_total", **GROUP, perturbation="other", outcome="success") == 1


def test_counts_of_an_agent_are_added_by_their_difference(status: Make) -> None:
    page = Page().after(
        status(counts=AgentCounts(steps=10, duplicate_steps=2, missing_steps=1)),
        status(seen_s=1001.0, counts=AgentCounts(steps=20, duplicate_steps=5, missing_steps=1, replaced_times=4)),
        status(seen_s=1001.0, counts=AgentCounts(steps=20, duplicate_steps=5, missing_steps=1, replaced_times=4)),
        status(seen_s=1000.0, counts=AgentCounts(steps=10, duplicate_steps=2, missing_steps=1)),
    )
    assert page("duplicate_steps_total") == 5
    assert page("missing_steps_total") == 1
    assert page("replaced_times_total") == 4
    assert page("clock_resets_total") == 0
    assert page("exporter_repeated_readings_total", kind="status") == 1


def test_counts_that_begin_anew_are_added_whole(status: Make) -> None:
    page = Page().after(
        status(counts=AgentCounts(steps=100, duplicate_steps=7)),
        status(seen_s=1002.0, counts=AgentCounts(steps=3, duplicate_steps=1)),
    )
    assert page("duplicate_steps_total") == 8


def test_a_metric_that_says_how_it_is_read_needs_nothing_else(
    monkeypatch: pytest.MonkeyPatch, status: Make, running: Make, family: Make, summary: Make
) -> None:
    said: dict[str, Any] = {"unit": "steps", "help": "Ours.", "source": "ours"}
    steps = ReadMetric[AgentStatus](
        **{**said, "name": "springback_agent_steps", "kind": "gauge", "labels": ("agent",)},
        rows=lambda status: [(episode.steps,) for episode in status.episodes],
        combine=sum,
    )
    censored = ReadMetric[FamilyReading](
        **{**said, "name": "springback_censored_total", "kind": "counter", "labels": GROUP_LABELS},
        rows=lambda family: [(family.censored,)],
    )
    lengths = ReadMetric[EpisodeSummary](
        **{**said, "name": "springback_episode_steps", "kind": "histogram", "buckets": (10.0,)},
        labels=(*GROUP_LABELS, "perturbation"),
        rows=lambda summary: [(summary.steps,)],
    )
    monkeypatch.setattr(prometheus_sink, "METRIC_CATALOGUE", (*METRIC_CATALOGUE, steps, censored, lengths))
    monkeypatch.setattr(catalogue, "METRICS_OF_EPISODES", (*catalogue.METRICS_OF_EPISODES, lengths))
    monkeypatch.setattr(agents, "_READ_METRICS", (steps,))
    monkeypatch.setattr(families, "_METRICS", (censored,))
    page = Page(agents=1).after(
        status("a", episodes=(running("a", steps=3), running("a", episode="2", steps=4))),
        *(status(name, episodes=(running(name, steps=5),)) for name in "bc"),
        family(censored=7),
        summary(),
    )
    assert (page("agent_steps", agent="a"), page("agent_steps", agent="other")) == (7, 10)
    assert page("censored_total", **GROUP) == 7
    assert page("episode_steps_sum", **CALM) == 20


@pytest.fixture(scope="module")
def topics(window: Make, begun: Make, summary: Make, status: Make, running: Make, family: Make) -> list[list[Reading]]:
    """Four topics' readings of two agents, in the order within each topic."""
    windows: list[WindowReading] = []
    summaries: list[Reading] = []
    statuses: list[AgentStatus] = []
    families: list[FamilyReading] = []
    for number, agent in enumerate(("robot-7", "robot-8")):
        for episode in "123":
            windows += [window(agent, episode=episode, state="open", cause="delay"), window(agent, episode=episode)]
            summaries.append(begun(agent, episode=episode))
            families.append(family(sequence=len(families), breaches=len(families), live_stress=len(families) / 10))
            if episode != "3":
                summaries.append(summary(agent, episode=episode, steps=20 + number, stability_loss=2.0 + number))
            open_episode: EpisodeStatus = running(agent, episode=episode, steps=11, cost=0.5, beta_step=0.5)
            statuses.append(
                status(
                    agent,
                    seen_s=1000.0 + int(episode),
                    counts=AgentCounts(steps=11 * int(episode), missing_steps=int(episode)),
                    episodes=(open_episode,),
                )
            )
        windows.append(window(agent, episode="3", number=1, state="open"))
    return [list(windows), summaries, list(statuses), list(families)]


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_whichever_way_topics_mix_and_repeat_the_page_is_the_same(
    topics: list[list[Reading]], data: st.DataObject
) -> None:
    expected = Page().after(*(reading for topic in topics for reading in topic)).folded()
    mixed = _mixed([_with_repetitions(topic, data) for topic in topics], data)
    assert Page().after(*mixed).folded() == expected
    assert expected["springback_steps_total", tuple(sorted(GROUP.items()))] == 2 * (20 + 21) + 2 * 11
    assert expected["springback_stress_breaches_total", tuple(sorted(GROUP.items()))] == 5


def _with_repetitions(topic: Sequence[Reading], data: st.DataObject) -> list[Reading]:
    """The topic of a worker that fell, and sent again what it had sent since a place before."""
    fell = data.draw(st.integers(0, len(topic)))
    back = data.draw(st.integers(0, fell))
    return [*topic[:fell], *topic[back:fell], *topic[fell:]]


def _mixed(topics: Iterable[Sequence[Reading]], data: st.DataObject) -> list[Reading]:
    queues = [list(topic) for topic in topics]
    mixed = []
    while left := [queue for queue in queues if queue]:
        mixed.append(left[data.draw(st.integers(0, len(left) - 1))].pop(0))
    return mixed


def test_a_family_that_is_learning_shows_its_windows_and_no_cost(window: Make, summary: Make) -> None:
    """Situation 10: what is provisional is counted apart, and enters nothing that an alert rests on."""
    page = Page().after(
        window(provisional=True), window(number=1), summary(provisional=True), summary(episode="2", recovery_cost=3.0)
    )
    assert page("rebound_windows_total", **CALM, cause="effort", state="recovered") == 2
    assert page("provisional_rebound_windows_total", **GROUP) == 1
    assert page("rebound_window_recovery_cost_count", **CALM) == 1
    assert page("rebound_window_steps_count", **CALM) == page("rebound_window_seconds_count", **CALM) == 1
    assert page("channel_recovery_cost_total", **GROUP, channel="physical") == 1.0
    assert page("lost_cycles_total", **GROUP) == 2.5
    assert page("episodes_total", **CALM, outcome="success") == 2
    assert page("episode_recovery_cost_count", **CALM) == 1
    assert page("episode_recovery_cost_sum", **CALM) == 3


def test_interruptions_gaps_and_episodes_that_were_joined_are_counted(summary: Make) -> None:
    """Situation 9: a pause of an hour is one interruption, not a cost of 577."""
    page = Page().after(
        summary(episode="1", interruptions=2, gap=True),
        summary(episode="2", interruptions=1, joined=True),
        summary(episode="3"),
    )
    assert page("interruptions_total", **GROUP) == 3
    assert page("episodes_with_gap_total", **GROUP) == page("episodes_joined_total", **GROUP) == 1


def test_successes_without_progress_are_counted(summary: Make) -> None:
    page = Page().after(
        summary(episode="1", unmoved=True),
        summary(episode="2", unmoved=True, outcome="failure"),  # that may well be
        summary(episode="3"),
    )
    assert page("episodes_unmoved_total", **GROUP) == 1


def test_an_episode_that_goes_on_after_a_silence_is_taken_off_the_aborted_ones(begun: Make, summary: Make) -> None:
    page = Page().after(begun(), summary(outcome="aborted"), begun(revision=1), summary(revision=1))
    assert page("episodes_begun_total", **CALM) == 1
    assert page("episodes_total", **CALM, outcome="aborted") == page("episodes_reopened_total", **CALM) == 1
    assert page("episodes_total", **CALM, outcome="success") == 1
    page.after(begun(), summary(outcome="aborted"), begun(revision=1), summary(revision=1))
    assert page("episodes_total", **CALM, outcome="success") == page("episodes_reopened_total", **CALM) == 1


def test_steps_that_are_not_taken_in_are_counted_by_why(status: Make) -> None:
    counts = AgentCounts(steps=9, overtaken_steps=1, after_end_steps=2, old_session_steps=3, session_again_steps=4)
    page = Page().after(status(counts=counts), status(seen_s=1001.0, counts=counts))
    found = {
        why: page("late_steps_total", why=why) for why in ("overtaken", "after_end", "old_session", "session_again")
    }
    assert found == {"overtaken": 1, "after_end": 2, "old_session": 3, "session_again": 4}

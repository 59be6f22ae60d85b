"""Nothing that a reading can hold breaks the page: it parses in both formats, and every value is finite."""

import math
import shutil
import subprocess
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from springback.sinks.prometheus_sink import PrometheusSink
from springback.sinks.sink import DeadLetter, ReadingBack, TopicReach
from springback.stream_processors.metrics.catalogue import METRIC_CATALOGUE
from springback.stream_processors.metrics.exporter import EXPORTER_METRICS
from springback.stream_processors.metrics.spec import MetricSpec
from springback.stream_processors.resilience.readings import (
    AgentCounts,
    ChannelCosts,
    ContractThresholds,
    EpisodeTraits,
    ExtensibilityRatios,
    FamilyReading,
    NavigationScores,
    StressMargin,
)
from tests.examples import examples

Make = Callable[..., Any]

ANY_TEXT = st.one_of(
    st.text(st.characters(exclude_categories=[]), max_size=40),
    st.sampled_from(["", "other", "unknown", "\ud83e", 'a"b', "a\\", "a\n", "x" * 10_000, "🤖", "le", "+Inf", "\x00"]),
)
ANY_FLOAT = st.floats()
ANY_COUNT = st.integers(-(2**63), 2**63)


def new_sink() -> tuple[CollectorRegistry, PrometheusSink]:
    registry = CollectorRegistry()
    sink = PrometheusSink(registry, version="1.2.3", clock=lambda: 1010.0)
    return registry, sink


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_no_reading_breaks_the_page(
    window: Make, begun: Make, summary: Make, status: Make, running: Make, data: st.DataObject
) -> None:
    registry, sink = new_sink()
    sink.caught_up()
    for _ in range(data.draw(st.integers(1, 3))):
        agent, session, episode = (data.draw(ANY_TEXT) for _ in range(3))
        traits = EpisodeTraits(
            family=data.draw(ANY_TEXT),
            task="t",
            method=data.draw(ANY_TEXT),
            version=data.draw(ANY_TEXT),
            perturbation=data.draw(ANY_TEXT),
        )
        cost, skew, seen = (data.draw(ANY_FLOAT) for _ in range(3))
        steps = data.draw(ANY_COUNT)
        state = data.draw(st.sampled_from(["open", "recovered", "unrecovered", "censored"]))
        costs = ChannelCosts(cognitive=cost, physical=skew, debt=seen)
        key = {"agent": agent, "session": session, "episode": episode, "traits": traits}
        sink.write(
            window(**key, state=state, recovery_cost=cost, length_s=skew, lost_cycles=seen, costs=costs, peak=cost)
        )
        sink.write(
            status(
                agent,
                session=session,
                seen_s=data.draw(st.one_of(st.just(1000.0), ANY_FLOAT)),
                clock_skew_s=skew,
                counts=AgentCounts(steps=steps, duplicate_steps=data.draw(ANY_COUNT)),
                episodes=(running(**key, steps=steps, intensity=cost, cost=seen, beta_step=skew),),
            )
        )
        sink.write(begun(**key))
        sink.write(
            summary(**key, steps=steps, unscored_steps=data.draw(ANY_COUNT), recovery_cost=cost, stability_loss=skew)
        )
        sink.write_dead_letter(DeadLetter(data.draw(ANY_TEXT), data.draw(st.binary(max_size=2))))
        sink.unreadable(data.draw(ANY_TEXT))
    check_page(registry)


@st.composite
def hostile_families(draw: st.DrawFn, family: Make) -> FamilyReading:
    """A reading of a family with anything in every field that its type allows."""
    maybe = st.one_of(st.none(), ANY_FLOAT)

    def struct(kind: Any, **fields: Any) -> Any:
        return kind(**{name: draw(fields.get(name, maybe)) for name in kind.__struct_fields__})

    margins = [
        StressMargin(
            stress=draw(ANY_FLOAT),
            episodes=draw(ANY_COUNT),
            margin=draw(maybe),
            state=draw(st.sampled_from(["insufficient", "kept", "undecided", "broken"])),
            ratios=struct(ExtensibilityRatios),
        )
        for _ in range(draw(st.integers(0, 3)))
    ]
    figures = (
        *("success_rate", "completion", "mean_steps", "recovery_cost_mean", "stability_loss_mean", "beta", "beta_p95"),
        *("beta_unpaired", "capacity", "first_breach", "live_stress"),
    )
    counts = ("sequence", "episodes", "censored", "violations", "pairs", "tasks_let_go", "breaches")
    attacks = draw(st.lists(ANY_TEXT, max_size=3))
    reading: FamilyReading = family(
        **{name: draw(ANY_TEXT) for name in ("family", "method", "version")},
        **{name: draw(ANY_COUNT) for name in counts},
        **{name: draw(maybe) for name in figures},
        updated_s=draw(ANY_FLOAT),
        beta_by_kind=draw(st.dictionaries(ANY_TEXT, ANY_FLOAT, max_size=3)),
        margins=tuple(margins),
        thresholds=struct(ContractThresholds, progress=ANY_FLOAT, propositions=ANY_FLOAT),
        navigation={attack: struct(NavigationScores, episodes=ANY_COUNT) for attack in attacks},
        stress_state=draw(st.sampled_from(["within", "untested", "breach", None])),
    )
    return reading


@settings(max_examples=examples(50), deadline=None)
@given(st.data())
def test_no_reading_of_a_family_breaks_the_page(family: Make, data: st.DataObject) -> None:
    registry, sink = new_sink()
    sink.caught_up()
    for _ in range(data.draw(st.integers(1, 3))):
        sink.write(data.draw(hostile_families(family)))
    check_page(registry)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool, of Prometheus, is not on the path")
def test_prometheus_own_linter_finds_nothing(
    window: Make, begun: Make, summary: Make, status: Make, running: Make, family: Make
) -> None:
    registry, sink = new_sink()
    sink.caught_up()
    opened = window(episode="2", state="open")
    moving = status(episodes=(running(episode="2", cost=1.0, beta_step=0.5),))
    for reading in (begun(), window(), summary(stability_loss=2.0), opened, moving, family()):
        sink.write(reading)
    sink.write_dead_letter(DeadLetter("late", b"1"))
    sink.show_frames_behind({0: 7})
    found = subprocess.run(
        ["promtool", "check", "metrics"], input=generate_latest(registry), capture_output=True, timeout=60, check=False
    )
    assert (found.returncode, found.stderr.decode()) == (0, "")


def family_names(catalogue: Iterable[MetricSpec]) -> set[str]:
    return {spec.name.removesuffix("_total").removesuffix("_info") for spec in catalogue}


def check_page(registry: CollectorRegistry) -> None:
    classic = list(text_string_to_metric_families(generate_latest(registry).decode("utf-8")))
    page = generate_openmetrics(registry).decode("utf-8")  # type: ignore[no-untyped-call]
    modern = list(parse_openmetrics(page))  # type: ignore[no-untyped-call]
    assert {family.name for family in modern} == family_names(METRIC_CATALOGUE)
    for families in (classic, modern):
        samples = [sample for family in families for sample in family.samples]
        assert samples
        assert all(math.isfinite(sample.value) for sample in samples)
        series = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in samples]
        assert len(series) == len(set(series))


def test_the_page_before_all_is_caught_up_shows_the_exporter_alone(summary: Make) -> None:
    registry, sink = new_sink()
    sink.write(summary())
    shown = {family.name for family in registry.collect()}
    assert shown == family_names(EXPORTER_METRICS)
    assert registry.get_sample_value("springback_exporter_caught_up") == 0
    sink.caught_up()
    assert registry.get_sample_value("springback_exporter_caught_up") == 1
    group = {"family": "navigation", "method": "default", "version": "0"}
    assert registry.get_sample_value("springback_steps_total", group) == 20


def test_the_page_says_how_much_is_unread_and_how_far_back_it_reaches(summary: Make) -> None:
    registry = CollectorRegistry()
    sink = PrometheusSink(registry)
    assert sink.waits_for is None
    windows, statuses = TopicReach("rebound-windows", 1000.5, "gone"), TopicReach("agent-status", None, "none")
    for read in (250, 1250):
        sink.reading_back(ReadingBack(read, 2000, (windows, statuses)))
    assert sink.waits_for == "read 1,250 of 2,000 that the topics hold"
    assert registry.get_sample_value("springback_exporter_unread_readings") == 750
    sink.caught_up()
    assert sink.waits_for is None
    reach = "springback_exporter_reach_timestamp_seconds"
    assert registry.get_sample_value(reach, {"topic": "rebound-windows"}) == 1000.5
    assert registry.get_sample_value(reach, {"topic": "agent-status"}) is None


def test_the_exporter_tells_of_itself_and_of_the_broker() -> None:
    registry, sink = new_sink()
    sink.caught_up()
    info = {"version": "1.2.3", "reading_schema": "2"}
    assert registry.get_sample_value("springback_exporter_info", info) == 1
    assert registry.get_sample_value("springback_exporter_broker_reachable") == 0
    sink.show_frames_behind({0: 7, 1: 0})
    assert registry.get_sample_value("springback_frames_behind", {"partition": "0"}) == 7
    assert registry.get_sample_value("springback_exporter_broker_reachable") == 1
    sink.show_broker_away()
    assert registry.get_sample_value("springback_frames_behind", {"partition": "0"}) is None
    assert registry.get_sample_value("springback_exporter_broker_reachable") == 0
    sink.retried("files")
    assert registry.get_sample_value("springback_exporter_sink_retries_total", {"sink": "files"}) == 1


def test_two_sinks_in_one_registry_are_refused() -> None:
    registry, _ = new_sink()
    with pytest.raises(ValueError, match="springback_steps"):
        PrometheusSink(registry)

import re
from typing import Any

from springback.stream_processors.metrics import agents, catalogue, exporter, families, stress
from springback.stream_processors.metrics.catalogue import METRIC_CATALOGUE
from springback.stream_processors.metrics.spec import CLOSED_LABELS, MetricSpec, ReadMetric
from springback.stream_processors.resilience.readings import (
    AgentCounts,
    AgentStatus,
    EpisodeKey,
    EpisodeStatus,
    EpisodeTraits,
)
from tests.house import ROOT

OPEN_LABELS = {
    "family", "method", "version", "agent", "reason", "partition", "topic", "metric", "sink", "reading_schema",
    "stress", "attack",
}  # fmt: skip


def test_names_are_unique_and_prefixed() -> None:
    names = [spec.name for spec in METRIC_CATALOGUE]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"springback(_[a-z][a-z0-9]*)+", name) for name in names)


def test_names_end_as_their_kind_and_unit_ask() -> None:
    for spec in METRIC_CATALOGUE:
        assert spec.name.endswith("_total") == (spec.kind == "counter")
        assert spec.name.endswith("_info") == (spec.kind == "info")
        assert ("_seconds" in spec.name) == (spec.unit == "seconds")
        assert not spec.name.endswith(("_bucket", "_count", "_sum"))


def test_every_metric_says_what_it_is_and_where_it_comes_from() -> None:
    for spec in METRIC_CATALOGUE:
        assert spec.help.endswith(".")
        assert spec.source
        assert spec.unit


def test_labels_are_known_and_never_an_episode_or_a_step() -> None:
    used = {label for spec in METRIC_CATALOGUE for label in spec.labels}
    assert used == OPEN_LABELS | CLOSED_LABELS.keys()
    assert not used & {"episode", "step", "session", "task"}


def test_a_metric_by_state_says_which_states_there_are() -> None:
    by_state = [spec for spec in METRIC_CATALOGUE if "state" in spec.labels]
    assert by_state == [spec for spec in METRIC_CATALOGUE if spec.states]
    assert {state for spec in by_state for state in spec.states} == CLOSED_LABELS["state"]


def test_histograms_alone_have_buckets_and_they_rise() -> None:
    for spec in METRIC_CATALOGUE:
        assert bool(spec.buckets) == (spec.kind == "histogram")
        assert list(spec.buckets) == sorted(set(spec.buckets))


def test_every_metric_of_the_modules_is_in_the_catalogue() -> None:
    for module in (catalogue, agents, families, stress, exporter):
        declared = [value for value in vars(module).values() if isinstance(value, MetricSpec)]
        assert all(spec in METRIC_CATALOGUE for spec in declared)


def test_the_example_of_a_metric_reads_what_it_says() -> None:
    """The one in CONTRIBUTING.md, as it would stand in `agents.py`."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(AGENT_STRESS = .*?)^```$", text, re.MULTILINE | re.DOTALL)
    declared: dict[str, Any] = dict(vars(agents))
    exec(example, declared)
    metric = declared["AGENT_STRESS"]
    assert isinstance(metric, ReadMetric)
    assert metric.name not in {spec.name for spec in METRIC_CATALOGUE}
    rows = [row for stress in (0.2, 0.6) for row in metric.rows(at_stress(stress))]
    assert rows == [(0.2,), (0.6,)]
    assert metric.combine(value for value, *_ in rows if value is not None) == 0.6


def at_stress(stress: float) -> AgentStatus:
    """An agent with one episode, of this stress."""
    episode = EpisodeStatus(
        key=EpisodeKey("robot-7", "boot", "1"),
        traits=EpisodeTraits(family="navigation", task="kitchen", stress=stress),
        step=3,
        steps=4,
        unscored_steps=0,
        progress=0.5,
        propositions=0.5,
        mode="drive",
        intensity=None,
        intensity_by_channel=None,
        window=None,
    )
    return AgentStatus(
        agent="robot-7",
        session="boot",
        producer="robot-7",
        seen_s=1000.0,
        time_s=1000.0,
        clock_skew_s=0.0,
        counts=AgentCounts(),
        episodes=(episode,),
    )

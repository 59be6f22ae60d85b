import re

from springback.stream_processors.metrics import agents, catalogue, exporter, families
from springback.stream_processors.metrics.catalogue import METRIC_CATALOGUE
from springback.stream_processors.metrics.spec import CLOSED_LABELS, MetricSpec

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


def test_histograms_alone_have_buckets_and_they_rise() -> None:
    for spec in METRIC_CATALOGUE:
        assert bool(spec.buckets) == (spec.kind == "histogram")
        assert list(spec.buckets) == sorted(set(spec.buckets))


def test_every_metric_of_the_modules_is_in_the_catalogue() -> None:
    for module in (catalogue, agents, families, exporter):
        declared = [value for value in vars(module).values() if isinstance(value, MetricSpec)]
        assert all(spec in METRIC_CATALOGUE for spec in declared)

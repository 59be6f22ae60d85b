"""The reference of all metrics, `metrics.md` beside this file, made from the metric catalogue.

`python -m springback.sinks.metrics_reference` writes it anew; a test holds it to the catalogue.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from springback.sinks.fleet.series_bounds import SeriesBounds
from springback.stream_processors.metrics.agents import AGENT_METRICS
from springback.stream_processors.metrics.catalogue import METRIC_CATALOGUE
from springback.stream_processors.metrics.exporter import EXPORTER_METRICS
from springback.stream_processors.metrics.families import FAMILY_METRICS, NAVIGATION_METRICS
from springback.stream_processors.metrics.services import JUDGE_METRICS, WORKER_METRICS
from springback.stream_processors.metrics.spec import CLOSED_LABELS, MetricSpec

REFERENCE = Path(__file__).with_name("metrics.md")
"""Where the reference is kept."""


class _Part(NamedTuple):
    title: str
    about: str
    metrics: tuple[MetricSpec, ...]


def metrics_reference() -> str:
    """The reference as Markdown."""
    bounds = SeriesBounds()
    lines = [
        "# Metrics",
        "",
        "<!-- Written by `python -m springback.sinks.metrics_reference` from the metric catalogue: change that. -->",
        "",
        "Every metric that springback serves. Names carry base units, counters end in `_total`; a unit of 1 is a pure",
        "number. What is not known has no series: neither 0 nor NaN. Equations are those of arXiv:2608.23839, in the",
        "words of [Concepts](../stream_processors/README.md#concepts); *ours* marks what we chose. No label holds an",
        "episode or a step; histograms name the latest episode of each bucket as its exemplar (labels `agent` and",
        "`episode`, OpenMetrics only).",
        "",
        "`family` is the kind of task, `method` how the agent goes about it, `version` which release of the agent it",
        "is, all as the producer said; `perturbation` is the kind of disturbance, `stress` its severity from 0 to 1,",
        "or `undeclared`. The words (*kept*, *untested*, *provisional* …) are explained in the",
        "[runbook](../deploy/prometheus/runbook.md).",
        "",
        f"With its bounds as they are the exporter has at most {bounds.series:,} series,",
        f"{bounds.agent_series:,} of them of single agents.",
    ]
    for part in _parts():
        lines += ["", f"## {part.title}", "", part.about, "", *_table(part.metrics)]
    histograms = [spec for spec in METRIC_CATALOGUE if spec.buckets]
    lines += ["", "## Buckets of the histograms", "", "Upper bounds; `+Inf` follows.", ""]
    lines += [f"- `{spec.name}`: {', '.join(f'{bound:g}' for bound in spec.buckets)}" for spec in histograms]
    lines += ["", "## Labels whose values are known", "", "Any other value is filed under `other`.", ""]
    lines += [f"- `{label}`: {_codes(sorted(values))}" for label, values in sorted(CLOSED_LABELS.items())]
    return "\n".join(lines) + "\n"


def _parts() -> Iterator[_Part]:
    others = {*AGENT_METRICS, *FAMILY_METRICS, *NAVIGATION_METRICS, *EXPORTER_METRICS}
    own = tuple(spec for spec in METRIC_CATALOGUE if spec not in others)
    yield _Part("Steps, episodes and windows", "By family, method and version, from the exporter.", own)
    yield _Part(
        "Agents",
        'From the exporter. Agents beyond the bound share `agent="other"`. The series of an agent that is gone go away '
        "after 15 minutes;\nif it fell silent inside an episode, its state, what it was at and when it was last seen "
        "stay for a day.",
        AGENT_METRICS,
    )
    yield _Part("Families", "The latest of each family, method and version, from the exporter.", FAMILY_METRICS)
    yield _Part(
        "Navigation", "Of families whose episodes say how they navigated, from the exporter.", NAVIGATION_METRICS
    )
    yield _Part("Exporter", "The exporter of itself.", EXPORTER_METRICS)
    yield _Part("Worker", "Each worker of itself, at `/metrics` of its health endpoint.", WORKER_METRICS)
    yield _Part("Judge", "Each judge of itself, at `/metrics` of its health endpoint.", JUDGE_METRICS)


def _table(metrics: Iterable[MetricSpec]) -> Iterator[str]:
    yield "| metric | kind | unit | labels | what it tells | source |"
    yield "|---|---|---|---|---|---|"
    for spec in metrics:
        cells = (f"`{spec.name}`", spec.kind, spec.unit, _codes(spec.labels), spec.help, spec.source)
        yield f"| {' | '.join(cells)} |"


def _codes(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def main() -> int:
    """Writes the reference."""
    REFERENCE.write_text(metrics_reference(), encoding="utf-8")
    print(f"Written: {REFERENCE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A sink with a clock that tests move, and its per-agent series."""

from typing import Any

from prometheus_client import CollectorRegistry

from springback.sinks.fleet.series_bounds import SeriesBounds
from springback.sinks.prometheus_sink import PrometheusSink
from springback.stream_processors.resilience.readings import Reading


class AgentPage:
    """The page of a sink, at 1010 s until told otherwise."""

    def __init__(self, **bounds: Any) -> None:
        self.now_s = 1010.0
        self.registry = CollectorRegistry()
        self.sink = PrometheusSink(self.registry, bounds=SeriesBounds(**bounds), clock=lambda: self.now_s)
        self.sink.caught_up()

    def after(self, *readings: Reading) -> "AgentPage":
        for reading in readings:
            self.sink.write(reading)
        return self

    def at(self, now_s: float) -> "AgentPage":
        self.now_s = now_s
        return self

    def __call__(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"springback_{name}", labels)

    def series(self, name: str) -> dict[tuple[str, ...], float]:
        """The series of a metric by their labels' values, in the order of the labels' names."""
        return {
            tuple(value for _, value in sorted(sample.labels.items())): sample.value
            for family in self.registry.collect()
            for sample in family.samples
            if sample.name == f"springback_{name}"
        }

    def agents(self, name: str) -> dict[str, float]:
        """The series of a metric whose one label is the agent."""
        return {agent: value for (agent,), value in self.series(name).items()}

    def states(self) -> dict[str, str]:
        """The one state of each agent that has series of its own."""
        series = self.series("agent_state")
        found = [(agent, state) for (agent, state), value in series.items() if value and agent != "other"]
        assert len(found) == len(dict(found))
        return dict(found)

    def counts(self) -> dict[str, float]:
        """Agents by state, where there are any."""
        return {state: value for (state,), value in self.series("agents").items() if value}

    def folded(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        """All series but those that the exporter has of itself."""
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in self.registry.collect()
            if not family.name.startswith("springback_exporter")
            for sample in family.samples
        }

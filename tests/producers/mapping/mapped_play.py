"""Timed messages of small robots, played through a mapping."""

from typing import Any

from springback.producers.emitter.reports import ReportedEnd, ReportedStep
from springback.producers.mapping.assembler import EpisodeAssembler, MappedReport
from springback.producers.mapping.signal_mapping import TimedMessage, parse_mapping

T0 = 1_790_000_000.0

EVENTS = """
agent = { segment = "robot" }
time = "TIME"
header = { family = "navigation", version = { topic = "{robot}/about", field = "version" } }
session_end = { topic = "{robot}/status", equals = "offline", field = "state" }
[step]
trigger = "{robot}/pose"
stale_s = 5
[signals]
progress = { topic = "{robot}/pose", field = "done" }
mode = { topic = "{robot}/task", field = "phase", transform = { table = { go = "navigate", grasp = "manipulate" } } }
retries = { topic = "{robot}/bump", over = "count" }
risk = { topic = "{robot}/risk", field = "level" }
travel = { topic = "{robot}/pose", field = "at", transform = "distance_travelled" }
[episode]
id = { topic = "{robot}/task", field = "id" }
begin = { topic = "{robot}/task", field = "state", equals = "started" }
end = { topic = "{robot}/task", field = "state", outcomes = { done = "success", failed = "failure" } }
navigation = { path = { topic = "{robot}/task", field = "metres" } }
"""

GAPS = """
agent = "a"
header = { family = "f" }
step = { STEP }
signals = { progress = { topic = "p", field = "x" } }
episode = { gap_s = 10, outcome = "timeout" }
"""


class Play:
    """Feeds an assembler, and keeps what comes of it."""

    def __init__(self, mapping: str, *, recorded: bool = False, **replaced: str) -> None:
        for old, new in replaced.items():
            mapping = mapping.replace(old, new)
        self.assembler = EpisodeAssembler(parse_mapping(mapping, "mine.toml"), session="s", recorded=recorded)
        self.reports: list[MappedReport] = []

    def say(self, topic: str, at_s: float, value: Any, **flags: bool) -> None:
        self.reports += self.assembler.add(TimedMessage(topic, T0 + at_s, value, **flags))

    def finish(self) -> None:
        self.reports += self.assembler.finish()

    @property
    def steps(self) -> list[ReportedStep]:
        return [told.report for told in self.reports if isinstance(told.report, ReportedStep)]

    @property
    def ends(self) -> list[tuple[str, str]]:
        ends = [told.report for told in self.reports if isinstance(told.report, ReportedEnd)]
        return [(end.header.episode, end.outcome) for end in ends]

    @property
    def left_out(self) -> dict[str, int]:
        return dict(self.assembler.report.left_out)


def pose(done: float, x: float = 0.0, **more: Any) -> dict[str, Any]:
    return {"done": done, "at": {"x": x, "y": 0.0}, **more}


def stamp(time_s: float) -> dict[str, Any]:
    return {"header": {"stamp": {"sec": int(time_s), "nanosec": int(time_s % 1 * 1e9)}}}

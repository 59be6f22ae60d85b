"""From timed messages of any source to episodes and steps, as a signal mapping says; pure, and bounded in memory.

>>> from springback.producers.mapping.signal_mapping import TimedMessage, parse_mapping
>>> mapping = parse_mapping('''
... agent = { segment = "robot" }
... header = { family = "navigation" }
... step = { trigger = "{robot}/pose" }
... signals = { progress = { topic = "{robot}/pose", field = "done" } }
... episode = { end = { topic = "{robot}/result", field = "ok", outcomes = { true = "success" }, each = true } }
... ''', "mine.toml")
>>> assembler = EpisodeAssembler(mapping, session="today")
>>> (step,) = assembler.add(TimedMessage("r7/pose", 1790000000.0, {"done": 0.5}))
>>> step.producer, step.session, step.report.signals
('r7', 'today.1', {'progress': 0.5, 'time_s': 1790000000.0})
>>> (end,) = assembler.add(TimedMessage("r7/result", 1790000001.0, {"ok": True}))
>>> end.report.outcome
'success'
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from springback.producers.contract.frame import MAX_IDENTIFIER
from springback.producers.emitter.reports import ReportedEnd, ReportedStep
from springback.producers.mapping.agent_episodes import AgentEpisodes
from springback.producers.mapping.clocks import LocalHours, ReorderBuffer
from springback.producers.mapping.newest import NewestBoard
from springback.producers.mapping.paths import MISSING
from springback.producers.mapping.routes import Route, Routes
from springback.producers.mapping.signal_mapping import SignalMapping, TimedMessage
from springback.producers.mapping.values import is_local_time, number_of, plain_text, seconds_of, text_of

MOST_AGENTS: Final = 1000
SET_AHEAD_S: Final = 60.0
"""By how much more than the receiver's an agent's clock must go forward for it to have been set (ours)."""
NOTED: Final = frozenset(
    {"id_again", "extended", "reopened", "joined", "progress_started_again", "position_jump", "clock_set"}
)
"""Reasons by which something is counted that was used all the same."""


class SessionClosed(NamedTuple):
    """The end of a session: nothing more comes from it."""


class MappedReport(NamedTuple):
    """A step, an episode's end, or a session's, and whose it is."""

    producer: str
    session: str
    report: ReportedStep | ReportedEnd | SessionClosed


@dataclass
class AssemblyReport:
    """What became of the messages so far.

    Attributes:
        messages, steps, ends, sessions: how many.
        left_out: what was not used, by reason: not_mapped, no_agent, too_many_agents, retained, repeated,
            no_header_time, clock_reset, missing_field, unusable_value, no_progress, unusable_header, unusable_outcome,
            after_end, no_name, no_divisor, unknown; and what was used but is worth a look (`NOTED`).
        by_key: the same, by reason and key of the mapping.
        examples: the first of each in `by_key`, in words.
    """

    messages: int = 0
    steps: int = 0
    ends: int = 0
    sessions: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    by_key: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def count(self, reason: str, detail: str, key: str = "") -> None:
        """Counts something that was left out, for a reason, perhaps because of one key of the mapping."""
        self.left_out[reason] += 1
        told = f"{reason} of {key}" if key else reason
        self.by_key[told] += 1
        self.examples.setdefault(told, detail)


class _Held(NamedTuple):
    message: TimedMessage
    route: Route
    header_s: float | None


class EpisodeAssembler:
    """Turns messages into steps and ends.

    Args:
        mapping: what to make of them.
        session: what the ids of all sessions begin with; a number follows.
        recorded: whether the messages are those of a recording, so that late ones can be put in order.
        most_agents: the most agents at a time; messages of further ones are left out and counted.
    """

    def __init__(
        self, mapping: SignalMapping, *, session: str, recorded: bool = False, most_agents: int = MOST_AGENTS
    ) -> None:
        self.report = AssemblyReport()
        self._mapping = mapping
        self._session = session
        self._window_s = mapping.reorder_s if recorded else None
        self._most_agents = most_agents
        self._routes = Routes(mapping)
        self._agents: dict[str, AgentEpisodes] = {}
        self._buffers: dict[str, ReorderBuffer[_Held]] = {}
        self._hours: dict[str, LocalHours] = {}

    def add(self, message: TimedMessage) -> list[MappedReport]:
        """Takes a message; returns the steps and ends that it makes certain."""
        self.report.messages += 1
        route = self._routes.of(message.topic)
        if not route.of_use:
            self.report.count("not_mapped", f"no rule reads topic {message.topic!r}")
            return []
        name = self._agent_id(message, route)
        if not name or len(name) > MAX_IDENTIFIER:
            self.report.count("no_agent", f"{message.topic or 'a row'} does not name its agent: got {name!r}")
            return []
        told = [] if name in self._agents or len(self._agents) < self._most_agents else self._make_room()
        if told is None:
            self.report.count("too_many_agents", f"{name!r} would be one more than {self._most_agents} at a time")
            return []
        return told + self._add(message, route, name)

    def _add(self, message: TimedMessage, route: Route, name: str) -> list[MappedReport]:
        agent = self._agents.get(name)
        if agent is None:
            agent = self._agents[name] = self._new_agent(name)
        agent.heard = self.report.messages
        own_s = self._own_s(message, agent)
        if agent.repetitions.seen(message, route, own_s):
            self.report.count("repeated", f"{message.topic}: the same message came before")
            return []
        by_header = self._mapping.time == "header"
        if by_header and own_s is None:
            said = message.topic or "a row"
            self.report.count("no_header_time", f"{said} has no time at {self._mapping.header_time.text}")
        held = _Held(message, route, own_s if by_header else None)
        if self._window_s is None:
            return list(self._take(name, held))
        buffer = self._buffers.setdefault(name, ReorderBuffer(self._window_s))
        due = buffer.add(message.topic, own_s if by_header else message.receive_s, held)
        return [report for one in due for report in self._take(name, one)]

    def advance(self, now_s: float) -> list[MappedReport]:
        """Lets time pass until `now_s` by the receiver's clock, so that fixed-rate steps and gaps need no message."""
        told: list[MappedReport] = []
        for agent in self._agents.values():
            silent_s = now_s - agent.seen_s
            if math.isfinite(silent_s):  # it has said something
                told += self._told(agent, agent.advance(agent.clock.now_s + silent_s))
        return told

    def finish(self) -> list[MappedReport]:
        """Works off what is held and ends open episodes, since the recording or the source is at its end."""
        told: list[MappedReport] = []
        for name in list(self._agents):
            told += self._finish(name)
        return told

    def _finish(self, name: str) -> list[MappedReport]:
        told: list[MappedReport] = []
        self._hours.pop(name, None)
        for held in self._buffers.pop(name).flush() if name in self._buffers else ():
            told += self._take(name, held)
        return told + list(self._close(self._agents.pop(name), None))

    def _take(self, name: str, held: _Held) -> Iterator[MappedReport]:
        message, route, header_s = held
        agent = self._agents[name]
        agent.hear(message, route)
        if message.retained:
            agent.remember_traits(message, route)
            self.report.count("retained", f"{message.topic}: it is only used for the traits of later episodes")
            return
        if agent.ends_session(message, route):
            yield from self._close(agent, "aborted")
            self._agents[name] = self._new_agent(name, agent)
            return
        agent.remember_traits(message, route)
        if agent.other_id():
            yield from self._told(agent, agent.end(None))
            agent.begin_id()
        late = agent.clock.is_late(header_s, message.receive_s, self._mapping.reorder_s)
        if agent.clock.jumped_back(message.topic, header_s, message.receive_s, self._mapping.reorder_s):
            earlier = message.receive_s if header_s is None else header_s
            self.report.count("clock_reset", f"{name}: {message.topic} is of {earlier:.3f} s, before what came before")
            yield from self._close(agent, "aborted")
            before, agent = agent, self._new_agent(name, agent)
            self._agents[name] = agent
            for first in before.late:  # what seemed late were the first messages after the jump
                agent.hear(first[0], first[1])
                yield from self._placed(agent, *first)
            agent.hear(message, route)
        elif late:
            agent.late.append((message, route, header_s))
        else:
            agent.late.clear()
        yield from self._placed(agent, message, route, header_s)

    def _placed(
        self, agent: AgentEpisodes, message: TimedMessage, route: Route, header_s: float | None
    ) -> Iterator[MappedReport]:
        before_s = agent.clock.now_s
        time_s = agent.clock.place(message.topic, header_s, message.receive_s)
        ahead_s = time_s - before_s - max(message.receive_s - agent.seen_s, 0.0)
        if time_s < before_s:
            agent.move(time_s - before_s)  # the first message with a time of its own has set the clock back
        elif header_s is not None and SET_AHEAD_S < ahead_s < math.inf:
            # No time has passed that steps were missing in, and no silence that an episode ends by.
            self.report.count(
                "clock_set",
                f"{agent.agent}: {message.topic} is {ahead_s:.0f} s further on than the time that has passed",
            )
            agent.move(ahead_s)
        agent.seen_s = message.receive_s
        yield from self._told(agent, agent.take(message, route, time_s))

    def _told(self, agent: AgentEpisodes, reports: Iterable[ReportedStep | ReportedEnd]) -> Iterator[MappedReport]:
        for report in reports:
            if isinstance(report, ReportedStep):
                self.report.steps += 1
            else:
                self.report.ends += 1
            yield MappedReport(agent.agent, agent.session, report)

    def _close(self, agent: AgentEpisodes, outcome: str | None) -> Iterator[MappedReport]:
        yield from self._told(agent, agent.end(outcome))
        yield MappedReport(agent.agent, agent.session, SessionClosed())

    def _new_agent(self, name: str, before: AgentEpisodes | None = None) -> AgentEpisodes:
        self.report.sessions += 1
        session, live = f"{self._session}.{self.report.sessions}", self._window_s is None
        agent = AgentEpisodes(self._mapping, name, session, self.report.count, live=live)
        if before is not None:
            agent.inherit(before)
        return agent

    def _agent_id(self, message: TimedMessage, route: Route) -> str | None:
        rule = self._mapping.agent
        if rule.segment is not None:
            return route.segments.get(rule.segment)
        for _, place, path in route.agent:
            raw = path.read(message.value)
            if (
                raw is not MISSING
                and (text := plain_text(rule.sources[place].fresh_chain().apply(raw, NewestBoard()))) is not None
            ):
                return text
        return text_of(rule.constant if rule.constant is not None else rule.default)

    def _make_room(self) -> list[MappedReport] | None:
        """Finishes with the agent that has been silent for longest; returns None where none can be spared.

        A live one can be spared between two episodes; one of a recording once its own part seems to be over, even in
        the middle of an episode.
        """
        long_ago = self.report.messages - 2 * self._most_agents
        live = self._window_s is None
        spare = [one for one in self._agents.values() if (not one.is_open if live else one.heard < long_ago)]
        return self._finish(min(spare, key=lambda one: one.heard).agent) if spare else None

    def _own_s(self, message: TimedMessage, agent: AgentEpisodes) -> float | None:
        """The time that the message gives itself; 0 among dates, or an empty stamp of ROS, was never set."""
        raw = self._mapping.header_time.read(message.value)
        own_s = None if raw is MISSING else seconds_of(raw, self._mapping.header_unit_s)
        if own_s is not None and not message.retained and is_local_time(raw):
            hours = self._hours.setdefault(agent.agent, LocalHours())
            own_s = hours.settled(message.topic, own_s, message.receive_s)
        unset = own_s == 0.0 and (agent.clock.is_dated or number_of(raw) is None)
        return None if own_s is None or own_s < 0.0 or unset else own_s

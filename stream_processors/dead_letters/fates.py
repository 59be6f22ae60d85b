"""What would become of a frame if it were sent again: which of its steps would count, and what it would harm.

A worker takes no step at or below the last one of its episode, none of an episode that has ended and none of a session
that another one has followed. And a session that is new to it ends all that the agent has open, so an old frame may do
harm. What the workers have told of agents and episodes says all of this beforehand.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from springback.producers.contract.frame import StepFrame
from springback.stream_processors.intake.step_table import ArrivedFrame
from springback.stream_processors.intake.validation import tabulate
from springback.stream_processors.resilience.readings import AgentStatus, EpisodeKey, EpisodeSummary, Reading

Fate = Literal["counts", "in part", "late", "refused", "harmful"]
"""All of it would count, some of it, none of it, none of it can be read, or it would end what runs now."""

_MOST_FAULTS = 100


@dataclass(slots=True)
class KnownEpisodes:
    """What the workers have told of agents and their episodes.

    Attributes:
        present: the latest session of each agent.
        sessions: all sessions that they have told of, each with its agent.
        last_steps: the last step of each episode that has one.
        ended: the episodes that have ended for good; one that was aborted may go on, if only silence has closed it.
    """

    present: dict[str, str] = field(default_factory=dict)
    sessions: set[tuple[str, str]] = field(default_factory=set)
    last_steps: dict[EpisodeKey, int] = field(default_factory=dict)
    ended: set[EpisodeKey] = field(default_factory=set)
    _status_s: dict[str, float] = field(default_factory=dict)

    def take(self, reading: Reading) -> None:
        """Takes in what a worker has told, in any order."""
        if isinstance(reading, EpisodeSummary):
            self.sessions.add((reading.key.agent, reading.key.session))
            if reading.outcome != "aborted":
                self.ended.add(reading.key)
            if not reading.joined:
                self._came(reading.key, reading.steps + reading.missing_steps - 1)
        elif isinstance(reading, AgentStatus) and reading.seen_s >= self._status_s.get(reading.agent, 0.0):
            self._status_s[reading.agent] = reading.seen_s
            self.present[reading.agent] = reading.session
            self.sessions.add((reading.agent, reading.session))
            for episode in reading.episodes:
                self._came(episode.key, episode.step)

    def _came(self, key: EpisodeKey, step: int) -> None:
        self.last_steps[key] = max(step, self.last_steps.get(key, -1))


class Forecast(NamedTuple):
    """What would become of a frame.

    Attributes:
        fate: in a word.
        steps: how many it has.
        counted: how many of them would be taken in.
        why: why the others would not, or whom it would harm; empty where all count.
    """

    fate: Fate
    steps: int
    counted: int
    why: str


def forecast(frame: StepFrame, known: KnownEpisodes, now_s: float) -> Forecast:
    """What would become of a frame that is sent now; what is known then knows of it.

    Args:
        frame: the frame.
        known: what has come of its agents and episodes so far. Mutated: the next frame comes after this one.
        now_s: the broker's time, in seconds since the epoch.
    """
    table = tabulate([ArrivedFrame(frame, now_s)], _MOST_FAULTS)
    steps = frame.n_steps
    unused: Counter[str] = Counter()
    faulty = int(table.rejected_rows.sum())
    if faulty or table.rejected:
        first = table.rejected[0]
        unused[f"as before ({first.reason}: {first.detail})"] += max(faulty, 0 if steps else 1)
    harmed = sorted(set(_other_sessions((entry.header.agent for entry in table.episodes), frame.session, known)))
    if harmed:
        agent, session = harmed[0]
        return Forecast("harmful", steps, 0, f"agent {agent} is in session {session} now, which this one would end")
    ended = {end.episode for end in table.ends}
    counted = 0
    for number, entry in enumerate(table.episodes):
        key = EpisodeKey(entry.header.agent, frame.session, entry.header.episode)
        own = table.step[table.episode == number].tolist()
        if known.present.get(entry.header.agent, frame.session) != frame.session:
            unused["of a session that another one has followed"] += len(own)
            continue
        if key in known.ended:
            unused["after the end of their episode"] += len(own)
            continue
        last = known.last_steps.get(key, -1)
        for step in own:
            if step > last:
                counted, last = counted + 1, step
            else:
                unused["at or below the last step that has come"] += 1
        known.present[entry.header.agent] = frame.session
        known.sessions.add((entry.header.agent, frame.session))
        if own:
            known.last_steps[key] = last
        if number in ended:
            known.ended.add(key)
            counted += not steps  # a frame of an end alone
    why = "; ".join(f"{count} {reason}" for reason, count in unused.items() if count)
    if not why:
        return Forecast("counts", steps, counted, "")
    return Forecast("in part" if counted else "late", steps, counted, why)


def _other_sessions(agents: Iterable[str], session: str, known: KnownEpisodes) -> Iterable[tuple[str, str]]:
    """The agents that are in another session now, which this one would end: it is new to the workers."""
    for agent in agents:
        present = known.present.get(agent, session)
        if present != session and (agent, session) not in known.sessions:
            yield agent, present

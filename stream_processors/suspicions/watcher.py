"""Watches the steps of a recording or of a topic for what looks like a mistake: one batch after the other, then asked.

It runs the tracker of the worker over the frames, without scoring them, and keeps besides what many episodes show
together. What it keeps has bounds: episodes, agents and families beyond them are looked at no closer.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from springback.producers.contract.codec import decode_frame
from springback.producers.contract.columns import EARLIEST_TIME_S
from springback.producers.contract.frame import StepFrame
from springback.producers.contract.suspicions import Sign, contradictions, quoted, unknown_names
from springback.producers.errors import UnreadableFrameError
from springback.stream_processors.intake.step_table import ArrivedFrame, Integers, StepTable, TableEpisode
from springback.stream_processors.intake.validation import recorded_arrival_s, tabulate
from springback.stream_processors.resilience.baseline.estimates import materialise
from springback.stream_processors.resilience.baseline.stage_baseline import StageBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import EpisodeKey, EpisodeSummary
from springback.stream_processors.resilience.tracking.episode_tracker import EpisodeTracker, TrackerOutputs
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState
from springback.stream_processors.suspicions.batch_signs import signs_of_batch
from springback.stream_processors.suspicions.episode_watch import LOADS, EpisodeWatch
from springback.stream_processors.suspicions.findings import Findings, Ledger, LookedAt
from springback.stream_processors.suspicions.group_rules import Group

MOST_EPISODES = 4096
"""Open episodes that are looked at closely; the oldest is let go."""
MOST_GROUPS = 2048
MOST_AGENTS = 10_000
MOST_REJECTED = 100
MOST_NOTES = 20
_HALF_HOUR_S, _ZONE_TOLERANCE_S, _WIDEST_ZONE_S = 1800.0, 30.0, 14 * 3600.0
_ZONE_SHARE = 0.8
_LEAD_S = 60.0
_STEADY_S = 10.0
"""The lead of a clock that is only wrong changes by less: simulated time runs at another rate, or stands still."""
_ONE_EPISODE_FAMILIES = 8
_LEAST_REFERENCES = 3


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it was found.

    Attributes:
        data: its bytes.
        place: where it was: a line of a file, an offset of a topic.
        time_s: when the broker got it; None for a recording, which has no such time.
        key: the message's key; None for a recording, which has none.
        frame: what was decoded of it, where it was already.
    """

    data: bytes
    place: str
    time_s: float | None = None
    key: bytes | None = None
    frame: StepFrame | None = None


@dataclass(slots=True)
class _Leads:
    """By how much an agent's clock is ahead of the broker's, and where it was too much."""

    least_s: float = math.inf
    most_s: float = -math.inf
    too_far: int = 0
    example: str = ""

    @property
    def wander_s(self) -> float:
        """By how much the lead changed."""
        return self.most_s - self.least_s


@dataclass(slots=True)
class _Agent:
    begun: int = 0
    ends: int = 0
    left: int = 0
    episode: str = ""
    session: str = ""
    last_step: int = -1
    backwards: int = 0
    backwards_s: float = 0.0
    clocked: int = 0
    zones: Counter[int] = field(default_factory=Counter)
    leads: _Leads = field(default_factory=_Leads)


class SuspicionWatcher:
    """Takes in messages and says in the end what looks like a mistake.

    Args:
        config: settings of the core.
        baseline: what the steps are to be scored by, whose decision rates they are compared with; None for the
            recording's own references.
        live: whether the messages are a stretch of a topic: what is missing there may have come before.
    """

    def __init__(self, config: ResilienceConfig, baseline: StageBaseline | None = None, *, live: bool = False) -> None:
        self._config = config
        self._own = baseline is None
        self._live = live
        bounds = config.window.fixed_bounds()
        self._baseline = materialise(baseline or StageBaseline(grid=config.grid), config.baseline, bounds)
        self._tracker, self._state = EpisodeTracker(config, bounded=live), TrackerState()
        self._ledger, self._looked = Ledger(), LookedAt()
        self._open: dict[EpisodeKey, EpisodeWatch] = {}
        self._agents: dict[str, _Agent] = {}
        self._families: dict[str, Group] = {}
        self._members: dict[tuple[str, str], Group] = {}
        self._references: Counter[str] = Counter()
        self._ended: Counter[str] = Counter()
        self._family_episodes: Counter[str] = Counter()
        self._cycles: dict[tuple[str, str, bool], list[float]] = {}
        self._given: set[str] = set()
        self._notes: list[str] = []
        self._now_s, self._rows = EARLIEST_TIME_S, 0

    def unreadable(self, place: str, reason: str, detail: str) -> None:
        """Notes a message, or a part of a recording, that holds no step frame."""
        self._ledger.note(Sign("unreadable_part", reason, detail[:300], "a step frame, or what a mapping reads"), place)

    def note(self, text: str) -> None:
        """Notes what is no mistake by itself, and good to know."""
        if len(self._notes) < MOST_NOTES:
            self._notes.append(text[:300])

    def watch(self, messages: Sequence[Message]) -> None:
        """Takes in messages in the order in which they came; whatever their bytes are, nothing is raised."""
        arrived: list[ArrivedFrame] = []
        places: list[str] = []
        for message in messages:
            self._looked.messages += 1
            frame = self._decoded(message)
            if frame is None:
                continue
            for sign in [*unknown_names(message.data), *contradictions(frame.episodes)]:
                self._ledger.note(sign, message.place)
            self._now_s = recorded_arrival_s(frame, self._now_s) if message.time_s is None else message.time_s
            arrived.append(ArrivedFrame(frame, self._now_s))
            places.append(message.place)
            self._given.update(frame.steps)
        if not arrived:
            return
        table = tabulate(arrived, MOST_REJECTED)
        found = self._tracker.track(table, [self._state] * len(arrived), self._baseline)
        self._looked.frames += len(arrived)
        self._looked.steps += len(table)
        for frame_sign in signs_of_batch(table, found):
            self._ledger.note(frame_sign.sign, places[frame_sign.frame], frame_sign.times)
        self._begin(found)
        self._follow(table, places)
        self._take_ends(table)
        self._finish(found)

    def finish(self) -> Findings:
        """Closes what is open, and says what looks like a mistake and what was looked at."""
        self._leave()
        self._finish(self._tracker.close_idle(self._state, now_s=float("inf")))
        self._note_agents()
        self._note_groups()
        self._note_families()
        self._looked.agents, self._looked.families = len(self._agents), len(self._family_episodes)
        notes = (*self._notes, *self._constant_notes())
        return Findings(suspicions=self._ledger.suspicions(), looked_at=self._looked, notes=notes)

    def _decoded(self, message: Message) -> StepFrame | None:
        try:
            frame = message.frame or decode_frame(message.data)
        except UnreadableFrameError as error:
            self.unreadable(message.place, error.reason, str(error).removeprefix(f"{error.reason}: "))
            return None
        expected = frame.producer.encode("utf-8", "replace")
        if message.key is not None and message.key != expected:
            came = f"key {quoted(message.key.decode('utf-8', 'replace'))}" if message.key else "no key"
            sign = Sign("wrong_key", f"producer {quoted(frame.producer)}", came, "the producer's id as the key")
            self._ledger.note(sign, message.place)
            return None  # a worker would not look at it either
        if message.time_s is not None:
            self._note_clock(frame, message)
        return frame

    def _note_clock(self, frame: StepFrame, message: Message) -> None:
        """Compares the time of a frame's last step with the broker's."""
        times = frame.numbers("time_s")
        if times is None or not len(times) or not frame.episodes or message.time_s is None:
            return
        ahead_s, agent = float(times[-1]) - message.time_s, frame.episodes[-1].agent
        if not abs(ahead_s) <= 2 * _WIDEST_ZONE_S:
            return
        known = self._agent(agent)
        known.clocked += 1
        leads = known.leads
        leads.least_s, leads.most_s = min(leads.least_s, ahead_s), max(leads.most_s, ahead_s)
        half_hours = round(ahead_s / _HALF_HOUR_S)
        if half_hours and abs(ahead_s - half_hours * _HALF_HOUR_S) <= _ZONE_TOLERANCE_S:
            known.zones[half_hours] += 1
        elif ahead_s > _LEAD_S:
            leads.too_far += 1
            leads.example = message.place

    def _agent(self, name: str) -> _Agent:
        """What is known of an agent; of more than `MOST_AGENTS` nothing is kept."""
        agent = self._agents.get(name)
        if agent is None:
            agent = _Agent()
            if len(self._agents) < MOST_AGENTS:
                self._agents[name] = agent
        return agent

    def _begin(self, found: TrackerOutputs) -> None:
        for begun in found.begun:
            if begun.revision:
                continue
            self._looked.episodes += 1
            self._looked.references += begun.traits.reference
            if begun.traits.family in self._family_episodes or len(self._family_episodes) < MOST_GROUPS:
                self._family_episodes[begun.traits.family] += 1

    def _follow(self, table: StepTable, places: list[str]) -> None:
        """Goes on over the rows of each episode, but for those that come again or too late."""
        starts = np.searchsorted(table.episode, np.arange(len(table.episodes) + 1)).tolist()
        rows_of: dict[EpisodeKey, list[int]] = {}
        entry_of: dict[EpisodeKey, TableEpisode] = {}
        for number, entry in enumerate(table.episodes):
            if starts[number] < starts[number + 1]:
                key = EpisodeKey(entry.header.agent, table.frames[entry.frame].frame.session, entry.header.episode)
                rows_of.setdefault(key, []).extend(range(starts[number], starts[number + 1]))
                entry_of.setdefault(key, entry)
        of_group: dict[int, tuple[Group, list[Integers]]] = {}
        for key, places_of in rows_of.items():
            rows, entry = np.array(places_of), entry_of[key]
            agent, watch = self._agent(key.agent), self._open.get(key)
            last = -1 if watch is None else watch.last_step
            rows = rows[table.step[rows] > np.maximum.accumulate(np.r_[last, table.step[rows]])[:-1]]
            if not len(rows):
                continue
            if watch is None:
                watch = self._watch_of(key, agent, self._rows + int(rows[0]))
                self._note_session(agent, key, int(table.step[rows[0]]), places[entry.frame])
            back = watch.backwards
            watch.follow(table, rows)
            watch.last_at = self._rows + int(rows[-1])
            agent.backwards += watch.backwards - back
            agent.backwards_s = max(agent.backwards_s, watch.backwards_s)
            agent.episode, agent.session, agent.last_step = key.episode, key.session, watch.last_step
            for group in self._groups(key.agent, entry.header.family):
                of_group.setdefault(id(group), (group, []))[1].append(rows)
        for group, parts in of_group.values():
            group.follow(table, np.concatenate(parts))
        self._rows += len(table)

    def _watch_of(self, key: EpisodeKey, agent: _Agent, began_at: int) -> EpisodeWatch:
        watch = self._open[key] = EpisodeWatch(began_at=began_at, seen_whole=not self._live or agent.begun > 0)
        agent.begun += 1
        if len(self._open) > MOST_EPISODES:
            del self._open[next(iter(self._open))]
        return watch

    def _note_session(self, agent: _Agent, key: EpisodeKey, step: int, place: str) -> None:
        if key.episode == agent.episode and key.session != agent.session and step == agent.last_step + 1:
            arrived = f"episode {quoted(key.episode)} goes on with step {step} in another session"
            sign = Sign("session_changing", f"agent {quoted(key.agent)}", arrived, "one session from start to end")
            self._ledger.note(sign, place)

    def _groups(self, agent: str, family: str) -> list[Group]:
        if family not in self._families and len(self._families) < MOST_GROUPS:
            self._families[family] = Group(f"family {quoted(family)}")
        of_family, of_agent = self._families.get(family), self._members.get((family, agent))
        if of_agent is None and len(self._members) < MOST_GROUPS:
            of_agent = self._members[family, agent] = Group(f"agent {quoted(agent)}, family {quoted(family)}")
        return [group for group in (of_family, of_agent) if group is not None]

    def _take_ends(self, table: StepTable) -> None:
        for end in table.ends:
            self._agent(table.episodes[end.episode].header.agent).ends += 1

    def _finish(self, found: TrackerOutputs) -> None:
        for summary in found.summaries:
            watch = self._open.pop(summary.key, None)
            traits, family = summary.traits, summary.traits.family
            if not summary.censored:
                self._looked.ended += 1
                self._ended[family] += 1
                learns = traits.reference or self._config.learn_from == "success"
                self._references[family] += learns and summary.outcome == "success" and not summary.joined
            if watch is None or not watch.steps:
                continue
            example = f"episode {quoted(summary.key.episode)} of {quoted(summary.key.agent)}"
            self._note_rate(summary, example)
            for sign in watch.units(f"agent {quoted(summary.key.agent)}, family {quoted(family)}"):
                self._ledger.note(sign, example)
            whole = not self._live or (watch.seen_whole and not summary.censored)
            for group in self._groups(summary.key.agent, family):
                group.end(summary, watch, example, whole=whole)

    def _note_rate(self, summary: EpisodeSummary, example: str) -> None:
        if summary.cycle_s is None:
            return
        family, agent = summary.traits.family, summary.key.agent
        if not self._own:
            if summary.off_rate:
                usual = self._baseline.families[family].cycle_s
                self._note_other_rate(agent, family, summary.cycle_s, usual or 0.0, example, 1)
            return
        group = family, agent, summary.traits.reference
        if group not in self._cycles and len(self._cycles) >= MOST_AGENTS:
            return
        kept = self._cycles.setdefault(group, [])
        if len(kept) < MOST_GROUPS:
            kept.append(summary.cycle_s)

    def _note_other_rate(self, agent: str, family: str, cycle_s: float, usual_s: float, place: str, count: int) -> None:
        subject = f"agent {quoted(agent)}, family {quoted(family)}"
        sign = Sign("other_rate", subject, f"a decision every {cycle_s:.3g} s", f"about every {usual_s:.3g} s")
        self._ledger.note(sign, place, count)

    def _leave(self) -> None:
        """Counts the episodes that each agent has left for another without an end."""
        of_agent: dict[str, list[EpisodeWatch]] = {}
        for key, watch in self._open.items():
            of_agent.setdefault(key.agent, []).append(watch)
        for name, watches in of_agent.items():
            newest = max(watch.began_at for watch in watches)
            self._agent(name).left += sum(watch.last_at < newest and watch.steps > 1 for watch in watches)

    def _note_agents(self) -> None:
        wandering: list[float] = []
        for name, agent in self._agents.items():
            subject = f"agent {quoted(name)}"
            if agent.leads.too_far:
                if agent.leads.wander_s > _STEADY_S:
                    wandering.append(agent.leads.wander_s)
                else:
                    arrived = f"a step of {agent.leads.most_s:.0f} s after the message that brought it"
                    sign = Sign("clock_ahead", subject, arrived, "times up to the message's")
                    self._ledger.note(sign, agent.leads.example, agent.leads.too_far)
            if agent.left and not agent.ends:
                arrived = f"{agent.left} episodes that it has left for others, and no end of any"
                self._ledger.note(Sign("no_ends", subject, arrived, "an end for each episode"), "", agent.left)
            if agent.backwards:
                arrived = f"{agent.backwards} steps before the one before them, by up to {agent.backwards_s:.3g} s"
                self._ledger.note(Sign("clock_backwards", subject, arrived, "times that rise"), "", agent.backwards)
            if agent.zones:
                half_hours, count = agent.zones.most_common(1)[0]
                if count < _ZONE_SHARE * agent.clocked:
                    continue  # a spool that is being sent passes by whole half hours
                apart = f"{abs(half_hours) / 2:g} h {'ahead of' if half_hours > 0 else 'behind'} the broker"
                self._ledger.note(Sign("clock_zone", subject, f"a clock {apart}", "UTC"), "", count)

        if wandering:
            clocks = (
                "the clock of 1 agent runs" if len(wandering) == 1 else f"the clocks of {len(wandering)} agents run"
            )
            self.note(
                f"{clocks} at another rate than the broker's, {max(wandering):.0f} s apart, as simulated time does"
            )

    def _note_groups(self) -> None:
        """What families show; and of what they do not show as a whole, what single agents of them do."""
        shown: set[tuple[str, str]] = set()
        for family, group in self._families.items():
            for sign, example, count in group.signs():
                shown.add((family, sign.kind))
                self._ledger.note(sign, example, count)
        for (family, _agent), group in self._members.items():
            for sign, example, count in group.signs(self._families.get(family)):
                if (family, sign.kind) not in shown:
                    self._ledger.note(sign, example, count)

    def _note_families(self) -> None:
        single = [family for family, count in self._family_episodes.items() if count == 1]
        if len(single) >= _ONE_EPISODE_FAMILIES and 2 * len(single) > len(self._family_episodes):
            arrived = f"{len(single)} of {len(self._family_episodes)} have one episode: "
            arrived += ", ".join(quoted(family) for family in single[:3]) + ", …"
            self._ledger.note(Sign("one_episode_families", "families", arrived, "kinds of task"), "")
        if self._own and not self._live:
            self._note_references()
        of_references: dict[str, list[float]] = {}
        for (family, _, reference), cycles in self._cycles.items():
            if reference:
                of_references.setdefault(family, []).extend(cycles)
        usual = {family: median(cycles) for family, cycles in of_references.items() if len(cycles) >= 3}
        for (family, agent, reference), cycles in self._cycles.items():
            if reference or family not in usual or self._config.rate_ratio == "any":
                continue
            own_s, usual_s = median(cycles), usual[family]
            if not usual_s / self._config.rate_ratio <= own_s <= usual_s * self._config.rate_ratio:
                self._note_other_rate(agent, family, own_s, usual_s, "", len(cycles))

    def _note_references(self) -> None:
        needed = self._config.baseline.learning_references
        for family, ended in self._ended.items():
            count = self._references[family]
            subject = f"family {quoted(family)}"
            if not count:
                arrived = f"none of its {ended} ended episodes is a reference that ends in success"
                self._ledger.note(Sign("no_references", subject, arrived, f"{needed} or more"), "")
            elif count < _LEAST_REFERENCES:
                arrived = f"{count} of its {ended} ended episodes are references that end in success"
                self._ledger.note(Sign("few_references", subject, arrived, f"{needed} or more"), "")
            elif count < needed:
                self.note(
                    f"{subject} has {count} references that end in success: with fewer than {needed} its windows are "
                    "provisional"
                )

    def _constant_notes(self) -> Iterator[str]:
        """Columns that were given and say the same in every step, for those who did not mean that."""
        for name in LOADS:
            bounds = [group.bounds[name] for group in self._families.values() if group.bounds[name].rows]
            lowest, highest = (
                min((b.lowest for b in bounds), default=0.0),
                max((b.highest for b in bounds), default=1.0),
            )
            if name in self._given and lowest == highest:
                yield f"column {name!r} is {lowest:g} in every step"

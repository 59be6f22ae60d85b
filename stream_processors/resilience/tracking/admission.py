"""Which rows of a batch are taken in, and by which open episode: sessions, ends, duplicates and gaps.

The rules go frame by frame in the order of arrival, and inside a frame by step, so that the outcome does not depend
on how frames were gathered into batches.
"""

import itertools
from dataclasses import dataclass, field

import numpy as np

from springback.producers.contract.frame import NavigationOutcome
from springback.stream_processors.intake.step_table import StepTable, TableEpisode
from springback.stream_processors.resilience.anchor import Ints
from springback.stream_processors.resilience.columns import one_back, run_begins
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.episode_memory import memory_mark
from springback.stream_processors.resilience.readings import EpisodeKey, Outcome
from springback.stream_processors.resilience.tracking.tracker_state import (
    AgentState,
    LearningState,
    OpenEpisode,
    TrackerState,
)

SKEW_SMOOTHING = 0.1


@dataclass(slots=True)
class Slot:
    """An open episode that a batch touches, and how it ends in this batch, if it does.

    `opened` says that it begins here. `ended_s` is None where nobody said when: its last step's time stands for it.
    """

    agent: AgentState
    episode: OpenEpisode
    outcome: Outcome | None = None
    ended_s: float | None = None
    navigation: NavigationOutcome | None = None
    opened: bool = False


@dataclass(slots=True)
class Admission:
    """What of a batch is taken in: the episodes it touches, the agents it speaks of, and the rows that count.

    `order` are the table's accepted rows, episode by episode and by step inside one; `slot` is each one's position in
    `slots`. Shape: (n,) both.
    """

    slots: list[Slot] = field(default_factory=list)
    agents: list[AgentState] = field(default_factory=list)
    order: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    slot: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def admit(table: StepTable, states: list[TrackerState], config: ResilienceConfig) -> Admission:
    """Open, end and abort episodes as the frames say, and choose the rows that count. Mutates the states.

    Args:
        table: the batch.
        states: the bucket state of each of the table's frames.
        config: settings of the core.
    """
    admission = Admission()
    # By object, not by key: an episode that has ended may be opened again, and two producers may use the same names.
    slot_of: dict[int, int] = {}
    ends = {end.episode: end for end in table.ends}
    # Position in `slots` of each of the table's episodes; -1 for copies of what is over, whose rows are dropped.
    slot_of_episode = np.full(len(table.episodes), -1, dtype=np.int64)
    agent_of_episode: list[AgentState] = []

    def slot_for(agent: AgentState, episode: OpenEpisode) -> int:
        position = slot_of.setdefault(id(episode), len(admission.slots))
        if position == len(admission.slots):
            admission.slots.append(Slot(agent, episode))
        return position

    for number, entry in enumerate(table.episodes):
        frame = table.frames[entry.frame]
        agent = _agent_of(states[entry.frame], entry, frame.frame.producer, frame.frame.session)
        agent_of_episode.append(agent)
        agent.seen_s, agent.changed = max(agent.seen_s, frame.broker_time_s), True
        session = frame.frame.session
        if session != agent.session:
            if session in agent.closed_sessions:
                continue
            for open_episode in list(agent.open.values()):
                slot = admission.slots[slot_for(agent, open_episode)]
                _end(slot, "aborted", None, config)
            agent.closed_sessions = [*agent.closed_sessions, agent.session][-config.remembered_sessions :]
            agent.session, agent.ended = session, []
        episode = agent.open.get(entry.header.episode)
        opened = episode is None
        if episode is None:
            if memory_mark(EpisodeKey(agent.agent, session, entry.header.episode)) in agent.ended:
                # The end of what silence had closed comes late: now it has ended for good.
                agent.abandoned = agent.abandoned and number not in ends
                continue
            if len(agent.open) >= config.open_episodes:
                oldest = next(iter(agent.open.values()))
                _end(admission.slots[slot_for(agent, oldest)], "aborted", None, config)
            episode = _opened(entry, session, frame.broker_time_s, config)
            agent.open[entry.header.episode] = episode
            agent.abandoned, agent.progress_s = False, max(agent.progress_s, frame.broker_time_s)
        position = slot_for(agent, episode)
        slot_of_episode[number] = position
        slot = admission.slots[position]
        slot.opened = slot.opened or opened
        if number in ends:
            agent.progress_s = max(agent.progress_s, frame.broker_time_s)
            slot.navigation = ends[number].end.navigation
            _end(slot, ends[number].end.outcome, ends[number].time_s, config)
    _choose_rows(admission, table, slot_of_episode, agent_of_episode)
    _note_times(table, admission, slot_of_episode, agent_of_episode)
    admission.agents = list({id(agent): agent for agent in agent_of_episode}.values())
    return admission


def forget_episode(agent: AgentState, episode: OpenEpisode, config: ResilienceConfig) -> None:
    """Take an ended episode out of the open ones, and remember that it is over."""
    del agent.open[episode.key.episode]
    if episode.key.session == agent.session:
        agent.ended = [*agent.ended, memory_mark(episode.key)][-config.remembered_episodes :]


def _agent_of(state: TrackerState, entry: TableEpisode, producer: str, session: str) -> AgentState:
    name = entry.header.agent
    agent = state.agents.get(name)
    if agent is None:
        agent = state.agents[name] = AgentState(agent=name, producer=producer, session=session)
    agent.producer = producer
    return agent


def _opened(entry: TableEpisode, session: str, now_s: float, config: ResilienceConfig) -> OpenEpisode:
    header = entry.header
    learns = header.reference or config.learn_from == "success"
    return OpenEpisode(
        key=EpisodeKey(header.agent, session, header.episode),
        traits=header.traits(),
        started_s=now_s,
        seen_s=now_s,
        last_time_s=now_s,
        learning=LearningState() if learns else None,
    )


def _end(slot: Slot, outcome: Outcome, time_s: float | None, config: ResilienceConfig) -> None:
    slot.outcome, slot.ended_s = outcome, time_s
    forget_episode(slot.agent, slot.episode, config)


def _choose_rows(
    admission: Admission, table: StepTable, slot_of_episode: Ints, agent_of_episode: list[AgentState]
) -> None:
    """Order the rows by episode, and leave out those at or below the last step seen before them."""
    slot_of_row = slot_of_episode[table.episode]
    order = np.argsort(slot_of_row, kind="stable")
    order = order[np.searchsorted(slot_of_row[order], 0) :]
    slot, step = slot_of_row[order], table.step[order]
    if len(order):
        last_steps = np.array([s.episode.last_step for s in admission.slots], dtype=np.int64)
        first = run_begins(slot)
        before = np.where(first, last_steps[slot], one_back(step))
        if not (step > before).all():
            for start, stop in itertools.pairwise([*np.flatnonzero(first), len(step)]):
                highest = np.maximum.accumulate(np.r_[last_steps[slot[start]], step[start:stop]])
                before[start:stop] = highest[:-1]
            fresh = step > before
            order, slot = order[fresh], slot[fresh]
    admission.order, admission.slot = order, slot
    dropped = np.ones(len(table.step), dtype=bool)
    dropped[order] = False
    for number, copies in zip(*np.unique(table.episode[dropped], return_counts=True), strict=True):
        agent_of_episode[number].count(duplicate_steps=int(copies))


def _note_times(
    table: StepTable, admission: Admission, slot_of_episode: Ints, agent_of_episode: list[AgentState]
) -> None:
    """Follow each episode's last new step and each agent's clock, and count the times that the broker's stand in for.

    Copies do not count: a dead link that sends the same frames for ever is silence, and their times are old.
    """
    taken = np.sort(admission.order)
    # A run ends where, read from the back, it begins.
    last_rows = taken[run_begins(table.episode[taken][::-1])[::-1]]
    for row in last_rows.tolist():
        number = int(table.episode[row])
        agent, frame = agent_of_episode[number], table.frames[table.episodes[number].frame]
        episode = admission.slots[slot_of_episode[number]].episode
        episode.seen_s = max(episode.seen_s, frame.broker_time_s)
        if table.clocked[row]:
            skew = float(table.time_s[row]) - frame.broker_time_s
            agent.time_s = float(table.time_s[row])
            known = skew if agent.clock_skew_s is None else agent.clock_skew_s
            agent.clock_skew_s = known + SKEW_SMOOTHING * (skew - known)
    first_of_frame: dict[int, AgentState] = {}
    for entry, agent in zip(table.episodes, agent_of_episode, strict=True):
        first_of_frame.setdefault(entry.frame, agent)
    for frame_number in np.flatnonzero(table.replaced_times).tolist():
        if frame_number in first_of_frame:
            first_of_frame[frame_number].count(replaced_times=int(table.replaced_times[frame_number]))

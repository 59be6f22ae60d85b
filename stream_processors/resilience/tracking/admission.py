"""Which rows of a batch of frames are taken in, and by which open episode: sessions, ends, duplicates and gaps.

The rules go frame by frame in the order of arrival, and inside a frame by step, so that the outcome does not depend
on how frames were gathered into batches.
"""

import itertools
from typing import Any

import msgspec
import numpy as np

from springback.stream_processors.intake.step_table import ArrivedFrame, StepTable, TableEpisode
from springback.stream_processors.resilience.anchor import AnchorGrid, Ints
from springback.stream_processors.resilience.columns import one_back, run_begins
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import EpisodeKey, Outcome, UnusedReason
from springback.stream_processors.resilience.tracking.batch import Batch, TouchedEpisode, UnusedSteps, gather
from springback.stream_processors.resilience.tracking.bounds import Room, agents_use
from springback.stream_processors.resilience.tracking.seen_steps import ArrivedRows, SeenSteps, sort_out
from springback.stream_processors.resilience.tracking.tracker_state import (
    LearningState,
    OpenEpisode,
    TrackedAgent,
    TrackerState,
)

SKEW_SMOOTHING = 0.1
"""Weight of the newest difference between an agent's clock and the broker's in the estimate of its skew."""


def admit_rows(
    table: StepTable, states: list[TrackerState], config: ResilienceConfig, grid: AnchorGrid, *, bounded: bool = False
) -> Batch:
    """Opens, ends and aborts episodes as the frames say, and chooses the rows that count. Mutates the states.

    Args:
        table: the rows of the frames, checked.
        states: the bucket state of each of the table's frames.
        config: settings of the core.
        grid: the bins of the rows' anchors.
        bounded: whether agents and episodes beyond `config.bounds` are refused.
    """
    room = Room(config.bounds if bounded else None)
    strangers: set[int] = set()
    touched: list[TouchedEpisode] = []
    starts = np.searchsorted(table.episode, np.arange(len(table.episodes) + 1)).tolist()
    episode_rows: list[ArrivedRows] = []
    # By object, not by key: an episode that has ended may be opened again, and two producers may use the same names.
    position_of: dict[int, int] = {}
    ends = {end.episode: end for end in table.ends}
    # Position in `touched` of each of the table's episodes; -1 for copies of what is over, whose rows are dropped.
    place_of_episode = np.full(len(table.episodes), -1, dtype=np.int64)
    agent_of_episode: list[TrackedAgent] = []

    def place_for(agent: TrackedAgent, state: OpenEpisode) -> int:
        place = position_of.setdefault(id(state), len(touched))
        if place == len(touched):
            touched.append(TouchedEpisode(agent, state))
        return place

    for number, entry in enumerate(table.episodes):
        start, stop = starts[number], starts[number + 1]
        frame = table.frames[entry.frame]
        bucket, now_s = states[entry.frame], frame.broker_time_s
        agent = _agent_of(bucket, room, entry, frame)
        agent_of_episode.append(agent)
        if bucket.agents.get(agent.agent) is not agent:
            strangers.add(id(agent))
            episode_rows.append(ArrivedRows(start, stop, None, "over_bounds"))
            continue
        agent.seen_s, agent.changed = max(agent.seen_s, frame.broker_time_s), True
        session = frame.frame.session
        if session != agent.session:
            if session in agent.closed_sessions:
                seen = agent.ended.get(EpisodeKey(agent.agent, session, entry.header.episode).mark())
                episode_rows.append(ArrivedRows(start, stop, seen, "old_session", agent.began_s))
                continue
            if not room.has_for_session(bucket, agent, session, entry.frame, now_s):
                episode_rows.append(ArrivedRows(start, stop, None, "over_bounds"))
                continue
            for other in list(agent.open.values()):
                room.ended(bucket, agent, other)
                _end(touched[place_for(agent, other)], "aborted", None, config)
            text_before = agents_use([agent]).text
            agent.closed_sessions = [*agent.closed_sessions, agent.session][-config.remembered_sessions :]
            agent.session, agent.silent = session, {}
            room.began_session(bucket, agent, text_before)
            agent.began_s = float(table.time_s[start]) if start < stop else frame.broker_time_s
        state = agent.open.get(entry.header.episode)
        begins, opened_in = state is None, None
        if state is None:
            mark = EpisodeKey(agent.agent, session, entry.header.episode).mark()
            silent = agent.silent.get(entry.header.episode)
            if mark in agent.ended and (
                silent is None
                or (number not in ends and (start == stop or table.step[stop - 1] <= agent.ended[mark].last_step))
            ):
                # The end of what silence had closed, and what is not kept any more: now it has ended for good.
                agent.abandoned = agent.abandoned and number not in ends
                episode_rows.append(ArrivedRows(start, stop, agent.ended[mark], "after_end"))
                continue
            if len(agent.open) >= config.open_episodes:
                oldest = next(iter(agent.open.values()))
                room.ended(bucket, agent, oldest)
                _end(touched[place_for(agent, oldest)], "aborted", None, config)
            if not room.has_for_episode(bucket, agent.producer, entry.header, session, entry.frame, now_s):
                episode_rows.append(ArrivedRows(start, stop, agent.ended.get(mark), "over_bounds"))
                continue
            if silent is not None and mark in agent.ended:
                room.reopened(bucket, agent, silent)
                state = _reopened(agent, silent, mark, frame.broker_time_s)
            else:
                state, opened_in = _opened(entry, session, frame.broker_time_s, config), entry.frame
            agent.open[entry.header.episode] = state
            agent.abandoned, agent.progress_s = False, max(agent.progress_s, frame.broker_time_s)
        episode_rows.append(ArrivedRows(start, stop, state.seen, "after_end"))
        place_of_episode[number] = place_for(agent, state)
        episode = touched[place_of_episode[number]]
        episode.opened_in = opened_in if episode.opened_in is None else episode.opened_in
        if begins and episode.begun_s is None:
            episode.begun_s = frame.broker_time_s
        if number in ends:
            agent.progress_s = max(agent.progress_s, frame.broker_time_s)
            episode.navigation = ends[number].end.navigation
            episode.realised_magnitude = ends[number].end.realised_magnitude
            state.extended = ends[number].end.extended
            room.ended(bucket, agent, state)
            _end(episode, ends[number].end.outcome, ends[number].time_s, config)
    taken, places = _choose_rows(table, touched, place_of_episode)
    _note_beginnings(table, taken, places, touched)
    left_out = sort_out(table, taken, places, [episode.state.seen for episode in touched], episode_rows)
    unused = _count_unused(table, left_out, agent_of_episode, episode_rows)
    _note_times(table, taken, touched, place_of_episode, agent_of_episode)
    agents = list({id(agent): agent for agent in agent_of_episode if id(agent) not in strangers}.values())
    return gather(table, taken, places, touched, agents, room.forgotten, unused, grid)


def forget_episode(agent: TrackedAgent, episode: OpenEpisode, config: ResilienceConfig) -> None:
    """Takes an ended episode out of the open ones, and remembers that it is over."""
    del agent.open[episode.key.episode]
    agent.ended[episode.key.mark()] = episode.seen
    _drop_oldest(agent.ended, config.remembered_episodes)


def keep_silent(agent: TrackedAgent, episode: OpenEpisode, config: ResilienceConfig) -> None:
    """Keeps an open episode as it is now, since silence is about to close it, and it may yet go on."""
    kept: OpenEpisode = msgspec.msgpack.decode(msgspec.msgpack.encode(episode), type=OpenEpisode)
    kept.seen = SeenSteps()  # what was seen is among the ended, and goes on there
    agent.silent[episode.key.episode] = kept
    _drop_oldest(agent.silent, config.silent_episodes)


def _reopened(agent: TrackedAgent, episode: OpenEpisode, mark: int, now_s: float) -> OpenEpisode:
    """An episode that silence had closed, and that goes on."""
    del agent.silent[episode.key.episode]
    episode.seen = agent.ended.pop(mark)
    episode.revision += 1
    episode.seen_s = now_s
    agent.count(reopened_episodes=1)
    return episode


def _drop_oldest(memory: dict[Any, Any], most: int) -> None:
    for oldest in list(itertools.islice(memory, max(len(memory) - most, 0))):
        del memory[oldest]


def _agent_of(state: TrackerState, room: Room, entry: TableEpisode, arrived: ArrivedFrame) -> TrackedAgent:
    """The agent of an episode; one that finds no room is none of the state's."""
    name, producer, session = entry.header.agent, arrived.frame.producer, arrived.frame.session
    agent = state.agents.get(name)
    if agent is None:
        agent = TrackedAgent(agent=name, producer=producer, session=session)
        if room.has_for_agent(state, agent, entry.header, entry.frame, arrived.broker_time_s):
            state.agents[name] = agent
    elif agent.producer != producer:
        room.moved(state, agent, producer)
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


def _end(episode: TouchedEpisode, outcome: Outcome, time_s: float | None, config: ResilienceConfig) -> None:
    episode.outcome, episode.ended_s = outcome, time_s
    forget_episode(episode.agent, episode.state, config)


def _choose_rows(table: StepTable, touched: list[TouchedEpisode], place_of_episode: Ints) -> tuple[Ints, Ints]:
    """The rows that count, ordered by episode, and the place of each one's episode; no step at or below the last seen.

    Returns:
        Positions in the table, and in `touched`. Shape: (n,) both.
    """
    place_of_row = place_of_episode[table.episode]
    order = np.argsort(place_of_row, kind="stable")
    order = order[np.searchsorted(place_of_row[order], 0) :]
    place, step = place_of_row[order], table.step[order]
    if not len(order):
        return order, place
    last_steps = np.array([episode.state.last_step for episode in touched], dtype=np.int64)
    first = run_begins(place)
    before = np.where(first, last_steps[place], one_back(step))
    if (step > before).all():
        return order, place
    for start, stop in itertools.pairwise([*np.flatnonzero(first), len(step)]):
        highest = np.maximum.accumulate(np.r_[last_steps[place[start]], step[start:stop]])
        before[start:stop] = highest[:-1]
    fresh = step > before
    return order[fresh], place[fresh]


def _note_beginnings(table: StepTable, taken: Ints, places: Ints, touched: list[TouchedEpisode]) -> None:
    """Marks the episodes whose beginning was not seen: they are scored, but teach nothing.

    A beginning is seen with step 0, also where its row could not be used, or with a frame that names the episode
    before any step of it.
    """
    rejected = _rejected_starts(table)
    for at in np.flatnonzero(run_begins(places) & (table.step[taken] > 0)).tolist():
        episode, row = touched[places[at]], int(taken[at])
        entry = table.episodes[table.episode[row]]
        named = entry.frame, entry.header.agent, entry.header.episode
        if episode.state.steps == 0 and episode.opened_in == entry.frame and named not in rejected:
            episode.state.joined, episode.state.learning = True, None


def _rejected_starts(table: StepTable) -> set[tuple[int, str, str]]:
    """The episodes whose step 0 came and was rejected: the frame, the agent and the episode's id."""
    found: set[tuple[int, str, str]] = set()
    for frame, place in table.rejected_starts:
        headers = table.frames[frame].frame.episodes
        if 0 <= place < len(headers):  # a row that was rejected may name any
            found.add((frame, headers[place].agent, headers[place].episode))
    return found


def _count_unused(
    table: StepTable,
    left_out: list[dict[UnusedReason, list[int]]],
    agent_of_episode: list[TrackedAgent],
    episode_rows: list[ArrivedRows],
) -> list[UnusedSteps]:
    """Counts the rows that are not taken in, for the agents that sent them, and says which they are."""
    found: list[UnusedSteps] = []
    for number, by_reason in enumerate(left_out):
        entry, agent = table.episodes[number], agent_of_episode[number]
        for reason, rows in by_reason.items():
            agent.count(**{f"{reason}_steps": len(rows)})
            steps = table.step[rows]
            key = EpisodeKey(agent.agent, table.frames[entry.frame].frame.session, entry.header.episode)
            found.append(UnusedSteps(entry.frame, key, reason, len(rows), int(steps.min()), int(steps.max())))
            if reason == "old_session" and float(table.time_s[rows].max()) > episode_rows[number].rival_began_s:
                # Not the late rest of a program that is gone: it has gone on after the other one had begun.
                agent.contested_s = table.frames[entry.frame].broker_time_s
    return found


def _note_times(
    table: StepTable,
    taken: Ints,
    touched: list[TouchedEpisode],
    place_of_episode: Ints,
    agent_of_episode: list[TrackedAgent],
) -> None:
    """Follows each episode's last new step and each agent's clock, and counts the times replaced by the broker's.

    Copies do not count: a dead link that repeats the same frames is silence, and their times are old.
    """
    in_table_order = np.sort(taken)
    # A run ends where, read from the back, it begins.
    last_rows = in_table_order[run_begins(table.episode[in_table_order][::-1])[::-1]]
    for row in last_rows.tolist():
        number = int(table.episode[row])
        agent, frame = agent_of_episode[number], table.frames[table.episodes[number].frame]
        state = touched[place_of_episode[number]].state
        state.seen_s = max(state.seen_s, frame.broker_time_s)
        if table.clocked[row]:
            skew = float(table.time_s[row]) - frame.broker_time_s
            agent.time_s = float(table.time_s[row])
            known = skew if agent.clock_skew_s is None else agent.clock_skew_s
            agent.clock_skew_s = known + SKEW_SMOOTHING * (skew - known)
    first_of_frame: dict[int, TrackedAgent] = {}
    for entry, agent in zip(table.episodes, agent_of_episode, strict=True):
        first_of_frame.setdefault(entry.frame, agent)
    for frame_number in np.flatnonzero(table.replaced_times).tolist():
        if frame_number in first_of_frame:
            first_of_frame[frame_number].count(replaced_times=int(table.replaced_times[frame_number]))

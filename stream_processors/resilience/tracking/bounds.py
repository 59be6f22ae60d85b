"""What one producer, and one bucket of the state, may have: agents, open episodes, text, and bytes in all (ours).

Nobody else bounds what a producer invents. Agents and episodes beyond the bounds are refused, frame by frame, so that
it does not depend on how frames came in batches. What grows with episodes that are let in (what is remembered of ended
ones, what references would teach) has bounds of its own, whose product is larger than a record of the state may be; so
a bucket whose encoded state passes `state_bytes` is made smaller by what is missed least.
"""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from springback.producers.contract.frame import EpisodeHeader
from springback.stream_processors.resilience.readings import EpisodeKey, EpisodeTraits
from springback.stream_processors.resilience.tracking.tracker_state import (
    KeptSteps,
    OpenEpisode,
    TrackedAgent,
    TrackerState,
)

_AFTER_SHEDDING = 0.75
"""The share of `state_bytes` that a state is brought down to, so that it is not at the bound again at once."""
_REMEMBERED = (256, 64, 16)
"""Ended episodes that each agent of a large state is remembered with, step by step."""


class BoundsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds on what one producer may have at a time in a worker's state.

    Attributes:
        agents: agents of one producer.
        episodes: open episodes of one producer; how many one agent may have is `open_episodes`.
        text_bytes: ids and names of one producer's agents and of their open episodes, in bytes of UTF-8.
        producers: how many times as much all producers together may have that share a bucket of the state.
        crowded_idle_s: silence after which agents without open episodes are forgotten where room is wanted, in seconds.
        state_bytes: the size of a bucket's state, encoded and not compressed, from which on it is made smaller. A
            record of the changelog takes 16 MiB, compressed.
    """

    agents: int = 4096
    episodes: int = 4096
    text_bytes: int = 1024 * 1024
    producers: int = 2
    crowded_idle_s: float = 600.0
    state_bytes: int = 12 * 1024 * 1024

    def __post_init__(self) -> None:
        """Checks the ranges."""
        for name in self.__struct_fields__:
            if getattr(self, name) < 1:
                message = f"{name} is {getattr(self, name)}, expected 1 or more"
                raise ValueError(message)


class Use:
    """What is in use: of one producer, or of a bucket."""

    __slots__ = ("agents", "episodes", "text")

    def __init__(self) -> None:
        self.agents = self.episodes = self.text = 0

    def add(self, agents: int, episodes: int, text: int) -> None:
        """Adds to it; what is negative takes away."""
        self.agents += agents
        self.episodes += episodes
        self.text += text

    def within(self, config: BoundsConfig, times: int = 1) -> bool:
        """Whether it is no more than the bounds allow, so many times over."""
        return (
            self.agents <= times * config.agents
            and self.episodes <= times * config.episodes
            and self.text <= times * config.text_bytes
        )


class Room:
    """What room the states of one batch have, followed while its frames open and end episodes.

    A state is counted when it is first asked for, and not at all by a batch that opens nothing.

    Args:
        config: the bounds; None where there are none, as offline.

    Attributes:
        forgotten: the agents that were forgotten to make room. Whether one has news to tell makes no difference to
            that, since it depends on how frames came in batches.
    """

    def __init__(self, config: BoundsConfig | None) -> None:
        self.forgotten: list[TrackedAgent] = []
        self._config = config
        self._uses: dict[int, dict[str, Use]] = {}
        self._totals: dict[int, Use] = {}
        self._swept: set[tuple[int, int]] = set()

    def has_for_agent(
        self, state: TrackerState, agent: TrackedAgent, header: EpisodeHeader, frame: int, now_s: float
    ) -> bool:
        """Whether another agent fits, with the episode that it comes with. If so, it is counted, but not the episode.

        Where it does not, agents that have been idle for `crowded_idle_s` are forgotten first.

        Args:
            state: the bucket.
            agent: the new one.
            header: of its episode.
            frame: the number of the frame that it comes in.
            now_s: the broker's time of it, in seconds since the epoch.
        """
        if self._config is None:
            return True
        own, text = agents_use([agent]).text, _header_text(header, agent.session)
        if not self._has(state, agent.producer, (1, 1, own + text), frame, now_s):
            return False
        self._add(state, agent.producer, 0, -1, -text)
        return True

    def has_for_episode(
        self, state: TrackerState, producer: str, header: EpisodeHeader, session: str, frame: int, now_s: float
    ) -> bool:
        """Whether another open episode fits. If so, it is counted.

        Args:
            state: the bucket.
            producer: of the episode's agent.
            header: of the episode.
            session: the session that it is of.
            frame: the number of the frame that it comes in.
            now_s: the broker's time of it.
        """
        if self._config is None:
            return True
        return self._has(state, producer, (0, 1, _header_text(header, session)), frame, now_s)

    def has_for_session(self, state: TrackerState, agent: TrackedAgent, session: str, frame: int, now_s: float) -> bool:
        """Whether the id of another session of the agent fits. If so, it is counted."""
        return self._has(state, agent.producer, (0, 0, _size([session])), frame, now_s)

    def ended(self, state: TrackerState, agent: TrackedAgent, episode: OpenEpisode) -> None:
        """Counts an open episode less."""
        if id(state) in self._uses:
            self._add(state, agent.producer, 0, -1, -_episode_text(episode.key, episode.traits))

    def reopened(self, state: TrackerState, agent: TrackedAgent, episode: OpenEpisode) -> None:
        """Counts no longer what an episode had in use while silence had closed it."""
        if id(state) in self._uses:
            self._add(state, agent.producer, 0, 0, -_episode_text(episode.key, episode.traits))

    def began_session(self, state: TrackerState, agent: TrackedAgent, text_before: int) -> None:
        """Counts the agent's text anew, now that it has the session that `has_for_session` has counted the id of."""
        if id(state) in self._uses:
            self._add(state, agent.producer, 0, 0, agents_use([agent]).text - text_before - _size([agent.session]))

    def moved(self, state: TrackerState, agent: TrackedAgent, producer: str) -> None:
        """Counts an agent to another producer from now on."""
        if id(state) in self._uses:
            own = agents_use([agent])
            self._add(state, agent.producer, -own.agents, -own.episodes, -own.text)
            self._add(state, producer, own.agents, own.episodes, own.text)

    def _has(self, state: TrackerState, producer: str, more: tuple[int, int, int], frame: int, now_s: float) -> bool:
        if self._config is None:
            return True
        if self._fits(state, producer, more, self._config):
            return True
        place = id(state), frame
        if place in self._swept:
            return False
        self._swept.add(place)
        forgotten = forget_idle(state, now_s - self._config.crowded_idle_s)
        if not forgotten:
            return False
        self.forgotten += forgotten
        del self._uses[id(state)]
        return self._fits(state, producer, more, self._config)

    def _fits(self, state: TrackerState, producer: str, more: tuple[int, int, int], config: BoundsConfig) -> bool:
        if id(state) not in self._uses:
            self._count(state)
        own, total = self._uses[id(state)].setdefault(producer, Use()), self._totals[id(state)]
        own.add(*more)
        total.add(*more)
        if own.within(config) and total.within(config, config.producers):
            return True
        own.add(*(-each for each in more))
        total.add(*(-each for each in more))
        return False

    def _add(self, state: TrackerState, producer: str, agents: int, episodes: int, text: int) -> None:
        self._uses[id(state)].setdefault(producer, Use()).add(agents, episodes, text)
        self._totals[id(state)].add(agents, episodes, text)

    def _count(self, state: TrackerState) -> None:
        by_producer: dict[str, list[TrackedAgent]] = {}
        for agent in state.agents.values():
            by_producer.setdefault(agent.producer, []).append(agent)
        self._uses[id(state)] = {producer: agents_use(agents) for producer, agents in by_producer.items()}
        self._totals[id(state)] = total = Use()
        for use in self._uses[id(state)].values():
            total.add(use.agents, use.episodes, use.text)


def agents_use(agents: Iterable[TrackedAgent]) -> Use:
    """What these agents have in use."""
    use = Use()
    for agent in agents:
        episodes = [*agent.open.values(), *agent.silent.values()]
        text = _size((agent.agent, agent.producer, agent.session, *agent.closed_sessions))
        text += sum(_episode_text(episode.key, episode.traits) for episode in episodes)
        use.add(1, len(agent.open), text)
    return use


def forget_idle(state: TrackerState, before_s: float) -> list[TrackedAgent]:
    """Forgets the agents without open episodes that were last seen before that time, and gives them back."""
    idle = [agent for agent in state.agents.values() if not agent.open and agent.seen_s < before_s]
    for agent in idle:
        del state.agents[agent.agent]
    return idle


def fit(state: TrackerState, encode: Callable[[TrackerState], bytes], config: BoundsConfig) -> tuple[bytes, bool]:
    """The state as bytes, made smaller first where it is too large, and whether it was. Mutates the state.

    What goes, until it is small enough: agents that have been idle for long; the steps kept for the evidence of
    windows, which then lacks them; the memory of old episodes, whose copies would be taken for new; what silence had
    closed and might have gone on; what open episodes would teach, the largest first. Open episodes stay. When it
    happens depends on how frames came in batches, so that what a crash makes come again may find a large state with
    another memory than the first time: sinks know outputs by their identity.

    Args:
        state: one bucket.
        encode: gives its bytes.
        config: the bounds.
    """
    data = encode(state)
    if len(data) <= config.state_bytes:
        return data, False
    anything = False
    for shed in _sheddings(state, config):
        if shed(len(data)):
            anything, data = True, encode(state)
            if len(data) <= _AFTER_SHEDDING * config.state_bytes:
                break
    return data, anything


def _sheddings(state: TrackerState, config: BoundsConfig) -> Iterator[Callable[[int], int]]:
    """What can be let go, the least missed first: given the size of the state each says whether anything went."""
    now_s = max((agent.seen_s for agent in state.agents.values()), default=0.0)

    def idle(_: int) -> int:
        forgotten = forget_idle(state, now_s - config.crowded_idle_s)
        news = [agent for agent in forgotten if agent.changed]  # nobody could tell it
        state.agents.update({agent.agent: agent for agent in news})
        return len(forgotten) - len(news)

    def evidence(_: int) -> int:
        held = [e for agent in state.agents.values() for e in agent.open.values() if e.kept.words]
        for episode in held:
            episode.kept = KeptSteps()
        return len(held)

    def silent(_: int) -> int:
        held = [agent for agent in state.agents.values() if agent.silent]
        for agent in held:
            agent.silent.clear()
        return len(held)

    def lessons(size: int) -> int:
        learning = [e for agent in state.agents.values() for e in agent.open.values() if e.learning is not None]
        sizes = [(_learning_bytes(episode), number) for number, episode in enumerate(learning)]
        excess = size - _AFTER_SHEDDING * config.state_bytes
        for freed, number in sorted(sizes, reverse=True):
            if excess <= 0:
                break
            learning[number].learning = None
            excess -= freed
        return len(learning)

    yield idle
    yield evidence
    for most in _REMEMBERED:
        yield _remembering(state, most)
    yield silent
    yield lessons


def _remembering(state: TrackerState, most: int) -> Callable[[int], int]:
    def forget(_: int) -> int:
        held = [agent for agent in state.agents.values() if len(agent.ended) > most]
        for agent in held:
            for mark in list(agent.ended)[: len(agent.ended) - most]:
                del agent.ended[mark]
        return len(held)

    return forget


def _learning_bytes(episode: OpenEpisode) -> int:
    return len(msgspec.msgpack.encode(episode.learning))


def _episode_text(key: EpisodeKey, traits: EpisodeTraits) -> int:
    texts = (
        key.agent,
        key.session,
        key.episode,
        traits.family,
        traits.task,
        traits.method,
        traits.version,
        traits.perturbation,
        traits.perturbation_name,
        traits.attack,
    )
    return _size(texts)


def _header_text(header: EpisodeHeader, session: str) -> int:
    """What `_episode_text` says of the episode once it is open."""
    return _episode_text(EpisodeKey(header.agent, session, header.episode), header.traits())


def _size(texts: Iterable[str]) -> int:
    return len("".join(texts).encode("utf-8", "replace"))

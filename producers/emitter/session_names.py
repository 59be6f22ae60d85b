"""Names that several users of one emitter are given so that none of them comes twice in a session.

An episode's identity is its agent, session and id. Two environments that both call their first episode "0" would become
one episode, of which most steps look like repetitions. So it is the emitter that numbers episodes, and that gives an
agent of its own to each environment that was not told one.
"""

from __future__ import annotations

from weakref import WeakValueDictionary

from springback.producers.contract.frame import MAX_IDENTIFIER

MOST_REMEMBERED = 100_000
"""Ids of episodes that are remembered, to notice one that comes again."""


class SessionNames:
    """The names of one session. It has no lock of its own.

    >>> names = SessionNames()
    >>> names.begun("arm", "kitchen/12", given=True)
    >>> names.unused("arm", "kitchen/12"), names.unused("arm", "kitchen/13"), names.numbered("arm")
    ('kitchen/12#1', 'kitchen/13', '1')
    """

    def __init__(self) -> None:
        self._borrowers: WeakValueDictionary[str, object] = WeakValueDictionary()
        self._counts: dict[str, int] = {}
        self._numbered: dict[str, int] = {}
        self._used: set[tuple[str, str]] = set()

    def lend_agent(self, wanted: str, borrower: object) -> str:
        """The wanted name, or, while another borrower has it, the first of `wanted#2`, `wanted#3` … that is free.

        A name is free again when it is given back, or when its borrower is no more.
        """
        name, number = wanted, 1
        while self._borrowers.get(name, borrower) is not borrower:
            number += 1
            name = f"{wanted}#{number}"
        self._borrowers[name] = borrower
        return name

    def return_agents(self, borrower: object) -> None:
        """Takes back the names that the borrower has."""
        for name in [name for name, holder in self._borrowers.items() if holder is borrower]:
            del self._borrowers[name]

    def numbered(self, agent: str) -> str:
        """An id for the agent's next episode: how many it has begun, or more where that was given by name already."""
        number = self._counts.get(agent, 0)
        while (agent, str(number)) in self._used:
            number += 1
        return str(number)

    def unused(self, agent: str, wanted: str) -> str:
        """The wanted id, or `wanted#N` where the agent has had it: N is the number of episodes that it has begun.

        Once `MOST_REMEMBERED` ids are known, every one gets a number. One that would be too long loses its beginning.
        """
        if len(self._used) < MOST_REMEMBERED and not self.known(agent, wanted):
            return wanted
        number = self._counts.get(agent, 0)
        while self.known(agent, name := f"{wanted}#{number}"[-MAX_IDENTIFIER:]):
            number += 1
        return name

    def known(self, agent: str, episode: str) -> bool:
        """Whether the agent is known to have had an episode of this id."""
        counted = episode.isdecimal() and int(episode) < self._numbered.get(agent, 0)
        return counted or (agent, episode) in self._used

    def begun(self, agent: str, episode: str, *, given: bool) -> None:
        """Takes down that an episode has begun.

        Args:
            agent: the agent's id.
            episode: the episode's id.
            given: whether the caller chose the id; one of `numbered` need not be remembered.
        """
        if given and len(self._used) < MOST_REMEMBERED:
            self._used.add((agent, episode))
        if not given:
            self._numbered[agent] = int(episode) + 1
        self._counts[agent] = max(self._counts.get(agent, 0) + 1, self._numbered.get(agent, 0))

"""Exporters side by side, and one that is started anew: the same readings, mixed in whichever way, give one page."""

import random
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from springback.stream_processors.resilience.readings import EpisodeStatus, EpisodeTraits, Reading
from tests.examples import examples
from tests.sinks.fleet.agent_page import AgentPage

Make = Callable[..., Any]
Partitions = list[list[Reading]]

AGENTS = ("robot-0", "robot-1", "robot-2")
FAMILIES = ("navigation", "assembly")


class Fleet:
    """Readings of a small fleet as the partitions of the topics hold them: in order inside each, and only there."""

    def __init__(self, data: st.DataObject, **make: Make) -> None:
        self._draw, self._make = data.draw, make
        self.windows: list[Reading] = []
        self.summaries: dict[str, list[Reading]] = {family: [] for family in FAMILIES}
        self.statuses: dict[str, list[Reading]] = {agent: [] for agent in AGENTS}
        self._open: dict[str, dict[str, EpisodeStatus]] = {agent: {} for agent in AGENTS}

    def partitions(self, *, compacted: bool = False) -> Partitions:
        """All partitions; the topic of statuses may have kept only the latest of each agent."""
        statuses = [told[-1:] if compacted else told for told in self.statuses.values()]
        return [self.windows, *self.summaries.values(), *statuses]

    def run(self, agent: str, episode: str, at_s: float) -> None:
        """One episode of an agent, from its beginning to where it has come."""
        make, draw = self._make, self._draw
        family = draw(st.sampled_from(FAMILIES))
        traits = EpisodeTraits(family=family, task="t")
        key: dict[str, Any] = {"agent": agent, "episode": episode, "traits": traits}
        ends, opens = draw(st.sampled_from([True, True, False])), draw(st.booleans())
        cost = 1.0 if opens else None
        self.summaries[family].append(make["begun"](**key))
        if opens:
            self.windows.append(make["window"](**key, state="open", departure_time_s=at_s))
        for n in range(draw(st.integers(1, 3))):
            self._open[agent][episode] = make["running"](**key, steps=5 * (n + 1), cost=cost, progress=n / 4)
            self._tell(agent, at_s + n, progress_s=at_s)
        if ends:
            if opens:
                self.windows.append(make["window"](**key))
            self.summaries[family].append(make["summary"](**key, ended_s=at_s + 4, stability_loss=2.0))
            del self._open[agent][episode]
            self._tell(agent, at_s + 4, progress_s=at_s + 4)

    def _tell(self, agent: str, seen_s: float, **fields: Any) -> None:
        episodes = tuple(self._open[agent].values())
        told = self._make["status"](agent, seen_s=seen_s, step_s=seen_s, episodes=episodes, **fields)
        self.statuses[agent].append(told)


def mixed(data: st.DataObject, partitions: Partitions) -> list[Reading]:
    """All readings in an order that keeps each partition's own; some end with a part that comes again."""
    rest = [list(partition) for partition in partitions]
    order = [n for n, partition in enumerate(partitions) for _ in partition]
    # By a seed: what hypothesis itself draws as a permutation is mostly close to the order that was given.
    random.Random(data.draw(st.integers(0, 2**32))).shuffle(order)
    readings = [rest[n].pop(0) for n in order]
    again = data.draw(st.integers(0, len(readings)))
    # A worker that fell sends again the last of what it had sent, in the order of each partition.
    return readings + readings[again:]


@settings(max_examples=examples(100), deadline=None)
@given(data=st.data(), now_s=st.sampled_from([1020.0, 1075.0, 1400.0, 2000.0, 100_000.0]))
def test_two_exporters_and_a_restarted_one_show_the_same(
    window: Make, begun: Make, summary: Make, status: Make, running: Make, data: st.DataObject, now_s: float
) -> None:
    fleet = Fleet(data, window=window, begun=begun, summary=summary, status=status, running=running)
    for number, agent in enumerate(data.draw(st.lists(st.sampled_from(AGENTS), min_size=1, max_size=6))):
        fleet.run(agent, str(number), 1000.0 + 5 * number)
    pages = [AgentPage(agents=2).at(now_s).after(*mixed(data, fleet.partitions())) for _ in range(2)]
    restarted = AgentPage(agents=2).at(now_s).after(*mixed(data, fleet.partitions(compacted=True)))
    first, second = (page.folded() for page in pages)
    assert first == second
    assert restarted.folded() == first


def test_scrapes_in_between_change_nothing(summary: Make, status: Make, running: Make, window: Make) -> None:
    readings = [status(name, seen_s=1000.0 + n, episodes=(running(name, cost=1.0),)) for n, name in enumerate(AGENTS)]
    readings += [window(name, state="open") for name in AGENTS]
    often, once = AgentPage(agents=2), AgentPage(agents=2)
    for reading in readings:
        often.after(reading).folded()
        once.after(reading)
    for now_s in (1500.0, 1950.0):
        often.at(now_s).folded()
    assert often.folded() == once.at(1950.0).folded()

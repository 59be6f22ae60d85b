"""The demo on simulated agents: clean episodes until no family is learning any more, then rising stress."""

import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import cycle

from springback.deploy.demo.pipeline import FLUSH_TIMEOUT_S, MOST_LEARNING_EPISODES, DemoRun, Pace
from springback.producers.babyai_testbed.play import PlayedStep, play
from springback.producers.babyai_testbed.simulated_time import SimulatedClock
from springback.producers.babyai_testbed.tasks import (
    STRESSES,
    TASK_FAMILIES,
    PlannedEpisode,
    plan_episodes,
    task_sequence,
)
from springback.producers.emitter.step_emitter import StepEmitter, new_session

AGENTS_PER_FAMILY = 2


@dataclass(slots=True)
class DemoAgent:
    """An agent that plays one episode after another; `queue` holds those that are planned for it."""

    name: str
    family: str
    emitter: StepEmitter
    clock: SimulatedClock
    played: int = 0
    steps: Generator[PlayedStep] | None = None
    queue: deque[PlannedEpisode] = field(default_factory=deque)

    def start(self, planned: PlannedEpisode) -> None:
        """Begins an episode."""
        self.steps = play(
            planned.task,
            self.emitter,
            episode=f"{self.played:04d}",
            agent=self.name,
            stress=planned.stress,
            disturbance=planned.disturbance,
            clock=self.clock,
        )
        self.played += 1

    def stop(self) -> None:
        """Breaks off the episode under way, if there is one: it ends as aborted."""
        if self.steps is not None:
            self.steps.close()


def run_babyai(demo: DemoRun, episodes: int, seed: int, steps_per_second: float) -> None:
    """Plays all episodes, and waits until the pipeline has found the end of each.

    Args:
        demo: the pipeline.
        episodes: per family and stress, in the part that counts.
        seed: of all tasks and perturbations.
        steps_per_second: of all agents together.

    Raises:
        DemoError: a family got no baseline, or readings are missing at the end.
    """
    with ExitStack() as emitters:
        _learn(demo, _agents(demo, emitters), seed + 1, steps_per_second)
    with ExitStack() as emitters:
        agents = _agents(demo, emitters)
        demo.sessions = {agent.emitter.session for agent in agents}
        _rise(demo, agents, plan_episodes(episodes, seed=seed), steps_per_second)


def _agents(demo: DemoRun, emitters: ExitStack) -> list[DemoAgent]:
    """Two agents a family, which share a producer and begin a new session."""
    agents = []
    for family in TASK_FAMILIES:
        emitter = emitters.enter_context(
            StepEmitter(demo.step_publisher(), producer=f"babyai-{family}", session=new_session(), max_steps=16)
        )
        for number in range(1, AGENTS_PER_FAMILY + 1):
            agent = DemoAgent(f"{family}-{number}", family, emitter, SimulatedClock(time.time()))
            emitters.callback(agent.stop)  # before its emitter is closed
            agents.append(agent)
    return agents


def _learn(demo: DemoRun, agents: list[DemoAgent], seed: int, steps_per_second: float) -> None:
    """Clean episodes until no family is learning any more: until enough references stand behind its alarm bounds."""
    needed = demo.settings.resilience.baseline.learning_references
    tasks = {family: task_sequence(family, seed) for family in TASK_FAMILIES}
    sessions = {agent.emitter.session for agent in agents}
    part = demo.part("Learning", len(TASK_FAMILIES) * needed, "references behind the bounds")
    started: Counter[str] = Counter()

    def behind() -> Counter[str]:
        """As of each family's latest episode."""
        return Counter({s.traits.family: s.bound_references or 0 for s in demo.summaries(sessions)})

    def next_episode(agent: DemoAgent) -> PlannedEpisode | None:
        if behind()[agent.family] >= needed:
            return None
        started[agent.family] += 1
        if started[agent.family] > MOST_LEARNING_EPISODES:
            raise demo.still_learning(agent.family)
        return PlannedEpisode(next(tasks[agent.family]), 0.0, None)

    def show() -> None:
        have = behind()
        part.update(sum(min(needed, have[family]) for family in TASK_FAMILIES))

    _play(demo, agents, next_episode, show, steps_per_second)
    show()


def _rise(demo: DemoRun, agents: list[DemoAgent], plan: Iterable[PlannedEpisode], steps_per_second: float) -> None:
    """The episodes of the plan, each by one of its family's agents in turn."""
    players = {family: cycle([agent for agent in agents if agent.family == family]) for family in TASK_FAMILIES}
    for planned in plan:
        next(players[planned.task.family]).queue.append(planned)
    total = sum(len(agent.queue) for agent in agents)
    part = demo.part("Stress", total, "λ 0.0")

    def next_episode(agent: DemoAgent) -> PlannedEpisode | None:
        return agent.queue.popleft() if agent.queue else None

    def arrived() -> int:
        return len(demo.summaries(demo.sessions))

    def show() -> None:
        stress = max((agent.queue[0].stress for agent in agents if agent.queue), default=STRESSES[-1])
        part.update(arrived(), f"λ {stress:.1f}")

    _play(demo, agents, next_episode, show, steps_per_second)
    demo.wait_for(arrived, total, "episodes")
    show()


def _play(
    demo: DemoRun,
    agents: list[DemoAgent],
    next_episode: Callable[[DemoAgent], PlannedEpisode | None],
    show: Callable[[], None],
    steps_per_second: float,
) -> None:
    """Lets all agents step in turn, at the given pace, until no episode is left; then sends what is buffered."""
    playing = list(agents)
    pace = Pace(len(agents) / steps_per_second)
    shown_s = 0.0
    while playing:
        for agent in list(playing):
            if agent.steps is None:
                planned = next_episode(agent)
                if planned is None:
                    playing.remove(agent)
                    continue
                agent.start(planned)
            if agent.steps is not None and next(agent.steps, None) is None:
                agent.steps = None
        due_s = pace.wait()
        if due_s - shown_s > 0.5:
            shown_s = due_s
            demo.check()
            show()
    for agent in agents:
        agent.emitter.flush(FLUSH_TIMEOUT_S)

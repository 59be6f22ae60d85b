"""The demo on habitat-sim itself: its follower walks through a made-up house, clean until the family has learned."""

import time
from collections.abc import Iterable

from springback.deploy.demo.pipeline import FLUSH_TIMEOUT_S, MOST_LEARNING_EPISODES, DemoRun, Pace
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.habitat_testbed.house import HousePlan, plan_house
from springback.producers.habitat_testbed.house_play import (
    BETWEEN_EPISODES_S,
    FAMILY,
    PRODUCER,
    HouseClock,
    HouseRun,
    open_house,
    plan_runs,
    play_run,
)

_LATEST_KNOWN = 2
"""Clean episodes that may be on their way through the pipeline when the next one begins: learning stops soon enough."""


def run_habitat_live(demo: DemoRun, episodes: int, seed: int, steps_per_second: float) -> None:
    """Plays all episodes, and waits until the pipeline has found the end of each.

    Args:
        demo: the pipeline.
        episodes: per stress, in the part that counts.
        seed: of the house, its tasks and the disturbances.
        steps_per_second: of the agent.

    Raises:
        MissingHabitatError: habitat-sim is not installed.
        DemoError: the family got no baseline, or readings are missing at the end.
    """
    plan = plan_house(seed)
    with open_house(plan) as simulator:
        clock = HouseClock(simulator, time.time())
        for learns in (True, False):
            emitter = StepEmitter(demo.step_publisher(), producer=PRODUCER, max_steps=16, clock=clock)
            with emitter:
                player = _Player(demo, emitter, clock, simulator, plan, steps_per_second)
                if learns:
                    _learn(player, seed + 1)
                else:
                    demo.sessions = {emitter.session}
                    _rise(player, plan_runs(plan, episodes, seed=seed))


class _Player:
    """Plays one episode after the other at a pace."""

    def __init__(
        self,
        demo: DemoRun,
        emitter: StepEmitter,
        clock: HouseClock,
        simulator: object,
        plan: HousePlan,
        steps_per_second: float,
    ) -> None:
        self.demo, self.emitter, self.plan = demo, emitter, plan
        self._clock, self._simulator = clock, simulator
        self._pace = Pace(1.0 / steps_per_second)

    def play(self, run: HouseRun) -> None:
        """Plays one to its end, and hands it over."""
        for _ in play_run(run, self._simulator, self.plan, self.emitter):
            self._pace.wait()
        self._clock.pause(BETWEEN_EPISODES_S)
        self.emitter.flush(FLUSH_TIMEOUT_S)
        self.demo.check()

    def ended(self) -> int:
        """How many episodes of this session the pipeline has found the end of."""
        return len(self.demo.summaries({self.emitter.session}))


def _learn(player: _Player, seed: int) -> None:
    """Clean episodes until enough references stand behind the family's alarm bounds."""
    demo = player.demo
    needed = demo.settings.resilience.baseline.learning_references
    part = demo.part("Learning", needed, "references behind the bounds")

    def behind() -> int:
        return max((s.bound_references or 0 for s in demo.summaries({player.emitter.session})), default=0)

    for played, run in enumerate(plan_runs(player.plan, MOST_LEARNING_EPISODES, [0.0], seed)):
        player.play(run)
        demo.wait_for(player.ended, played + 1 - _LATEST_KNOWN, "episodes")
        part.update(min(needed, behind()))
        if behind() >= needed:
            return
    raise demo.still_learning(FAMILY)


def _rise(player: _Player, runs: Iterable[HouseRun]) -> None:
    """The tasks at one stress after the other."""
    planned = list(runs)
    part = player.demo.part("Stress", len(planned), "λ 0.0")
    for run in planned:
        player.play(run)
        part.update(player.ended(), f"λ {run.stress:.1f}")
    player.demo.wait_for(player.ended, len(planned), "episodes")
    part.update(player.ended())

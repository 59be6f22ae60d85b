"""What it costs a Habitat simulator to be watched, as a ratio to the bare simulator in the same run.

    python -m tests.benchmarks.habitat_overhead

habitat-sim itself need not be installed: the simulator here does nothing but spend the processor time that each of the
real one's calls takes, and count them. Measured on habitat-sim 0.3.3 was this: a bare step without sensors 110 us, one
that was watched 440 us, with three reads of the pose, one geodesic, one clearance and one report. The report, which is
ours, is really made here. How the other 230 us or so are shared out among the simulator's calls is not known, so there
are two guesses: that a read of the pose and a geodesic cost the same, and that a geodesic costs five reads. The walk
has the actions of our recorded walks, of which 38 of 100 go forward and the others turn on the spot.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections import Counter
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import numpy as np

from springback import MemoryPublisher, StepEmitter, watch

FORWARD_SHARE: Final = 0.38
ROUNDS: Final = 20


@dataclass(frozen=True, slots=True)
class Costs:
    """Processor time of the simulator's calls, us."""

    name: str
    state: float
    """`get_state`, which makes an object of the pose and looks through the sensors."""
    geodesic: float
    """`MultiGoalShortestPath` and `find_path`."""
    step: float = 110.0
    node: float = 2.0
    """The agent's node in the scene: two attributes of a C++ object."""
    clearance: float = 15.0
    clock: float = 1.0
    area: float = 1.0


SHARES: Final = (
    Costs("a geodesic like a pose", state=54.0, geodesic=54.0),
    Costs("a geodesic like five poses", state=27.0, geodesic=135.0),
)


class CostedSimulator:
    """`habitat_sim.Simulator`, as far as it is asked: an agent that walks on a plane without an end."""

    curr_scene_name = "plane"

    def __init__(self, costs: Costs) -> None:
        self.calls: Counter[str] = Counter()
        self.costs = costs
        self.pathfinder = _Navmesh(self)
        self._agent = _Agent(self)
        self._time_s = 0.0

    def get_agent(self, agent_id: int) -> _Agent:
        return self._agent

    def get_world_time(self) -> float:
        self.spend("clock")
        return self._time_s

    def step(self, action: str, dt: float = 1.0 / 60.0) -> dict[str, Any]:
        self.spend("step")
        if action == "move_forward":
            self._agent.position[2] -= 0.25
        return {"collided": False}

    def spend(self, name: str) -> None:
        """Spends what a call costs, and counts it."""
        began_ns = time.thread_time_ns()  # first, so that the counting is in the cost
        self.calls[name] += 1
        until_ns = began_ns + 1000.0 * float(getattr(self.costs, name))
        while time.thread_time_ns() < until_ns:
            pass


class _Agent:
    def __init__(self, sim: CostedSimulator) -> None:
        names = ("move_forward", "turn_left")
        self.agent_config = SimpleNamespace(action_space={name: SimpleNamespace(name=name) for name in names})
        self.position = np.zeros(3, np.float32)
        self._sim = sim

    @property
    def scene_node(self) -> SimpleNamespace:
        self._sim.spend("node")
        turn = SimpleNamespace(scalar=1.0, vector=(0.0, 0.0, 0.0))
        return SimpleNamespace(absolute_translation=self.position, rotation=turn)

    def get_state(self) -> SimpleNamespace:
        self._sim.spend("state")
        return SimpleNamespace(position=self.position.copy(), rotation=SimpleNamespace(w=1.0, x=0.0, y=0.0, z=0.0))


class _Navmesh:
    is_loaded = True

    def __init__(self, sim: CostedSimulator) -> None:
        self._sim = sim

    @property
    def navigable_area(self) -> float:
        self._sim.spend("area")
        return 50.0

    def find_path(self, path: Any) -> bool:
        self._sim.spend("geodesic")
        path.geodesic_distance = 1000.0 + float(path.requested_start[2])
        return True

    def distance_to_closest_obstacle(self, pt: Any, max_search_radius: float = 2.0) -> float:
        self._sim.spend("clearance")
        return max_search_radius


def measured(costs: Costs, steps: int) -> tuple[float, float, Counter[str]]:
    """Processor time of a bare step and of a watched one, us, and the calls of the watched ones.

    Bare and watched rounds take turns, so that both see the same machine; of the rounds' times the medians are taken.
    The time is that of the process: the thread that sends is in it.
    """
    dice = random.Random(1)
    walk = ["move_forward" if dice.random() < FORWARD_SHARE else "turn_left" for _ in range(steps)]
    bare, sim = CostedSimulator(costs), CostedSimulator(costs)
    times: dict[bool, list[float]] = {False: [], True: []}
    with StepEmitter(MemoryPublisher(), producer="habitat", session="s") as emitter:
        loop = watch(sim, emitter, family="navigation")
        loop.begin_episode(goals=[[0.0, 0.0, -1000.0]], episode="1")
        loop.step("turn_left")
        sim.calls.clear()
        for _ in range(ROUNDS):
            for watched, stepped in ((False, bare), (True, loop)):
                began_s = time.process_time()
                for action in walk:
                    stepped.step(action)
                times[watched].append((time.process_time() - began_s) / steps * 1e6)
    return statistics.median(times[False]), statistics.median(times[True]), sim.calls


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=500, help="steps of a round; there are 20 rounds of each kind")
    steps: int = parser.parse_args().steps
    module = ModuleType("habitat_sim")
    module.MultiGoalShortestPath = SimpleNamespace  # type: ignore[attr-defined]
    sys.modules["habitat_sim"] = module
    for costs in SHARES:
        bare_us, watched_us, calls = measured(costs, steps)
        each = ", ".join(f"{name} {count / (ROUNDS * steps):.2f}" for name, count in sorted(calls.items()))
        print(f"{costs.name}: bare {bare_us:.0f} us, watched {watched_us:.0f} us, {watched_us / bare_us:.2f} times")
        print(f"  calls a step: {each}")


if __name__ == "__main__":
    main()

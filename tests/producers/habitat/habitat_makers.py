"""The same tests on the strict fake and on Habitat itself: what makes an environment of either."""

from collections.abc import Sequence
from typing import Any, Protocol

from springback.producers.habitat.sight import instrumented
from tests.producers.habitat.strict_habitat import StrictEnv, StrictRLEnv, StrictSimulator, StrictVectorEnv

Place = tuple[float, float, float]
MIDDLE: Place = (0.0, 0.0, 0.0)
AHEAD: Place = (0.0, 0.0, -3.0)


class Habitat(Protocol):
    """Environments in an empty room, 4 m by 8 m: the walls are where x is -2 and 2 and z is -4 and 4.

    Agents begin at their places and look along -z, and an episode's goal is `AHEAD` of the first.
    """

    def simulator(self, places: Sequence[Place] = (MIDDLE,)) -> Any:
        """A `habitat_sim.Simulator`, with an agent at each place."""

    def env(self) -> Any:
        """A `habitat.Env`, with PointNav's default measures."""

    def gym(self) -> Any:
        """A `habitat.RLEnv` around one."""

    def vector(self, count: int, *, instrument: bool = False) -> Any:
        """A `VectorEnv` of so many of these, instrumented where they are made."""


class FakeHabitat:
    """The strict fake's."""

    def simulator(self, places: Sequence[Place] = (MIDDLE,)) -> Any:
        return StrictSimulator(places)

    def env(self) -> Any:
        return StrictEnv([AHEAD])

    def gym(self) -> Any:
        return StrictRLEnv(StrictEnv([AHEAD]))

    def vector(self, count: int, *, instrument: bool = False) -> Any:
        return StrictVectorEnv([instrumented(self.gym()) if instrument else self.gym() for _ in range(count)])


def played(env: Any, episodes: int, steps: int = 2) -> None:
    for _ in range(episodes):
        env.reset()
        for _ in range(steps):
            env.step("move_forward")
        env.step("stop")

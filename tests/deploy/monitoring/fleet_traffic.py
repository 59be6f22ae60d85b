"""A small fleet that lights up every metric: frames through the real publisher, in stages that a test steps through.

Two families of 20-step episodes. `navigation` holds up to stress 0.4; above it fails. Which agents run what:

- `teacher-N` run the clean episodes that the baselines are learned from; `runner-N` perturbed ones of the same tasks;
- `calm-1` goes on and on evenly, `slow-1` gets into a rebound window and stays there, `echo-1` repeats itself,
  `quiet-1` has begun an episode and says no more, `odd-1` sends what cannot be used;
- `field-N` run missions of `manipulation` whose stress nobody declares, and fail all of them;
- `brave-N` run `navigation` at stress 0.8, which is beyond its capacity, until they are called off.
"""

import itertools
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from springback.producers.contract.codec import encode_msgpack
from springback.producers.contract.frame import (
    EpisodeEnd,
    EpisodeHeader,
    NavigationOutcome,
    Outcome,
    StepFrame,
    TextColumn,
)
from springback.producers.emitter.kafka_publisher import KafkaPublisher

STEPS = 20
CYCLE_S = 1.0
FAMILIES = ("manipulation", "navigation")
KINDS = ("physical", "semantic", "object_state")
ATTACKS = ("none", "physical", "model")
STRESSES = (0.2, 0.4, 0.6, 0.8)
BREACHED = {"family": "navigation", "method": "reflexion", "version": "2"}
FIELD = {"family": "manipulation", "method": "reflexion", "version": "3"}
FIELD_MISSIONS = 20
BRAVE = tuple(f"brave-{number}" for number in range(4))
TASKS = 6
_PULSE_S = 0.5
_SESSION = "monitored"


class FleetTraffic:
    """The fleet. Its running episodes are moved on by a thread between `start` and `close`.

    Args:
        broker: HOST:PORT.
        topic: of the steps.
    """

    def __init__(self, broker: str, topic: str) -> None:
        self._publisher = KafkaPublisher(broker, topic)
        self._random = np.random.default_rng(5)
        self._numbers = itertools.count()
        self._errors: list[Exception] = []
        self._running: dict[str, tuple[EpisodeHeader, int]] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="fleet-traffic")

    def teach(self, episodes: int) -> None:
        """Clean episodes of every family and version, taken in turn from the tasks."""
        for family, number in itertools.product(FAMILIES, range(episodes)):
            self._whole_episode(family, number % TASKS, agent=f"teacher-{number % 3}", reference=True)

    def perturb(self) -> None:
        """Enough perturbed episodes at every stress level for its margin to decide, and one that has no clean twin."""
        self._whole_episode(
            "navigation", TASKS, agent="runner-0", stress=0.2, magnitude=0.2, perturbation="physical", attack="physical"
        )
        for family, stress, task in itertools.product(FAMILIES, STRESSES, range(TASKS)):
            failed = stress > 0.4
            self._whole_episode(
                family,
                task,
                agent=f"runner-{task % 3}",
                outcome="failure" if failed else "success",
                # What holds loses two or three cycles of 12 left, at 10 each at most: below the 5 of the contract.
                trouble=4.0 + 10 * stress if failed else 1.0 + 5 * stress,
                stress=stress,
                magnitude=stress,
                perturbation=KINDS[task % len(KINDS)],
                perturbation_name="slip",
                attack=ATTACKS[task % len(ATTACKS)],
            )

    def fail_in_the_field(self) -> None:
        """Missions of another version, all of which fail, and none of which says what stress it was under."""
        for number in range(FIELD_MISSIONS):
            self._whole_episode(
                FIELD["family"],
                number % TASKS,
                agent=f"field-{number % 3}",
                outcome="failure",
                version=FIELD["version"],
            )

    def misbehave(self) -> None:
        """Input that is refused, dropped or mended."""
        self._publish("odd-1", b"\xc1 no frame at all")
        header = self._header("navigation", 0, agent="odd-1")
        self._publish("odd-1", encode_msgpack(self._frame(header, range(3), progress=2.0)))
        frame = self._frame(header, [3, 4, 9], time_s=10.0)  # a gap, and no clock
        for _ in range(2):
            self._publish("odd-1", encode_msgpack(frame))
        now_s = time.time()
        for step, time_s in ((10, now_s), (11, now_s - 500.0), (12, now_s - 499.0)):
            self._publish("odd-1", encode_msgpack(self._frame(header, [step], time_s=time_s)))

    def start(self) -> None:
        """Begin the episodes that run on, and the thread that moves them on."""
        for agent in ("calm-1", "slow-1", "echo-1", "quiet-1"):
            self._begin(agent, "manipulation" if agent == "calm-1" else "navigation", version="1")
        self._thread.start()

    def begin_breach(self) -> None:
        """Begin the episodes whose stress is beyond the capacity."""
        for agent in BRAVE:
            self._begin(agent, "navigation", stress=0.8, magnitude=0.8, perturbation="physical")

    def end_breach(self) -> None:
        """Call those episodes off, and run some without stress."""
        with self._lock:
            for agent in BRAVE:
                header, step = self._running.pop(agent)
                self._publish(agent, encode_msgpack(self._frame(header, [step], end="failure")))
        for task in range(TASKS):
            self._whole_episode("navigation", task, agent=f"runner-{task % 3}")

    def flush(self) -> None:
        """Wait until everything has arrived at the broker; raises what went wrong on the way."""
        self._publisher.flush(60.0)
        if self._errors:
            raise self._errors[0]

    def close(self) -> None:
        """Stop. The running episodes stay as they are."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._publisher.close()

    def _begin(self, agent: str, family: str, **traits: Any) -> None:
        header = self._header(family, 0, agent=agent, **traits)
        with self._lock:
            self._running[agent] = header, 1
            self._publish(agent, encode_msgpack(self._frame(header, [0])))

    def _go_on(self) -> None:
        while not self._ended.wait(_PULSE_S):
            with self._lock:
                for agent, (header, step) in list(self._running.items()):
                    self._running[agent] = self._moved(agent, header, step)

    def _moved(self, agent: str, header: EpisodeHeader, step: int) -> tuple[EpisodeHeader, int]:
        if agent == "quiet-1":
            return header, step
        if agent == "echo-1":
            self._publish(agent, encode_msgpack(self._frame(header, [0])))
            return header, step
        if agent == "calm-1" and step == STEPS - 1:
            self._publish(agent, encode_msgpack(self._frame(header, [step], end="success")))
            return self._header(header.family, 0, agent=agent), 0
        stop = step + 1
        changes: dict[str, Any] = {}
        if agent == "slow-1":
            # Soon past the lag after which the change of stability from step to step is known.
            stop, changes = step + 8, {"progress": 0.3, "planning_s": 4.0, "retries": 3.0}
        elif agent in BRAVE:
            changes = {"progress": min(0.9, step / 500)}
        self._publish(agent, encode_msgpack(self._frame(header, range(step, stop), **changes)))
        return header, stop

    def _whole_episode(
        self,
        family: str,
        task: int,
        *,
        agent: str,
        outcome: Outcome = "success",
        trouble: float = 0.0,
        **traits: Any,
    ) -> None:
        """An episode in one frame; `trouble` multiplies the effort of its middle part, in which nothing is gained."""
        header = self._header(family, task, agent=agent, **traits)
        lost = round(trouble)
        steps = np.arange(STEPS + lost)
        won = np.where(steps < 8, steps + 1, np.where(steps < 8 + lost, 8, steps + 1 - lost))
        progress = won / STEPS * (1.0 if outcome == "success" else 0.3)
        planning = np.where((steps >= 8) & (steps < 8 + lost), 0.125 * (1 + trouble), 0.125)
        retries = np.where((steps >= 8) & (steps < 8 + lost), 2.0, 0.0)
        frame = self._frame(
            header, steps.tolist(), end=outcome, progress=progress, planning_s=planning, retries=retries
        )
        self._publish(agent, encode_msgpack(frame))

    def _header(self, family: str, task: int, *, agent: str, version: str = "2", **traits: Any) -> EpisodeHeader:
        number = next(self._numbers)
        return EpisodeHeader(
            agent=agent,
            episode=f"{agent}-{number}",
            family=family,
            task=f"{family}-task-{task}",
            method="reflexion",
            version=version,
            **traits,
        )

    def _frame(
        self, header: EpisodeHeader, steps: Sequence[int], *, end: Outcome | None = None, **changes: Any
    ) -> StepFrame:
        count = len(steps)
        numbers = np.array(steps, dtype=np.int64)
        columns: dict[str, Any] = {
            "time_s": time.time() - CYCLE_S * (numbers[-1] - numbers),
            "cycle_time_s": self._random.normal(CYCLE_S, 0.02, count),
            "progress": np.minimum(1.0, (numbers + 1) / STEPS),
            "planning_s": self._random.normal(0.125, 0.01, count),
            "perception_s": self._random.normal(0.0625, 0.005, count),
            "travel": self._random.normal(0.25, 0.01, count),
            "risk": self._random.uniform(0.0, 0.02, count),
        }
        columns |= {name: np.broadcast_to(np.asarray(value, float), (count,)).copy() for name, value in changes.items()}
        ends = () if end is None else (EpisodeEnd(episode=0, outcome=end, navigation=_navigation(header, end, count)),)
        return StepFrame(
            producer=header.agent,
            session=_SESSION,
            episodes=(header,),
            steps={
                "episode": np.zeros(count, dtype=np.int64),
                "step": numbers,
                "mode": TextColumn.of(["navigate"] * count),
                **columns,
            },
            ends=ends,
        )

    def _publish(self, producer: str, data: bytes) -> None:
        self._publisher.publish(producer.encode(), data, self._note)

    def _note(self, error: Exception | None) -> None:
        if error is not None:
            self._errors.append(error)


def _navigation(header: EpisodeHeader, outcome: Outcome, steps: int) -> NavigationOutcome | None:
    if header.family != "navigation":
        return None
    reached = outcome == "success"
    return NavigationOutcome(
        shortest_path=5.0,
        path=0.25 * steps,
        actions=steps,
        shortest_actions=STEPS,
        final_distance=0.5 if reached else 4.0,
        target_in_view=reached,
        goals_met=2 if reached else 1,
        goals_total=2,
    )

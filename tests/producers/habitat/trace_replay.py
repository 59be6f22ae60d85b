"""Drives the fakes through recorded episodes, watched by springback: the frames that come of it."""

from collections.abc import Iterator, Sequence
from typing import Any

from springback.producers.contract.frame import EpisodeEnd, StepFrame, TextColumn
from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.habitat.metrics import HabitatReading
from springback.producers.habitat.watch import watch
from tests.producers.habitat.fake_habitat import FakeEnv, Row, Trace
from tests.producers.habitat.fake_simulator import FakeSimulator

EPOCH_S = 1_790_000_000.0
PLANNING_S = 1 / 64  # exact in binary, so that sums of it are
SIMULATED = HabitatReading(simulated_time=True)


class Ticks:
    """A timer by which each look takes as long as planning did; simulated, as a test's clocks are."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += PLANNING_S
        return self.now_s


def replay_lab(traces: Sequence[Trace]) -> list[StepFrame]:
    """The frames of PointNav episodes in a `habitat.Env`."""
    bare = FakeEnv(traces)
    publisher = MemoryPublisher()
    with StepEmitter(publisher, producer="habitat", session="s", clock=lambda: EPOCH_S + bare.sim.time_s) as emitter:
        env: Any = watch(bare, emitter, family="navigation", reading=SIMULATED, timer=Ticks(), method="greedy-geodesic")
        for trace in traces:
            env.describe_next_episode(**lab_traits(trace[0]))
            env.reset()
            for row in trace:
                env.step(row["action"])
        env.close()
    return publisher.frames


def replay_sim(traces: Sequence[Trace], max_steps: int = 220) -> list[StepFrame]:
    """The frames of episodes in a bare simulator, as its user's loop steps it."""
    bare = FakeSimulator()
    publisher = MemoryPublisher()
    clock = bare.get_world_time
    with StepEmitter(publisher, producer="habitat", session="s", clock=lambda: EPOCH_S + clock()) as emitter:
        loop: Any = watch(
            bare, emitter, family="navigation", reading=SIMULATED, timer=Ticks(), max_steps=max_steps,
            method="greedy-geodesic",
        )  # fmt: skip
        for trace in traces:
            bare.play(trace)
            goal = trace[0].get("goal", [0.0, 0.0, 0.0])
            loop.begin_episode(goals=[goal], episode=trace[0]["episode_id"], **sim_traits(trace[0]))
            for row in trace:
                if row.get("goal_moved"):
                    loop.goals = [row["goal"]]
                if row["action"] == "stop":
                    bare.move(row)
                    loop.stop_episode()
                else:
                    bare.disturb(row)
                    loop.step(row["action"])
        loop.close()
    return publisher.frames


def lab_traits(first: Row) -> dict[str, Any]:
    clean = first["stress"] == 0.0
    kind = {} if clean else {"perturbation": "physical", "perturbation_name": "mixed"}
    return {"stress": first["stress"], "magnitude": first["stress"], "reference": clean, **kind}


def sim_traits(first: Row) -> dict[str, Any]:
    stress = first["stress"] if "stress" in first else first["severity"]
    kind = {"perturbation": "physical", "perturbation_name": first.get("kind", "mixed")} if stress else {}
    task = {"task": first["task_id"]} if "task_id" in first else {}
    return {"stress": stress, "magnitude": stress, "reference": stress == 0.0, **task, **kind}


def rows_of(frames: Sequence[StepFrame]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of frames: the episode's id, and the row's values by column."""
    for frame in frames:
        columns = {
            name: column.texts() if isinstance(column, TextColumn) else column.tolist()
            for name, column in frame.steps.items()
        }
        for place, episode in enumerate(columns.pop("episode", [])):  # a frame may hold an end alone
            yield frame.episodes[episode].episode, {name: column[place] for name, column in columns.items()}


def ends_of(frames: Sequence[StepFrame]) -> dict[str, EpisodeEnd]:
    """The ends by the episode's id."""
    return {frame.episodes[end.episode].episode: end for frame in frames for end in frame.ends}

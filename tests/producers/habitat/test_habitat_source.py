from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.errors import SignalError
from springback.producers.habitat.watch import WatchedGymEnv, WatchedHabitatEnv, watch
from tests.producers.habitat.fake_habitat import FakeEnv, FakeRLEnv, Trace
from tests.producers.habitat.trace_replay import ends_of, rows_of


def play(env: Any, trace: Trace, rows: int | None = None) -> None:
    env.reset()
    for row in trace[:rows]:
        env.step(row["action"])


def column(publisher: MemoryPublisher, name: str) -> list[Any]:
    return [row[name] for _, row in rows_of(publisher.frames)]


class NewGym:
    """The same with steps of five parts, and infos from reset."""

    def __init__(self, traces: Sequence[Trace], limit: int = 10_000) -> None:
        self.env = FakeRLEnv(traces)
        self.limit = limit

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        observations, info = self.env.reset(return_info=True)
        return observations, info

    def step(self, action: Any) -> tuple[Any, ...]:
        observations, reward, done, info = self.env.step(action)
        self.limit -= 1
        return observations, reward, done, self.limit == 0, info


def test_nothing_of_what_the_environment_does_changes(lab_traces: list[Trace], emitter: StepEmitter) -> None:
    bare, env = FakeEnv(lab_traces), watch(FakeEnv(lab_traces), emitter, family="nav")
    assert isinstance(env, WatchedHabitatEnv)
    assert env.reset().keys() == bare.reset().keys()
    for row in lab_traces[0]:
        assert env.step(row["action"]).keys() == bare.step(row["action"]).keys()
        assert env.get_metrics()["distance_to_goal"] == bare.get_metrics()["distance_to_goal"]
        assert env.episode_over == bare.episode_over
    with pytest.raises(AssertionError, match="Episode over, call reset before calling step"):
        env.step("stop")
    env.place = 7
    assert env._watched.place == 7
    with env:
        pass
    assert env._watched.closed


def test_gym_style_steps_of_four_and_of_five_parts_give_the_same(lab_traces: list[Trace]) -> None:
    found = []
    for make in (FakeEnv, FakeRLEnv, NewGym):
        publisher = MemoryPublisher()
        with StepEmitter(publisher, producer="habitat", session="s", clock=lambda: 1.8e9) as emitter:
            env: Any = watch(make(lab_traces), emitter, family="nav", timer=lambda: 0.0)
            for trace in lab_traces[:3]:
                play(env, trace)
            env.reset()
        rows = [(episode, {**row, "action": ""}) for episode, row in rows_of(publisher.frames)]
        found.append((rows, ends_of(publisher.frames)))
    assert isinstance(env, WatchedGymEnv)
    assert found[0] == found[1] == found[2]


def test_a_truncated_step_is_a_timeout(
    lab_traces: list[Trace], emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    play(watch(NewGym(lab_traces, limit=5), emitter, family="nav"), lab_traces[0], 5)
    assert emitter.flush()
    assert [end.outcome for end in ends_of(publisher.frames).values()] == ["timeout"]


def test_stop_timeout_and_abortion(lab_traces: list[Trace], emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    timeout = next(trace for trace in lab_traces if trace[-1]["action"] != "stop")
    wrong_stop = next(t for t in lab_traces if t[-1]["action"] == "stop" and not t[-1]["metrics"]["success"])
    right_stop = lab_traces[0]
    env = watch(FakeEnv([timeout, wrong_stop, right_stop, right_stop]), emitter, family="nav")
    for trace in (timeout, wrong_stop, right_stop):
        play(env, trace)
    play(env, right_stop, 3)
    env.reset()  # in the midst of it
    env.close()  # before the first step: there is no episode yet
    assert emitter.flush()
    ends = ends_of(publisher.frames)
    assert [end.outcome for end in ends.values()] == ["timeout", "failure", "success", "aborted"]
    navigation = list(ends.values())[2].navigation
    assert navigation is not None
    assert navigation.shortest_path == right_stop[0]["start_geodesic"]
    assert navigation.actions == len(right_stop)
    assert navigation.final_distance == right_stop[-1]["metrics"]["distance_to_goal"]
    assert navigation.path == pytest.approx(
        right_stop[0]["start_geodesic"] / right_stop[-1]["metrics"]["spl"], abs=1e-3
    )


def test_episodes_are_named_with_their_scene_and_a_repetition_by_its_number(
    lab_traces: list[Trace], emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    twin = [{**row, "scene": "data/scene_datasets/x/house_b.glb"} for row in lab_traces[0]]
    env = watch(FakeEnv([lab_traces[0], twin]), emitter, family="nav", method="greedy")
    for trace in (lab_traces[0], twin, lab_traces[0]):
        env.describe_next_episode(stress=0.5)
        play(env, trace, 2)
    env.close()
    assert emitter.flush()
    headers = {header.episode: header for frame in publisher.frames for header in frame.episodes}
    assert list(headers) == ["house_a.glb/0", "x/house_b.glb/0", "house_a.glb/0#2"]
    assert [header.task for header in headers.values()] == ["house_a.glb/0", "x/house_b.glb/0", "house_a.glb/0"]
    assert {header.method for header in headers.values()} == {"greedy"}
    assert {header.stress for header in headers.values()} == {0.5}


@pytest.mark.parametrize(
    ("more", "instruction"),
    [
        ({"instruction": "put the mug away"}, "put the mug away"),
        ({"instruction": SimpleNamespace(instruction_text="turn left at the door")}, "turn left at the door"),
        ({"object_category": "chair"}, "chair"),
        ({}, ""),
    ],
)
def test_instructions(
    lab_traces: list[Trace], emitter: StepEmitter, publisher: MemoryPublisher, more: dict[str, Any], instruction: str
) -> None:
    bare = FakeEnv(lab_traces)
    env = watch(bare, emitter, family="nav")
    env.reset()
    bare.current_episode.__dict__.update(more)
    env.step(lab_traces[0][0]["action"])
    env.close()
    assert emitter.flush()
    assert publisher.frames[0].episodes[0].instruction == instruction


def test_planning_is_what_passes_between_observation_and_action(
    lab_traces: list[Trace], emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    now_s = 0.0
    env = watch(FakeEnv(lab_traces), emitter, family="nav", timer=lambda: now_s)
    env.reset()
    for row, thought_s in zip(lab_traces[0], (0.5, 0.25, 0.0)):
        now_s += thought_s
        env.step(row["action"])
    env.report(planning_s=np.float32(2.0), mode="plan")
    env.step(lab_traces[0][3]["action"])
    with pytest.raises(SignalError, match="there is no signal 'speed'"):
        env.report(speed=1.0)
    env.close()
    assert emitter.flush()
    assert column(publisher, "planning_s") == [0.5, 0.25, 0.0, 2.0]
    assert column(publisher, "mode")[-1] == "plan"


@pytest.mark.parametrize("where", ["start", "midst"])
@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_an_episode_with_a_broken_distance_is_quarantined(
    lab_traces: list[Trace], emitter: StepEmitter, publisher: MemoryPublisher, where: str, broken: float
) -> None:
    trace = [dict(row, start_geodesic=broken) if where == "start" else dict(row) for row in lab_traces[0]]
    for row in trace[9:11] if where == "midst" else []:
        row["metrics"] = {**row["metrics"], "distance_to_goal": np.float32(broken)}
    env = watch(FakeEnv([trace, lab_traces[1]]), emitter, family="nav", reference=True)
    env.report(progress=0.5)  # what an agent thinks of its progress does not lift the quarantine
    play(env, trace)
    play(env, lab_traces[1])
    assert emitter.flush()
    fit = {"start": 0, "midst": 10}[where]
    rows = [row for episode, row in rows_of(publisher.frames) if episode.endswith("/0")]
    assert [math.isnan(row["progress"]) for row in rows] == [False] * fit + [True] * (len(trace) - fit)
    assert rows[-1]["feedback"].startswith("quarantined: the distance ")
    ends = ends_of(publisher.frames)
    assert [end.outcome for end in ends.values()] == ["aborted", "success"]
    assert publisher.frames[0].episodes[0].reference is (where == "midst")
    report = env.springback
    assert (report.episodes, report.quarantined_episodes, report.quarantined_steps) == (2, 1, len(trace) - fit)
    assert list(report.faults.values()) == [1]


def test_a_task_that_ends_by_itself_is_no_timeout(
    lab_traces: list[Trace], emitter: StepEmitter, publisher: MemoryPublisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = [dict(row, done=step == 2) for step, row in enumerate(lab_traces[0][:3])]
    for make in (FakeEnv, FakeRLEnv):
        bare: Any = make([trace])
        core = bare if make is FakeEnv else bare.habitat_env
        env = watch(bare, emitter, family="nav")
        play(env, trace, 2)
        step = core.step

        def fallen(action: Any, core: Any = core, step: Any = step) -> Any:
            seen = step(action)
            core.task.is_episode_active = False
            return seen

        monkeypatch.setattr(core, "step", fallen)
        env.step(trace[2]["action"])
    assert emitter.flush()
    assert [end.outcome for frame in publisher.frames for end in frame.ends] == ["failure"] * 2


def test_a_push_between_two_steps_is_no_travel_of_the_agent(
    lab_traces: list[Trace], emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    for make in (FakeEnv, FakeRLEnv):
        bare: Any = make(lab_traces)
        core = bare if make is FakeEnv else bare.habitat_env
        env = watch(bare, emitter, family="nav")
        turn = next(step for step, row in enumerate(lab_traces[0]) if step and "turn" in row["action"])
        play(env, lab_traces[0], turn)
        core.sim.state.position = np.asarray(lab_traces[0][turn]["position"]) + 3.0
        env.step(lab_traces[0][turn]["action"])
        env.close()
    assert emitter.flush()
    travels = column(publisher, "travel")
    assert travels[turn] == travels[-1] == pytest.approx(3.0 * math.sqrt(3.0))


def test_what_an_agent_reported_is_of_one_step_alone(
    lab_traces: list[Trace], emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    env = watch(FakeEnv(lab_traces[:1]), emitter, family="nav")
    env.reset()
    env.report(perception_s=0.5)
    env.step(lab_traces[0][0]["action"])
    env.step(lab_traces[0][1]["action"])
    env.report(perception_s=0.25)
    play(env, lab_traces[0], 1)  # a reset in between
    env.close()
    assert emitter.flush()
    perceived = [row.get("perception_s", 0.0) for _, row in rows_of(publisher.frames)]
    assert np.nan_to_num(perceived).tolist() == [0.5, 0.0, 0.0]


def without_measures(trace: Trace, *steps: int) -> Trace:
    return [{**row, "metrics": {"num_steps": 1}} if step in steps else row for step, row in enumerate(trace)]


def test_progress_that_nothing_says_is_told_at_the_first_step_and_quarantines_later(
    lab_traces: list[Trace], emitter: StepEmitter, publisher: MemoryPublisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as bare:
        bare.setattr(FakeEnv, "get_metrics", lambda env: {"num_steps": 1})
        env = watch(FakeEnv(lab_traces[:1]), emitter, family="nav")
        for _ in range(2):
            with pytest.raises(SignalError, match=r"no progress at the first step.*HabitatReading\(progress="):
                play(env, lab_traces[0], 1)
    monkeypatch.setattr(
        FakeEnv, "get_metrics", lambda env: dict((env.trace[0] if env.place < 0 else env.trace[env.place])["metrics"])
    )
    bad = without_measures(lab_traces[0], 2)
    env = watch(FakeEnv([bad, without_measures(lab_traces[1], 0), lab_traces[2]]), emitter, family="nav")
    for trace in (bad, lab_traces[1], lab_traces[2]):
        play(env, trace)
    assert emitter.flush()
    outcomes = [end.outcome for frame in publisher.frames for end in frame.ends]
    assert outcomes[-3:] == ["aborted", "aborted", "success"]
    assert env.springback.faults == {"nothing says the progress": 2}


def test_an_environment_closes_after_its_emitter(lab_traces: list[Trace], publisher: MemoryPublisher) -> None:
    with StepEmitter(publisher, producer="habitat") as emitter:
        env: Any = watch(FakeEnv(lab_traces), emitter, family="nav")
        play(env, lab_traces[0], 2)
    env.close()
    assert env._watched.closed
    assert [end.outcome for end in ends_of(publisher.frames).values()] == ["aborted"]


def test_what_is_no_habitat_is_refused(emitter: StepEmitter) -> None:
    with pytest.raises(TypeError, match=r"cannot watch a int: expected a habitat\.Env"):
        watch(3, emitter, family="nav")

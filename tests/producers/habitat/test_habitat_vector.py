import math
from typing import Any

import numpy as np
import pytest

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.habitat.vector_env import WatchedVectorEnv
from springback.producers.habitat.watch import watch
from tests.producers.habitat.fake_habitat import FakeRLEnv, Trace
from tests.producers.habitat.fake_vector import FakeVectorEnv
from tests.producers.habitat.trace_replay import ends_of, rows_of

INDEX = {"stop": 0, "move_forward": 1, "turn_left": 2, "turn_right": 3}


def short(trace: Trace, rows: int) -> Trace:
    """The episode's last rows as an episode of its own."""
    start_m = trace[-rows - 1]["metrics"]["distance_to_goal"]
    return [{**row, "start_geodesic": start_m, "step": step} for step, row in enumerate(trace[-rows:])]


@pytest.fixture
def traces(lab_traces: list[Trace]) -> list[Trace]:
    return [short(trace, rows) for trace, rows in zip(lab_traces, (5, 3, 4))]


def make(traces: list[Trace], **options: Any) -> FakeVectorEnv:
    """Two environments: each plays two of the three episodes in turn."""
    return FakeVectorEnv([FakeRLEnv([traces[0], traces[2]]), FakeRLEnv([traces[1], traces[2]])], **options)


def drive(envs: Any, traces: list[Trace], steps: int) -> list[Any]:
    """Takes the recorded actions, in both environments."""
    queues = [[row["action"] for trace in pair for row in trace] for pair in (traces[0::2], traces[1:])]
    return [envs.step([INDEX[queue[step]] for queue in queues]) for step in range(steps)]


def watched(envs: FakeVectorEnv, emitter: StepEmitter, **options: Any) -> WatchedVectorEnv:
    found = watch(envs, emitter, family="nav", **options)
    assert isinstance(found, WatchedVectorEnv)
    return found


def test_an_environment_that_resets_itself_gives_whole_episodes_with_their_own_names(
    traces: list[Trace], emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    envs = watched(make(traces), emitter)
    envs.reset()
    drive(envs, traces, 7)
    envs.close()
    assert emitter.flush()
    agents = {header.episode: header.agent for frame in publisher.frames for header in frame.episodes}
    assert set(agents.values()) == {"habitat-0", "habitat-1"}
    ends = {(h.agent, h.episode): end for frame in publisher.frames for end in frame.ends
            for h in [frame.episodes[end.episode]]}  # fmt: skip
    assert {key: end.outcome for key, end in ends.items()} == {
        ("habitat-0", "house_a.glb/0"): "success",
        ("habitat-0", "house_a.glb/2"): "aborted",
        ("habitat-1", "house_a.glb/1"): "success",
        ("habitat-1", "house_a.glb/2"): "success",
    }
    navigation = ends["habitat-0", "house_a.glb/0"].navigation
    assert navigation is not None
    start_m = traces[0][0]["start_geodesic"]
    assert navigation.shortest_path == pytest.approx(start_m)  # told by the first step's distance and reward
    assert navigation.actions == 5
    assert navigation.final_distance == traces[0][-1]["metrics"]["distance_to_goal"]
    rows = [row for episode, row in rows_of(publisher.frames) if episode == "house_a.glb/0"]
    assert [row["progress"] for row in rows] == pytest.approx(
        [max(0.0, 1 - row["metrics"]["distance_to_goal"] / start_m) for row in traces[0]]
    )
    assert [row["action"] for row in rows] == [row["action"] for row in traces[0]]
    assert rows[-1]["propositions"] == 1.0
    assert [report.episodes for report in envs.springback] == [2, 2]


def test_it_passes_on_what_the_vector_gives(traces: list[Trace], emitter: StepEmitter) -> None:
    bare, envs = make(traces), watched(make(traces), emitter)
    assert str(envs.reset()) == str(bare.reset())
    queues = [[INDEX[row["action"]] for row in traces[env]] for env in (0, 1)]
    for env in (0, 1):
        for action in queues[env]:
            bare.async_step_at(env, action)
            assert str(envs.step_at(env, action)) == str(bare.wait_step_at(env))
    assert [episode.episode_id for episode in envs.current_episodes()] == ["2", "2"]
    assert envs.num_envs == 2


def test_without_resets_of_its_own_the_loop_resets(
    traces: list[Trace], emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    envs = watched(make(traces, auto_reset_done=False), emitter)
    envs.reset()
    envs.describe_next_episode(0, stress=0.25)
    for trace in (traces[0], traces[2]):
        for row in trace:
            envs.step_at(0, INDEX[row["action"]])
        envs.reset_at(0)
    assert emitter.flush()
    assert {key: end.outcome for key, end in ends_of(publisher.frames).items()} == {
        "house_a.glb/0": "success",
        "house_a.glb/2": "success",
    }
    stress = {header.episode: header.stress for frame in publisher.frames for header in frame.episodes}
    assert stress == {"house_a.glb/0": 0.25, "house_a.glb/2": None}


@pytest.mark.parametrize("between_steps", [False, True])
def test_one_that_dies_takes_no_other_along(
    traces: list[Trace],
    emitter: StepEmitter,
    publisher: MemoryPublisher,
    caplog: pytest.LogCaptureFixture,
    between_steps: bool,
) -> None:
    bare = make(traces)
    envs = watched(bare, emitter)
    envs.reset()
    drive(envs, traces, 2)
    (bare.broken if between_steps else bare.dead).add(0)
    with pytest.raises((EOFError, BrokenPipeError)) as caught:
        envs.step([INDEX[traces[env][2]["action"]] for env in (0, 1)])
    said = getattr(caught.value, "__notes__", caplog.messages)  # errors bear notes since Python 3.11
    assert said == ["environment 0 is dead; the steps of the others were taken and reported"]
    assert not bare.waiting
    assert emitter.flush()
    assert {key: end.outcome for key, end in ends_of(publisher.frames).items()} == {
        "house_a.glb/0": "aborted",
        "house_a.glb/1": "success",
    }


def test_a_paused_environment_keeps_its_episode_and_its_name(
    traces: list[Trace], emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    envs = watched(make(traces), emitter)
    envs.reset()
    envs.step_at(0, INDEX[traces[0][0]["action"]])
    envs.pause_at(0)
    for row in traces[1]:
        envs.step_at(0, INDEX[row["action"]])  # those behind have moved down by one
    envs.resume_all()
    for row in traces[0][1:]:
        envs.step_at(0, INDEX[row["action"]])
    assert emitter.flush()
    agents = {frame.episodes[end.episode].agent: end.outcome for frame in publisher.frames for end in frame.ends}
    assert agents == {"habitat-1": "success", "habitat-0": "success"}


def test_several_paused_environments_come_back_to_their_places_and_close_aborts_all(
    traces: list[Trace], emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    envs = watched(FakeVectorEnv([FakeRLEnv([trace]) for trace in traces]), emitter)
    envs.reset()
    for index in range(3):
        envs.step_at(index, INDEX[traces[index][0]["action"]])
    envs.pause_at(0)
    envs.pause_at(1)  # the third
    assert [report.steps for report in envs.springback] == [1, 1, 1]
    envs.step_at(0, INDEX[traces[1][1]["action"]])
    envs.resume_all()
    assert [report.steps for report in envs.springback] == [1, 2, 1]
    envs.pause_at(2)
    envs.close()
    assert emitter.flush()
    assert {key: end.outcome for key, end in ends_of(publisher.frames).items()} == dict.fromkeys(
        ("house_a.glb/0", "house_a.glb/1", "house_a.glb/2"), "aborted"
    )


@pytest.mark.parametrize(
    ("more", "limit", "outcome"),
    [
        ({}, None, "timeout"),  # nothing else can have ended it
        ({"force_terminate": True}, None, "failure"),
        ({"does_want_terminate": 1.0}, None, "failure"),
        ({"does_want_terminate": 1.0}, 3, "failure"),
        ({}, 4, "failure"),
        ({"success": 1.0}, 3, "success"),
    ],
)
def test_how_an_end_is_told_that_says_no_more_than_done(
    traces: list[Trace], emitter: StepEmitter, publisher: MemoryPublisher, more: Any, limit: Any, outcome: str
) -> None:
    trace = [dict(row, done=step == 2) for step, row in enumerate(traces[0][:3])]
    trace[-1]["metrics"] = {**trace[-1]["metrics"], **more}
    envs = watched(FakeVectorEnv([FakeRLEnv([trace])]), emitter, max_steps=limit)
    envs.reset()
    for row in trace:
        envs.step_at(0, INDEX[row["action"]])
    assert emitter.flush()
    assert [end.outcome for end in ends_of(publisher.frames).values()] == [outcome]


def test_actions_without_known_names_stay_numbers_and_a_limit_tells_a_timeout(
    traces: list[Trace], emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    bare = make([[dict(row, done=row["done"] or step == 2) for step, row in enumerate(t)] for t in traces])
    bare.orig_action_spaces[0].spaces["jump"] = None
    envs = watched(bare, emitter, max_steps=3)
    envs.reset()
    for row in traces[0][:3]:
        envs.step_at(0, INDEX[row["action"]])
    assert emitter.flush()
    assert [row["action"] for _, row in rows_of(publisher.frames)] == [
        str(INDEX[row["action"]]) for row in traces[0][:3]
    ]
    assert [end.outcome for end in ends_of(publisher.frames).values()] == ["timeout"]


def test_the_fewest_actions_are_estimated_by_the_point_goal_sensor(
    traces: list[Trace], emitter: StepEmitter, publisher: MemoryPublisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = make(traces)
    ahead = {"pointgoal_with_gps_compass": np.array([9.0, 0.7], np.float32)}
    monkeypatch.setattr(bare.envs[0].habitat_env, "observations", lambda: ahead)
    envs = watched(bare, emitter)
    envs.reset()
    for row in traces[0]:
        envs.step_at(0, INDEX[row["action"]])
    assert emitter.flush()
    (end,) = ends_of(publisher.frames).values()
    assert end.navigation is not None
    assert end.navigation.shortest_path is not None
    # 0.7 rad are 40.1 degrees, 4 turns of 10.
    assert end.navigation.shortest_actions == math.ceil(end.navigation.shortest_path / 0.25) + 4


def test_positions_come_from_sensors_and_never_from_the_next_episodes_observation(
    traces: list[Trace], emitter: StepEmitter, publisher: MemoryPublisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = make(traces)
    core = bare.envs[0].habitat_env
    gps = lambda: {"gps": np.array([2.0 * core.place, 0.0], np.float32), "compass": np.zeros(1, np.float32)}  # noqa: E731
    monkeypatch.setattr(core, "observations", gps)
    envs = watched(bare, emitter)
    envs.reset()
    for row in traces[0]:
        envs.step_at(0, INDEX[row["action"]])
    assert emitter.flush()
    travels = [row.get("travel") for _, row in rows_of(publisher.frames)]
    assert travels[:-1] == [2.0] * 4
    assert travels[-1] is None or np.isnan(travels[-1])

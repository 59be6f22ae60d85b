"""Who is meant: which agent of several, which episode of one emitter, which task on another machine, which class."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

from springback.producers.contract.frame import EpisodeHeader
from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.habitat.watch import WatchedGymEnv, watch
from springback.producers.perturbations.habitat import disturbed
from tests.producers.habitat.habitat_makers import Habitat, played
from tests.producers.habitat.strict_habitat import StrictEnv, StrictRLEnv, StrictSimulator, StrictVectorEnv
from tests.producers.habitat.trace_replay import rows_of

BOTH = [(0.0, 0.0, 0.0), (1.0, 0.0, 1.0)]


def headers_of(publisher: MemoryPublisher) -> dict[tuple[str, str], EpisodeHeader]:
    return {(header.agent, header.episode): header for frame in publisher.frames for header in frame.episodes}


def rows_by_agent(*publishers: MemoryPublisher) -> dict[str, list[dict[str, Any]]]:
    """The rows of each agent, each with the id of its episode."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for frame in [frame for publisher in publishers for frame in publisher.frames]:
        agents = [frame.episodes[int(place)].agent for place in np.asarray(frame.steps.get("episode", ()))]
        for agent, (episode, row) in zip(agents, rows_of([frame])):
            found[agent].append({**row, "id": episode})
    return found


def test_vectors_and_loops_on_one_emitter_keep_their_episodes_apart(
    habitat: Habitat, emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    for _ in range(2):
        envs: Any = watch(habitat.vector(2), emitter, family="nav")
        envs.reset()
        for _ in range(3):
            envs.step([{"action": "stop"}] * 2)
        envs.close()
        loop: Any = watch(habitat.simulator(), emitter, family="nav")
        for _ in range(2):
            loop.begin_episode(goals=[(0.0, 0.0, -3.0)], episode="0", scene="room")
            loop.step("move_forward")
            loop.stop_episode()
        loop.close()
    assert emitter.flush()
    steps = Counter((agent, row["id"], row["step"]) for agent, rows in rows_by_agent(publisher).items() for row in rows)
    assert set(steps.values()) == {1}
    assert len(headers_of(publisher)) == 2 * (2 * 3 + 2)


def test_an_id_that_the_user_gives_twice_is_numbered_too(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    envs: list[Any] = [watch(StrictEnv(), emitter, family="nav", agent="rover") for _ in range(2)]
    for env in envs:  # both are open at once
        env.describe_next_episode(episode="lap")
        env.reset()
        env.step("move_forward")
    for env in envs:
        env.step("stop")
    assert emitter.flush()
    tasks = {episode: header.task for (_, episode), header in headers_of(publisher).items()}
    assert tasks == {"lap": "strict/room.glb/0", "lap#1": "strict/room.glb/0"}
    assert len(rows_by_agent(publisher)["rover"]) == 4


@pytest.mark.parametrize("one_each", [False, True])
def test_each_agent_of_a_simulator_is_watched_by_a_loop_of_its_own(habitat: Habitat, one_each: bool) -> None:
    publishers = [MemoryPublisher(), MemoryPublisher()]
    emitters = [StepEmitter(publisher, producer="habitat", session="s") for publisher in publishers]
    first: Any = watch(habitat.simulator(BOTH), emitters[0], family="nav", agent_id=0)
    second: Any = watch(first, emitters[one_each], family="nav", agent_id=1)
    for loop, goal in ((first, (0.0, 0.0, -3.0)), (second, (1.0, 0.0, 3.0))):
        loop.begin_episode(goals=[goal], episode="7", scene="room")
    for _ in range(2):
        second.step({0: "move_forward", 1: "turn_left"})
    second.step({1: "move_forward"})  # the other one does not act
    first.stop_episode()
    second.stop_episode()
    for emitter in emitters:
        emitter.close()
    rows = rows_by_agent(*publishers)
    assert [row["action"] for row in rows["habitat-0"]] == ["move_forward", "move_forward", "", "stop"]
    assert [row["action"] for row in rows["habitat-1"]] == ["turn_left", "turn_left", "move_forward", "stop"]
    assert [row["travel"] for row in rows["habitat-0"]] == pytest.approx([0.25, 0.25, 0.0, 0.0], abs=1e-3)
    assert [row["travel"] for row in rows["habitat-1"]] == pytest.approx([0.0, 0.0, 0.25, 0.0], abs=1e-3)
    assert rows["habitat-0"][-1]["progress"] == pytest.approx(0.5 / 3.0, abs=0.01)
    tasks = {header.task for publisher in publishers for header in headers_of(publisher).values()}
    assert tasks == {"room/7"}


@pytest.mark.parametrize("severity", [0.0, 1.0])
def test_what_disturbs_one_agent_is_told_of_that_one_alone(
    habitat: Habitat, emitter: StepEmitter, publisher: MemoryPublisher, severity: float
) -> None:
    both = disturbed(habitat.simulator(BOTH), severity, kinds=["goal_move"], seed=3, agent_id=1)
    first: Any = watch(both, emitter, family="nav", agent_id=0)
    second: Any = watch(first, emitter, family="nav", agent_id=1)
    for loop in (first, second):
        loop.begin_episode(goals=[(0.0, 0.0, 0.0)], episode="7", scene="room")
    for _ in range(300):
        second.step({0: "turn_left", 1: "turn_left"})
    second.close()
    assert emitter.flush()
    assert first.goals == [[0.0, 0.0, 0.0]]
    assert (second.goals == first.goals) == (severity == 0.0)
    said = {agent: (header.stress, header.reference) for (agent, _), header in headers_of(publisher).items()}
    told = {agent: {row.get("feedback", "") for row in rows} for agent, rows in rows_by_agent(publisher).items()}
    if severity:
        assert said == {"habitat-0": (None, False), "habitat-1": (1.0, False)}
        assert told["habitat-1"] == {"", "onset: goal_move", "perturbed: goal_move"}
    else:
        assert said == {"habitat-0": (0.0, True), "habitat-1": (0.0, True)}  # nothing disturbs either
    assert told["habitat-0"] == {""}


def test_each_agent_of_habitat_lab_is_watched_by_its_number(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    env: Any = watch(StrictEnv(places=BOTH), emitter, family="nav", agent_id=0)
    env = watch(env, emitter, family="nav", agent_id=1)
    env.reset()
    env.step({"action": ("agent_0_move_forward", "agent_1_turn_left"), "action_args": {}})
    env.close()
    assert emitter.flush()
    rows = rows_by_agent(publisher)
    assert {agent: (row["action"], row["travel"]) for agent, [row] in rows.items()} == {
        "habitat-0": ("move_forward", 0.25),
        "habitat-1": ("turn_left", 0.0),
    }
    assert {header.task for header in headers_of(publisher).values()} == {"strict/room.glb/0"}


@pytest.mark.parametrize("made", ["env", "gym", "simulator"])
@pytest.mark.usefixtures("strict_module")
def test_what_names_no_agent_is_done_by_the_first_and_told_of_it_alone(
    emitter: StepEmitter, publisher: MemoryPublisher, made: str
) -> None:
    """Habitat has its default agent take such an action, and `previous_step_collided` speaks of that one alone."""
    core = StrictEnv([(0.0, 0.0, 3.0)], places=BOTH)
    first: Any = {"env": core, "gym": StrictRLEnv(core), "simulator": StrictSimulator(BOTH)}[made]
    first = watch(first, emitter, family="nav", agent_id=0)
    second: Any = watch(first, emitter, family="nav", agent_id=1)
    if made == "simulator":
        for loop in (first, second):
            loop.begin_episode(goals=[(0.0, 0.0, 3.0)], episode="7")
    else:
        second.reset()
    for _ in range(20):  # it is 3.9 m to the wall
        second.step("move_forward")
    second.close()
    assert emitter.flush()
    told = rows_by_agent(publisher)
    names = ("action", "violation", "retries")
    sums = {agent: [Counter(row[name] for row in rows) for name in names] for agent, rows in told.items()}
    hit = {0.0: 15, 1.0: 5}
    assert sums == {"habitat-0": [{"move_forward": 20}, hit, hit], "habitat-1": [{"": 20}, {0.0: 20}, {0.0: 20}]}


def test_what_one_agent_runs_against_is_not_told_of_another(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    env: Any = watch(StrictEnv(places=BOTH), emitter, family="nav", agent_id=0)
    env = watch(env, emitter, family="nav", agent_id=1)
    env.reset()
    for _ in range(30):
        env.step({"action": ("agent_0_turn_left", "agent_1_move_forward"), "action_args": {}})
    env.close()
    assert emitter.flush()
    told = rows_by_agent(publisher)
    assert {(row["violation"], row["retries"]) for row in told["habitat-0"]} == {(0.0, 0.0)}
    assert told["habitat-1"][-1]["retries"] == 1.0  # its pose tells that it got nowhere


@pytest.mark.usefixtures("strict_module")
@pytest.mark.parametrize(
    ("clean", "twin"),
    [
        (
            "/home/ann/hab/data/scene_datasets/hm3d/val/00800/x.basis.glb",
            "data/scene_datasets/hm3d/val/00800/x.basis.glb",
        ),
        ("/home/ann/houses/a.glb", "/srv/robots/houses/a.glb"),
        ("C:\\sim\\houses\\a.glb", "/srv/houses/a.glb"),
    ],
)
def test_the_twins_of_two_machines_have_one_task(
    emitter: StepEmitter, publisher: MemoryPublisher, clean: str, twin: str
) -> None:
    for scene, severity in ((clean, 0.0), (twin, 1.0)):
        env: Any = watch(disturbed(StrictEnv(scene=scene), severity, kinds=["heading_kick"]), emitter, family="nav")
        played(env, 1)
        env.close()
        simulator = watch(sim_of(scene), emitter, family="nav")
        simulator.begin_episode(goals=[(0.0, 0.0, -3.0)], episode="0")
        simulator.step("move_forward")
        simulator.close()
    assert emitter.flush()
    assert len(headers_of(publisher)) == 4
    assert len({header.task for header in headers_of(publisher).values()}) == 1


def sim_of(scene: str) -> Any:
    simulator = StrictEnv().sim
    simulator.curr_scene_name = scene
    return simulator


def test_a_gym_environment_is_one_when_it_is_watched_too(emitter: StepEmitter) -> None:
    env = watch(disturbed(StrictRLEnv(StrictEnv()), 0.0), emitter, family="nav")
    assert isinstance(env, gymnasium.Env)
    assert isinstance(env, StrictRLEnv)
    assert isinstance(env, WatchedGymEnv)
    assert isinstance(TimeLimit(env, 10).env, WatchedGymEnv)
    plain = watch(StrictEnv(), emitter, family="nav")
    assert isinstance(plain, StrictEnv)  # as habitat-lab's own is no Gym environment
    assert not isinstance(plain, gymnasium.Env)


class CustomEpisode:
    """What an environment of somebody's own says of its episode, who knows no `all_info`."""

    scene_id, episode_id = "room.glb", "5"


class Custom(StrictRLEnv):
    def current_episode(self) -> Any:  # type: ignore[override]
        return CustomEpisode()


@pytest.mark.parametrize("known", [True, False])
def test_a_vector_counts_progress_from_the_start_that_the_episode_tells(
    emitter: StepEmitter, publisher: MemoryPublisher, known: bool
) -> None:
    env = StrictEnv(goals=[(0.0, 0.0, -3.0)], geodesic=known)
    vector: Any = watch(StrictVectorEnv([StrictRLEnv(env)]), emitter, family="nav")
    vector.reset()
    for _ in range(4):
        vector.step([1])
    vector.close()
    assert emitter.flush()
    progress = [row["progress"] for _, row in rows_of(publisher.frames)]
    of_m = 3.0 if known else 2.75  # without it the first step is the start
    assert progress == pytest.approx([1 - left / of_m for left in (2.75, 2.5, 2.25, 2.0)])
    assert np.isfinite(progress).all()


def test_a_vector_asks_for_more_only_those_that_know_the_question(
    emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    vector: Any = watch(StrictVectorEnv([Custom(StrictEnv()), StrictRLEnv(StrictEnv())]), emitter, family="nav")
    vector.reset()
    vector.step([1, 1])  # with one question too many the first one would be dead
    assert vector.calls == ["current_episode", "current_episode", "current_episode"]
    vector.close()
    assert emitter.flush()
    assert {header.task for header in headers_of(publisher).values()} == {"room.glb/5", "strict/room.glb/0"}

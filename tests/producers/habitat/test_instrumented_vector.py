"""A vector whose environments are instrumented tells all that a single environment does."""

import math
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import springback
from springback.producers.contract.frame import StepFrame
from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.habitat.metrics import HabitatReading
from springback.producers.habitat.sight import instrumented
from springback.producers.habitat.watch import watch
from springback.producers.perturbations.habitat import disturbed
from springback.stream_processors.offline.evaluation import evaluate_frames
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.families.family_aggregate import aggregate, in_order
from tests.producers.habitat.strict_habitat import StrictEnv, StrictRLEnv, StrictVectorEnv
from tests.producers.habitat.trace_replay import ends_of, rows_of

INDEX = {"stop": 0, "move_forward": 1, "turn_left": 2, "turn_right": 3}
TO_THE_WALL = 15  # from the middle of the room, 3.9 m; the next step runs against it
BEYOND = [*["move_forward"] * (TO_THE_WALL + 3), "turn_left", *["turn_right"] * 2, "stop"]
GOAL = (0.0, 0.0, -3.0)
STRAIGHT = [*["turn_left", "turn_right"], *["move_forward"] * 12, "stop"]


def blind(goals: Sequence[Any] = (GOAL,), limit: int = 100) -> StrictRLEnv:
    """An environment without sensors that would tell its pose."""
    core = StrictEnv(goals, limit=limit)
    core._seen = lambda fresh: dict(fresh)  # type: ignore[method-assign]
    return StrictRLEnv(core)


def played(env: Any, actions: Sequence[str], **options: Any) -> list[StepFrame]:
    """The frames of an episode in an environment, or in a vector of one."""
    publisher = MemoryPublisher()
    with StepEmitter(publisher, producer="habitat", session="s", clock=lambda: 1.8e9) as emitter:
        watched: Any = watch(env, emitter, family="nav", timer=lambda: 0.0, **options)
        watched.reset()
        for action in actions:
            if isinstance(env, StrictVectorEnv):
                watched.step([INDEX[action]])
            else:
                watched.step(action)
    return publisher.frames


@pytest.mark.parametrize("severity", [0.0, 1.0])
@pytest.mark.parametrize("actions", [BEYOND, STRAIGHT])
def test_its_episodes_are_those_of_a_single_environment(actions: list[str], severity: float) -> None:
    found = []
    reading = HabitatReading(simulated_time=True)
    for in_vector in (False, True):
        made: Any = disturbed(blind(), severity, seed=3, kinds=["action_drop", "heading_kick", "goal_move"])
        env = StrictVectorEnv([instrumented(made, reading=reading)]) if in_vector else made
        frames = played(env, actions, reading=reading)
        (end,) = ends_of(frames).values()
        found.append((str(list(rows_of(frames))), end))  # as text, since a cycle that took no time is NaN
    assert found[0] == found[1]


def test_collisions_travel_and_clearance_are_known_to_the_last_step() -> None:
    frames = played(StrictVectorEnv([instrumented(blind())]), BEYOND)
    rows = [row for _, row in rows_of(frames)]
    assert [row["violation"] for row in rows] == [0.0] * TO_THE_WALL + [1.0] * 3 + [0.0] * 4
    assert [round(row["travel"], 3) for row in rows] == [0.25] * TO_THE_WALL + [0.15] + [0.0] * 6
    assert rows[-1]["risk"] == pytest.approx(0.2 / 0.3)  # 0.1 m to the wall
    (end,) = ends_of(frames).values()
    assert end.navigation is not None
    assert end.navigation.path == pytest.approx(3.9)


def test_without_it_they_are_not_and_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    rows = [row for _, row in rows_of(played(StrictVectorEnv([blind()]), BEYOND))]
    assert {row["violation"] for row in rows} == {0.0}
    assert all(math.isnan(row.get("travel", math.nan)) for row in rows)
    [said] = caplog.messages
    assert said.startswith("nothing tells of collisions in this VectorEnv")
    assert "springback.instrumented" in said
    caplog.clear()
    played(StrictVectorEnv([instrumented(blind())]), BEYOND)
    assert not caplog.messages


@pytest.mark.parametrize(
    ("limit", "actions", "outcome"),
    [(3, ["turn_left"] * 3, "timeout"), (9, ["turn_left", "stop"], "failure")],
)
def test_a_limit_is_told_from_a_failure(limit: int, actions: list[str], outcome: str) -> None:
    frames = played(StrictVectorEnv([instrumented(blind(limit=limit))]), actions, action_names=["a", "b", "c"])
    assert [end.outcome for end in ends_of(frames).values()] == [outcome]


@pytest.mark.parametrize("made", ["env", "vector", "instrumented vector"])
def test_success_by_actions_comes_out(made: str) -> None:
    single = StrictRLEnv(StrictEnv([GOAL]))
    env: Any = {
        "env": single,
        "vector": StrictVectorEnv([single]),
        "instrumented vector": StrictVectorEnv([instrumented(single)]),
    }[made]
    frames = played(env, STRAIGHT, stress=0.0, reference=True)
    evaluation = evaluate_frames(frames, ResilienceConfig())
    [reading] = aggregate(in_order(evaluation.begun, evaluation.summaries), AggregateConfig())
    (end,) = ends_of(frames).values()
    assert (end.outcome, reading.navigation["all"].episodes) == ("success", 1)
    # 3 m straight ahead in steps of 0.25 m: the follower needs 12 and the stop; the estimate is 3 / 0.25 and no turn.
    fewest = 12 if made == "vector" else 12 + 1
    assert end.navigation is not None
    assert end.navigation.shortest_actions == fewest
    assert reading.navigation["all"].sel == pytest.approx(fewest / len(STRAIGHT))


def test_the_note_passes_a_process_and_is_no_metric_of_a_trainer() -> None:
    env: Any = instrumented(disturbed(blind(), 1.0, kinds=["action_drop"], seed=3))
    env.reset()
    infos = [env.step(action)[-1] for action in ("move_forward", "turn_left")]
    for info in infos:
        note: Any = pickle.loads(pickle.dumps(info))["springback"]
        assert note == info["springback"]
        assert issubclass(type(note), Mapping)
        # habitat-baselines goes into dicts, and makes a float of whatever else has a size of 1 and is no text.
        assert not issubclass(type(note), dict)
        assert np.size(note) != 1
    assert infos[0]["springback"]["sights"][0].start.follower_actions == 12 + 1
    assert infos[1]["springback"]["sights"][0].start is None
    assert infos[0]["springback"]["traits"]["stress"] == 1.0


def test_what_is_seen_of_one_agent_is_not_taken_for_another_s() -> None:
    def vector() -> StrictVectorEnv:
        core = StrictEnv(places=((0.0, 0.0, 0.0), (1.0, 0.0, -3.8)), limit=100)
        core._seen = lambda fresh: {}  # type: ignore[method-assign]
        return StrictVectorEnv([instrumented(StrictRLEnv(core), agent_id=1)])

    publisher = MemoryPublisher()
    with StepEmitter(publisher, producer="habitat", session="s") as emitter:
        for agent_id in (0, 1):
            envs: Any = watch(vector(), emitter, family="nav", agent_id=agent_id)
            envs.reset()
            envs.step([{"action": ("agent_0_turn_left", "agent_1_move_forward"), "action_args": {}}])
            envs.close()
    travels = [row.get("travel", math.nan) for _, row in rows_of(publisher.frames)]
    assert math.isnan(travels[0])
    assert travels[1] == pytest.approx(0.1, abs=1e-6)  # to the wall


def test_each_agent_of_a_vector_is_instrumented_around_the_other() -> None:
    core = StrictEnv(places=((0.0, 0.0, 0.0), (1.0, 0.0, -3.8)), limit=100)
    core._seen = lambda fresh: {}  # type: ignore[method-assign]
    env = instrumented(instrumented(StrictRLEnv(core), agent_id=0), agent_id=1)
    publisher = MemoryPublisher()
    with StepEmitter(publisher, producer="habitat", session="s") as emitter:
        first = watch(StrictVectorEnv([env]), emitter, family="nav", agent_id=0)
        both: Any = watch(first, emitter, family="nav", agent_id=1)
        both.reset()
        both.step([{"action": ("agent_0_move_forward", "agent_1_move_forward"), "action_args": {}}])
        both.close()
    assert [row["travel"] for _, row in rows_of(publisher.frames)] == pytest.approx([0.25, 0.1], abs=1e-6)


@pytest.mark.parametrize("env", [StrictEnv(), object()])
def test_what_is_not_gym_style_is_refused(env: Any) -> None:
    with pytest.raises(TypeError, match=r"cannot instrument a \w+: expected a Gym-style environment of habitat-lab"):
        instrumented(env)
    assert springback.instrumented is instrumented


@pytest.mark.parametrize("how", [lambda env: env, instrumented])
def test_a_disturbed_vector_is_told_apart_by_attack(how: Any) -> None:
    kinds: Any = ["action_drop"], ["sensor_noise"]
    envs = [how(disturbed(StrictRLEnv(StrictEnv([GOAL])), 1.0, kinds=kind, seed=1)) for kind in kinds]
    publisher = MemoryPublisher()
    with StepEmitter(publisher, producer="habitat", session="s") as emitter:
        vector: Any = watch(StrictVectorEnv(envs), emitter, family="nav")
        vector.reset()
        for action in [*["turn_left", "turn_right"] * 30, "stop"]:
            vector.step([INDEX[action]] * 2)
    evaluation = evaluate_frames(publisher.frames, ResilienceConfig())
    [reading] = aggregate(in_order(evaluation.begun, evaluation.summaries), AggregateConfig())
    assert {attack: of.episodes for attack, of in reading.navigation.items()} == {"all": 2, "physical": 1, "model": 1}
    assert {attack: of.sel for attack, of in reading.navigation.items()} == {"all": 0.0, "physical": 0.0, "model": 0.0}

"""The testbed's parts against minigrid's own, and at their edges."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from minigrid.core.actions import Actions
from minigrid.utils import baby_ai_bot

from springback.producers.babyai_testbed.agent import PlanLostError, PlanningBot, RecoveringAgent, cells_in_view
from springback.producers.babyai_testbed.disturbances import make_disturbance
from springback.producers.babyai_testbed.mission import MissionBeliefs, MissionProgress, cell_of
from springback.producers.babyai_testbed.simulated_time import CostModel
from springback.producers.babyai_testbed.tasks import TASK_FAMILIES
from springback.producers.perturbations.severity import (
    DISTURBANCES,
    action_slip,
    moved_objects,
)
from tests.producers.babyai_testbed.babyai_rooms import (
    ball_of,
    go_to,
    level_after_reset,
    open_room,
    pick_up,
    put,
    things_of_minigrid,
    verifier,
)

bot_of_minigrid: Any = baby_ai_bot.BabyAIBot

LEVEL_IDS = sorted(level.level_id for levels in TASK_FAMILIES.values() for level in levels)


@pytest.mark.parametrize("level_id", LEVEL_IDS)
def test_levels_are_minigrids_own(level_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    theirs: Any = gymnasium.make(level_id, disable_env_checker=True).unwrapped
    for seed in range(3):
        ours = level_after_reset(level_id, seed)
        assert capsys.readouterr().out == ""
        theirs.reset(seed=seed)
        capsys.readouterr()  # they print the layouts that they reject
        assert ours.mission == theirs.mission
        assert ours.grid == theirs.grid
        assert cell_of(ours.agent_pos) == cell_of(theirs.agent_pos)
        assert ours.max_steps == 200


def test_a_layout_that_minigrid_would_try_for_ever_is_given_up() -> None:
    assert level_after_reset("BabyAI-SynthS5R2-v0", 1582422499).mission


@pytest.mark.parametrize("level_id", LEVEL_IDS)
def test_the_bot_sees_what_minigrids_bot_sees(level_id: str) -> None:
    level = level_after_reset(level_id, 5)
    theirs = bot_of_minigrid(level)
    seen = np.zeros((level.width, level.height), dtype=bool)
    ours = PlanningBot(level, [], seen, lambda in_view: False)
    rng = np.random.default_rng(5)
    for _ in range(40):
        theirs._process_obs()
        ours.look()
        assert (theirs.vis_mask == ours.vis_mask).all()
        level.step(int(rng.choice([Actions.left, Actions.forward, Actions.forward, Actions.toggle])))


@pytest.mark.parametrize("level_id", LEVEL_IDS)
def test_what_is_in_view_and_the_ways_are_minigrids_own_wherever_it_stands(level_id: str) -> None:
    level = level_after_reset(level_id, 7)
    chance = np.random.default_rng(7)
    bot = PlanningBot(level, [], chance.random((level.width, level.height)) < 0.8, lambda in_view: False)
    for action in chance.choice([Actions.left, Actions.right, Actions.forward, Actions.forward, Actions.toggle], 40):
        level.step(action)
        across, down = np.nonzero(level.gen_obs_grid()[1])
        far, aside = level.agent_view_size - 1 - down, across - level.agent_view_size // 2
        x, y = np.reshape(level.agent_pos, (2, 1)) + np.outer(level.dir_vec, far) + np.outer(level.right_vec, aside)
        inside = (x >= 0) & (x < level.width) & (y >= 0) & (y < level.height)
        assert cells_in_view(level) == set(zip(x[inside].tolist(), y[inside].tolist(), strict=True))
        target = tuple(chance.integers(0, (level.width, level.height)).tolist())
        start = [(*cell_of(level.agent_pos), *(int(part) for part in level.dir_vec))]
        for blocked in (False, True):
            asked: Any = (start, lambda at, _, target=target: at == target, blocked)
            assert bot._breadth_first_search(*asked) == bot_of_minigrid._breadth_first_search(bot, *asked)


def test_progress_follows_the_propositions_and_the_way_to_the_target() -> None:
    ball, key = ball_of("red"), ball_of("blue")
    mission = verifier.PutNextInstr(verifier.ObjDesc("ball", "red"), verifier.ObjDesc("ball", "blue"))
    level = open_room(mission, (ball, 6, 1), (key, 1, 6))
    progress = MissionProgress(level)
    assert progress.measure(False) == (0.0, 0.0)
    for _ in range(4):
        level.step(Actions.forward)
    assert progress.measure(False) == (0.5 * 0.95, 0.0)  # beside the ball
    level.step(Actions.pickup)
    assert progress.measure(False) == (0.5, 0.5)  # 9 cells from the second one
    assert progress.targets() == [key]
    level.agent_pos = (1, 2)
    assert progress.measure(False)[0] == pytest.approx(0.5 + 0.5 * 0.95 * (1 - 3 / 8))
    level.carrying = None
    put(level, ball, 6, 6)
    assert progress.measure(False)[1] == 0.0  # a proposition can be lost
    assert progress.measure(True) == (1.0, 1.0)


def test_the_order_of_sub_instructions_is_the_bots() -> None:
    things = [(ball_of(color), 6, y) for y, color in enumerate(["red", "blue", "green"], start=2)]
    go = [go_to("ball", color) for color in ("red", "blue", "green")]
    level = open_room(verifier.AfterInstr(go[0], verifier.AndInstr(go[1], go[2])), *things)
    progress = MissionProgress(level)
    targets = []
    for x, y in ((5, 3), (5, 4), (5, 2)):
        targets.append(progress.targets()[0].color)
        assert MissionBeliefs(level).remaining()[0].desc.color == targets[-1]
        level.agent_pos = (x, y)
        level.instrs.verify(Actions.forward)
    assert targets == ["blue", "green", "red"]
    assert progress.targets() == []


def test_a_thing_that_is_gone_is_noticed_only_in_view() -> None:
    ball = ball_of("red")
    level = open_room(go_to("ball", "red"), (ball, 5, 1))
    beliefs = MissionBeliefs(level)
    level.grid.set(5, 1, None)
    put(level, ball, 5, 5)
    assert not beliefs.notice({(4, 4)})
    assert beliefs.notice({(5, 1)})
    assert not beliefs.notice({(5, 1), (5, 5)})  # seen where it is now
    assert beliefs.remaining()[0].desc.obj_poss == [(5, 5)]


def test_a_bot_says_when_its_plan_is_done_but_the_mission_is_not() -> None:
    ball = ball_of("red")
    level = open_room(pick_up("ball", "red"), (ball, 2, 1))
    agent = RecoveringAgent(level, CostModel(), np.random.default_rng(0))
    assert agent.decide().action == Actions.pickup  # and it slips: nothing is picked up
    decision = agent.decide()
    assert decision.remark.startswith("the plan does not fit the world")
    assert decision.action == Actions.pickup
    assert decision.planning_s > CostModel().replan_s


def test_an_agent_whose_hands_are_full_frees_them_first() -> None:
    ball, box = ball_of("red"), ball_of("blue")
    level = open_room(pick_up("ball", "red"), (ball, 4, 1))
    level.carrying = box
    agent = RecoveringAgent(level, CostModel(), np.random.default_rng(0))
    actions = []
    for _ in range(20):
        decision = agent.decide()
        assert decision.remark == ""
        actions.append(decision.action)
        if level.step(decision.action)[2]:
            break
    assert level.carrying is ball
    assert Actions.drop in actions


def test_a_mistake_leads_to_the_distractor_until_it_is_realised() -> None:
    ball, key = ball_of("red"), ball_of("blue")
    level = open_room(go_to("ball", "red"), (ball, 6, 1), (key, 1, 6))
    agent = RecoveringAgent(level, CostModel(), np.random.default_rng(0))
    assert agent.mistake(key)
    assert not agent.mistake(key)
    assert agent.decide().action != Actions.forward
    agent.realise()
    assert not agent.mistaken
    decision = agent.decide()
    assert (decision.action, decision.remark) == (Actions.forward, "it was after the wrong thing")


def test_a_bot_without_anything_to_do_has_lost_its_plan() -> None:
    level = open_room(go_to("ball", "red"), (ball_of("red"), 6, 1))
    bot = PlanningBot(level, [], np.zeros((8, 8), dtype=bool), lambda in_view: False)
    with pytest.raises(PlanLostError, match="the plan is done and the mission is not"):
        bot.replan()


def test_a_moved_thing_stays_within_reach_and_the_verifier_knows() -> None:
    for seed in range(20):
        ball = ball_of("red")
        level = open_room(go_to("ball", "red"), (ball, 5, 5))
        agent = RecoveringAgent(level, CostModel(), np.random.default_rng(0))
        disturbance = make_disturbance("moved", 0.1, seed)
        for _ in range(200):
            disturbance.strike(level, MissionProgress(level), agent)
        x, y = cell_of(ball.cur_pos)
        assert level.grid.get(x, y) is ball
        assert level.instrs.desc.obj_poss == [(x, y)]
        assert moved_objects(0.1).events == 1
        assert 0 < abs(x - 5) + abs(y - 5) <= moved_objects(0.1).reach


def test_a_door_is_shut_where_nothing_can_be_moved_but_not_on_the_agent() -> None:
    door = things_of_minigrid.Door("red", is_open=True)
    level = open_room(go_to("door", "red"), (door, 7, 3))
    agent = RecoveringAgent(level, CostModel(), np.random.default_rng(0))
    disturbance = make_disturbance("moved", 1.0, 0)
    level.agent_pos = (7, 3)
    for _ in range(50):
        disturbance.strike(level, MissionProgress(level), agent)
    assert door.is_open
    level.agent_pos = (1, 1)
    for _ in range(50):
        disturbance.strike(level, MissionProgress(level), agent)
    assert not door.is_open


def test_actions_slip_as_often_as_the_severity_says() -> None:
    disturbance = make_disturbance("slip", 0.6, 1)
    slips = sum(disturbance.effect(Actions.pickup) != Actions.pickup for _ in range(4000))
    assert slips / 4000 == pytest.approx(action_slip(0.6).probability, abs=0.03)


@pytest.mark.parametrize("name", DISTURBANCES)
def test_severity_zero_does_nothing(name: Any) -> None:
    level = open_room(go_to("ball", "red"), (ball_of("red"), 5, 5), (ball_of("blue"), 2, 5))
    agent = RecoveringAgent(level, CostModel(), np.random.default_rng(0))
    disturbance = make_disturbance(name, 0.0, 0)
    before = level.grid.encode()
    for _ in range(50):
        assert disturbance.effect(Actions.forward) == Actions.forward
        disturbance.strike(level, MissionProgress(level), agent)
    assert (level.grid.encode() == before).all()
    assert not agent.mistaken

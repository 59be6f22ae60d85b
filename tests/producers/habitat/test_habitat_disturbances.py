import math
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.habitat.watch import watch
from springback.producers.perturbations.habitat import DisturbedEnv, disturbed, turned
from springback.producers.perturbations.navigation import DISTURBANCES, DisturbanceName, NavigationDice
from springback.producers.perturbations.paraphrase import paraphrase
from tests.producers.habitat.fake_habitat import FakeRLEnv, Trace, about_y
from tests.producers.habitat.live_habitat import LiveEnv, LiveSimulator, follow
from tests.producers.habitat.trace_replay import ends_of, rows_of


def run(severity: float, seed: int = 0, kinds: Any = DISTURBANCES) -> tuple[list[dict[str, Any]], str, Any]:
    """An episode of the follower: its rows, its outcome and its header."""
    publisher = MemoryPublisher()
    with StepEmitter(publisher, producer="habitat", session="s", clock=lambda: 1.8e9) as emitter:
        env: Any = watch(
            disturbed(LiveEnv(), severity, seed=seed, kinds=kinds), emitter, family="nav", timer=lambda: 0.0
        )
        observations = env.reset()
        while not env.episode_over:
            observations = env.step(follow(observations))
    rows = [row for _, row in rows_of(publisher.frames)]
    (end,) = ends_of(publisher.frames).values()
    return rows, end.outcome, publisher.frames[0].episodes[0]


def test_severity_0_changes_nothing_and_marks_a_reference() -> None:
    rows, outcome, header = run(0.0)
    assert outcome == "success"
    assert (header.stress, header.reference, header.perturbation) == (0.0, True, "none")
    assert {row.get("feedback", "") for row in rows} == {""}


def test_the_same_seed_gives_the_same_and_another_another() -> None:
    assert run(0.7, seed=3)[0] == run(0.7, seed=3)[0]
    assert run(0.7, seed=3)[0] != run(0.7, seed=4)[0]


def test_it_takes_longer_the_harsher_it_is() -> None:
    steps = [fmean(len(run(severity, seed=seed)[0]) for seed in range(12)) for severity in (0.0, 0.5, 1.0)]
    assert all(milder < harsher for milder, harsher in zip(steps, steps[1:]))


@pytest.mark.parametrize(
    ("kind", "perturbation", "attack"),
    [
        ("action_drop", "physical", "physical"),
        ("heading_kick", "physical", "physical"),
        ("goal_move", "object_state", "physical"),
        ("sensor_noise", "perception", "model"),
    ],
)
def test_the_header_says_what_disturbs_and_the_feedback_when_it_begins(
    kind: DisturbanceName, perturbation: str, attack: str
) -> None:
    runs = (run(0.9, seed, [kind]) for seed in range(60))
    rows, _, header = next(found for found in runs if any(row.get("feedback") for row in found[0]))
    assert (header.stress, header.magnitude, header.reference) == (0.9, 0.9, False)
    assert (header.perturbation, header.perturbation_name, header.attack) == (perturbation, kind, attack)
    told = [row["feedback"] for row in rows if row["feedback"]]
    assert told[0] == f"onset: {kind}"
    assert set(told[1:]) <= {f"perturbed: {kind}"}
    assert all(row["retries"] == 1.0 for row in rows if row["feedback"]) is (kind == "action_drop")


def test_a_dropped_action_takes_no_step_and_a_stop_is_never_dropped() -> None:
    rows, outcome, _ = run(1.0, 5, ["action_drop"])
    assert outcome == "success"
    dropped = [row for row in rows if row["feedback"]]
    assert dropped
    assert all(row["travel"] == 0.0 and row["mode"] != "stop" for row in dropped)


def test_a_goal_that_moved_is_put_back() -> None:
    core = LiveEnv()
    goals = core.current_episode.goals
    moved = 0
    for seed in range(10):
        env = disturbed(core, 1.0, kinds=["goal_move"], seed=seed)
        assert isinstance(env, DisturbedEnv)
        observations = env.reset()
        while not core.episode_over:
            observations = env.step(follow(observations))
            note = env.perturbation_note()
            assert note["goal_moved"] == ("goal_move" in note["feedback"])
        (goal,) = core.current_episode.goals
        assert math.dist(goal.position, goals[0].position) <= 8.0  # twice 4 m at most
        moved += core.current_episode.goals is not goals
        if seed % 2:
            env.reset()
        else:
            env.close()
        assert core.current_episode.goals is goals
    assert moved
    assert goals[0].position == [3.0, 0.0, -4.0]


def test_a_goal_without_a_place_to_go_stays() -> None:
    core = LiveEnv()
    core.sim.pathfinder.snap_point = lambda point: np.full(3, np.nan)
    goals = core.current_episode.goals
    env: Any = disturbed(core, 1.0, kinds=["goal_move"])
    env.reset()
    for _ in range(100):
        env.step("turn_left")
        assert env.perturbation_note()["feedback"] == ""
    assert core.current_episode.goals is goals


@pytest.mark.parametrize("degrees", [-170.0, -10.0, 0.0, 35.0, 90.0])
def test_a_kick_turns_about_the_vertical(degrees: float) -> None:
    x, y, z, w = turned(about_y(0.4), degrees)
    assert (x, z) == (0.0, 0.0)
    assert math.remainder(2 * math.atan2(y, w) - 0.4 - math.radians(degrees), 2 * math.pi) == pytest.approx(
        0.0, abs=1e-12
    )
    tilted = SimpleNamespace(x=0.5, y=0.5, z=0.5, w=0.5)
    assert math.hypot(*turned(tilted, degrees)) == pytest.approx(1.0)


def test_behind_gym_the_info_tells_of_it(lab_traces: list[Trace]) -> None:
    env: Any = disturbed(FakeRLEnv(lab_traces), 1.0, kinds=["sensor_noise"], seed=4)
    env.reset()
    notes = [env.step(row["action"])[-1]["springback"] for row in lab_traces[0]]
    told = [note["feedback"] for note in notes if note["feedback"]]
    assert told[0] == "onset: sensor_noise"
    assert set(told[1:]) == {"perturbed: sensor_noise"}
    assert notes[0]["traits"]["stress"] == 1.0


def test_the_distance_is_that_to_the_goal_where_it_is_now() -> None:
    core = LiveEnv()
    env: Any = disturbed(core, 1.0, kinds=["goal_move"], seed=3)
    env.reset()
    told = set()
    for _ in range(100):
        env.step("turn_left")
        goal = core.current_episode.goals[0].position
        assert core.get_metrics()["distance_to_goal"] == math.dist(core.sim.position, goal)
        told.add(tuple(goal))
    assert len(told) > 1


@pytest.mark.parametrize("parts", [4, 5])
def test_dropped_actions_behind_gym_look_like_steps(parts: int) -> None:
    class Gym:
        """A Gym-style environment around the live one."""

        def __init__(self) -> None:
            self.habitat_env = LiveEnv()

        def reset(self) -> Any:
            return self.habitat_env.reset()

        def step(self, action: Any) -> Any:
            seen, env = self.habitat_env.step(action), self.habitat_env
            return seen, 1.0, env.episode_over, *[False] * (parts - 4), env.get_metrics()

    env: Any = disturbed(Gym(), 1.0, kinds=["action_drop"])
    env.reset()
    before = env.habitat_env.steps
    results = [env.step("turn_left") for _ in range(100)]
    assert {len(result) for result in results} == {parts}
    assert before < env.habitat_env.steps < 100
    dropped = [result for result in results if result[-1]["springback"]["feedback"]]
    assert {result[1:-1] for result in dropped} == {(0.0, *[False] * (parts - 3))}
    assert not results[0][-1]["springback"]["feedback"]


def test_sensors_tell_the_pose_that_has_drifted() -> None:
    core = LiveEnv()
    env: Any = disturbed(core, 1.0, kinds=["sensor_noise"], seed=2)
    core._seen = lambda fresh: {"gps": np.array([1.0, 2.0]), "compass": np.array([0.5])}  # type: ignore[method-assign]
    dice = NavigationDice(1.0, seed=2, kinds=["sensor_noise"])
    env.reset()
    dice.begin("hall.glb/3")
    for _ in range(50):
        seen, throw = env.step("turn_left"), dice.throw()
        assert seen["gps"] == pytest.approx(np.array([1.0, 2.0]) + throw.drift_m)
        assert seen["compass"] == pytest.approx(0.5 + math.radians(throw.drift_deg))


def noisy(env: Any) -> Any:
    """The first observation in a spell of noise."""
    while not (seen := env.step("turn_left")) or not env.perturbation_note()["feedback"]:
        assert not env.episode_over
    return seen


def test_sensors_drift_and_the_world_does_not() -> None:
    core = LiveEnv()
    env: Any = disturbed(core, 1.0, kinds=["sensor_noise"])
    env.reset()
    seen = noisy(env)
    true = core._seen({})
    assert not np.allclose(seen["pointgoal_with_gps_compass"], true["pointgoal_with_gps_compass"], atol=1e-6)
    assert seen["pointgoal_with_gps_compass"].dtype == np.float32
    assert not np.allclose(seen["depth"], 1.0)


@pytest.mark.parametrize(("severity", "kinds"), [(1.1, DISTURBANCES), (0.5, ["flood"]), (0.5, [])])
def test_what_cannot_be_is_refused(severity: float, kinds: Any) -> None:
    with pytest.raises(ValueError, match=r"a severity lies in|there is no disturbance"):
        disturbed(LiveEnv(), severity, kinds=kinds)


def test_what_has_no_habitat_behind_it_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot disturb a object"):
        disturbed(object(), 0.5)


@pytest.mark.usefixtures("habitat_sim")
def test_a_bare_simulator_is_disturbed_and_its_loop_takes_the_moved_goal() -> None:
    publisher = MemoryPublisher()
    with StepEmitter(publisher, producer="habitat", session="s", clock=lambda: 1.8e9) as emitter:
        bare = LiveSimulator()
        loop: Any = watch(disturbed(bare, 1.0, seed=2), emitter, family="nav")
        loop.begin_episode(goals=[[3.0, 0.0, -4.0]], episode="3")
        for _ in range(120):
            loop.step("move_forward")
        loop.end_episode("timeout")
    rows = [row for _, row in rows_of(publisher.frames)]
    acting = {name for row in rows if row["feedback"] for name in row["feedback"].partition(": ")[2].split(", ")}
    assert acting == set(DISTURBANCES) - {"paraphrase"}  # a bare simulator has no instructions
    (end,) = ends_of(publisher.frames).values()
    assert end.realised_magnitude is not None
    header = publisher.frames[0].episodes[0]
    assert (header.perturbation, header.perturbation_name, header.attack) == ("mixed", "mixed", "mixed")
    assert next(row["feedback"] for row in rows if row["feedback"]).startswith("onset: ")
    assert all((row["travel"] == 0.0) is ("action_drop" in row["feedback"]) for row in rows)
    assert loop.goals != [[3.0, 0.0, -4.0]]
    assert publisher.frames[0].episodes[0].stress == 1.0


def ended(env: Any, emitter: StepEmitter, publisher: MemoryPublisher) -> Any:
    """The end of an episode of the follower, the header and the rows."""
    observations = env.reset()
    while not env.episode_over:
        observations = env.step(follow(observations))
    assert emitter.flush()
    (end,) = ends_of(publisher.frames).values()
    return end, publisher.frames[0].episodes[0], [row for _, row in rows_of(publisher.frames)]


@pytest.mark.parametrize(
    ("kind", "dose"),
    [
        # By their definition: of n steps k were hit, and at severity 1 it would be 18 %, or 6 %.
        ("action_drop", lambda hits, steps: hits / steps / 0.18),
        ("heading_kick", lambda hits, steps: hits / steps / 0.06),
        ("goal_move", lambda hits, steps: hits / 2),
        # A spell begins at 2 % of the steps and lasts 40: in none are 0.98**40 = 44.6 % of them.
        ("sensor_noise", lambda hits, steps: hits / steps / (1 - 0.98**40)),
    ],
)
def test_the_end_says_how_much_there_really_was(
    kind: DisturbanceName, dose: Any, emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    env: Any = watch(disturbed(LiveEnv(), 0.9, seed=5, kinds=[kind]), emitter, family="nav")
    end, _, rows = ended(env, emitter, publisher)
    hits = sum(bool(row.get("feedback")) for row in rows)
    assert end.realised_magnitude == pytest.approx(dose(hits, len(rows)))


def test_a_clean_run_has_no_magnitude_to_tell(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    end, header, _ = ended(watch(disturbed(LiveEnv(), 0.0), emitter, family="nav"), emitter, publisher)
    assert (end.realised_magnitude, header.attack, header.stress) == (None, "none", 0.0)


def test_who_only_watches_does_not_know_the_stress(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    _, header, _ = ended(watch(LiveEnv(), emitter, family="nav"), emitter, publisher)
    assert header.stress is None


class Instruction(SimpleNamespace):
    """habitat-lab's `InstructionData`."""


@pytest.mark.parametrize("as_data", [True, False])
def test_an_instruction_is_reworded_and_put_back(
    as_data: bool, emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    told = "Walk to the sofa, then stop next to the red plant."
    given: Any = Instruction(instruction_text=told, instruction_tokens=[4, 5]) if as_data else told
    core = LiveEnv()
    core.current_episode.instruction = given

    def text_of(instruction: Any) -> str:
        return str(instruction.instruction_text if as_data else instruction)

    seen = core._seen

    def with_instruction(fresh: dict[str, Any]) -> dict[str, Any]:
        said = text_of(core.current_episode.instruction)
        return {**seen(fresh), "instruction": {"text": said, "tokens": [4, 5]} if as_data else said}

    core._seen = with_instruction  # type: ignore[method-assign]
    expected = paraphrase(told, 0.6, seed=4)
    env: Any = watch(disturbed(core, 0.6, seed=4, kinds=["paraphrase"]), emitter, family="vln")
    first = env.reset()["instruction"]
    assert (first["text"] if as_data else first) == expected.text != told
    observations = env.step("move_forward")
    assert (observations["instruction"]["text"] if as_data else observations["instruction"]) == expected.text
    assert text_of(core.current_episode.instruction) == expected.text
    while not env.episode_over:
        observations = env.step(follow(observations))
    assert emitter.flush()
    (end,) = ends_of(publisher.frames).values()
    assert end.realised_magnitude == expected.share
    header = publisher.frames[0].episodes[0]
    assert (header.instruction, header.perturbation, header.attack) == (expected.text, "semantic", "model")
    rows = [row["feedback"] for _, row in rows_of(publisher.frames)]
    assert rows[:2] == ["onset: paraphrase", ""]
    env.close()
    assert core.current_episode.instruction is given


def test_an_instruction_in_which_nothing_can_be_changed_is_not_told_as_reworded() -> None:
    core = LiveEnv()
    core.current_episode.instruction = "."
    env: Any = disturbed(core, 0.9, kinds=["paraphrase"])
    env.reset()
    env.step("turn_left")
    assert core.current_episode.instruction == "."
    note = env.perturbation_note()
    assert (note["feedback"], note["realised_magnitude"]) == ("", 0.0)


def test_an_episode_without_an_instruction_is_not_reworded(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    env: Any = watch(disturbed(LiveEnv(), 0.9, kinds=["paraphrase"]), emitter, family="nav")
    end, _, rows = ended(env, emitter, publisher)
    assert end.realised_magnitude == 0.0
    assert not any(row.get("feedback") for row in rows)


def test_noise_without_a_sensor_for_it_is_not_told() -> None:
    core = LiveEnv()
    core._seen = lambda fresh: {"rgb": np.zeros((2, 2))}  # type: ignore[method-assign]
    env: Any = disturbed(core, 1.0, kinds=["sensor_noise"])
    env.reset()
    env.step("turn_left")
    note = env.perturbation_note()
    assert (note["feedback"], note["realised_magnitude"]) == ("", 0.0)

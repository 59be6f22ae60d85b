from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from springback.producers.babyai_testbed.play import DEFAULT_START_S, PlayedStep, play
from springback.producers.babyai_testbed.recording import TestbedRecording, record
from springback.producers.babyai_testbed.simulated_time import CostModel
from springback.producers.babyai_testbed.tasks import TASK_FAMILIES, Task, plan_episodes, task_sequence
from springback.producers.contract.frame import StepFrame, TextColumn
from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.perturbations.kinds import ATTACK_OF
from springback.producers.perturbations.paraphrase import plain
from springback.producers.perturbations.severity import DISTURBANCES, KIND_OF, DisturbanceName
from springback.producers.recordings.step_frames import read_frames
from springback.stream_processors.intake.step_table import ArrivedFrame
from springback.stream_processors.intake.validation import tabulate

EPISODES = 10


def played(
    task: Task, stress: float = 0.0, disturbance: DisturbanceName | None = None, costs: CostModel | None = None
) -> tuple[list[PlayedStep], list[StepFrame]]:
    publisher = MemoryPublisher()
    with StepEmitter(publisher, producer="test", session="s") as emitter:
        steps = list(play(task, emitter, episode="e", stress=stress, disturbance=disturbance, costs=costs))
    return steps, publisher.frames


@cache
def clean(family: str) -> list[tuple[Task, list[PlayedStep], list[StepFrame]]]:
    """Clean runs of a family's tasks, played once for all tests that look at them."""
    return [(task, *played(task)) for task in islice(task_sequence(family, seed=5), EPISODES)]


@pytest.mark.parametrize("family", TASK_FAMILIES)
def test_clean_tasks_are_solved(family: str) -> None:
    solved = [steps for _, steps, _ in clean(family) if steps[-1].outcome == "success"]
    assert len(solved) >= 0.9 * EPISODES
    for episode in solved:
        assert episode[-1].signals["progress"] == episode[-1].signals["propositions"] == 1.0
        assert not any(step.signals["retries"] or step.signals["violation"] for step in episode)


@pytest.mark.parametrize("family", TASK_FAMILIES)
def test_the_end_tells_how_the_way_was(family: str) -> None:
    for _, steps, frames in clean(family):
        navigation = frames[-1].ends[0].navigation
        assert navigation is not None
        assert navigation.path == sum(step.signals["travel"] for step in steps)
        assert navigation.actions == len(steps)
        assert navigation.path is not None
        assert navigation.shortest_path is not None
        assert navigation.path >= navigation.shortest_path >= 0.0
        assert navigation.shortest_actions is not None
        assert len(steps) >= navigation.shortest_actions - 1  # beside the target counts as there
        assert navigation.goals_total
        if steps[-1].outcome == "success":
            assert (navigation.final_distance, navigation.target_in_view) == (0.0, True)
            assert navigation.goals_met == navigation.goals_total


def test_an_end_out_of_time_tells_what_was_left() -> None:
    task = Task("navigation", "BabyAI-GoToObjMazeS5-v0", 3, step_limit=2)
    steps, frames = played(task)
    navigation = frames[-1].ends[0].navigation
    assert steps[-1].outcome == "timeout"
    assert navigation is not None
    assert navigation.goals_met == 0
    assert navigation.final_distance is not None
    assert navigation.final_distance > 0.0


@pytest.mark.parametrize("family", TASK_FAMILIES)
def test_every_row_passes_the_workers_validation(family: str) -> None:
    publisher = MemoryPublisher()
    with StepEmitter(publisher, producer="test") as emitter:
        for number, episode in enumerate(plan_episodes(3, families=[family], stresses=[0.0, 0.5, 1.0], seed=3)):
            for _ in play(
                episode.task, emitter, episode=str(number), stress=episode.stress, disturbance=episode.disturbance
            ):
                pass
    table = tabulate([ArrivedFrame(frame, DEFAULT_START_S + 100.0) for frame in publisher.frames])
    assert table.rejected == []
    assert len(table.ends) == 9
    assert set(table.mode_names) <= {"navigate", "explore", "manipulate", "plan"}
    assert (table.cycle_time_s > 0.0).all()
    assert (table.planning_s > 0.0).all()
    assert (table.perception_s > 0.0).all()


def test_the_header_names_the_task_and_its_twin() -> None:
    task = next(task_sequence("transportation", seed=1))
    (_, clean), (_, disturbed) = played(task), played(task, 0.6, "mis-grounding")
    reference, twin = clean[0].episodes[0], disturbed[0].episodes[0]
    assert reference.task == twin.task == task.task_id
    assert reference.instruction == twin.instruction
    assert reference.instruction.startswith("put the ")
    assert (reference.reference, reference.stress, reference.perturbation) == (True, 0.0, "none")
    assert (twin.reference, twin.stress, twin.magnitude) == (False, 0.6, 0.6)
    assert (twin.perturbation, twin.perturbation_name, twin.method) == ("semantic", "mis-grounding", "babyai-bot")


@pytest.mark.parametrize("name", DISTURBANCES)
def test_the_header_says_which_attack_it_is_and_the_end_how_much_there_was(name: DisturbanceName) -> None:
    task = next(task_sequence("transportation", seed=1))
    (_, clean), (steps, disturbed) = played(task), played(task, 0.6, name)
    header, end = disturbed[0].episodes[0], disturbed[-1].ends[0]
    assert (header.perturbation, header.perturbation_name) == (KIND_OF[name], name)
    assert header.attack == ATTACK_OF[KIND_OF[name]]
    assert (clean[0].episodes[0].attack, clean[-1].ends[0].realised_magnitude) == ("none", None)
    assert clean[0].episodes[0].stress == 0.0  # declared: nothing disturbs it
    assert end.realised_magnitude is not None
    assert 0.0 <= end.realised_magnitude <= 2.0
    assert end.realised_magnitude == steps[-1].signals["realised_magnitude"]


def test_a_mission_in_other_words_is_the_same_mission() -> None:
    task = next(task_sequence("composite", seed=6))
    (_, clean), (_, told) = played(task), played(task, 1.0, "paraphrase")
    said = told[0].episodes[0].instruction
    assert said != clean[0].episodes[0].instruction == plain(said)
    assert told[-1].ends[0].realised_magnitude == 1.0


def test_reading_again_is_no_failed_action() -> None:
    _, frames = played(next(task_sequence("navigation", seed=6)), 1.0, "paraphrase")
    actions, retries = frames[0].steps["action"], frames[0].steps["retries"]
    assert isinstance(actions, TextColumn)
    assert isinstance(retries, np.ndarray)
    waits = [retry for action, retry in zip(actions.texts(), retries.tolist(), strict=True) if action == "done"]
    assert len(waits) >= 3  # "go to", the courtesy and the aside at least
    assert set(waits) == {0.0}


def test_other_words_cost_more_the_more_there_are() -> None:
    tasks = [task for family in TASK_FAMILIES for task, _, _ in clean(family)[:6]]
    steps = [sum(len(played(task, stress, "paraphrase")[0]) for task in tasks) for stress in (0.0, 0.3, 1.0)]
    assert steps[0] < steps[1] < steps[2]


@pytest.mark.parametrize("kind", DISTURBANCES)
def test_a_run_is_a_function_of_its_arguments(kind: DisturbanceName) -> None:
    task = next(task_sequence("manipulation", seed=4))
    first, again = played(task, 0.8, kind)[0], played(task, 0.8, kind)[0]
    assert first == again
    assert first != played(task)[0]


def test_interleaved_plays_do_not_touch_each_other() -> None:
    tasks = list(islice(task_sequence("navigation", seed=5), 2))
    alone = [played(task, 0.8, "slip")[0] for task in tasks]
    with StepEmitter(MemoryPublisher(), producer="test") as emitter:
        plays = [play(t, emitter, episode=t.task_id, stress=0.8, disturbance="slip") for t in tasks]
        together: list[list[PlayedStep]] = [[], []]
        while len(together[0]) < len(alone[0]) or len(together[1]) < len(alone[1]):
            for steps, one in zip(together, plays, strict=True):
                steps += list(islice(one, 1))
    assert together == alone


def test_a_play_that_is_closed_early_aborts_its_episode() -> None:
    publisher = MemoryPublisher()
    with StepEmitter(publisher, producer="test") as emitter:
        episode = play(next(task_sequence("navigation")), emitter, episode="e")
        next(episode)
        episode.close()
        assert emitter.flush()
        assert [end.outcome for frame in publisher.frames for end in frame.ends] == ["aborted"]


@pytest.mark.parametrize("kind", DISTURBANCES)
def test_the_agent_recovers_and_pays_for_it(kind: DisturbanceName) -> None:
    runs = [run for family in TASK_FAMILIES for run in clean(family)[:5]]
    tasks, undisturbed = [task for task, _, _ in runs], [steps for _, steps, _ in runs]
    disturbed = [played(task, 0.8, kind)[0] for task in tasks]
    assert sum(episode[-1].outcome == "success" for episode in disturbed) >= 0.7 * len(tasks)
    assert sum(map(len, disturbed)) > 1.15 * sum(map(len, undisturbed))
    assert sum(_duration_s(e) for e in disturbed) > 1.15 * sum(_duration_s(e) for e in undisturbed)
    if kind == "slip":
        assert sum(step.signals["retries"] for episode in disturbed for step in episode) > len(tasks)
    replanned = [e for e in disturbed if any(step.replanned for step in e) and e[-1].outcome == "success"]
    assert len(replanned) > len(tasks) / 5


def _duration_s(episode: list[PlayedStep]) -> float:
    return episode[-1].time_s - DEFAULT_START_S


def test_a_replan_costs_planning_time() -> None:
    task = next(task_sequence("transportation", seed=1))
    cheap, dear = (played(task, 0.8, "mis-grounding", CostModel(replan_s=cost)) for cost in (0.5, 2.5))
    replans = [step.step for step in cheap[0] if step.replanned]
    assert replans
    extra = dear[0][-1].time_s - cheap[0][-1].time_s
    assert extra == pytest.approx(2.0 * len(replans), abs=1e-5)


def test_severity_zero_is_clean_whatever_the_kind() -> None:
    task = next(task_sequence("navigation", seed=1))
    assert played(task, 0.0, "slip")[0] == played(task)[0]


def test_wrong_arguments_are_refused_before_anything_is_played() -> None:
    task = next(task_sequence("navigation"))
    with StepEmitter(MemoryPublisher(), producer="test") as emitter:
        with pytest.raises(ValueError, match="needs a disturbance: slip, mis-grounding, paraphrase, moved"):
            play(task, emitter, episode="e", stress=0.5)
        with pytest.raises(ValueError, match=r"a severity lies in \[0, 1\], got 1.5"):
            play(task, emitter, episode="e", stress=1.5, disturbance="slip")
        with pytest.raises(ValueError, match="there is no disturbance 'wind'"):
            play(task, emitter, episode="e", stress=0.5, disturbance="wind")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="there is no task family 'cooking'"):
        task_sequence("cooking")


def test_recordings_of_the_same_arguments_are_byte_identical(tmp_path: Path) -> None:
    def made(name: str, seed: int) -> TestbedRecording:
        families = ("navigation", "transportation")
        return record(tmp_path / name, episodes=2, families=families, stresses=(0.0, 0.8), seed=seed, frame_steps=16)

    one, again, other = made("a.jsonl", 9), made("b.jsonl", 9), made("c.jsonl", 10)
    assert one.path.read_bytes() == again.path.read_bytes() != other.path.read_bytes()
    assert one.episodes == 8
    frames = [part.frame for part in read_frames([one.path])]
    assert sum(frame.n_steps for frame in frames) == one.steps
    assert max(frame.n_steps for frame in frames) == 16


def test_a_recording_names_its_version_and_has_its_costs(tmp_path: Path) -> None:
    steps: dict[str, list[StepFrame]] = {}
    for version, costs in (("1", None), ("2", CostModel(look_s=5.0))):
        path = tmp_path / f"{version}.jsonl"
        record(path, episodes=1, families=["navigation"], stresses=(0.0,), version=version, costs=costs)
        steps[version] = [part.frame for part in read_frames([path])]
        assert {header.version for frame in steps[version] for header in frame.episodes} == {version}
    looked = [frames[0].steps["perception_s"] for frames in steps.values()]
    assert (np.asarray(looked[1]) >= 5.0).all()
    assert (np.asarray(looked[0]) < 1.0).all()


def test_a_recording_is_not_written_over_another(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    path.write_text("precious\n")
    with pytest.raises(FileExistsError, match="exists already"):
        record(path, episodes=1)
    assert path.read_text() == "precious\n"


def test_without_the_extra_the_import_says_what_to_install() -> None:
    code = "import sys; sys.modules['minigrid'] = None; import springback.producers.babyai_testbed.play"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert re.search(r"pip install .*\[babyai\]'$", result.stderr.strip())


def test_nothing_is_printed_and_nothing_is_warned_of(tmp_path: Path) -> None:
    code = f"""
from springback.producers.babyai_testbed.recording import TestbedRecording, record
record({str(tmp_path / "r.jsonl")!r}, episodes=2, stresses=[0.0])
"""
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")

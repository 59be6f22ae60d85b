"""Situation 5 of "figures that cannot mislead": scores by attack, known fewest actions, metres, words that change."""

from pathlib import Path
from typing import Any

from springback.producers.babyai_testbed.recording import record
from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.habitat.watch import watch
from springback.producers.perturbations.habitat import disturbed
from springback.producers.perturbations.navigation import DisturbanceName
from springback.producers.recordings.step_frames import read_frames
from springback.stream_processors.offline.evaluation import evaluate_frames
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.families.family_aggregate import aggregate, in_order
from tests.producers.habitat.live_habitat import LiveEnv, follow


def scores(frames: list[Any]) -> dict[str, Any]:
    """The navigation scores of the one family, by attack."""
    evaluation = evaluate_frames(frames, ResilienceConfig())
    [reading] = aggregate(in_order(evaluation.begun, evaluation.summaries), AggregateConfig())
    return reading.navigation


def test_situation_5_babyai_is_told_apart_by_attack_and_changes_instructions(tmp_path: Path) -> None:
    made = record(tmp_path / "babyai.jsonl", families=["navigation"], episodes=4, stresses=(0.0, 0.6), seed=2)
    frames = [part.frame for part in read_frames([made.path])]
    found = scores(frames)
    # Four tasks, each clean and once disturbed: slip and moved are physical, mis-grounding and paraphrase of the model.
    assert {attack: of.episodes for attack, of in found.items()} == {"all": 8, "none": 4, "physical": 2, "model": 2}
    assert all(of.success_rate is not None and of.sel is not None for of in found.values())
    headers = {(header.task, header.perturbation_name): header for frame in frames for header in frame.episodes}
    [reworded] = [header for (_, name), header in headers.items() if name == "paraphrase"]
    assert reworded.instruction != headers[reworded.task, ""].instruction
    assert {end.navigation.metres_per_unit for frame in frames for end in frame.ends if end.navigation} == {1.0}


def test_situation_5_habitat_says_what_its_noise_is_and_knows_the_fewest_actions() -> None:
    publisher = MemoryPublisher()
    runs: list[tuple[float, DisturbanceName]] = [(0.0, "action_drop"), (0.5, "action_drop"), (0.5, "sensor_noise")]
    with StepEmitter(publisher, producer="habitat", session="s") as emitter:
        for number, (severity, kind) in enumerate(runs):
            env: Any = watch(disturbed(LiveEnv(), severity, kinds=[kind]), emitter, family="nav", agent=str(number))
            observations = env.reset()
            while not env.episode_over:
                observations = env.step(follow(observations))
    found = scores(publisher.frames)
    assert {attack: of.episodes for attack, of in found.items()} == {"all": 3, "none": 1, "physical": 1, "model": 1}
    kinds = {header.perturbation for frame in publisher.frames for header in frame.episodes}
    assert kinds == {"none", "physical", "perception"}
    # The goal is 5 m away, 20 steps of 0.25 m, at 36.9 degrees to the right, 4 turns of 10: an estimate of 24 actions.
    [clean] = [end for frame in publisher.frames for end in frame.ends if frame.episodes[end.episode].reference]
    assert clean.navigation is not None
    assert clean.navigation.shortest_actions == 24
    assert found["none"].sel == min(1.0, 24 / (clean.navigation.actions or 0))

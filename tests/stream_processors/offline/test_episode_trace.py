"""One episode step by step: what is taken out of the frames of many, and what the core makes of it."""

import gzip
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
from hypothesis import given

from springback.producers.contract.codec import decode_frame, encode_json, encode_msgpack
from springback.producers.contract.frame import StepFrame, TextColumn
from springback.stream_processors.offline.episode_trace import only_episode, trace_episode
from springback.stream_processors.offline.evaluation import arrivals, evaluate, learn_baseline
from springback.stream_processors.offline.switched_evaluation import PlacedFrame, evaluate_switched
from springback.stream_processors.resilience.baseline.stage_baseline import StageBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import EpisodeKey
from tests.stream_processors.frame_builders import frame_of_parts, header_of, nominal_rows
from tests.stream_processors.random_episodes import by_seed, cut_into_frames, judged_episodes, seeds, with_bad_samples

CONFIG = ResilienceConfig()


def placed(frames: list[StepFrame]) -> list[PlacedFrame]:
    return [PlacedFrame(number, arrived) for number, arrived in enumerate(arrivals(frames))]


def of_episode(frames: list[PlacedFrame], key: EpisodeKey) -> list[PlacedFrame]:
    found = [(frame, only_episode(frame.arrived.frame, key)) for frame in frames]
    return [frame._replace(arrived=replace(frame.arrived, frame=part)) for frame, part in found if part is not None]


@by_seed(25)
@given(seed=seeds)
def test_an_episode_alone_comes_to_what_it_came_to_among_the_others(seed: int) -> None:
    frames = cut_into_frames(with_bad_samples(judged_episodes(seed, references=12, others=3), seed), seed)
    learned = learn_baseline(frames, CONFIG)
    middle = len(frames) // 2
    stream = placed(frames)
    switches = [(3, StageBaseline(grid=CONFIG.grid)), (middle // 2, learned)]
    whole, _ = evaluate_switched({0: stream}, {0: switches}, CONFIG)
    for summary in whole.summaries:
        trace = trace_episode(summary.key, of_episode(stream, summary.key), switches, CONFIG)
        assert len(trace.steps) == summary.steps
        assert sum(step.figures is None for step in trace.steps) == summary.unscored_steps
        windows = [window for window in whole.windows if window.key == summary.key]
        assert [window for _, window in sorted(trace.windows.items())] == windows
        if trace.summary is not None:  # whoever has not told its end was closed with the recording
            assert trace.summary == summary


def test_a_part_of_a_frame_has_the_rows_the_texts_and_the_end_of_its_episode_alone() -> None:
    parts = [
        (header_of(agent="a"), [row | {"action": "left"} for row in nominal_rows(0, 3)], None),
        (header_of(agent="b"), [row | {"action": "right"} for row in nominal_rows(5, 7)], "failure"),
    ]
    frame = frame_of_parts(parts)  # type: ignore[arg-type]
    found = only_episode(frame, EpisodeKey("b", "boot", "1"))
    assert found is not None
    assert found.steps["step"].tolist() == [5, 6]  # type: ignore[union-attr]
    assert found.steps["episode"].tolist() == [0, 0]  # type: ignore[union-attr]
    action = found.steps["action"]
    assert isinstance(action, TextColumn)
    assert action.texts() == ["right", "right"]
    assert [(end.episode, end.outcome) for end in found.ends] == [(0, "failure")]
    assert [header.agent for header in found.episodes] == ["b"]
    for other in (("b", "other boot", "1"), ("c", "boot", "1"), ("b", "boot", "2")):
        assert only_episode(frame, EpisodeKey(*other)) is None


def test_rows_that_cannot_be_read_are_left_out_and_the_rest_is_a_frame() -> None:
    frame = frame_of_parts([(header_of(), nominal_rows(0, 4), None)])
    document = msgspec.json.decode(encode_json(frame))
    document["steps"]["progress"][2] = "half"
    damaged = decode_frame(msgspec.json.encode(document))
    assert damaged.faults
    found = only_episode(damaged, EpisodeKey("robot-7", "boot", "1"))
    assert found is not None
    assert found.steps["step"].tolist() == [0, 1, 3]  # type: ignore[union-attr]
    assert not decode_frame(encode_json(found)).faults


def test_a_recording_of_the_parts_is_evaluated_to_the_same_windows(tmp_path: Path) -> None:
    frames = [decode_frame(encode_msgpack(frame)) for frame in cut_into_frames(judged_episodes(5, 12), 5)]
    learned = learn_baseline(frames, CONFIG)
    stream = placed(frames)
    whole, _ = evaluate_switched({0: stream}, {0: [(0, learned)]}, CONFIG)
    key = next(window.key for window in whole.windows)
    parts = [part for frame in frames if (part := only_episode(frame, key)) is not None]
    recording = tmp_path / "steps.jsonl.gz"
    recording.write_bytes(gzip.compress(b"".join(encode_json(part) + b"\n" for part in parts)))
    found = evaluate(recording, baseline=learned, config=CONFIG)
    assert found.windows == [window for window in whole.windows if window.key == key]
    assert np.isfinite([step.intensity for w in found.windows for step in w.evidence.steps]).all()  # type: ignore[union-attr]

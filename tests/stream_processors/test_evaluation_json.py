"""The JSON form of an evaluation: every episode with its own closed windows, in order."""

import gzip
import json
from pathlib import Path

import msgspec

from stream_processors.evaluation_json import evaluation_json
from stream_processors.in_memory_driver import evaluate
from stream_processors.resilience.resilience_config import ResilienceConfig
from tests.stream_processors.frame_builders import frame_of, nominal_rows

EXPECTED = Path(__file__).parents[1] / "data" / "habitat_lab_pointnav.expected.json.gz"
REFERENCES = [frame_of(nominal_rows(0, 20), "success", episode=f"r{i}", reference=True) for i in range(6)]


def test_has_the_keys_of_the_independent_expectations() -> None:
    with gzip.open(EXPECTED) as file:
        expected = json.load(file)
    rows = nominal_rows(0, 20)
    rows[7] |= {"travel": 9.0, "risk": 1.0}
    evaluation = evaluate([*REFERENCES, frame_of(rows, "failure", episode="1")], ResilienceConfig())
    document = json.loads(msgspec.json.encode(evaluation_json(evaluation.summaries, evaluation.windows)))
    assert document.keys() >= expected.keys()
    assert document["episodes"][-1].keys() >= expected["episodes"][0].keys()
    [window] = document["episodes"][-1]["windows"]
    assert window.keys() >= expected["episodes"][0]["windows"][0].keys()
    assert document["families"][0].keys() >= {"family", "method", "stress", "episodes", "success_rate"}


def test_windows_stand_with_their_own_episode_in_order_and_open_ones_nowhere() -> None:
    rows = nominal_rows(0, 20)
    rows[4] |= {"travel": 9.0, "risk": 1.0}
    rows[12] |= {"travel": 9.0, "risk": 1.0}
    frames = [*REFERENCES, frame_of(rows, "success", episode="two"), frame_of(nominal_rows(0, 20), "success")]
    evaluation = evaluate(frames, ResilienceConfig())
    opened = [msgspec.structs.replace(w, state="open") for w in evaluation.windows]
    document = evaluation_json(evaluation.summaries, [*opened, *reversed(evaluation.windows)])
    windows = {episode.episode: [w.departure_step for w in episode.windows] for episode in document.episodes}
    assert windows["two"] == [4, 12]
    assert windows["1"] == []
    assert [episode.episode for episode in document.episodes] == [s.key.episode for s in evaluation.summaries]


def test_an_unscored_episodes_cost_is_null() -> None:
    evaluation = evaluate([frame_of(nominal_rows(0, 3), "failure")], ResilienceConfig())
    [episode] = json.loads(msgspec.json.encode(evaluation_json(evaluation.summaries, evaluation.windows)))["episodes"]
    assert episode["recovery_cost"] is None
    assert episode["unscored_steps"] == 3

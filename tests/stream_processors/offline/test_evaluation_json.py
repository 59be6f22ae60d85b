"""The JSON form of an evaluation: every episode with its own closed windows, in order."""

import gzip
import json

import msgspec
import pytest

from springback.producers.contract.frame import NavigationOutcome
from springback.stream_processors.offline.evaluation import evaluate_frames
from springback.stream_processors.offline.tables import evaluation_json
from springback.stream_processors.resilience.baseline.stage_baseline import BaselineConfig
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.families.family_aggregate import aggregate, in_order, monitors
from tests.house import DATA
from tests.stream_processors.frame_builders import frame_of, frame_of_parts, header_of, nominal_rows

EXPECTED = DATA / "habitat_lab_pointnav.expected.json.gz"
REFERENCES = [frame_of(nominal_rows(0, 20), "success", episode=f"r{i}", reference=True) for i in range(6)]


def test_has_the_keys_of_the_independent_expectations() -> None:
    with gzip.open(EXPECTED) as file:
        expected = json.load(file)
    rows = nominal_rows(0, 20)
    rows[7] |= {"travel": 9.0, "risk": 1.0}
    evaluation = evaluate_frames([*REFERENCES, frame_of(rows, "failure", episode="1")], ResilienceConfig())
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
    evaluation = evaluate_frames(frames, ResilienceConfig())
    opened = [msgspec.structs.replace(w, state="open") for w in evaluation.windows]
    document = evaluation_json(evaluation.summaries, [*opened, *reversed(evaluation.windows)])
    windows = {episode.episode: [w.departure_step for w in episode.windows] for episode in document.episodes}
    assert windows["two"] == [4, 12]
    assert windows["1"] == []
    assert [episode.episode for episode in document.episodes] == [s.key.episode for s in evaluation.summaries]


def test_an_unscored_episodes_cost_is_null() -> None:
    evaluation = evaluate_frames([frame_of(nominal_rows(0, 3), "failure")], ResilienceConfig())
    [episode] = json.loads(msgspec.json.encode(evaluation_json(evaluation.summaries, evaluation.windows)))["episodes"]
    assert episode["recovery_cost"] is None
    assert episode["unscored_steps"] == 3


def test_a_summary_carries_the_magnitude_that_was_realised_and_its_way_in_metres() -> None:
    told = NavigationOutcome(final_distance=3.0, path=10.0, actions=12, metres_per_unit=0.5)
    frame = frame_of(nominal_rows(0, 20), "failure")
    end = msgspec.structs.replace(frame.ends[0], navigation=told, realised_magnitude=0.35)
    [summary] = evaluate_frames([msgspec.structs.replace(frame, ends=(end,))], ResilienceConfig()).summaries
    assert summary.realised_magnitude == 0.35
    assert summary.navigation is not None
    assert (summary.navigation.final_distance, summary.navigation.path, summary.navigation.actions) == (1.5, 5.0, 12)


def test_an_episode_says_that_work_was_added_to_it() -> None:
    for told in (True, False):
        frame = frame_of(nominal_rows(0, 20), "success")
        end = msgspec.structs.replace(frame.ends[0], extended=told)
        evaluation = evaluate_frames([msgspec.structs.replace(frame, ends=(end,))], ResilienceConfig())
        assert [summary.extended for summary in evaluation.summaries] == [told]
        written = json.loads(msgspec.json.encode(evaluation_json(evaluation.summaries, evaluation.windows)))
        assert written["episodes"][0]["extended"] == told


def test_the_first_header_of_an_episode_counts() -> None:
    rows = nominal_rows(0, 20)
    for first, later in ((None, 0.8), (0.2, 0.8), (0.2, None)):
        frames = [frame_of(rows[:10], stress=first), frame_of(rows[10:], "success", stress=later)]
        [summary] = evaluate_frames(frames, ResilienceConfig()).summaries
        assert (summary.traits.stress, summary.steps) == (first, 20)


REPORTED = {
    "success_rate", "spl", "sel", "goal_completion", "thresholds", "navigation", "provisional", "bound_references",
    "bound_references_needed", "beta", "beta_p95", "beta_by_kind", "beta_unpaired", "beta_difference", "unpaired",
    "stability_repeatability", "capacity", "capacity_flag", "dependable", "tested_up_to", "first_breach", "margins",
    "undeclared", "audc", "audc_from", "audc_to", "cliff",
}  # fmt: skip
OF_A_MARGIN = {
    "stress", "episodes", "margin", "favourable_margin", "state", "violations", "violation_low", "violation_high",
    "provisional",
    "progress", "propositions", "recovery", "stability", "safety",
}  # fmt: skip


def test_says_what_each_family_withstands_and_how_each_episode_kept_its_contract() -> None:
    rows = nominal_rows(0, 20)
    for row in rows[2:18]:
        row |= {"travel": 9.0, "risk": 1.0}
    ended = NavigationOutcome(shortest_path=4.0, path=8.0, target_in_view=True, final_distance=1.0)
    header = header_of(episode="hurt", task="r0", stress=0.4, magnitude=0.4, perturbation="physical")
    hurt = frame_of_parts([(header, rows, "success")])
    hurt = msgspec.structs.replace(hurt, ends=(msgspec.structs.replace(hurt.ends[0], navigation=ended),))
    config = ResilienceConfig(baseline=BaselineConfig(learning_references=6))
    evaluation = evaluate_frames([*REFERENCES, hurt, frame_of(nominal_rows(0, 9), episode="open")], config)
    readings = aggregate(in_order(evaluation.begun, evaluation.summaries), AggregateConfig())
    margins = monitors(evaluation.summaries, AggregateConfig())
    document = json.loads(
        msgspec.json.encode(evaluation_json(evaluation.summaries, evaluation.windows, reversed(readings), margins))
    )
    [family] = document["resilience"]
    assert family.keys() >= {"family", "method", "version", *REPORTED}
    assert [margin.keys() for margin in family["margins"]] == [OF_A_MARGIN] * 6
    assert (family["spl"], family["success_rate"], family["episodes"], family["censored"]) == (0.5, 1.0, 7, 1)
    assert [m["state"] for m in family["margins"]] == ["kept", *["insufficient"] * 5]
    assert family["capacity"] == 0.0
    episodes = {episode["episode"]: episode for episode in document["episodes"]}
    summaries = {summary.key.episode: summary for summary in evaluation.summaries}
    for name, episode in episodes.items():
        assert episode["stability_loss"] == summaries[name].stability_loss
        assert episode["beta_step"] == summaries[name].beta_step
        assert episode["contract_margin"] == margins.get(summaries[name].key)
    assert episodes["open"]["contract_margin"] is None
    # Six references stand behind the bounds, and no more are asked for.
    assert {(e["provisional"], e["bound_references"], e["gap"], e["joined"]) for e in episodes.values()} == {
        (False, 6, False, False)
    }
    assert [w["provisional"] for w in episodes["hurt"]["windows"]] == [False]
    assert episodes["hurt"]["contract_margin"] < episodes["r0"]["contract_margin"]
    clean, loss = episodes["r0"]["stability_loss"], episodes["hurt"]["stability_loss"]
    assert family["beta"] == pytest.approx(abs(loss - clean) / 0.4)


def test_families_stand_in_the_order_of_their_names() -> None:
    frames = [
        frame_of(nominal_rows(0, 5), "success", episode=f"e{f}{v}", family=f, version=v) for f in "ba" for v in "21"
    ]
    evaluation = evaluate_frames(frames, ResilienceConfig())
    readings = aggregate(evaluation.summaries, AggregateConfig())
    document = evaluation_json(evaluation.summaries, evaluation.windows, reversed(readings))
    names = [(row.family, row.version) for row in document.resilience]
    assert names == [("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")]
    assert all(episode.contract_margin is None for episode in document.episodes)

from __future__ import annotations

import json
from pathlib import Path

import pytest

from springback.producers.contract.suspicions import KINDS
from springback.producers.recordings.step_frames import read_frames
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.suspicions.batch_signs import WORKER_KINDS
from springback.stream_processors.suspicions.watcher import Message, SuspicionWatcher
from tests.stream_processors.suspicions.planted_faults import (
    EPISODES,
    KINDS_PLANTED,
    Doc,
    Plant,
    found_in,
    found_live,
    good,
    steps_of,
)

ROOT = Path(__file__).parents[3]
GIVEN = sorted([*ROOT.glob("producers/recordings/*.frames.jsonl.gz"), *ROOT.glob("tests/data/*.frames.jsonl.gz")])
LIVE_ONLY = {"wrong_key", "clock_zone"}
"""What a recording cannot show: it has neither keys nor a broker's clock."""


@pytest.mark.parametrize("plant", KINDS_PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found_and_nothing_else(plant: Plant) -> None:
    docs = good()
    found = found_in(plant(docs) or docs)
    assert {suspicion.kind for suspicion in found.suspicions} == KINDS_PLANTED[plant]
    for suspicion in found.suspicions:
        told = (suspicion.subject, suspicion.arrived, suspicion.expected, suspicion.damage, suspicion.advice)
        assert all(told)
        assert suspicion.count >= KINDS[suspicion.kind].least


def test_every_kind_is_planted_somewhere() -> None:
    planted = set().union(*KINDS_PLANTED.values())
    assert planted | LIVE_ONLY | {"unreadable_part"} == set(KINDS)
    assert set(WORKER_KINDS) <= set(KINDS)


def test_nothing_is_said_of_the_recording_that_the_faults_are_planted_in() -> None:
    found = found_in(good())
    assert found.suspicions == ()
    assert (found.looked_at.episodes, found.looked_at.references) == (EPISODES, EPISODES // 2)


@pytest.mark.parametrize("recording", GIVEN, ids=lambda path: path.name)
def test_nothing_is_said_of_the_recordings_that_come_with_springback(recording: Path) -> None:
    watcher = SuspicionWatcher(ResilienceConfig())
    watcher.watch([Message(each.data, str(each.line), frame=each.frame) for each in read_frames([recording])])
    assert watcher.finish().suspicions == ()


def test_there_are_recordings_to_say_nothing_of() -> None:
    assert len(GIVEN) >= 4


def test_how_frames_come_in_batches_changes_nothing() -> None:
    for plant in (None, *list(KINDS_PLANTED)[::6]):
        docs = good()
        docs = docs if plant is None else plant(docs) or docs
        assert found_in(docs, batch=1) == found_in(docs, batch=1000)


def test_a_look_at_a_topic_that_began_earlier_says_nothing() -> None:
    for first in (1, 2, 5):
        assert found_live(good()[first : first + 40]).suspicions == ()


def test_a_topic_without_references_is_no_mistake_for_they_may_have_come_before() -> None:
    disturbed = [doc for doc in good() if not doc["episodes"][0]["reference"]]
    assert found_live(disturbed).suspicions == ()
    assert {suspicion.kind for suspicion in found_in(disturbed).suspicions} == {"no_references"}


def test_a_message_under_no_key_or_another_one_is_told() -> None:
    (suspicion,) = found_live(good()[:5], keyed=False).suspicions
    assert (suspicion.kind, suspicion.arrived, suspicion.count) == ("wrong_key", "no key", 5)
    assert suspicion.example == "steps 0 0"
    watcher = SuspicionWatcher(ResilienceConfig(), live=True)
    watcher.watch([Message(json.dumps(good()[0]).encode(), "here", 1.79e9, b"robot-9")])
    (suspicion,) = watcher.finish().suspicions
    assert (suspicion.subject, suspicion.arrived) == ("producer 'habitat-house_a'", "key 'robot-9'")


@pytest.mark.parametrize(
    ("ahead_s", "expected"),
    [
        (-7200.0, {"clock_zone": "a clock 2 h ahead of the broker"}),
        (19_800.0 + 3.0, {"clock_zone": "a clock 5.5 h behind the broker"}),
        (-100.0, {"clock_ahead": "a step of 100 s after the message that brought it"}),
        (100.0, {}),  # a spool that is sent late, or a recording that is played back
        (0.3, {}),
        (-50.0, {}),
    ],
)
def test_an_agents_clock_is_compared_with_the_brokers(ahead_s: float, expected: dict[str, str]) -> None:
    found = found_live(good(), ahead_s=ahead_s)
    assert {suspicion.kind: suspicion.arrived for suspicion in found.suspicions} == expected


def test_a_clock_that_runs_faster_than_the_brokers_is_one_of_a_simulator() -> None:
    found = found_live(good(), times_as_fast=3.0)
    assert found.suspicions == ()
    (told,) = [note for note in found.notes if "simulated time" in note]
    assert told.startswith("the clock of 1 agent runs at another rate than the broker's, ")
    assert not [note for note in found_live(good(), times_as_fast=1.01).notes if "simulated time" in note]


def test_a_spool_that_is_sent_passes_by_half_hours_without_a_word() -> None:
    assert found_live(good(), ahead_s=2000.0, catching_up_s=5.0).suspicions == ()


def _stuck(docs: list[Doc]) -> list[Doc]:
    """The disturbed episodes as those of an agent that comes no nearer, and fails."""
    disturbed = [doc for doc in docs if not doc["episodes"][0]["reference"]]
    steps_of(disturbed, "progress", lambda cell: 0.4)
    for doc in disturbed:
        doc["producer"] = doc["episodes"][0]["agent"] = "robot-9"
        for end in doc["ends"]:
            end["outcome"] = "failure"
    return disturbed


def test_an_agent_that_is_stuck_is_no_mistake_where_progress_rises_in_the_familys_successes() -> None:
    docs = good()
    _stuck(docs)
    assert found_in(docs).suspicions == ()


def test_an_agent_whose_successes_stand_still_is_told_though_others_move() -> None:
    docs = good()
    for doc in _stuck(docs):
        for end in doc["ends"]:
            end["outcome"] = "success"
    (suspicion,) = found_in(docs).suspicions
    assert (suspicion.kind, suspicion.subject.split(",")[0]) == ("progress_still", "agent 'robot-9'")


def test_a_stretch_of_an_episode_does_not_show_that_progress_stands_still() -> None:
    stretch = _stuck(good())[:4]
    assert len({doc["episodes"][0]["episode"] for doc in stretch[:2]}) == 1
    for number, doc in enumerate(stretch):  # one episode, 50 steps or more, seen from its midst on and not to its end
        doc["episodes"], doc["ends"] = stretch[0]["episodes"], []
        doc["steps"]["step"] = [100 + 50 * number + place for place in range(len(doc["steps"]["step"]))]
    assert sum(len(doc["steps"]["step"]) for doc in stretch) >= 50
    assert found_live(stretch).suspicions == ()


def test_what_is_no_frame_is_told_with_its_place() -> None:
    watcher = SuspicionWatcher(ResilienceConfig())
    watcher.watch([Message(b"{}", "run.jsonl:1"), Message(b"\xc1", "run.jsonl:2"), Message(b"", "run.jsonl:3")])
    (suspicion,) = watcher.finish().suspicions
    assert (suspicion.kind, suspicion.count, suspicion.example) == ("unreadable_part", 3, "run.jsonl:1")


def test_the_baselines_own_rate_counts_where_one_is_given() -> None:
    # A family's reference decided every 0.5 s; the steps that are checked come every 0.1 s.
    from springback.producers.contract.codec import decode_frame
    from springback.stream_processors.offline.evaluation import learn_baseline

    frames = [decode_frame(json.dumps(doc).encode()) for doc in good()]
    baseline = learn_baseline(frames, ResilienceConfig())
    docs = [doc for doc in good() if not doc["episodes"][0]["reference"]]
    for doc in docs:
        del doc["steps"]["time_s"]
    assert _kinds(docs, baseline) == set()
    steps_of(docs, "cycle_time_s", lambda cell: 0.2 * cell)
    assert _kinds(docs, baseline) == {"other_rate"}


def _kinds(docs: list[Doc], baseline: object) -> set[str]:
    watcher = SuspicionWatcher(ResilienceConfig(), baseline)  # type: ignore[arg-type]
    watcher.watch([Message(json.dumps(doc).encode(), "") for doc in docs])
    return {suspicion.kind for suspicion in watcher.finish().suspicions}


def test_names_that_are_extra_on_purpose_are_passed_over() -> None:
    docs = good()
    for doc in docs:
        doc["steps"]["_own"] = doc["steps"]["x_own"] = [1.0] * len(doc["steps"]["step"])
        doc["x-trace"] = "7"
    assert found_in(docs).suspicions == ()


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ("planing_s", "planning_s"),
        ("planning_ms", "planning_s"),
        ("Progress", "progress"),
        ("travel_m", "travel"),
        ("timestamp_s", "time_s"),
        ("retry", "retries"),
        ("cycle-time-s", "cycle_time_s"),
    ],
)
def test_the_nearest_known_name_is_told(given: str, nearest: str) -> None:
    docs = good()
    docs[0]["steps"][given] = [1.0] * len(docs[0]["steps"]["step"])
    (suspicion,) = found_in(docs).suspicions
    assert (suspicion.kind, suspicion.expected) == ("unknown_column", nearest)


def test_many_agents_that_show_the_same_are_told_once_with_the_first_of_them() -> None:
    docs = good()
    for number, doc in enumerate(docs):
        doc["producer"] = doc["episodes"][0]["agent"] = f"robot-{number}"
        doc["steps"]["progress"][0] = 7.0
    (suspicion,) = found_in(docs).suspicions
    assert (suspicion.kind, suspicion.count, suspicion.example) == ("rejected_part", len(docs), "good.jsonl:1")


def test_the_readme_lists_every_kind_with_its_evidence_and_its_damage() -> None:
    text = (ROOT / "stream_processors" / "README.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    told = [f"| `{kind.name}` | {kind.evidence} | {kind.damage} |" for kind in KINDS.values()]
    assert [row for row in rows if row.split("`")[1] in KINDS] == told

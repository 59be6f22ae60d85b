"""Recordings on the command line: made, evaluated, and sent to a broker."""

import asyncio
import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]

from springback.deploy import cli
from springback.producers.contract.codec import decode_frame
from springback.producers.recordings import habitat_twins
from tests.producers.habitat_testbed.fake_house_sim import fake_house_sim

EPISODE_KEYS = {"agent", "session", "episode", "family", "stress", "outcome", "steps", "recovery_cost", "windows"}
WINDOW_KEYS = {
    "state",
    "cause",
    "departure_step",
    "reentry_step",
    "alarm_step",
    "recovery_cost",
    "peak",
    "lost_cycles",
    "cost_cognitive",
    "cost_physical",
    "cost_debt",
    "provisional",
    "number",
    "departure_time_s",
    "reentry_time_s",
    "length_steps",
    "length_s",
}


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """The first 60 frames of the bundled recording, and a line that is none."""
    path = tmp_path / "part.frames.jsonl"
    with habitat_twins() as whole, gzip.open(whole, "rb") as lines:
        path.write_bytes(b"".join(next(lines) for _ in range(60)) + b"not a frame\n")
    return path


def line_of(header: dict[str, Any], outcome: str | None = "success", **columns: list[Any]) -> str:
    """A line with one frame of one episode, as a producer that the episode's agent is would send it; ended or not."""
    frame = {
        "schema_version": 1,
        "producer": header["agent"],
        "session": "boot",
        "episodes": [header],
        "steps": {"episode": [0] * len(columns["step"]), **columns},
        "ends": [] if outcome is None else [{"episode": 0, "outcome": outcome}],
    }
    return json.dumps(frame)


def evaluated(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def test_evaluate_writes_the_table_and_every_episode(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    assert cli.main(["evaluate", "--json", str(out), str(recording)]) == 0
    streams = capsys.readouterr()
    assert "C_rec" in streams.out
    assert f"left out  {recording}:61: " in streams.err
    document = evaluated(out)
    assert {row["family"] for row in document["families"]} == {"navigation"}
    assert all(set(episode) >= EPISODE_KEYS for episode in document["episodes"])
    windows = [window for episode in document["episodes"] for window in episode["windows"]]
    assert windows
    assert all(set(window) == WINDOW_KEYS for window in windows)
    behind = {episode["bound_references"] for episode in document["episodes"]}
    assert len(behind) == 1
    assert f"learning  family navigation: {behind.pop()} of 20 references stand behind its alarm bounds" in streams.err


def test_evaluate_says_which_references_teach_nothing_for_their_beginning_was_not_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "from_one.frames.jsonl"
    header = {"agent": "robot-8", "episode": "1", "family": "inspection", "reference": True}
    path.write_text(line_of(header, step=[1, 2], progress=[0.5, 1.0], cycle_time_s=[1.0, 1.0]))
    assert cli.main(["evaluate", str(path)]) == 0
    told = capsys.readouterr().err
    assert "joined    family inspection: 1 of its reference episodes begin after step 0, and so teach nothing" in told
    assert "unscored  family inspection" in told
    assert "learning" not in told  # there is nothing to be learning from


def test_evaluate_says_where_a_pause_or_a_gap_lies_in_what_it_judges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Situation 9: in the last of the runs a cycle of 1 s lasts 5 minutes; in the one before 70 steps are missing."""

    def run(number: int, steps: list[int], cycles: list[float], *, reference: bool = True) -> str:
        header = {"agent": "robot-8", "episode": f"{number}", "family": "inspection", "reference": reference}
        progress = [min(1.0, (step + 1) / 200) for step in steps]
        return line_of(header, step=steps, progress=progress, cycle_time_s=cycles)

    every = list(range(200))
    clean = [run(number, every, [1.0] * 200) for number in range(12)]
    missing = [*every[:150], *range(220, 240)]  # 70 are, which is more than the 50 of the work left, and than 64
    disturbed = [
        run(12, missing, [1.0] * len(missing), reference=False),
        run(13, every, [300.0 if step == 60 else 1.0 for step in every], reference=False),
    ]
    path = tmp_path / "disturbed.frames.jsonl"
    path.write_text("\n".join((*clean, *disturbed)))
    assert cli.main(["evaluate", str(path)]) == 0
    told = capsys.readouterr().err
    assert "gap       family inspection: 1 of its episodes miss so many steps in one place" in told
    assert "interrupted  family inspection: 1 cycle lasted so long" in told


def test_evaluate_takes_several_files_and_standard_input_as_one(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, parts = tmp_path / "whole.json", tmp_path / "parts.json"
    lines = recording.read_bytes().splitlines(keepends=True)
    first = tmp_path / "first.jsonl.gz"
    first.write_bytes(gzip.compress(b"".join(lines[:25])))
    rest = io.BufferedReader(io.BytesIO(b"".join(lines[25:])))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(rest))
    assert cli.main(["evaluate", "--json", str(whole), str(recording)]) == 0
    assert cli.main(["evaluate", "--json", str(parts), str(first), "-"]) == 0
    assert evaluated(whole) == evaluated(parts)
    capsys.readouterr()


def test_evaluate_prints_json_in_place_of_the_table(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate", "--json", "-", str(recording)]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"families", "resilience", "episodes"}


def test_evaluate_writes_a_report_and_says_what_families_withstand(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = tmp_path / "new" / "monday", tmp_path / "out.json"
    assert cli.main(["evaluate", "--json", str(out), "--report", str(folder), str(recording)]) == 0
    streams = capsys.readouterr()
    assert "What families withstand" in streams.out
    assert f"report    {folder / 'report.html'}" in streams.err
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert recording.name in page
    assert page.count("<figure") >= 3
    report = evaluated(folder / "report.json")
    assert report["evaluation"] == evaluated(out)
    assert report["origin"]["sources"] == [recording.name]
    assert report["origin"]["written_s"] is None
    assert report["origin"]["settings"]["aggregate"]["min_episodes"] == 5


def test_a_report_says_the_date_that_is_set_and_what_settings_are_other_than_usual(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text("[resilience.aggregate]\nmin_episodes = 7\n", encoding="utf-8")
    arguments = ["evaluate", "--settings", str(settings), "--report", str(tmp_path / "report"), str(recording)]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790100000")
    assert cli.main(arguments) == 0
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "2026-09-22 18:00 UTC" in page
    assert "aggregate.min_episodes = 7" in page
    capsys.readouterr()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    assert cli.main(arguments) == 2
    assert "SOURCE_DATE_EPOCH is 'yesterday'" in capsys.readouterr().err


def test_a_report_does_not_take_a_file_for_its_folder(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate", "--report", str(recording), str(recording)]) == 2
    assert "is a file" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["evaluate"], ["replay", "--speed", "max", "--broker", "127.0.0.1:1"]])
def test_a_recording_without_a_frame_is_bad_input(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "none.jsonl"
    path.write_bytes(b"nothing\n\x1f\n")
    assert cli.main([*command, str(path)]) == 2
    assert f"left out  {path}:2: " in capsys.readouterr().err


def test_record_makes_what_evaluate_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, out = tmp_path / "made.frames.jsonl.gz", tmp_path / "out.json"
    arguments = ["record", "--episodes", "2", "--family", "navigation", "--stresses", "0,0.8", "--seed", "3"]
    assert cli.main([*arguments, str(made)]) == 0
    assert "Recorded 4 episodes" in capsys.readouterr().out
    assert cli.main(["evaluate", "--json", str(out), str(made)]) == 0
    assert [episode["stress"] for episode in evaluated(out)["episodes"]] == [0.0, 0.0, 0.8, 0.8]


def test_record_walks_through_a_house_in_habitat_sim_where_it_is_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "house.frames.jsonl"
    arguments = ["record", "--source", "habitat", "--episodes", "1", "--stresses", "0,0.8", str(made)]
    monkeypatch.setitem(sys.modules, "habitat_sim", None)
    assert cli.main(arguments) == 2
    assert "habitat_sim cannot be imported" in capsys.readouterr().err
    assert cli.main([*arguments, "--family", "navigation"]) == 2
    assert "leave it out, or choose --source babyai" in " ".join(capsys.readouterr().err.replace("│", "").split())
    monkeypatch.setitem(sys.modules, "habitat_sim", fake_house_sim())
    assert cli.main(arguments) == 0
    assert "Recorded 2 episodes (" in capsys.readouterr().out
    frames = [decode_frame(line) for line in made.read_bytes().splitlines()]
    assert {(h.task, h.stress) for frame in frames for h in frame.episodes} == {("house-0/0", 0.0), ("house-0/0", 0.8)}


async def read_all(broker: str, topic: str, count: int) -> list[tuple[bytes, bytes]]:
    async with asyncio.timeout(150):
        async with AIOKafkaConsumer(topic, bootstrap_servers=broker, auto_offset_reset="earliest") as consumer:
            return [(record.key, record.value) for record in [await consumer.getone() for _ in range(count)]]


@pytest.mark.broker
def test_replay_sends_each_frame_once_in_order(
    recording: Path, embedded_broker: str, capsys: pytest.CaptureFixture[str]
) -> None:
    prefix = ["--broker", embedded_broker, "--prefix", "test-cli-replay."]
    assert cli.main(["topics", *prefix, "--partitions", "1"]) == 0
    assert "test-cli-replay.steps " in capsys.readouterr().out
    assert cli.main(["replay", *prefix, "--speed", "max", str(recording)]) == 0
    assert cli.main(["replay", *prefix, "--speed", "max", "--keep-session", str(recording)]) == 0
    streams = capsys.readouterr()
    assert streams.out.count("Sent 60 frames") == 2
    assert streams.err.count(f"left out  {recording}:61: ") == 2
    recorded = recording.read_bytes().splitlines()[:60]
    arrived = asyncio.run(read_all(embedded_broker, "test-cli-replay.steps", 120))
    assert [value for _, value in arrived[60:]] == recorded
    for (key, value), line in zip(arrived[:60], recorded, strict=True):
        sent, kept = json.loads(value), json.loads(line)
        assert key == kept["producer"].encode()
        assert sent.pop("session").startswith(kept.pop("session") + "+")
        assert sent == kept
    assert len({decode_frame(value).session for _, value in arrived[:60]}) == 1


def test_evaluate_shows_one_of_the_rows_that_it_rejects(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = json.loads(recording.read_bytes().splitlines()[0])
    frame["steps"]["progress"][:2] = [7, 8]
    bad = tmp_path / "bad.frames.jsonl"
    bad.write_text(json.dumps(frame), encoding="utf-8")
    assert cli.main(["evaluate", str(bad)]) == 0
    assert (
        "rejected  2 steps: out_of_range: progress: got 7.0, expected 0 to 1; a percentage is to be divided by 100"
        in capsys.readouterr().err
    )


def test_evaluate_counts_each_fault_apart(recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frames = [json.loads(line) for line in recording.read_bytes().splitlines()[:60]]
    by_end = [frame for frame in frames if frame["ends"]]
    for frame, word in zip(by_end[:2], ("SUCCEEDED", "completed"), strict=True):
        frame["ends"][0]["outcome"] = word
    for place, fault in enumerate(({"stress": 40}, {"reference": "true"})):
        header = by_end[2]["episodes"][0] | {"episode": f"bad {place}"} | fault
        steps = {"episode": [0, 0], "step": [0, 1], "progress": [0.1, 0.2]}
        ends = [{"episode": 0, "outcome": "success"}]
        frames.append({**by_end[2], "episodes": [header], "steps": steps, "ends": ends})
    bad = tmp_path / "bad.frames.jsonl"
    bad.write_text("\n".join(map(json.dumps, frames)), encoding="utf-8")
    assert cli.main(["evaluate", str(bad)]) == 0
    assert [line for line in capsys.readouterr().err.splitlines() if line.startswith("rejected")] == [
        "rejected  2 ends: invalid_end: outcome: got 'SUCCEEDED', expected success, failure, timeout or aborted",
        "rejected  1 header, 2 steps, 1 end: invalid_episode: reference: got 'true', expected true or false, "
        "without quotes",
        "rejected  1 header, 2 steps, 1 end: invalid_episode: stress: got 40, expected a number from 0 to 1; "
        "a percentage is to be divided by 100",
    ]


@pytest.mark.parametrize(
    ("still", "cause"),
    [
        (0.0, "the field or hook that it is read from is never set, or cuts a share to a whole number"),
        (0.25, "it is told once an episode, and held"),
        (1.0, "it is a flag rather than a share, or is read from what remains while nothing is to be done yet"),
    ],
)
def test_evaluate_warns_of_a_progress_that_never_moves(
    still: float, cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def frame(episode: str, progress: list[float], outcome: str) -> str:
        header = {"agent": "arm", "episode": episode, "family": "reach"}
        return line_of(header, outcome, step=[0, 1, 2], progress=progress)

    path = tmp_path / "still.frames.jsonl"
    frames = [
        frame("1", [still] * 3, "success"),
        frame("2", [still] * 3, "failure"),  # a failure may well stand still
        *([] if still == 1.0 else [frame("3", [0.1, 0.1, 0.2], "success")]),
    ]
    path.write_text("\n".join(frames), encoding="utf-8")
    assert cli.main(["evaluate", str(path)]) == 0
    successes = 1 if still == 1.0 else 2
    assert [line for line in capsys.readouterr().err.splitlines() if line.startswith("unmoved")] == [
        f"unmoved   agent arm, family reach: in 1 of {successes} successful episodes progress was {still:g} after "
        f"every step, so nothing is known of their course. Likely cause: {cause}"
    ]


def test_an_episode_that_begins_at_its_goal_is_no_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def frame(episode: str, progress: list[float]) -> str:
        return line_of({"agent": "arm", "episode": episode, "family": "reach"}, step=[0, 1], progress=progress)

    path = tmp_path / "done.frames.jsonl"
    path.write_text("\n".join([frame("1", [1.0, 1.0]), frame("2", [0.5, 1.0])]), encoding="utf-8")
    assert cli.main(["evaluate", str(path)]) == 0
    assert "unmoved" not in capsys.readouterr().err


def test_evaluate_says_why_a_family_has_no_cost(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = json.loads(recording.read_bytes().splitlines()[0])
    for header in frame["episodes"]:
        header["reference"] = False
    bare = tmp_path / "bare.frames.jsonl"
    bare.write_text(json.dumps(frame), encoding="utf-8")
    assert cli.main(["evaluate", str(bare)]) == 0
    assert "unscored  family navigation: no baseline to score it by" in capsys.readouterr().err
    assert cli.main(["evaluate", str(recording)]) == 0
    assert "unscored" not in capsys.readouterr().err


def test_evaluate_says_what_became_of_each_step_and_whose_clock_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def line(steps: list[int], **more: Any) -> str:
        header = {"agent": "r7", "episode": "1", "family": "f"}
        return line_of(header, None, step=steps, progress=[0.1] * len(steps), **more)

    path = tmp_path / "r7.frames.jsonl"
    booted_in_2000 = [946_684_900.0, 946_684_901.0]
    lines = [line([0, 1]), line([4, 5]), line([2, 3]), line([4, 5]), line([6, 7], time_s=booted_in_2000)]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert cli.main(["evaluate", str(path)]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith(("steps", "unused", "clock"))]
    assert told == [
        "steps     6 of 10 used, 0 rejected, 4 unused",
        "unused    2 steps: duplicate: steps 4 to 5 of episode '1' of 'r7' came before",
        "unused    2 steps: overtaken: steps 2 to 3 of episode '1' of 'r7' came after a later step of it: send the "
        "frames of one producer in order, under one key",
        "clock     2 steps had a time before 2001 or far ahead, and got that of arrival: r7",
    ]


def test_evaluate_names_the_episodes_that_a_second_run_under_the_same_ids_loses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def line(episode: int, progress: float) -> str:
        header = {"agent": "r7", "episode": str(episode), "family": "f"}
        return line_of(header, step=[0, 1], progress=[progress, 1.0])

    path = tmp_path / "r7.frames.jsonl"
    path.write_text("\n".join(line(episode, run) for run in (0.1, 0.2) for episode in range(8)), encoding="utf-8")
    assert cli.main(["evaluate", str(path)]) == 0
    [told] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("unused")]
    assert told.startswith("unused    16 steps of 8 episodes: session_again: steps 0 to 1 of episode '0' of 'r7' came ")
    also = ", ".join(f"2 of '{episode}' of 'r7'" for episode in range(1, 6))
    assert told.endswith(f"; also {also}, those of 2 more")


def test_evaluate_says_once_who_decides_at_another_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def line(agent: str, episode: str, cycle_s: float, reference: bool) -> str:
        header = {"agent": agent, "episode": episode, "family": "f", "reference": reference}
        progress = [(step + 1) / 40 for step in range(40)]
        return line_of(header, step=list(range(40)), progress=progress, cycle_time_s=[cycle_s] * 40)

    path = tmp_path / "rates.frames.jsonl"
    lines = [line("clean", str(number), 0.1, True) for number in range(12)]
    lines += [line("fast", str(number), 0.02, False) for number in range(2)] + [line("same", "0", 0.12, False)]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert cli.main(["evaluate", str(path)]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("rate")]
    assert told == [
        "rate      family f: fast decides every 0.02 s, the references every 0.1 s: 2 episodes are unscored. Give it a "
        'family and references of its own, or set resilience.rate_ratio = "any"'
    ]

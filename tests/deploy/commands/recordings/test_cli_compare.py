"""`springback compare` on recordings of the testbed: the same agent, and one whose recovery was made worse."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from springback.deploy import cli
from springback.producers.babyai_testbed.recording import record
from springback.producers.babyai_testbed.simulated_time import CostModel
from springback.producers.contract.codec import encode_json
from springback.producers.contract.frame import StepFrame
from springback.producers.recordings.any_format import RecordedFrames

FAMILIES = ("navigation", "transportation")
STRESSES = (0.0, 0.8)
EPISODES = 22  # references: a family needs 20 behind its alarm bounds to be no longer learning


def under_version(version: str, frame: StepFrame) -> StepFrame:
    """What another version of the same agent would have sent on the same tasks."""
    episodes = tuple(msgspec.structs.replace(episode, version=version) for episode in frame.episodes)
    return msgspec.structs.replace(frame, session=f"{frame.session} {version}", episodes=episodes)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By what they hold: `old`, `same` agent again, a version `slow` in one family, and the `rest` of that version.

    `cut` is the same agent, each of whose episodes was cut off before its end.
    """
    folder = tmp_path_factory.mktemp("versions")
    played: dict[str, dict[str, Any]] = {
        "old": {"version": "1.4", "families": FAMILIES},
        "slow": {"version": "1.6", "families": FAMILIES[1:], "costs": CostModel(replan_s=4.0)},
    }
    paths = {name: folder / f"{name}.jsonl.gz" for name in played}
    for name, fields in played.items():
        record(paths[name], episodes=EPISODES, stresses=STRESSES, seed=4, **fields)
    old = list(RecordedFrames([paths["old"]]))
    told = {
        "same": [under_version("1.5", frame) for frame in old],
        "rest": [under_version("1.6", f) for f in old if {e.family for e in f.episodes} == {FAMILIES[0]}],
        "cut": [msgspec.structs.replace(under_version("1.5", frame), ends=()) for frame in old],
    }
    for name, frames in told.items():
        paths[name] = folder / f"{name}.jsonl"
        paths[name].write_bytes(b"".join(encode_json(frame) + b"\n" for frame in frames))
    return paths


@pytest.fixture
def contract(tmp_path: Path) -> Path:
    path = tmp_path / "contract.toml"
    path.write_text("schema_version = 1\n[allowances]\nsuccess_rate = 0.05\nrecovery_cost = {relative = 0.1}\n")
    return path


def compare(*arguments: Path | str) -> int:
    return cli.main(["compare", *map(str, arguments)])


def test_the_same_agent_again_passes(recordings: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    files = recordings["old"], recordings["same"]
    assert compare("--baseline", "1.4", "--candidate", "1.5", *files) == 0
    streams = capsys.readouterr()
    assert streams.err == ""
    for word in ("Version 1.5 against 1.4", "navigation · babyai-bot: passed", "recovery_cost", "stability_loss"):
        assert word in streams.out
    # Two stress levels.
    assert streams.out.count("44 ended, 0 aborted, 0 provisional") == 4
    assert "λ=0.0 22, 22; λ=0.8 22, 22" in streams.out
    assert streams.out.splitlines()[-1] == "passed: version 1.5 against 1.4, 2 passed"
    assert "BREACH " not in streams.out
    assert "…" not in streams.out.replace(" … ", "")
    assert all(len(line) <= 80 for line in streams.out.splitlines())


def test_recovery_made_worse_in_one_family_is_found_there(
    recordings: dict[str, Path], contract: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    files = recordings["old"], recordings["rest"], recordings["slow"]
    options = ("--baseline", "1.4", "--candidate", "1.6", "--contract", contract, "--json", out)
    assert compare(*options, *files) == 1
    streams = capsys.readouterr()
    assert streams.err.startswith("failed  transportation (babyai-bot): recovery_cost ")
    assert streams.err.count("\n") == 1
    assert "BREACH" in streams.out
    assert "navigation · babyai-bot: passed" in streams.out
    assert "transportation · babyai-bot: FAILED" in streams.out
    verdict = "FAILED: version 1.6 against 1.4, 1 failed, 1 passed: transportation (babyai-bot)"
    assert streams.out.splitlines()[-1] == verdict
    document = json.loads(out.read_text(encoding="utf-8"))
    assert (document["passed"], document["verdict"]) == (False, verdict)
    (failure,) = document["failures"]
    assert (failure["kind"], failure["family"], failure["metric"]) == ("breach", "transportation", "recovery_cost")
    assert failure["said"] in document["groups"][1]["reasons"]
    cost = next(metric for metric in document["groups"][1]["metrics"] if metric["metric"] == "recovery_cost")
    # No task got cheaper. Of the n that got dearer, 2 of the 2^n ways to give the differences their signs are as
    # extreme, and Holm's correction doubles that: two families are looked at, and nothing changed in the other.
    tested = cost["tasks"]
    assert (tested["paired_tasks"], tested["lower"]) == (22, 0)
    assert tested["higher"] > 10
    assert tested["paired_p_holm"] == pytest.approx(2 * 2 / 2 ** tested["higher"])
    # Without the family that got worse there is nothing to find; and the other way round it got better.
    assert compare(*options, "--family", "navigation", *files) == 0
    assert compare("--baseline", "1.6", "--candidate", "1.4", "--contract", contract, *files) == 0


def test_a_baseline_is_not_loosened_by_the_candidate(recordings: dict[str, Path], tmp_path: Path) -> None:
    """The baseline version's figures are the same whoever the candidate is."""
    found = []
    for candidate, files in (("1.5", ["same"]), ("1.6", ["rest", "slow"])):
        out = tmp_path / f"{candidate}.json"
        compare(
            *("--baseline", "1.4", "--candidate", candidate, "--json", out),
            *(recordings[name] for name in ["old", *files]),
        )
        groups = json.loads(out.read_text(encoding="utf-8"))["groups"]
        found.append([[metric["baseline"] for metric in group["metrics"]] for group in groups])
    assert found[0] == found[1]


def test_situation_8_no_evidence_is_a_finding(
    recordings: dict[str, Path], contract: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A candidate all of whose episodes were aborted, and one that was not recorded in every family."""
    text = contract.read_text()
    out = tmp_path / "out.json"
    for undetermined in ("pass", "breach"):
        contract.write_text(text.replace("[allowances]", f'undetermined = "{undetermined}"\n[allowances]'))
        options = ("--baseline", "1.4", "--candidate", "1.5", "--contract", contract, "--json", out)
        assert compare(*options, recordings["old"], recordings["cut"]) == 1
        streams = capsys.readouterr()
        assert "failed  navigation (babyai-bot): all 44 episodes of the candidate were aborted" in streams.err
        assert "0 ended, 44 aborted, 0 provisional" in streams.out
        assert streams.out.splitlines()[-1].startswith("FAILED: version 1.5 against 1.4, 2 failed: navigation")
        document = json.loads(out.read_text(encoding="utf-8"))
        assert [group["verdict"] for group in document["groups"]] == ["failed", "failed"]
        assert document["groups"][0]["evidence"]["candidate"] == {"ended": 0, "aborted": 44, "provisional": 0}
    arguments = ("--baseline", "1.4", "--candidate", "1.6", recordings["old"], recordings["slow"])
    assert compare(*arguments) == 1
    assert "failed  navigation (babyai-bot): the candidate has 0 ended episodes" in capsys.readouterr().err
    contract.write_text(f'schema_version = 1\n[evidence]\nmissing_family = "pass"\n{text.partition("1")[2]}')
    same = ("--baseline", "1.4", "--candidate", "1.5", "--contract", contract)
    assert compare(*same, recordings["old"], recordings["same"]) == 0


def test_a_family_that_is_still_learning_is_no_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / "few-1.jsonl.gz", tmp_path / "few-2.jsonl.gz"]
    for path, version in zip(paths, ("1", "2"), strict=True):
        record(path, episodes=12, stresses=(0.0,), families=FAMILIES[:1], version=version, seed=4)
    assert compare("--baseline", "1", "--candidate", "2", *paths) == 1
    streams = capsys.readouterr()
    assert "COULD NOT TELL" not in streams.out
    assert "0 ended, 0 aborted, 12 provisional" in streams.out
    assert "provisional (learning: 12 of 20)" in streams.err
    assert "learning: 12 of 20 references stand behind the alarm bounds; record more" in " ".join(streams.out.split())


def test_json_on_standard_output_is_alone_there(
    recordings: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--baseline", "1.4", "--candidate", "1.5", "--json", "-", recordings["old"], recordings["same"])
    assert compare(*arguments) == 0
    streams = capsys.readouterr()
    first = streams.out
    assert json.loads(first)["passed"] is True
    assert streams.err == "passed: version 1.5 against 1.4, 2 passed\n"
    assert compare(*arguments) == 0
    assert capsys.readouterr().out == first


def test_input_that_cannot_be_compared_is_bad_input(
    recordings: dict[str, Path], contract: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, slow = recordings["old"], recordings["slow"]
    for arguments, said in (
        (("--baseline", "1.4", "--candidate", "9", old, slow), "version '9'; they have '1.4', '1.6'"),
        (("--baseline", "0", "--candidate", "1.6", old, slow), "version '0'"),
        (("--baseline", "1.4", "--candidate", "1.4", old), "the baseline version itself"),
        (("--baseline", "1.4", "--candidate", "1.6", "--family", "cooking", old, slow), "family 'cooking'"),
    ):
        assert compare(*arguments) == 2
        assert said in " ".join(capsys.readouterr().err.replace("│", " ").split())
    contract.write_text(contract.read_text() + "[families.cooking]\nmargin = 1\n")
    options = ("--baseline", "1.4", "--candidate", "1.5", "--contract", contract)
    assert compare(*options, old, recordings["same"]) == 2
    assert "names family 'cooking'" in " ".join(capsys.readouterr().err.replace("│", " ").split())
    contract.write_text("schema_version = 1\nallowances = 3\n")
    assert compare(*options, old, recordings["same"]) == 2
    assert "allowances is 3, " in capsys.readouterr().err

"""`springback compare` on recordings of the testbed: the same agent, and one whose recovery was made worse."""

import json
from pathlib import Path
from typing import Any

import pytest

from springback.deploy import cli
from springback.producers.babyai_testbed.recording import record
from springback.producers.babyai_testbed.simulated_time import CostModel

FAMILIES = ("navigation", "transportation")
STRESSES = (0.0, 0.8)
EPISODES = 8


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By what they hold: `old`, `same` agent again, a version `slow` in one family, and the `rest` of that version."""
    folder = tmp_path_factory.mktemp("versions")
    made: dict[str, dict[str, Any]] = {
        "old": {"version": "1.4"},
        "same": {"version": "1.5"},
        "slow": {"version": "1.6", "families": FAMILIES[1:], "costs": CostModel(replan_s=4.0)},
        "rest": {"version": "1.6", "families": FAMILIES[:1]},
    }
    paths = {name: folder / f"{name}.jsonl.gz" for name in made}
    for name, changes in made.items():
        fields: dict[str, Any] = {"families": FAMILIES, **changes}
        record(paths[name], episodes=EPISODES, stresses=STRESSES, seed=4, **fields)
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
    for word in ("Version 1.5 against 1.4", "navigation · babyai-bot", "recovery_cost", "stability_loss", "beta_p95"):
        assert word in streams.out
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
    assert streams.err.startswith("breach  transportation (babyai-bot): recovery_cost ")
    assert streams.err.count("\n") == 1
    assert "BREACH" in streams.out
    document = json.loads(out.read_text(encoding="utf-8"))
    assert document["passed"] is False
    assert document["breaches"] == [
        {"family": "transportation", "method": "babyai-bot", "metric": "recovery_cost", "stress": None}
    ]
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


def test_json_on_standard_output_is_alone_there(
    recordings: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--baseline", "1.4", "--candidate", "1.5", "--json", "-", recordings["old"], recordings["same"])
    assert compare(*arguments) == 0
    first = capsys.readouterr().out
    assert json.loads(first)["passed"] is True
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
        (("--baseline", "1.4", "--candidate", "1.6", old, slow), "no episode of navigation (babyai-bot)"),
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
    assert "`$.allowances`" in capsys.readouterr().err

"""`springback fit-value`: a network from a recording, its plot, and where it is used."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from springback.deploy import cli
from springback.producers.recordings import habitat_twins
from springback.producers.recordings.step_frames import read_frames
from springback.stream_processors.offline.evaluation import evaluate_frames
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.stability.network_value import load_network

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A part of the bundled recording with some forty clean episodes and their twins."""
    path = tmp_path_factory.mktemp("recording") / "part.frames.jsonl"
    with habitat_twins() as whole, gzip.open(whole, "rb") as lines:
        path.write_bytes(b"".join(next(lines) for _ in range(250)))
    return path


@pytest.fixture(scope="module")
def model(recording: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "clean.value"
    assert cli.main(["fit-value", "--epochs", "12", "--hidden", "8", "--out", str(path), str(recording)]) == 0
    return path


def losses(path: Path) -> list[float | None]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return [episode["stability_loss"] for episode in document["episodes"]]


def test_the_network_is_written_with_its_loss_curve(model: Path) -> None:
    network = load_network(model.read_bytes())
    assert network.families == ("navigation",)
    assert [layer.weights.shape[1] for layer in network.layers] == [8, 1]
    assert model.with_name("clean.value.loss.png").read_bytes().startswith(b"\x89PNG")


def test_it_says_how_well_it_fits_and_the_seed_decides(
    recording: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["fit-value", "--epochs", "12", "--hidden", "8"]
    assert cli.main([*options, "--out", str(tmp_path / "again"), str(recording)]) == 0
    streams = capsys.readouterr()
    assert "held out" in streams.out
    assert "a constant: " in streams.out
    assert streams.err == ""
    assert (tmp_path / "again").read_bytes() == model.read_bytes()
    assert cli.main([*options, "--seed", "1", "--out", str(tmp_path / "other"), str(recording)]) == 0
    assert (tmp_path / "other").read_bytes() != model.read_bytes()


def test_evaluate_values_states_by_the_network(
    recording: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_network, by_anchor = tmp_path / "network.json", tmp_path / "anchor.json"
    assert cli.main(["evaluate", "--value-model", str(model), "--json", str(by_network), str(recording)]) == 0
    assert cli.main(["evaluate", "--json", str(by_anchor), str(recording)]) == 0
    capsys.readouterr()
    frames = [part.frame for part in read_frames([recording])]
    expected = evaluate_frames(frames, ResilienceConfig(), model=load_network(model.read_bytes()))
    assert losses(by_network) == pytest.approx([summary.stability_loss for summary in expected.summaries])
    assert sum(loss is not None for loss in losses(by_network)) > 30
    assert losses(by_network) != losses(by_anchor)


def test_wrong_input_is_told(recording: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = tmp_path / "damaged.value"
    damaged.write_bytes(model.read_bytes()[:100])
    few = tmp_path / "few.jsonl"
    few.write_bytes(b"".join(recording.read_bytes().splitlines(keepends=True)[:4]))
    out = str(tmp_path / "out.value")
    for arguments, said in (
        (["evaluate", "--value-model", str(damaged), str(recording)], "no value network"),
        (["fit-value", "--out", out, "--hidden", "8,0", str(recording)], "'8,0' is not one or two widths"),
        (["fit-value", "--out", out, str(few)], "expected at least 5"),
    ):
        assert cli.main(arguments) == 2
        assert said in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert not Path(out).exists()

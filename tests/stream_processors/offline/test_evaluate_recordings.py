"""The evaluation of recordings for users of Python: what it takes, what it gives, and what it says of bad input."""

from pathlib import Path

import msgspec
import pytest

from springback.producers.errors import MappingError
from springback.stream_processors.errors import SettingsError
from springback.stream_processors.offline.evaluation import NoFramesError, evaluate
from springback.stream_processors.offline.tables import EvaluationJson
from springback.stream_processors.resilience.baseline.codec import dump_baseline
from springback.stream_processors.resilience.baseline.stage_baseline import StageBaseline
from tests.house import ROOT

RECORDING = ROOT / "producers" / "recordings" / "habitat_twins.frames.jsonl.gz"


def test_a_given_baseline_scores_as_the_learned_one(tmp_path: Path) -> None:
    learned = evaluate(RECORDING)
    assert learned.document.episodes[0].recovery_cost is not None
    assert {row.family for row in learned.families} == {"navigation"}
    assert set(learned.contract_margins) == {summary.key for summary in learned.summaries if not summary.censored}
    assert msgspec.json.decode(learned.json(), type=EvaluationJson) == learned.document
    file = tmp_path / "twins.baseline"
    file.write_bytes(dump_baseline(learned.baseline))
    assert evaluate(str(RECORDING), baseline=file, value_model="anchor").json() == learned.json()


def test_what_cannot_be_used_is_told(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    with pytest.raises(NoFramesError, match="no step frame in what was given; recordings of other kinds need a map"):
        evaluate(empty, report_unreadable=lambda part: None)
    (tmp_path / "a.mcap").write_bytes(b"\x89MCAP0\r\n" + bytes(16))
    with pytest.raises(MappingError, match="of the format mcap"):
        evaluate(tmp_path / "a.mcap")
    with pytest.raises(SettingsError, match=r"baseline: cannot read .*No such file"):
        evaluate(RECORDING, baseline=tmp_path / "none")
    with pytest.raises(SettingsError, match=r"baseline .*empty\.jsonl"):
        evaluate(RECORDING, baseline=empty)
    other = tmp_path / "other.baseline"
    other.write_bytes(dump_baseline(StageBaseline(grid=msgspec.structs.replace(StageBaseline().grid, progress_bins=7))))
    with pytest.raises(SettingsError, match=r"learned with the grid .*the settings have"):
        evaluate(RECORDING, baseline=other)
    with pytest.raises(SettingsError, match="value_model: cannot read 'none'"):
        evaluate(RECORDING, value_model="none")

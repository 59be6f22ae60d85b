from pathlib import Path

import pytest

from springback.deploy import cli
from springback.deploy.commands.shared_options import step_publisher, stream_settings
from springback.producers.emitter.spooled_publisher import SpooledPublisher
from springback.producers.errors import SpoolInUseError


def test_a_bridge_sends_by_way_of_its_spool(tmp_path: Path) -> None:
    settings = stream_settings("127.0.0.1:1", None, None)
    publisher = step_publisher(settings, tmp_path)
    assert isinstance(publisher, SpooledPublisher)
    with pytest.raises(SpoolInUseError):
        step_publisher(settings, tmp_path)
    publisher.close()


def test_a_recording_needs_no_spool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ("--record", str(tmp_path / "r.frames.jsonl"), "--spool", str(tmp_path / "spool"))
    assert cli.main(["bridge", "mqtt", "-o", "frames=a/b", *files]) == 2
    assert "a recording is a file already" in capsys.readouterr().err

"""Sources that other distributions register by entry points, beside ours; a broken one harms none of the others."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from springback.deploy import cli
from springback.deploy.commands import log_options
from springback.producers import sources
from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.install_hints import MissingExtraError
from springback.producers.mapping.signal_mapping import parse_mapping
from springback.producers.recordings.any_format import read_recordings
from springback.producers.recordings.opening import magic_format
from springback.producers.sources import SOURCES, BrokenSourceError, Source, UnknownSourceError, find_source

TOY = """
from springback.producers.sources import Source

BRIDGE = Source("sonar", "bridge", "toy_parts:run", None, "", "pings of sonars")
FORMAT = Source("toylog", "recording", "toy_parts:read_messages", None, "", "logs of toys", magic=b"TOYLOG")
WRAPPER = Source("toygym", "wrapper", "toy_parts:Wrapper", "gym", "not_there", "toys in a gym")
NEEDY = WRAPPER._replace(place="toy_needing:Wrapper")
TAKEN = Source("mqtt", "bridge", "toy_parts:run", None, "", "another mqtt")
AGAIN = FORMAT
RESERVED = FORMAT._replace(name="frames")
NO_MAGIC = FORMAT._replace(name="dull", magic=b"")
TEXT_MAGIC = FORMAT._replace(name="text", magic="TOYLOG")
NO_KIND = FORMAT._replace(name="odd", kind="oracle")
NO_PLACE = FORMAT._replace(name="nowhere", place="toy_parts")
OWN_FAULT = FORMAT._replace(name="faulty", place="toy_parts:no_such_thing", magic=b"FAULTY")
NO_SOURCE = "sonar"
"""
PARTS = """
import json

from springback.producers.mapping.signal_mapping import TimedMessage


def run(mapping, publisher, options, stop):
    return f"pinged {options['pings']} times"


def read_messages(recording):
    recording.read(7)
    for line in recording.stream:
        record = json.loads(line)
        if recording.wants(""):
            yield TimedMessage("", record["time"], record)


class Wrapper:
    pass
"""


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path, with the modules of a distribution `acme-toys` whose entry points a test writes."""
    (tmp_path / "toy_sources.py").write_text(TOY)
    (tmp_path / "toy_parts.py").write_text(PARTS)
    (tmp_path / "toy_ends.py").write_text("import sys\nsys.exit('not today')\n")
    monkeypatch.syspath_prepend(tmp_path)
    sources.registry.cache_clear()
    yield tmp_path
    sources.registry.cache_clear()
    for name in [name for name in sys.modules if name.startswith("toy_")]:
        del sys.modules[name]


def install(folder: Path, *objects: str, distribution: str = "acme-toys") -> None:
    info = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    lines = [f"{place.partition(':')[2].lower()} = {place}" for place in objects]
    (info / "entry_points.txt").write_text("\n".join(["[springback.sources]", *lines, ""]))


def test_every_kind_is_found_and_loaded(toys: Path) -> None:
    install(toys, "toy_sources:BRIDGE", "toy_sources:FORMAT", "toy_sources:WRAPPER")
    known = sources.registry()
    assert known.sources[: len(SOURCES)] == SOURCES
    assert {one.name: one.distribution for one in known.sources[len(SOURCES) :]} == {
        "sonar": "acme-toys", "toylog": "acme-toys", "toygym": "acme-toys",
    }  # fmt: skip
    assert not known.faults
    bridge = find_source("sonar", "bridge").load()
    assert bridge(None, MemoryPublisher(), {"pings": "3"}, threading.Event()) == "pinged 3 times"
    assert find_source("toygym", "wrapper").load().__name__ == "Wrapper"
    with pytest.raises(UnknownSourceError, match=r"there is no wrapper 'sonar'; there are gymnasium, .*, toygym"):
        find_source("sonar", "wrapper")


def test_a_bridge_runs_from_the_command_line(
    toys: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(log_options, "configure_logging", lambda *_: None)
    install(toys, "toy_sources:BRIDGE")
    assert cli.main(["bridge", "sonar", "--record", str(toys / "out.jsonl"), "-o", "pings=3"]) == 0
    assert "pinged 3 times" in capsys.readouterr().out


def test_a_recording_is_told_by_its_magic(toys: Path) -> None:
    install(toys, "toy_sources:FORMAT")
    text = """
        agent = "toy"
        header = { family = "playing" }
        step = { trigger = "#" }
        signals = { progress = { field = "done" } }
        episode = { whole = true }
    """
    path = toys / "monday.bin"
    path.write_bytes(b"TOYLOG\n" + b"".join(b'{"time": %d, "done": 0.%d}\n' % (1_790_000_000 + n, n) for n in range(3)))
    frames = [one.frame for one in read_recordings([path], parse_mapping(text, "toy.toml"))]
    assert np.concatenate([frame.steps["progress"] for frame in frames]) == pytest.approx([0.0, 0.1, 0.2])


def test_what_cannot_be_used_is_named_and_stops_nothing(toys: Path, capsys: pytest.CaptureFixture[str]) -> None:
    faulty = ("TAKEN", "AGAIN", "RESERVED", "NO_MAGIC", "TEXT_MAGIC", "NO_KIND", "NO_PLACE", "NO_SOURCE")
    places = [f"toy_sources:{name}" for name in ("BRIDGE", "FORMAT", *faulty)]
    install(toys, *places, "not_there:SOURCE", "toy_ends:SOURCE_2", "toy_sources:SOURCE_3")
    install(toys, "toy_sources:BRIDGE", distribution="zoo")
    wrong = {f"{fault.name} of {fault.distribution}": fault.reason for fault in sources.registry().faults}
    expected = {
        "taken of acme-toys": "a source of springback is called 'mqtt' already; mend the `Source` in acme-toys",
        "format of acme-toys": "a source of acme-toys is called 'toylog' already",
        "reserved of acme-toys": "a source of springback is called 'frames' already",
        "no_magic of acme-toys": "a recording format is recognised by its magic, of 1 to 16 bytes; got b''",
        "text_magic of acme-toys": "a field has a wrong type in Source(name='text'",
        "no_kind of acme-toys": "a kind out of wrapper, bridge, recording; got 'odd', 'oracle'",
        "no_place of acme-toys": "its place must be MODULE:NAME, got 'toy_parts'",
        "no_source of acme-toys": "it is a str, not a `springback.Source`",
        "source of acme-toys": "not_there:SOURCE cannot be loaded (ModuleNotFoundError: No module named 'not_there')",
        "source_2 of acme-toys": "toy_ends:SOURCE_2 cannot be loaded (SystemExit: not today); upgrade acme-toys or",
        "source_3 of acme-toys": "toy_sources:SOURCE_3 cannot be loaded (AttributeError:",
        "bridge of zoo": "a source of acme-toys is called 'sonar' already; mend the `Source` in zoo, or uninstall it",
    }
    assert wrong.keys() == expected.keys()
    assert [name for name, reason in expected.items() if reason not in wrong[name]] == []
    assert cli.main(["sources"]) == 0
    said = capsys.readouterr()
    assert "│ sonar " in said.out
    assert "│ acme-toys " in said.out
    assert "taken of acme-toys is left out: a source of springback is called 'mqtt' already;" in said.err
    with pytest.raises(UnknownSourceError, match=r"there is no bridge 'source'; .*not_there:SOURCE cannot be loaded"):
        find_source("source", "bridge")


def test_an_error_of_the_package_is_told_as_such(toys: Path) -> None:
    install(toys, "toy_sources:OWN_FAULT", "toy_sources:NEEDY")
    with pytest.raises(
        BrokenSourceError, match=r"'faulty' of acme-toys .* toy_parts:no_such_thing .*upgrade acme-toys"
    ):
        find_source("faulty", "recording").load()
    assert find_source("toygym", "wrapper").missing == ("not_there",)
    (toys / "toy_needing.py").write_text("import not_there.at_all\n")
    with pytest.raises(MissingExtraError, match=r"pip install 'acme-toys\[gym\]'$"):
        find_source("toygym", "wrapper").load()


def test_a_source_whose_package_is_missing_names_its_extra(toys: Path) -> None:
    (toys / "toy_needing.py").write_text("import not_there.at_all\n")
    source = Source("toy", "recording", "toy_needing:read_messages", "toys", "not_there", "a toy")
    assert source.missing == ("not_there",)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[toys\]'"):
        source.load()
    with pytest.raises(ModuleNotFoundError, match="not_there"):  # a fault of its own is no missing extra
        source._replace(needs="something_else").load()


def test_magic_of_ours_goes_first(toys: Path) -> None:
    magic = b"\x89MCAP0\r\n"
    (toys / "toy_mcap.py").write_text(
        f"""{TOY}\nRIVAL = FORMAT._replace(name="rival", magic={magic!r})""",
    )
    install(toys, "toy_mcap:RIVAL")
    assert magic_format(magic) == "mcap"
    assert find_source("rival", "recording").distribution == "acme-toys"

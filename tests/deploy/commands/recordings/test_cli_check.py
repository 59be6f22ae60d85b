"""`springback check` on the command line: of files, and of what comes to a broker."""

import json
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer  # type: ignore[import-untyped]
from kafka.admin import KafkaAdminClient  # type: ignore[import-untyped]

from springback.deploy import cli
from springback.producers.recordings import habitat_twins
from tests.stream_processors.suspicions.planted_faults import good, milliseconds, misspelt_column

Capture = pytest.CaptureFixture[str]


def written(path: Path, docs: list[dict[str, Any]], *lines: str) -> Path:
    path.write_text("".join(json.dumps(doc) + "\n" for doc in docs) + "".join(lines))
    return path


def test_a_good_recording_ends_with_what_was_looked_at_and_code_0(tmp_path: Path, capsys: Capture) -> None:
    assert cli.main(["check", str(written(tmp_path / "good.jsonl", good()))]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("Nothing suspicious in ")
    assert "24 episodes (24 ended, 12 references), 1 agent, 1 family." in last


def test_the_recording_that_comes_with_springback_is_given_by_its_name(capsys: Capture) -> None:
    with habitat_twins() as recording:
        assert cli.main(["check", str(recording)]) == 0
    assert "665 frames with 17348 steps of 240 episodes" in capsys.readouterr().out


def test_mistakes_are_told_the_most_damaging_first_with_code_1(tmp_path: Path, capsys: Capture) -> None:
    docs = good()
    milliseconds(docs)
    misspelt_column(docs)
    file = written(tmp_path / "odd.jsonl", docs, "not a frame\n")
    assert cli.main(["check", str(file)]) == 1
    said = capsys.readouterr().out
    kinds = [line.split(",")[0].split(":")[0] for line in said.splitlines() if line[:1].strip()]
    assert kinds[:3] == ["unreadable_part", "unknown_column", "time_unit"]
    assert f"example   {file}:{len(docs) + 1}" in said
    assert "expected  planning_s" in said
    assert "do        send time_s in seconds since 1970, UTC" in said
    assert "3 kinds of mistake, in " in said


def test_json_has_the_same(tmp_path: Path, capsys: Capture) -> None:
    docs = good()
    misspelt_column(docs)
    assert cli.main(["check", "--json", str(written(tmp_path / "odd.jsonl", docs))]) == 1
    (suspicion,) = (document := json.loads(capsys.readouterr().out))["suspicions"]
    assert (suspicion["kind"], suspicion["count"], suspicion["expected"]) == ("unknown_column", len(docs), "planning_s")
    assert document["looked_at"]["references"] == 12
    assert any("12 references" in note for note in document["notes"])


@pytest.mark.parametrize("text", ["[" * 200_000, "[[" * 2000 + "]]" * 2000, '{\n"a":' + "[" * 200_000, "[\n"])
def test_a_document_that_no_reader_can_unfold_is_told_and_ends_nothing(
    text: str, tmp_path: Path, capsys: Capture
) -> None:
    assert cli.main(["check", str(written(tmp_path / "deep.json", [], text))]) == 2
    said = capsys.readouterr()
    assert said.out.startswith("unreadable_part")
    assert said.err == "springback: there is no step frame in what was given\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere.jsonl"], "there is no file"),
        (["TEXT"], "neither step frames nor"),
        (["BROKEN"], "no step frame"),
        (["--mapping", "nav2"], "mapping is for recordings"),
        (["--mapping", "no-such", "TEXT"], "no-such"),
        (["--seconds", "0"], "seconds"),
        (["--baseline", "TEXT", "TEXT"], "baseline"),
    ],
)
def test_bad_input_ends_with_code_2(arguments: list[str], told: str, tmp_path: Path, capsys: Capture) -> None:
    text = written(tmp_path / "text.jsonl", [], "hello\nthere\n")
    broken = written(tmp_path / "broken.json", [], '{\n"schema_version": 1\n}\n')
    files = {"TEXT": str(text), "BROKEN": str(broken)}
    assert cli.main(["check", *(files.get(given, given) for given in arguments)]) == 2
    assert told in capsys.readouterr().err


def test_frames_that_are_written_by_hand_are_read_over_many_lines_and_as_an_array(
    tmp_path: Path, capsys: Capture
) -> None:
    docs = good()
    misspelt_column(docs)
    one, array = tmp_path / "frame.json", tmp_path / "frames.json"
    one.write_text(json.dumps(docs[0], indent=2))
    array.write_text(json.dumps(docs))
    assert cli.main(["check", str(one)]) == 1
    assert f"example   {one} [0]" in (said := capsys.readouterr().out)
    assert "in 1 frame with 32 steps of 1 episode " in said
    assert cli.main(["check", str(array)]) == 1
    assert f"unknown_column, {len(docs)} times" in capsys.readouterr().out
    array.write_text(json.dumps(docs)[:-5])
    assert cli.main(["check", str(array)]) == 2


def test_standard_input_is_read_too(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    with written(tmp_path / "good.jsonl", good()).open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert cli.main(["check", "-"]) == 0
    assert "Nothing suspicious" in capsys.readouterr().out


@pytest.fixture
def prefix(embedded_broker: str) -> str:
    prefix = f"t{uuid.uuid4().hex[:8]}."
    assert cli.main(["topics", "--broker", embedded_broker, "--prefix", prefix]) == 0
    return prefix


@pytest.fixture
def sent(embedded_broker: str, prefix: str) -> Iterator[None]:
    """Frames with a misspelt column, and one under no key, again and again for as long as the test runs."""
    done = threading.Event()
    producer = KafkaProducer(bootstrap_servers=embedded_broker)

    def send() -> None:
        while not done.wait(0.05):
            frame = {
                "schema_version": 1, "producer": "r7", "session": uuid.uuid4().hex,
                "episodes": [{"agent": "r7", "episode": "1", "family": "inspection"}],
                "steps": {"episode": [0], "step": [0], "progress": [0.5], "progres": [0.5], "time_s": [time.time()]},
            }  # fmt: skip
            producer.send(f"{prefix}steps", key=b"r7", value=json.dumps(frame).encode())
            producer.send(f"{prefix}steps", value=json.dumps(frame).encode())

    thread = threading.Thread(target=send)
    thread.start()
    yield
    done.set()
    thread.join()
    producer.close()


@pytest.mark.broker
@pytest.mark.usefixtures("sent")
def test_what_is_being_sent_is_looked_at_and_nothing_is_committed(
    embedded_broker: str, prefix: str, capsys: Capture
) -> None:
    capsys.readouterr()
    command = ["check", "--broker", embedded_broker, "--prefix", prefix, "--seconds", "3", "--json"]
    assert cli.main(command) == 1
    streams = capsys.readouterr()
    found = {suspicion["kind"]: suspicion for suspicion in json.loads(streams.out)["suspicions"]}
    assert set(found) == {"unknown_column", "wrong_key"}
    assert found["unknown_column"]["example"].startswith(f"{prefix}steps partition ")
    admin = KafkaAdminClient(bootstrap_servers=embedded_broker)
    try:
        assert not [group for group in admin.list_groups() if prefix in str(group)]
    finally:
        admin.close()


@pytest.mark.broker
def test_a_topic_to_which_nothing_comes_is_no_input(embedded_broker: str, prefix: str, capsys: Capture) -> None:
    assert cli.main(["check", "--broker", embedded_broker, "--prefix", prefix, "--seconds", "1"]) == 2
    assert f"no message came to {prefix}steps within 1 s" in capsys.readouterr().err


@pytest.mark.broker
def test_a_topic_that_is_not_there_is_told_and_none_is_made(embedded_broker: str, capsys: Capture) -> None:
    prefix = f"t{uuid.uuid4().hex[:8]}."
    command = ["check", "--broker", embedded_broker, "--prefix", prefix, "--seconds", "1"]
    assert [cli.main(command), cli.main(command)] == [1, 1]
    assert f"There is no topic {prefix}steps" in capsys.readouterr().err


def test_a_broker_that_does_not_answer_is_told(capsys: Capture) -> None:
    began = time.monotonic()
    assert cli.main(["check", "--broker", "127.0.0.1:9", "--seconds", "600"]) == 1
    assert "127.0.0.1:9" in capsys.readouterr().err
    assert time.monotonic() - began < 120  # not the 600 s that it would have looked


def test_the_help_fits_and_teaches(capsys: Capture) -> None:
    assert cli.main(["check", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for word in ("misspelt", "milliseconds", "Exit codes", "--seconds", "commits nothing"):
        assert word in said

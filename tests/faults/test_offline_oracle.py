"""The harness can fail: every kind of wrong output, and every loss between emitter and topic, is found."""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from springback.producers.contract.codec import encode_msgpack
from springback.sinks.sink import DeadLetter
from springback.stream_processors.resilience.baseline.estimates import materialise
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import AgentStatus, encode_reading
from springback.stream_processors.topics import (
    BASELINES,
    CONTRIBUTIONS,
    DEAD_LETTER,
    FAMILIES,
    STATUS,
    STEPS,
    SUMMARIES,
    WINDOWS,
)
from tests.faults.exporter_counts import count_differences, counts_of_readings
from tests.faults.fault_workload import episodes_of, frozen_baseline
from tests.faults.offline_oracle import Expected, TopicRecord, differences, expected_of
from tests.faults.playing_emitter import (
    JournalClosed,
    JournalFrame,
    JournalHeld,
    JournalLine,
    JournalOpened,
    JournalTaken,
    digest_of,
)
from tests.faults.sent_frames import sent_differences
from tests.stream_processors.frame_builders import START_S, frame_of_parts, header_of

CONFIG = ResilienceConfig()
AGENTS = ("robot-0", "robot-1", "robot-2")


@pytest.fixture(scope="module")
def steps() -> list[TopicRecord]:
    """Six episodes of each of three producers, in frames of five steps, as the topic holds them."""
    records: list[TopicRecord] = []
    for partition, agent in enumerate(AGENTS):
        episodes = episodes_of(7, agent)
        for number in range(6):
            played = next(episodes)
            header = header_of(agent=agent, episode=str(number), family=played.family, **played.traits)
            rows = [{"time_s": START_S + row["step"], **row} for row in played.rows]
            pieces = [rows[place : place + 5] for place in range(0, len(rows), 5)]
            for piece in pieces:
                outcome = played.outcome if piece is pieces[-1] else None
                frame = frame_of_parts([(header, piece, outcome)], producer=agent)  # type: ignore[list-item]
                offset = sum(record.partition == partition for record in records)
                value = encode_msgpack(frame)
                records.append(TopicRecord(partition, offset, START_S + offset, agent.encode(), value, ()))
    return records


@pytest.fixture(scope="module")
def expected(steps: list[TopicRecord]) -> Expected:
    ready = materialise(frozen_baseline(7, CONFIG), CONFIG.baseline, CONFIG.window.fixed_bounds())
    return expected_of(steps, CONFIG, lambda partition, offset: ready)


@pytest.fixture
def topics(expected: Expected) -> dict[str, list[TopicRecord]]:
    """The topics of workers that did all as they should."""
    found: dict[str, list[TopicRecord]] = {
        topic: [
            TopicRecord(0, place, START_S, b"", value, _headers(topic, identity))
            for place, (identity, value) in enumerate(known.items())
        ]
        for topic, known in expected.outputs.items()
    }
    found[DEAD_LETTER] = list(_letters(expected))
    found[STATUS] = [
        TopicRecord(0, place, START_S, b"", encode_reading(status), ())
        for place, status in enumerate(expected.statuses.values())
    ]
    return found | {BASELINES: [], FAMILIES: [], STEPS: []}


def _headers(topic: str, identity: Sequence[str]) -> tuple[tuple[str, bytes], ...]:
    names = ("reason", "topic", "partition", "offset")
    return tuple((name, identity[place].encode()) for place, name in enumerate(names)) if topic == DEAD_LETTER else ()


def _letters(expected: Expected) -> Iterator[TopicRecord]:
    for place, (identity, value) in enumerate(expected.outputs[DEAD_LETTER].items()):
        yield TopicRecord(0, place, START_S, b"", value, _headers(DEAD_LETTER, identity))


def test_outputs_as_they_should_be_are_found_right(topics: dict[str, list[TopicRecord]], expected: Expected) -> None:
    assert differences(topics, expected) == []
    assert all(expected.outputs[topic] for topic in (WINDOWS, SUMMARIES, CONTRIBUTIONS, DEAD_LETTER))
    assert expected.account.adds_up
    assert expected.account.rejected


@pytest.mark.parametrize("topic", [WINDOWS, SUMMARIES, CONTRIBUTIONS, DEAD_LETTER])
def test_what_is_missing_or_was_never_due_is_found(
    topic: str, topics: dict[str, list[TopicRecord]], expected: Expected
) -> None:
    removed = topics[topic].pop()
    (missing,) = differences(topics, expected)
    assert missing.startswith(f"{topic}: missing")
    topics[topic].append(removed)
    known = {identity: value for identity, value in expected.outputs[topic].items() if value != removed.value}
    fewer = dataclasses.replace(expected, outputs=expected.outputs | {topic: known})
    (unexpected,) = differences(topics, fewer)
    assert unexpected.startswith(f"{topic}: not expected")


def test_a_repetition_is_right_only_if_it_is_the_same(topics: dict[str, list[TopicRecord]], expected: Expected) -> None:
    record = topics[WINDOWS][0]
    topics[WINDOWS].append(record)
    assert differences(topics, expected) == []
    content = msgspec.msgpack.decode(record.value or b"")
    content["recovery_cost"] += 1e-12
    topics[WINDOWS].append(record._replace(value=msgspec.msgpack.encode(content)))
    (wrong,) = differences(topics, expected)
    assert "repeated with another content" in wrong
    assert "recovery_cost" in wrong


def test_rows_that_were_lost_or_counted_twice_are_found(
    topics: dict[str, list[TopicRecord]], expected: Expected
) -> None:
    record = topics[STATUS][0]
    status = expected.statuses[AGENTS[0]]
    counts = msgspec.structs.replace(status.counts, steps=status.counts.steps + 1)
    wrong: AgentStatus = msgspec.structs.replace(status, counts=counts)
    topics[STATUS][0] = record._replace(value=encode_reading(wrong))
    (told,) = differences(topics, expected)
    assert told.startswith(f"{STATUS}: {AGENTS[0]}")
    account = dataclasses.replace(expected.account, taken_in=expected.account.taken_in - 1)
    assert not account.adds_up


def test_a_counter_that_is_one_off_is_found(expected: Expected) -> None:
    letters = [DeadLetter(identity[0], repr(identity).encode()) for identity in expected.outputs[DEAD_LETTER]]
    known = counts_of_readings(expected.readings(), letters)
    assert count_differences(known, known) == []
    assert {name for name, _ in known} >= {"springback_episodes_total", "springback_dead_letters_total"}
    fewer = counts_of_readings(expected.readings(), letters[1:])
    (wrong,) = count_differences(fewer, known)
    assert "springback_dead_letters_total" in wrong


def journal(directory: Path, name: str, steps: Sequence[TopicRecord], *more: JournalLine, taken: bool = True) -> Path:
    lines: list[JournalLine] = [JournalOpened(session="boot", producer="robot-0")]
    for record in steps:
        digest = digest_of(record.value or b"")
        lines.append(JournalFrame(digest=digest, session="boot", steps=5, ends=0))
        lines += [JournalTaken(digest=digest)] if taken else []
    file = directory / name
    file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in [*lines, *more]))
    return file


def closed(frames: int) -> JournalClosed:
    return JournalClosed(
        session="boot",
        steps=5 * frames,
        ends=0,
        steps_sent=5 * frames,
        steps_dropped=0,
        ends_dropped=0,
        publish_errors=0,
    )


def test_a_frame_that_is_lost_or_passes_another_is_found(steps: list[TopicRecord], tmp_path: Path) -> None:
    own = [record for record in steps if record.partition == 0]
    file = journal(tmp_path, "whole", own, closed(len(own)))
    assert sent_differences([[file]], own) == []
    assert sent_differences([[file]], own + own[:2]) == []  # sent twice: the worker's affair
    (lost,) = sent_differences([[file]], own[1:])
    assert "1 of" in lost
    assert "not in the topic" in lost
    (passed,) = sent_differences([[file]], [own[1], own[0], *own[2:]])
    assert "came after younger ones" in passed
    held = journal(tmp_path, "held", own, JournalHeld(digest=digest_of(own[0].value or b"")), closed(len(own)))
    assert sent_differences([[held]], [own[1], own[0], *own[2:]]) == []
    (foreign,) = sent_differences([[file]], steps[: len(own) + 1])
    assert "no emitter sent" in foreign
    fewer = journal(tmp_path, "fewer", own, closed(len(own) + 1))
    assert "were reported" in sent_differences([[fewer]], own)[0]


def test_of_a_killed_emitter_only_what_nobody_had_taken_may_be_missing(
    steps: list[TopicRecord], tmp_path: Path
) -> None:
    own = [record for record in steps if record.partition == 0]
    assert sent_differences([[journal(tmp_path, "untaken", own, taken=False)]], own[:-2]) == []
    assert len(sent_differences([[journal(tmp_path, "taken", own)]], own[:-2])) == 1
    first, second = journal(tmp_path, "first", own[:4]), journal(tmp_path, "second", own[4:])
    assert sent_differences([[first, second]], own) == []
    (passed,) = sent_differences([[first, second]], [*own[4:], *own[:4]])
    assert "came after younger ones" in passed

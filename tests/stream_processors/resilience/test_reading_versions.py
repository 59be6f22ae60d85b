"""Readings that an older springback has sent: what can be read of them, and what cannot."""

from typing import Any

import msgspec
import pytest

from springback.stream_processors.resilience.readings import (
    READING_SCHEMA_VERSION,
    EpisodeSummary,
    Reading,
    WindowReading,
    decode_reading,
    encode_reading,
)
from springback.stream_processors.resilience.window_evidence import EvidenceStep, WindowEvidence
from tests.reading_builders import family_reading, window_reading
from tests.stream_processors.resilience.families.summary_builders import summary_of

NEW_IN_2 = (
    "interruptions", "gap", "joined", "extended", "unmoved", "provisional", "bound_references",
    "bound_references_needed", "revision",
)  # fmt: skip


def plain(reading: Reading) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.msgpack.decode(encode_reading(reading))
    assert found["schema_version"] == READING_SCHEMA_VERSION == 2
    return found | {"schema_version": 1}


def test_a_summary_of_version_1_is_read_as_one_that_counts() -> None:
    before = plain(summary_of("1", stress=0.4, recovery_cost=3.0))
    for name in NEW_IN_2:
        del before[name]
    found = decode_reading(msgspec.msgpack.encode(before))
    assert isinstance(found, EpisodeSummary)
    assert (found.traits.stress, found.recovery_cost, found.provisional, found.revision) == (0.4, 3.0, False, 0)
    assert (found.bound_references, found.schema_version) == (None, 1)


def test_a_family_of_version_1_is_no_reading() -> None:
    # Its levels said whether they had enough episodes, not what they show, and its live stress was in breach or not.
    before = plain(family_reading())
    for level in before["margins"]:
        level["sufficient"] = level.pop("state") != "insufficient"
    before["in_breach"] = before.pop("stress_state") == "breach"
    with pytest.raises(msgspec.ValidationError, match="missing required field `state`"):
        decode_reading(msgspec.msgpack.encode(before))


def test_a_window_from_before_there_was_evidence_has_none() -> None:
    step = EvidenceStep(4, 100.0, "navigate", "forward", "", 0.4, 0.25, 3.0, 1.0, 5.0, 0.0, 1.5)
    window = window_reading(evidence=WindowEvidence(steps=(step,), before=0))
    assert decode_reading(encode_reading(window)) == window
    before = msgspec.msgpack.decode(encode_reading(window))
    del before["evidence"]
    found = decode_reading(msgspec.msgpack.encode(before))
    assert isinstance(found, WindowReading)
    assert (found.evidence, found.identity) == (None, window.identity)

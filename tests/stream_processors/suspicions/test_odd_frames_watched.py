"""Whatever comes, the watcher says something or nothing, and goes on; and what it keeps has bounds."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from springback.producers.contract.codec import decode_document, decode_frame
from springback.producers.contract.columns import STEP_COLUMNS
from springback.producers.contract.suspicions import KINDS, signs_of_frame
from springback.producers.errors import UnreadableFrameError
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.suspicions.findings import MOST_SUBJECTS, MOST_TOLD
from springback.stream_processors.suspicions.watcher import Message, SuspicionWatcher
from tests.examples import examples

JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
CELLS = st.one_of(
    st.integers(-2, 80), st.floats(), st.sampled_from([0.0, 0.5, 1.0, 1.79e9, 1.79e12, -1.0]), JSON_VALUES
)
NAMES = st.sampled_from([*(spec.name for spec in STEP_COLUMNS), "planing_s", "\ud800", ""])


@st.composite
def odd_frames(draw: st.DrawFn) -> dict[str, Any]:
    """Frames that are nearly right: the parts are there, and odd values are in any of them."""
    rows = draw(st.integers(0, 30))
    steps: dict[str, Any] = {
        "episode": [draw(st.integers(0, 2)) for _ in range(rows)],
        "step": [draw(st.integers(0, 100)) for _ in range(rows)],
        "progress": [draw(st.floats(0, 1)) for _ in range(rows)],
    }
    for name in draw(st.lists(NAMES, max_size=4)):
        steps[name] = [draw(CELLS) for _ in range(rows)] if draw(st.booleans()) else draw(JSON_VALUES)
    headers = [
        {"agent": draw(st.sampled_from(["a", "b"])), "episode": draw(st.text(max_size=3)), "family": "f"}
        | draw(st.dictionaries(st.sampled_from(["stress", "reference", "attack", "refrence"]), JSON_VALUES, max_size=2))
        for _ in range(draw(st.integers(0, 3)))
    ]
    ends = [
        {"episode": draw(st.integers(0, 3)), "outcome": draw(st.sampled_from(["success", "failure", "won"]))}
        for _ in range(draw(st.integers(0, 2)))
    ]
    frame = {"schema_version": 1, "producer": "p", "session": draw(st.sampled_from(["s", "t"])), "episodes": headers}
    return frame | {"steps": steps, "ends": ends} | draw(st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=1))


MESSAGES = st.one_of(
    st.binary(max_size=60), JSON_VALUES.map(json.dumps).map(str.encode), odd_frames().map(json.dumps).map(str.encode)
)


@settings(max_examples=examples(100))
@given(st.lists(MESSAGES, max_size=6), st.booleans())
def test_no_bytes_make_it_fail(messages: list[bytes], live: bool) -> None:
    watcher = SuspicionWatcher(ResilienceConfig(), live=live)
    for number, data in enumerate(messages):
        watcher.watch([Message(data, str(number), 1.79e9 + number if live else None, b"p" if live else None)])
    found = watcher.finish()
    assert [suspicion.kind for suspicion in found.suspicions] == sorted(
        {suspicion.kind for suspicion in found.suspicions}, key=list(KINDS).index
    )
    msgspec.json.encode(found)


@settings(max_examples=examples(100))
@given(MESSAGES)
def test_what_one_frame_shows_is_told_of_any_bytes(data: bytes) -> None:
    try:
        frame = decode_frame(data)
    except UnreadableFrameError:
        return
    for sign in signs_of_frame(data, frame):
        assert sign.kind in KINDS
        assert sign.text.isprintable() or "\n" not in sign.text


@settings(max_examples=examples(100))
@given(st.binary(max_size=40) | JSON_VALUES.map(msgspec.msgpack.encode).filter(bool))
def test_a_document_is_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(UnreadableFrameError):
        decode_document(data)


def test_of_very_many_subjects_a_bounded_number_is_kept_and_a_few_are_told() -> None:
    watcher = SuspicionWatcher(ResilienceConfig())
    for number in range(2 * MOST_SUBJECTS):
        frame = {"schema_version": 1, "producer": f"r{number}", "session": "s", "episodes": []}
        watcher.watch([Message(json.dumps(frame).encode(), str(number), 1.79e9, b"other")])
    (suspicion,) = watcher.finish().suspicions
    assert suspicion.count == 2 * MOST_SUBJECTS
    assert len(suspicion.also) == MOST_TOLD + 1
    assert suspicion.also[-1] == f"and {MOST_SUBJECTS - MOST_TOLD} more"


def test_long_names_are_cut() -> None:
    frame = {
        "schema_version": 1, "producer": "p" * 200, "session": "s", "n" * 5000: 1,
        "episodes": [{"agent": "a" * 200, "episode": "e" * 200, "family": "f" * 200, "reference": True, "stress": 0.5}],
    }  # fmt: skip
    watcher = SuspicionWatcher(ResilienceConfig())
    watcher.watch([Message(json.dumps(frame).encode(), "1")])
    found = watcher.finish().suspicions
    assert {suspicion.kind for suspicion in found} == {"unknown_field", "stressed_reference"}
    assert all(len(suspicion.subject) < 120 and len(suspicion.arrived) < 300 for suspicion in found)

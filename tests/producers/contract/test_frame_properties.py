"""Properties of the wire contract: what is written comes back, and nothing that arrives does harm."""

import json
from typing import Any

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from springback.producers.contract.codec import decode_frame, encode_json, encode_msgpack
from springback.producers.contract.columns import ABSENT, MAX_TEXT, STEP_COLUMNS, is_absent
from springback.producers.contract.frame import EpisodeHeader, StepFrame, TextColumn
from springback.producers.errors import UnreadableFrameError
from springback.stream_processors.intake.step_table import ArrivedFrame
from springback.stream_processors.intake.validation import tabulate

HEADER = {"agent": "r", "episode": "1", "family": "f"}
STEPS = {"episode": [0, 0], "step": [1, 2], "progress": [0.1, 0.2]}


def cells(kind: str) -> st.SearchStrategy[Any]:
    number = st.floats(allow_nan=True, allow_infinity=True) | st.just(ABSENT)
    texts = st.text(st.characters(codec="utf-8"), max_size=MAX_TEXT)
    return {"integer": st.integers(-(2**53), 2**53), "number": number, "text": texts}[kind]


@st.composite
def frames(draw: st.DrawFn) -> StepFrame:
    rows = draw(st.integers(1, 5))
    columns: dict[str, Any] = {}
    for spec in STEP_COLUMNS:
        if spec.required or draw(st.booleans()):
            values = draw(st.lists(cells(spec.kind), min_size=rows, max_size=rows))
            if spec.kind == "text":
                columns[spec.name] = TextColumn.of(values)
            else:
                columns[spec.name] = np.array(values, dtype=np.int64 if spec.kind == "integer" else np.float64)
    return StepFrame(
        producer="p", session="s", episodes=(EpisodeHeader(agent="r", episode="1", family="f"),), steps=columns
    )


@given(frames())
def test_both_encodings_bring_back_the_same_frame(frame: StepFrame) -> None:
    for encode in (encode_msgpack, encode_json):
        back: Any = decode_frame(encode(frame))
        assert list(back.steps) == list(frame.steps)
        for name, column in frame.steps.items():
            if isinstance(column, TextColumn):
                assert back.steps[name].texts() == column.texts()
            else:
                np.testing.assert_array_equal(back.steps[name], column)
                assert is_absent(back.steps[name]).tolist() == is_absent(column).tolist()


def assert_harmless(data: bytes) -> None:
    """It is a frame, whose table and whose rejected rows can be written down, or an `UnreadableFrameError`."""
    try:
        frame = decode_frame(data)
    except UnreadableFrameError:
        return
    table = tabulate([ArrivedFrame(frame, 1.79e9)])
    assert len(table) <= frame.n_steps
    assert np.isfinite([table.time_s, table.progress, table.propositions, table.travel, table.risk]).all()
    json.dumps([row.row for row in table.rejected], allow_nan=False).encode()
    encode_msgpack(frame)
    encode_json(frame)


@given(st.binary(max_size=200))
def test_no_bytes_do_harm(data: bytes) -> None:
    assert_harmless(data)
    for start in (b"{", b"\x86", b"\xde\x00\x06"):
        assert_harmless(start + data)


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["success", 0, 1, 0.5])
)
junk = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
names = [spec.name for spec in STEP_COLUMNS]
columns_of_junk = st.dictionaries(st.sampled_from(names), st.lists(junk, min_size=2, max_size=2) | junk)
documents = st.fixed_dictionaries(
    {"schema_version": st.just(1) | scalars, "producer": st.just("p") | scalars, "session": st.just("s")},
    optional={
        "episodes": st.lists(st.just(HEADER) | st.dictionaries(st.sampled_from([*HEADER, "stress", "task"]), scalars))
        | junk,
        "steps": columns_of_junk.map(lambda columns: STEPS | columns) | junk,
        "ends": st.lists(st.dictionaries(st.sampled_from(["episode", "outcome", "time_s", "navigation"]), junk)) | junk,
    },
)


@given(documents)
def test_no_document_does_harm(value: Any) -> None:
    assert_harmless(json.dumps(value).encode())
    try:
        data = msgspec.msgpack.encode(value)
    except (OverflowError, UnicodeEncodeError):
        return
    assert_harmless(data)


@given(frames(), st.data())
def test_no_cut_and_no_flipped_byte_does_harm(frame: StepFrame, data: st.DataObject) -> None:
    for encoded in (encode_msgpack(frame), encode_json(frame)):
        place, byte = data.draw(st.integers(0, len(encoded) - 1)), data.draw(st.binary(min_size=1, max_size=1))
        assert_harmless(encoded[:place])
        assert_harmless(encoded[:place] + byte + encoded[place + 1 :])

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


POOLS: dict[str, st.SearchStrategy[list[Any]]] = {
    "integer": st.lists(st.integers(-(2**53), 2**53), min_size=1, max_size=4),
    "number": st.lists(st.floats() | st.just(ABSENT), min_size=1, max_size=6),
    "text": st.lists(
        st.text(st.characters(codec="utf-8"), max_size=12) | st.just("é" * MAX_TEXT), min_size=1, max_size=4
    ),
}


@st.composite
def frames(draw: st.DrawFn) -> StepFrame:
    """Any frame of up to five rows; its cells are a few values of each kind, chosen by one draw, as draws are slow."""
    rows = draw(st.integers(1, 5))
    pools = {kind: draw(pool) for kind, pool in POOLS.items()}
    chosen = draw(st.binary(min_size=len(STEP_COLUMNS) * (rows + 1), max_size=len(STEP_COLUMNS) * (rows + 1)))
    columns: dict[str, Any] = {}
    for place, spec in enumerate(STEP_COLUMNS):
        left_out, *codes = chosen[place * (rows + 1) :][: rows + 1]
        values = [pools[spec.kind][code % len(pools[spec.kind])] for code in codes]
        if left_out % 2 and not spec.required:
            continue
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
names = st.sampled_from([*(spec.name for spec in STEP_COLUMNS), "", "é"])
junk = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=2), max_leaves=6
)
columns_of_junk = st.dictionaries(names, st.lists(junk, min_size=2, max_size=2) | junk, max_size=4)
headers = st.just(HEADER) | st.dictionaries(st.sampled_from([*HEADER, "stress", "task"]), scalars, max_size=4)
ends = st.dictionaries(st.sampled_from(["episode", "outcome", "time_s", "navigation"]), junk, max_size=4)
documents = st.fixed_dictionaries(
    {"schema_version": st.just(1) | scalars, "producer": st.just("p") | scalars, "session": st.just("s")},
    optional={
        "episodes": st.lists(headers, max_size=3) | junk,
        "steps": columns_of_junk.map(lambda columns: STEPS | columns) | junk,
        "ends": st.lists(ends, max_size=3) | junk,
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

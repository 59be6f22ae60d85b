from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springback.producers.contract.codec import encode_json, encode_msgpack
from springback.producers.contract.frame import EpisodeHeader, StepFrame
from springback.producers.gateway.errors import RequestRefusedError
from springback.producers.gateway.request_bodies import (
    JSON,
    JSON_LINES,
    MESSAGE_PACK,
    RECORD_OVERHEAD,
    BodyReader,
    admit,
    frames_in,
)
from tests.examples import examples

FRAME = StepFrame(
    producer="robot-7",
    session="s",
    episodes=(EpisodeHeader(agent="robot-7", episode="1", family="f"),),
    steps={"episode": np.array([0, 0]), "step": np.array([0, 1]), "progress": np.array([0.25, 0.5])},
)
MOST = 1000
JSON_FRAME, PACKED_FRAME = encode_json(FRAME), encode_msgpack(FRAME)


def read(pieces: list[bytes], *, packed: bool = True, most: int = 1000) -> bytes:
    reader = BodyReader(packed=packed, most_bytes=most)
    grown = sum(reader.feed(piece) for piece in pieces)
    assert grown == reader.size
    return reader.finish()


@given(st.binary(max_size=1000), st.integers(1, 50), st.booleans(), st.integers(0, 1000))
@settings(max_examples=examples(50))
def test_a_body_comes_out_as_it_went_in(body: bytes, piece: int, packed: bool, cut: int) -> None:
    # gzip may be of several members, and pieces may end anywhere
    sent = gzip.compress(body[:cut]) + gzip.compress(body[cut:]) if packed else body
    assert read([sent[at : at + piece] for at in range(0, len(sent), piece)], packed=packed) == body


def test_a_zip_bomb_costs_no_more_than_the_bound() -> None:
    bomb = gzip.compress(b"\0" * 10_000_000)
    reader = BodyReader(packed=True, most_bytes=1_000_000)
    with pytest.raises(RequestRefusedError, match="larger than 1000000 bytes") as caught:
        reader.feed(bomb)
    assert caught.value.status == 413
    assert reader.size <= 1_000_001
    with pytest.raises(RequestRefusedError, match="larger than"):
        read([b"x" * 1001], packed=False)
    assert read([gzip.compress(b"x" * 1000)]) == b"x" * 1000


@pytest.mark.parametrize(
    "sent",
    [b"no gzip", gzip.compress(b"x" * 100)[:-3], gzip.compress(b"x") + b"rest", zlib.compress(b"x"), b""],
    ids=["text", "cut off", "followed by more", "zlib", "nothing"],
)
def test_what_is_no_whole_gzip_is_refused(sent: bytes) -> None:
    with pytest.raises(RequestRefusedError) as caught:
        read([sent])
    assert (caught.value.status, caught.value.reason) == (400, "not_gzip")


@pytest.mark.parametrize("kind", [JSON, MESSAGE_PACK])
def test_one_frame_or_an_array(kind: str) -> None:
    one = JSON_FRAME if kind == JSON else PACKED_FRAME
    codec = msgspec.json if kind == JSON else msgspec.msgpack
    many = codec.encode([msgspec.Raw(one)] * 3)
    assert frames_in(kind, one, MOST) == [one]
    assert frames_in(kind, many, MOST) == [one] * 3
    assert frames_in(JSON, b"[NaN, -Infinity , {}]", MOST) == [b"NaN", b"-Infinity", b"{}"]
    assert frames_in(JSON, b" \n[" + JSON_FRAME + b", \n" + JSON_FRAME + b"]\n", MOST) == [JSON_FRAME] * 2


def test_lines_stand_alone() -> None:
    assert frames_in(JSON_LINES, JSON_FRAME + b"\r\n\n{broken\n" + JSON_FRAME, MOST) == [
        JSON_FRAME,
        b"{broken",
        JSON_FRAME,
    ]


@given(st.lists(st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=9)
    | st.sampled_from(["NaN", "-Infinity", "[1,", '"', "\\"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["", "NaN", '"', "é"]), inner),
    max_leaves=6,
), min_size=1, max_size=5), st.booleans(), st.sampled_from([None, 1]))  # fmt: skip
def test_an_array_is_taken_apart_into_its_own_bytes(items: list[Any], escaped: bool, indent: int | None) -> None:
    body = json.dumps(items, ensure_ascii=escaped, indent=indent).encode(errors="surrogatepass")
    found = frames_in(JSON, body, MOST)
    assert [json.dumps(json.loads(one)) for one in found] == [json.dumps(item) for item in items]
    assert all(one in body for one in found)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (JSON, b"[" + b"{}," * 3 + b"NaN]"),
        (JSON_LINES, b"{}\n" * 4),
        (MESSAGE_PACK, b"\x94" + b"\x80" * 4),
        (MESSAGE_PACK, b"\xdd\xff\xff\xff\xff"),
    ],
)
def test_too_many_frames_are_refused_before_they_are_taken_apart(kind: str, body: bytes) -> None:
    with pytest.raises(RequestRefusedError, match="more than 3 frames") as caught:
        frames_in(kind, body, 3)
    assert (caught.value.status, caught.value.reason) == (413, "too_many_frames")
    if body[:1] != b"\xdd":
        assert len(frames_in(kind, body, 4)) == 4


def test_empty_gzip_members_do_not_go_on_for_ever() -> None:
    assert read([gzip.compress(b"") * 999 + gzip.compress(b"x")], most=30_000) == b"x"
    with pytest.raises(RequestRefusedError, match="more than 1000 gzip members"):
        read([gzip.compress(b"") * 1001], most=30_000)
    with pytest.raises(RequestRefusedError, match="larger than 1000 bytes"):
        read([gzip.compress(b"") * 60])


def test_pythons_nan_in_an_array_costs_a_row_alone() -> None:
    document = json.loads(JSON_FRAME)
    document["steps"]["progress"] = [float("nan"), 0.5]
    admission = admit(frames_in(JSON, json.dumps([document, document]).encode(), MOST), 10_000)
    assert [frame.steps for frame in admission.admitted] == [2, 2]
    assert b"NaN" in admission.admitted[1].value


@pytest.mark.parametrize(
    ("kind", "body", "reason"),
    [
        (JSON, b"", "empty"),
        (JSON, b" \n", "empty"),
        (JSON, b"[]", "empty"),
        (JSON_LINES, b"\n\n", "empty"),
        (MESSAGE_PACK, b"", "empty"),
        (MESSAGE_PACK, b"\x90", "empty"),
        (JSON, b"[{", "not_an_array"),
        (JSON, b"[" * 5000, "not_an_array"),
        (MESSAGE_PACK, b"\x93" + PACKED_FRAME, "not_an_array"),
        (MESSAGE_PACK, b"\x91" * 5000, "not_an_array"),
    ],
)
def test_a_body_that_cannot_be_taken_apart_is_refused(kind: str, body: bytes, reason: str) -> None:
    with pytest.raises(RequestRefusedError) as caught:
        frames_in(kind, body, MOST)
    assert (caught.value.status, caught.value.reason) == (400, reason)


@given(st.sampled_from([JSON, JSON_LINES, MESSAGE_PACK]), st.binary(max_size=200))
def test_whatever_arrives_is_taken_apart_or_refused(kind: str, body: bytes) -> None:
    try:
        found = frames_in(kind, body, MOST)
    except RequestRefusedError:
        return
    admission = admit(found, 10_000)
    places = [frame.place for frame in admission.admitted] + [note.place for note in admission.refused]
    assert sorted(places) == list(range(len(found)))


def test_each_frame_is_told_of_by_its_place() -> None:
    faulty = json.loads(JSON_FRAME) | {"steps": {"episode": [0, 0], "step": [0, "x"], "progress": [0.1, 0.2]}}
    frames = [JSON_FRAME, b"{}", b"3", b"[]", PACKED_FRAME, json.dumps(faulty).encode(), b'{"schema_version": 9}', b"{"]
    admission = admit(frames, 10_000)
    assert [frame.place for frame in admission.admitted] == [0, 4, 5]
    assert {frame.key for frame in admission.admitted} == {b"robot-7"}
    assert [frame.value for frame in admission.admitted] == [JSON_FRAME, PACKED_FRAME, frames[5]]
    assert [note.place for note in admission.refused] == [1, 2, 3, 6, 7]
    assert all(note.reason.isidentifier() and note.detail for note in admission.refused)
    assert [note.place for note in admission.faulty] == [5]
    assert "steps[1]" in admission.faulty[0].detail


def test_a_frame_that_the_topic_would_not_take_is_refused() -> None:
    fits = len(JSON_FRAME) + len(b"robot-7") + RECORD_OVERHEAD
    assert not admit([JSON_FRAME], fits).refused
    assert admit([JSON_FRAME], fits - 1).refused[0].reason == "frame_too_large"

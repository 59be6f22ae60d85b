"""Records of the state: what is written comes back, and whatever else is an error that names the record."""

import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.stream_processors.errors import StateFormatError, StateFullError
from springback.stream_processors.exact import context_log, state
from springback.stream_processors.exact.context_log import (
    Switch,
    content_key,
    decode_content,
    encode_content,
    switch_key,
)
from springback.stream_processors.exact.state import (
    BucketRecord,
    TableKey,
    bucket_key,
    decode_bucket,
    decode_position,
    decode_versioned,
    encode_bucket,
    encode_position,
    position_key,
    read_key,
)
from tests.stream_processors.fake_engine import CountingReducer, FakeEngine

NUMBERS = st.integers(0, 2**62)


@given(NUMBERS, NUMBERS)
def test_keys_come_back(partition: int, bucket: int) -> None:
    assert read_key(bucket_key(partition, bucket)) == TableKey(partition, bucket)
    assert read_key(position_key(partition)) == TableKey(partition, None)
    switch = Switch(1, partition, term=1, generation=bucket, from_offset=0, parts={})
    assert read_key(switch_key(switch)) == read_key(content_key(partition, b"digest")) == TableKey(partition, None)


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"next",
        b"1",
        b"1/",
        b"x/next",
        b"1/-2",
        b"1/2/3",
        b"\xff/1",
        b"1/switch",
        b"1/switch/2/3",
        b"1/content/xy",
        b"x/content/ab",
    ],
)
def test_keys_of_others_are_refused(key: bytes) -> None:
    with pytest.raises(StateFormatError, match="expected PARTITION/BUCKET"):
        read_key(key)


@given(st.integers(-1, 2**62), st.binary())
def test_buckets_come_back(applied: int, held: bytes) -> None:
    assert decode_bucket(b"0/1", encode_bucket(applied, held)) == (applied, held)


def test_a_large_bucket_is_compressed() -> None:
    state = b"state" * 10_000
    record = encode_bucket(7, state)
    assert len(record) < len(state) / 10
    assert decode_bucket(b"0/1", record) == (7, state)


def test_what_would_be_very_large_unpacked_is_refused_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    record = encode_bucket(7, b"state" * 10_000)
    content = encode_content(b"family" * 10_000)
    monkeypatch.setattr(context_log, "MOST_UNPACKED_BYTES", 49_999)
    with pytest.raises(StateFormatError, match="more than 49999 bytes unpacked"):
        decode_bucket(b"0/1", record)
    with pytest.raises(StateFormatError, match="more than 49999 bytes unpacked"):
        decode_content(b"0/content/ab", content)
    monkeypatch.setattr(state, "MOST_UNPACKED_BYTES", 16)
    live = state.StageState(FakeEngine(), CountingReducer())
    bucket: state.Bucket[dict[str, list[float]]] = state.Bucket(0, 0, {})
    assert live.check_size(bucket, b"x" * 16) == b"x" * 16
    with pytest.raises(StateFullError, match="17 unpacked"):
        live.check_size(bucket, b"x" * 17)


def test_a_packed_record_that_is_cut_off_is_an_error() -> None:
    packed = zlib.compress(b"state" * 10_000)[:-5]
    record = msgspec.msgpack.encode(BucketRecord(schema_version=1, applied=7, compressed=True, state=packed))
    with pytest.raises(StateFormatError, match="cut off"):
        decode_bucket(b"0/1", record)


@given(NUMBERS, st.floats(0, 1e10), st.dictionaries(NUMBERS, NUMBERS))
def test_positions_come_back(wanted: int, time_s: float, applied: dict[int, int]) -> None:
    record = decode_position(b"0/next", encode_position(wanted, time_s, applied))
    assert (record.wanted, record.time_s, record.applied) == (wanted, time_s, applied)


@given(st.binary(max_size=40))
def test_whatever_else_is_an_error_that_names_the_record(data: bytes) -> None:
    for decode in (decode_bucket, decode_position):
        try:
            decode(b"3/7", data)
        except StateFormatError as error:
            assert "b'3/7'" in str(error)  # noqa: PT017


class Kept(msgspec.Struct):
    value: int
    schema_version: int = 2


def test_a_reducers_state_of_an_older_version_that_may_be_read_becomes_one_of_now() -> None:
    assert decode_versioned(msgspec.msgpack.encode(Kept(5, schema_version=1)), Kept, 2, oldest=1) == Kept(5)
    with pytest.raises(StateFormatError, match="Kept has schema_version 0, this worker reads 2"):
        decode_versioned(msgspec.msgpack.encode(Kept(5, schema_version=0)), Kept, 2, oldest=1)


def test_a_reducers_state_of_another_version_is_refused() -> None:
    assert decode_versioned(msgspec.msgpack.encode(Kept(5)), Kept, 2) == Kept(5)
    with pytest.raises(StateFormatError, match="Kept has schema_version 3, this worker reads 2"):
        decode_versioned(msgspec.msgpack.encode(Kept(5, schema_version=3)), Kept, 2)
    with pytest.raises(StateFormatError, match="cannot be read"):
        decode_versioned(b"\xc1", Kept, 2)


def test_records_of_a_newer_version_are_refused() -> None:
    newer = b"\x95\x63" + encode_position(5, 0.0, {})[2:]
    with pytest.raises(StateFormatError, match=r"b'2/next' has schema_version 99, this worker reads 1"):
        decode_position(b"2/next", newer)

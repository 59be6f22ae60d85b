import json
from typing import Any

import msgspec
import numpy as np
import pytest

from springback.producers.contract.codec import MAX_FRAME_BYTES, decode_frame, encode_json, encode_msgpack
from springback.producers.contract.columns import ABSENT
from springback.producers.contract.frame import EpisodeHeader, EpisodeTraits, StepFrame, TextColumn
from springback.producers.contract.salvage import MAX_FRAME_EPISODES, MAX_FRAME_ROWS
from springback.producers.errors import UnreadableFrameError

HEADER = {"agent": "r", "episode": "1", "family": "f"}


def document(**fields: Any) -> dict[str, Any]:
    steps = {"episode": [0, 0], "step": [1, 2], "progress": [0.1, 0.2]}
    return {"schema_version": 1, "producer": "p", "session": "s", "episodes": [HEADER], "steps": steps} | fields


def steps(**columns: Any) -> dict[str, Any]:
    return document(steps={"episode": [0, 0], "step": [1, 2], "progress": [0.1, 0.2]} | columns)


def column(frame: StepFrame, name: str) -> Any:
    return frame.steps[name]


def from_json(value: Any) -> StepFrame:
    return decode_frame(json.dumps(value).encode())


def from_msgpack(value: Any) -> StepFrame:
    return decode_frame(msgspec.msgpack.encode(value))


@pytest.mark.parametrize(
    "data",
    [
        b"\n\t " + json.dumps(document()).encode(),
        b"\xef\xbb\xbf" + json.dumps(document()).encode(),
        msgspec.msgpack.encode(document()),
        msgspec.msgpack.encode(document() | {str(i): i for i in range(20)}),
    ],
    ids=["json after whitespace", "json after a byte order mark", "fixmap", "map16"],
)
def test_first_byte_tells_the_encoding(data: bytes) -> None:
    assert decode_frame(data).n_steps == 2


def test_unknown_fields_are_ignored() -> None:
    frame = from_json(
        document(
            episodes=[HEADER | {"colour": "red"}], weather=[[{}]], ends=[{"episode": 0, "outcome": "success", "x": 1}]
        )
        | {"steps": document()["steps"] | {"smell": "?"}}
    )
    assert not frame.faults
    assert frame.episodes == (EpisodeHeader(agent="r", episode="1", family="f"),)


def test_frame_without_steps_is_one() -> None:
    empties: list[Any] = [{}, {"episode": [], "step": [], "progress": []}, None]
    for empty in empties:
        assert from_json(document(steps=empty)).n_steps == 0
        assert from_msgpack(document(steps=empty)).n_steps == 0
    assert from_msgpack(document(steps={"episode": b"", "step": b"", "progress": b""})).n_steps == 0


UNREADABLE: list[tuple[str, bytes]] = [
    ("empty", b""),
    ("unknown_encoding", b"hello"),
    ("unknown_encoding", b"\x93abc"),
    ("not_json", b'{"schema_version": 1,'),
    ("not_json", b'{"schema_version": ' + b"1" * 5000 + b"}"),
    ("not_an_object", b"[]"),
    ("not_msgpack", b"\x81\xa1"),
    ("not_msgpack", b"\x81\xa1\xff\x01"),
    ("too_deep", b'{"a":' * 100_000),
    ("too_deep", b"\x81\xa1a" + b"\x91" * 100_000),
    ("too_large", b"{" + b" " * MAX_FRAME_BYTES + b"}"),
    *(
        (reason, json.dumps(value).encode())
        for reason, value in [
            ("unsupported_schema_version", document(schema_version=2)),
            ("unsupported_schema_version", document(schema_version=True)),
            ("unsupported_schema_version", {"producer": "p", "session": "s"}),
            ("bad_producer", document(producer=None)),
            ("bad_producer", document(producer="")),
            ("bad_producer", document(producer=7)),
            ("bad_session", document(session="x" * 257)),
            ("bad_episodes", document(episodes={})),
            ("bad_ends", document(ends="none")),
            ("bad_steps", document(steps=[])),
            ("bad_column", steps(progress=0.5)),
            ("bad_column", steps(mode={"0": "run"})),
            ("unequal_columns", steps(progress=[0.1])),
            ("unequal_columns", steps(travel=[])),
            ("missing_column", document(steps={"episode": [0], "step": [1]})),
            ("missing_column", steps(progress=None)),
            ("too_many_rows", document(steps={"episode": [0] * (MAX_FRAME_ROWS + 1)})),
            ("too_many_episodes", document(episodes=[HEADER] * (MAX_FRAME_EPISODES + 1))),
            ("too_many_episodes", document(episodes=[{}] * (MAX_FRAME_EPISODES + 1))),
            ("too_many_ends", document(ends=[{"episode": 0, "outcome": "success"}] * (MAX_FRAME_EPISODES + 1))),
        ]
    ),
    *(
        (reason, msgspec.msgpack.encode(value))
        for reason, value in [
            ("bad_column", steps(progress=b"1234567")),
            ("bad_column", steps(mode=[["run"], b"\x00\x00\x01\x00"])),
            ("bad_column", steps(mode=[["run"], b"\x00\x00\x00"])),
            ("bad_column", steps(mode=[["run", 7], b"\x00\x00\x00\x00"])),
            ("unequal_columns", steps(progress=b"12345678")),
            ("too_many_rows", document(steps={"episode": bytes(8 * (MAX_FRAME_ROWS + 1))})),
            ("too_many_episodes", document(episodes=[HEADER] * (MAX_FRAME_EPISODES + 1))),
        ]
    ),
]


@pytest.mark.parametrize(("reason", "data"), UNREADABLE, ids=[reason for reason, _ in UNREADABLE])
def test_unreadable_frame_says_why(reason: str, data: bytes) -> None:
    with pytest.raises(UnreadableFrameError) as caught:
        decode_frame(data)
    assert caught.value.reason == reason


def test_nan_of_pythons_json_is_kept_as_such() -> None:
    frame = from_json(steps(travel=[float("nan"), 1.0], risk=[float("-inf"), None]))
    assert np.isnan(column(frame, "travel")[0])
    assert column(frame, "travel").tobytes() != np.array([ABSENT, 1.0]).tobytes()
    assert column(frame, "risk").tobytes() == np.array([-np.inf, ABSENT]).tobytes()


def test_lone_surrogates_are_replaced_on_entry() -> None:
    text = '{"schema_version":1,"producer":"p\\ud800","session":"s","episodes":[{"agent":"\\udc00","episode":"1",'
    text += '"family":"f"}],"steps":{"episode":[0],"step":[0],"progress":[0],"mode":["a\\ud83d\\ude00\\ud800"]}}'
    frame = decode_frame(text.encode())
    assert (frame.producer, frame.episodes[0].agent) == ("p\ufffd", "\ufffd")
    assert column(frame, "mode").texts() == ["a😀\ufffd"]
    assert column(decode_frame(encode_msgpack(frame)), "mode").texts() == ["a😀\ufffd"]


def test_text_in_another_encoding_costs_its_letters_only() -> None:
    data = json.dumps(steps(mode=["geh", "X"]), ensure_ascii=False).replace("X", "zurück").encode("latin-1")
    assert column(decode_frame(data), "mode").texts() == ["geh", "zur\ufffdck"]


def test_lone_surrogates_are_replaced_before_they_leave() -> None:
    header = EpisodeHeader(agent="\ud800", episode="1", family="f")
    columns: dict[str, Any] = {
        "episode": np.array([0]),
        "step": np.array([0]),
        "progress": np.array([0.0]),
        "mode": TextColumn.of(["\udfff"]),
    }
    frame = StepFrame(producer="\ud800", session="s", episodes=(header,), steps=columns)
    for encode in (encode_json, encode_msgpack):
        back = decode_frame(encode(frame))
        assert (back.producer, back.episodes[0].agent, column(back, "mode").texts()) == ("\ufffd", "\ufffd", ["\ufffd"])


def test_more_distinct_texts_than_uint16_can_count() -> None:
    n = 65_537
    columns: dict[str, Any] = {"episode": np.zeros(n, np.int64), "step": np.arange(n), "progress": np.zeros(n)}
    texts = [str(i) for i in range(n)]
    frame = StepFrame(producer="p", session="s", steps={**columns, "action": TextColumn.of(texts)})
    assert column(decode_frame(encode_msgpack(frame)), "action").texts() == texts


def test_traits_are_the_header_without_its_names() -> None:
    header = EpisodeHeader(agent="a", episode="e", family="f", task="t", stress=0.4, magnitude=2.0, reference=True)
    declared = msgspec.structs.asdict(header)
    left_out = {"agent", "episode", "instruction"}
    assert msgspec.structs.asdict(header.traits()) == {k: v for k, v in declared.items() if k not in left_out}


def test_fields_lie_in_the_order_of_the_wire_and_of_stored_states() -> None:
    run = ("method", "version", "reference", "stress", "perturbation", "perturbation_name", "magnitude", "attack")
    assert EpisodeHeader.__struct_fields__ == ("agent", "episode", "family", "task", *run, "instruction")
    assert EpisodeTraits.__struct_fields__ == ("family", "task", *run)

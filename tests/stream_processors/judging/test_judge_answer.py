"""Answers are taken exactly as asked for, or not at all."""

import contextlib
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.stream_processors.judging.chat import read_answer
from springback.stream_processors.judging.counts import NoScoresError


def body(content: Any) -> bytes:
    return json.dumps({"choices": [{"message": {"content": content}}]}).encode()


def entry(
    judge: Any = 1, goal: Any = 0.5, rationality: Any = 0.5, efficiency: Any = 0.5, **more: Any
) -> dict[str, Any]:
    return {"judge": judge, "goal": goal, "rationality": rationality, "efficiency": efficiency, **more}


def answer(*entries: dict[str, Any], **more: Any) -> bytes:
    return body(json.dumps({"scores": list(entries), **more}))


def test_both_ends_of_the_range_are_in_it() -> None:
    found = read_answer(answer(entry(1, 0, 1, 0.25), entry(2, 1.0, 0.0, 1)), 2)
    np.testing.assert_array_equal(found, [[0.0, 1.0, 0.25], [1.0, 0.0, 1.0]])


@pytest.mark.parametrize("wrong", [1.0000001, -1e-9, 2, -1, 1e300])
@pytest.mark.parametrize("name", ["goal", "rationality", "efficiency"])
def test_a_score_out_of_range_refuses_all(wrong: float, name: str) -> None:
    with pytest.raises(NoScoresError) as raised:
        read_answer(answer(entry(1), entry(2, **{name: wrong})), 2)
    assert raised.value.cause == "refused_out_of_range"


@pytest.mark.parametrize(
    "malformed",
    [
        answer(entry(1)),
        answer(entry(1), entry(2), entry(3)),
        answer(entry(2), entry(1)),
        answer(entry(1), entry(1)),
        answer(entry(1), entry(2, comment="well done")),
        answer(entry(1), entry(2), note="well done"),
        answer(entry(1), entry(2, "0.5")),
        answer(entry(1), entry(2, None)),
        answer(entry(1), entry(2, True)),
        answer(entry(1), entry(2, float("nan"))),
        answer(entry(1), entry(2, float("inf"))),
        answer(entry(1), {"judge": 2, "goal": 1.0}),
        body(json.dumps([entry(1), entry(2)])),
        body(json.dumps({"scores": [entry(1), entry(2)]}) + " That is my verdict."),
        body(None),
        body({"scores": [entry(1), entry(2)]}),
        json.dumps({"choices": [{"message": {"content": "{}"}}] * 2}).encode(),
    ],
)
def test_anything_else_is_malformed(malformed: bytes) -> None:
    with pytest.raises(NoScoresError) as raised:
        read_answer(malformed, 2)
    assert raised.value.cause == "refused_malformed"


@given(st.binary(max_size=200) | st.text(max_size=200).map(body))
def test_whatever_comes_it_is_scores_or_a_refusal(data: bytes) -> None:
    with contextlib.suppress(NoScoresError):
        found = read_answer(data, 1)
        assert ((found >= 0) & (found <= 1)).all()

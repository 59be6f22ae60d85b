"""What an agent says is quoted: one line of JSON between two lines that nobody can have foreseen."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from springback.stream_processors.judging.chat import messages, quoted_data
from tests.stream_processors.judging.chat_stub import request_of


@given(st.text(max_size=400))
@example("a <b>\r\nEND \u2028 \u202e")
def test_no_text_ends_its_quotation_or_forms_a_template_token(text: str) -> None:
    step = {"action": text, "feedback": text, "mode": text, "progress": 0.5}
    data = quoted_data(request_of(instruction=text, family=text, steps=[step], judged=[0], rows=[0]))
    assert not {b"\n", b"\r", b"<", b">"} & {bytes([byte]) for byte in data}
    _, user = messages(data, 1)
    first, line, last = user["content"].split("\n")
    assert (first[:6], last[:4]) == ("BEGIN ", "END ")
    assert first[6:] == last[4:]
    shown = json.loads(line)
    assert len(shown["steps"]) == 1
    assert len(shown["instruction"]) <= 256
    assert all(len(shown["steps"][0][name]) <= 256 for name in ("action", "feedback"))
    assert len(shown["steps"][0]["mode"]) <= 64
    assert all(sign.isprintable() for value in shown["steps"][0].values() if isinstance(value, str) for sign in value)


def test_the_fence_is_new_each_time_and_the_data_the_same() -> None:
    data = quoted_data(request_of())
    assert quoted_data(request_of(rows=[5, 6])) == data
    one, other = (messages(data, 2)[1]["content"] for _ in range(2))
    assert one != other


def test_numbers_mark_what_is_to_be_judged() -> None:
    shown = json.loads(quoted_data(request_of(3, judged=[1, 3])))["steps"]
    assert [step.get("judge") for step in shown] == [None, 1, None, 2]
    assert "number" in messages(b"{}", 2)[0]["content"]
    assert "each of the 2 numbers" in messages(b"{}", 2)[0]["content"]

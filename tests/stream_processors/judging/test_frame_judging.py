"""Frames on their way through the judge: nobody waits longer than the deadline, order is kept per producer."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springback.producers.contract.codec import decode_frame, encode_json, encode_msgpack
from springback.producers.contract.columns import ABSENT
from springback.producers.contract.frame import StepFrame
from springback.stream_processors.judging.frame_judging import FrameJudging
from springback.stream_processors.judging.session import FrameLine, Passage
from springback.stream_processors.judging.step_selection import StepSelection
from tests.examples import examples
from tests.producers.jumping_loop import run_jumping
from tests.stream_processors.judging.chat_stub import GOOD, Asked, Bench, Reply, bench, good, scores
from tests.stream_processors.judging.test_step_selection import frame_of

GENEROUS_S = 20.0


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def put_in(here: Bench, data: bytes, selection: StepSelection, on_settled: Callable[[], None]) -> FrameJudging:
    return FrameJudging(data, selection, here.judge, here.counts, here.deadline(), on_settled)


async def passed(here: Bench, data: bytes) -> bytes:
    done = asyncio.Event()
    judging = put_in(here, data, StepSelection(here.settings, here.counts), done.set)
    async with asyncio.timeout(GENEROUS_S):
        await done.wait()
    return judging.output


def columns(data: bytes) -> list[list[float]]:
    frame = decode_frame(data)
    return [np.asarray(frame.steps[f"judge_{name}"]).tolist() for name in ("goal", "rationality", "efficiency")]


def test_scores_are_filled_in_and_all_else_is_as_it_was() -> None:
    sent = frame_of([4, 2, 3], ends=True, travel=[1.0, ABSENT, np.nan], judge_goal=[0.125, ABSENT, ABSENT])

    async def scenario() -> None:
        async with bench(good, which="every") as here:
            for encode in (encode_msgpack, encode_json):
                output = await passed(here, encode(sent))
                goal, rationality, efficiency = columns(output)
                np.testing.assert_array_equal(goal, [0.125, GOOD[0], GOOD[0]])
                np.testing.assert_array_equal(rationality, [ABSENT, GOOD[1], GOOD[1]])
                np.testing.assert_array_equal(efficiency, [ABSENT, GOOD[2], GOOD[2]])
                found = decode_frame(output)
                assert encode_msgpack(without_scores(found)) == encode_msgpack(without_scores(sent))
            assert here.counts.steps == here.counts.steps | {"judged": 2, "cached": 2, "given": 2}

    run_jumping(scenario())


def without_scores(frame: StepFrame) -> StepFrame:
    steps = {name: column for name, column in frame.steps.items() if not name.startswith("judge_")}
    return StepFrame(
        producer=frame.producer, session=frame.session, episodes=frame.episodes, steps=steps, ends=frame.ends
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00garbage",
        b'{"schema_version": 9}',
        encode_json(frame_of(range(3))).replace(b"0.01", b'"x"'),
        encode_msgpack(StepFrame(producer="p", session="s")),
    ],
)
def test_what_cannot_be_judged_goes_on_byte_for_byte(data: bytes) -> None:
    async def scenario() -> None:
        async with bench(good, which="every") as here:
            assert await passed(here, data) == data
            assert here.stub.asked == []

    run_jumping(scenario())


def test_at_the_deadline_a_frame_goes_on_with_what_is_there() -> None:
    async def half(asked: Asked) -> Reply:
        if asked.judged != [1]:
            await asyncio.sleep(3600)
        return scores(asked)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with bench(half, which="every", steps_per_call=2, deadline_s=0.5, call_timeout_s=0.5) as here:
            began = loop.time()
            goal = columns(await passed(here, encode_msgpack(frame_of(range(3)))))[0]
            assert loop.time() - began == pytest.approx(0.5)
            np.testing.assert_array_equal(goal, [ABSENT, ABSENT, GOOD[0]])
            assert here.counts.steps == here.counts.steps | {"judged": 1, "timed_out": 2}

    run_jumping(scenario())


def test_a_frame_that_is_given_up_goes_on_at_once_and_is_counted_once() -> None:
    async def never(_: Asked) -> Reply:
        await asyncio.sleep(3600)
        raise AssertionError

    async def scenario() -> None:
        async with bench(never, which="every") as here:
            settled: list[int] = []
            data = encode_msgpack(frame_of(range(3)))
            judging = put_in(here, data, StepSelection(here.settings, here.counts), lambda: settled.append(1))
            judging.give_up("crowded_out")
            judging.give_up("handed_over")
            await asyncio.sleep(0)
            assert (judging.output, settled) == (data, [1])
            assert here.counts.steps["crowded_out"] == 3
            assert sum(here.counts.steps.values()) == 3

    run_jumping(scenario())


def test_a_fault_of_ours_holds_nothing_up(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        async def judge(self, request: Any, deadline: float) -> Any:
            raise ZeroDivisionError

    async def scenario() -> None:
        async with bench(good, which="every") as here:
            here.judge = Broken()  # type: ignore[assignment]
            data = encode_msgpack(frame_of(range(3)))
            assert await passed(here, data) == data
            assert here.counts.steps["failed"] == 3

    run_jumping(scenario())
    assert "judge_fault" in caplog.text


def passages_of(keys: list[str]) -> list[Passage]:
    return [Passage(offset, 0, key.encode(), (), 1) for offset, key in enumerate(keys, 100)]


class Settled:
    """A stand-in for a judging that says whether it has settled."""

    settled = False


@settings(max_examples=examples(100))
@given(st.lists(st.sampled_from("abc"), max_size=12), st.randoms(use_true_random=False))
def test_whatever_settles_first_order_is_kept_per_key_and_offsets_name_the_first_that_is_missing(
    keys: list[str], chance: random.Random
) -> None:
    line, passages = FrameLine(), passages_of(keys)
    for passage in passages:
        passage.judging = Settled()  # type: ignore[assignment]
        line.join(passage)
    sent: list[Passage] = []
    for passage in chance.sample(passages, len(passages)):
        passage.judging.settled = True  # type: ignore[union-attr]
        line.settled(passage)
        while line.next_to_send() is not None and chance.random() < 0.7:
            sent.append(line.taken())
            line.acknowledged(sent[-1:])
        there = {done.offset for done in sent}
        missing = [other.offset for other in passages if other.offset not in there]
        expected = missing[0] if missing else 100 + len(passages)
        assert line.done_to == (None if expected == 100 else expected)
    while line.next_to_send() is not None:
        sent.append(line.taken())
    assert sorted(done.offset for done in sent) == [passage.offset for passage in passages]
    for key in "abc":
        offsets = [done.offset for done in sent if done.key == key.encode()]
        assert offsets == sorted(offsets)


def test_under_random_delays_order_is_kept_and_a_slow_producer_holds_back_no_other() -> None:
    async def erratic(asked: Asked) -> Reply:
        if asked.data["family"] == "navigation" and "slow" in asked.user:
            await asyncio.sleep(3600)
        await asyncio.sleep(random.Random(asked.user).random() * 0.1)
        return scores(asked)

    async def scenario() -> list[bytes | None]:
        async with bench(erratic, which="every", deadline_s=1.0, call_timeout_s=1.0, concurrency=64) as here:
            line, selection, woken = FrameLine(), StepSelection(here.settings, here.counts), asyncio.Event()
            sent: list[Passage] = []
            wanted = 40
            for offset in range(wanted):
                key = "slow" if offset == 0 else f"robot-{random.Random(offset).randrange(4)}"
                data = encode_msgpack(frame_of([offset], producer=key, feedback=[key], action=[str(offset)]))
                passage = Passage(offset, 0, key.encode(), (), len(data))
                line.join(passage)

                def go_on(passage: Passage = passage) -> None:
                    if line.settled(passage):
                        woken.set()

                passage.judging = put_in(here, data, selection, go_on)
                go_on()
            async with asyncio.timeout(GENEROUS_S):
                while len(sent) < wanted:
                    await woken.wait()
                    woken.clear()
                    while line.next_to_send() is not None:
                        sent.append(line.taken())
            assert sum(here.counts.steps.values()) == wanted
            for one in {passage.key for passage in sent}:
                offsets = [passage.offset for passage in sent if passage.key == one]
                assert offsets == sorted(offsets)
            return [passage.key for passage in sent]

    keys = run_jumping(scenario())
    assert Counter(keys)[b"slow"] == 1
    assert keys[-1] == b"slow"  # it came first, and waited for its deadline alone

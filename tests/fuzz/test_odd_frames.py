"""The same frames as the fuzzer's, without its guidance, and as hypothesis chooses them."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.accounted_core import AccountedCore
from tests.fuzz.odd_frames import odd_frame


def test_every_row_of_odd_frames_is_accounted_for() -> None:
    core, rng = AccountedCore(batch=32), random.Random(7)
    for _ in range(1500):
        core.feed(odd_frame(rng))
    core.flush()
    # It does not pass for want of anything to do: every fate is met, and most frames can be read.
    assert set(core.fates) == {
        "taken", "rejected", "duplicate", "overtaken", "after_end", "old_session", "session_again", "over_bounds",
    }  # fmt: skip
    assert min(core.fates.values()) > 0
    assert 0 < core.unreadable < core.frames // 2


@settings(max_examples=25, deadline=None)
@given(seeds=st.lists(st.integers(0, 2**32), min_size=1, max_size=30), batch=st.integers(1, 30))
def test_whatever_order_they_come_in(seeds: list[int], batch: int) -> None:
    core = AccountedCore(batch)
    for seed in seeds:
        core.feed(odd_frame(random.Random(seed)))
    core.flush()
    assert sum(core.fates.values()) == core.sent


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=200), min_size=1, max_size=10))
def test_bytes_of_any_kind_are_dead_letters(frames: list[bytes]) -> None:
    core = AccountedCore(batch=3)
    for data in frames:
        core.feed(data)
    core.flush()

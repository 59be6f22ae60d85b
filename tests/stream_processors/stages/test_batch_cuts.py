"""How frames come in batches changes no byte of what the first stage sends: a batch after a crash is cut anew."""

import random
from collections import Counter
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from springback.producers.contract.codec import encode_msgpack
from springback.producers.contract.frame import Outcome
from springback.stream_processors.exact.port import Output, StageEvent
from springback.stream_processors.offline.evaluation import learn_baseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import AgentStatus, decode_reading
from springback.stream_processors.resilience.tracking.bounds import BoundsConfig
from springback.stream_processors.stages.track_steps import TrackSteps
from springback.stream_processors.topics import CONTRIBUTIONS, DEAD_LETTER, STATUS, SUMMARIES, WINDOWS
from tests.fuzz.accounted_core import rows_of
from tests.fuzz.odd_frames import odd_frame
from tests.stream_processors.frame_builders import (
    START_S,
    frame_of_parts,
    header_of,
    nominal_rows,
    nothing_learned,
    ready,
)
from tests.stream_processors.random_episodes import by_seed, cut_into_frames, random_episodes, seeds

BOUNDS = BoundsConfig(agents=12, episodes=8, producers=2)
CONFIG = ResilienceConfig(bounds=BOUNDS, open_episodes=2, remembered_episodes=3, status_interval_s=0.0)


def events_of(frames: list[bytes]) -> list[StageEvent]:
    return [
        StageEvent("steps", 0, number, rows_of(data)[0], data, START_S + 0.7 * number)
        for number, data in enumerate(frames)
    ]


def sent(events: list[StageEvent], sizes: list[int], reducer: TrackSteps) -> list[Output]:
    state: Any = reducer.blank()
    outputs: list[Output] = []
    lengths, start = iter(sizes), 0
    while start < len(events):
        batch = events[start : start + next(lengths, 1)]
        outputs += reducer.apply(batch, [state] * len(batch))
        state, start = reducer.decode(reducer.encode(state)), start + len(batch)
    return outputs


def by_content(outputs: list[Output]) -> Counter[Output]:
    return Counter(output for output in outputs if output.topic != STATUS)


def statuses(outputs: list[Output]) -> Counter[AgentStatus]:
    found = [decode_reading(output.value or b"") for output in outputs if output.topic == STATUS]
    return Counter(msgspec.json.encode(each) for each in found)  # type: ignore[misc]


@by_seed(25)
@given(seed=seeds, sizes=st.lists(st.integers(1, 12), min_size=1, max_size=12))
def test_every_output_is_the_same_to_the_last_byte(seed: int, sizes: list[int]) -> None:
    parts = random_episodes(seed, references=4, others=4)
    baseline = ready(learn_baseline(cut_into_frames(parts, seed), CONFIG), CONFIG)
    rng = random.Random(seed)
    frames = [encode_msgpack(frame) for frame in cut_into_frames(parts, seed)]
    for _ in range(len(frames) // 2):  # copies, late ones, and odd ones between
        frames.insert(rng.randrange(len(frames)), rng.choice([rng.choice(frames), odd_frame(rng)]))
    events = events_of(frames)
    one_by_one, cut = (sent(events, each, TrackSteps(CONFIG, baseline)) for each in ([], sizes))
    assert by_content(cut) == by_content(one_by_one)
    # Which statuses are sent is a matter of time; each is what stood after the agent's latest frame.
    assert not statuses(cut) - statuses(one_by_one)


def test_the_sample_has_all_that_can_differ() -> None:
    parts = random_episodes(1, references=4, others=4)
    baseline = ready(learn_baseline(cut_into_frames(parts, 1), CONFIG), CONFIG)
    rng = random.Random(1)
    frames = [encode_msgpack(frame) for frame in cut_into_frames(parts, 1)] + [odd_frame(rng) for _ in range(200)]
    outputs = sent(events_of(frames), [], TrackSteps(CONFIG, baseline))
    assert {output.topic for output in outputs} == {SUMMARIES, WINDOWS, STATUS, CONTRIBUTIONS, DEAD_LETTER}


@by_seed(60)
@given(seed=seeds, sizes=st.lists(st.integers(1, 30), min_size=1, max_size=12))
def test_who_finds_room_in_a_crowd_does_not_hang_on_what_was_told(seed: int, sizes: list[int]) -> None:
    bounds = BoundsConfig(agents=3, episodes=3, producers=2, crowded_idle_s=6.0)
    config = ResilienceConfig(bounds=bounds, status_interval_s=3.0, remembered_episodes=3)
    rng = random.Random(seed)
    frames = []
    for number in range(60):
        agent = rng.choice("abcdefgh")
        outcome: Outcome | None = rng.choice(["success", "failure", None])
        header = header_of(agent=agent, episode=str(rng.randrange(number // 8 + 1)))
        first = rng.randrange(4)
        frames.append(encode_msgpack(frame_of_parts([(header, nominal_rows(first, first + 2), outcome)])))
    events = events_of(frames)
    baseline = nothing_learned(config)
    one_by_one, cut = (sent(events, each, TrackSteps(config, baseline)) for each in ([], sizes))
    assert by_content(cut) == by_content(one_by_one)
    last = {output.key: output.value for output in one_by_one if output.topic == STATUS}
    assert last.keys() == {output.key for output in cut if output.topic == STATUS}

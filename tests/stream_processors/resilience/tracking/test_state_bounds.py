"""What one producer may have: beyond the bounds it is refused, others beside it are not, and the state stays small."""

from collections import Counter
from itertools import count
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springback.producers.contract.frame import StepFrame
from springback.stream_processors.intake.step_table import ArrivedFrame
from springback.stream_processors.intake.validation import tabulate
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.tracking import admission
from springback.stream_processors.resilience.tracking.bounds import BoundsConfig, Room, agents_use, fit
from springback.stream_processors.resilience.tracking.episode_tracker import EpisodeTracker, TrackerOutputs
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState
from tests.stream_processors.frame_builders import (
    START_S,
    add_outputs,
    frame_of_parts,
    header_of,
    nominal_rows,
    nothing_learned,
)
from tests.stream_processors.random_episodes import by_seed, cut_into_frames, random_episodes, seeds

SMALL = BoundsConfig(agents=3, episodes=4, text_bytes=2000, producers=2, crowded_idle_s=60.0)
CONFIG = ResilienceConfig(bounds=SMALL, status_interval_s=1e9)


def frame(agents: list[str], producer: str = "robot-7", session: str = "boot", **fields: Any) -> StepFrame:
    """A step of a first episode of each of these agents."""
    outcome = fields.pop("outcome", None)
    parts = [(header_of(agent=agent, **fields), nominal_rows(0, 1), outcome) for agent in agents]
    return frame_of_parts(parts, session, producer)


def track(
    frames: list[StepFrame],
    state: TrackerState | None = None,
    config: ResilienceConfig = CONFIG,
    *,
    now_s: float = START_S,
    batch: int = 1000,
) -> tuple[TrackerOutputs, TrackerState]:
    state = TrackerState() if state is None else state
    tracker, outputs = EpisodeTracker(config, bounded=True), TrackerOutputs()
    for start in range(0, len(frames), batch):
        arrived = [ArrivedFrame(each, now_s) for each in frames[start : start + batch]]
        add_outputs(outputs, tracker.track(tabulate(arrived), [state] * len(arrived), nothing_learned(config)))
    return outputs, state


def refused(outputs: TrackerOutputs) -> list[tuple[str, str]]:
    assert {steps.reason for steps in outputs.unused} <= {"over_bounds"}
    return [(steps.key.agent, steps.key.episode) for steps in outputs.unused]


def test_agents_beyond_a_producers_bound_are_refused_and_those_of_another_are_not() -> None:
    outputs, state = track([frame(["a", "b", "c", "d", "e"]), frame(["x"], "robot-8")])
    assert refused(outputs) == [("d", "1"), ("e", "1")]
    assert list(state.agents) == ["a", "b", "c", "x"]
    assert [each.key.agent for each in outputs.begun] == ["a", "b", "c", "x"]
    assert {status.agent for status in outputs.statuses} == set(state.agents)
    assert "found no room" in outputs.unused[0].detail
    assert "resilience.bounds" in outputs.unused[0].detail


def test_all_producers_of_a_bucket_together_have_a_bound_of_their_own() -> None:
    frames = [frame([f"{name}{number}" for number in range(3)], name) for name in "pqr"]
    outputs, state = track(frames)
    assert refused(outputs) == [("r0", "1"), ("r1", "1"), ("r2", "1")]
    assert len(state.agents) == 6


def test_open_episodes_beyond_the_bound_are_refused_until_others_have_ended() -> None:
    outputs, state = track([frame(["a"], episode=str(number)) for number in range(6)])
    assert refused(outputs) == [("a", "4"), ("a", "5")]
    assert state.agents["a"].counts.over_bounds_steps == 2
    ended = frame(["a"], episode="1", outcome="success")
    outputs, state = track([ended, frame(["a"], episode="4"), frame(["a"], episode="5")], state)
    # The step that comes with the end is a copy; episode 4 has room now, and 5 has none.
    assert [(steps.key.episode, steps.reason) for steps in outputs.unused] == [("1", "duplicate"), ("5", "over_bounds")]
    assert list(state.agents["a"].open) == ["0", "2", "3", "4"]


@pytest.mark.parametrize(
    "fields",
    [{"task": "t" * 250}, {"family": "é" * 125}, {"perturbation_name": "n" * 250}, {"session": "s" * 200}],
    ids=lambda fields: next(iter(fields)),
)
def test_text_beyond_the_bound_is_refused(fields: dict[str, Any]) -> None:
    config = msgspec.structs.replace(
        CONFIG, bounds=msgspec.structs.replace(SMALL, agents=99, episodes=99, producers=99)
    )
    frames = [frame([f"agent-{number}"], **fields) for number in range(40)]
    outputs, state = track(frames, config=config)
    assert 3 < len(state.agents) < 20
    assert len(refused(outputs)) == 40 - len(state.agents)
    assert agents_use(state.agents.values()).text <= SMALL.text_bytes


def test_sessions_that_are_remembered_count_as_text() -> None:
    outputs, state = track([frame(["a"], session=f"{number}" * 120) for number in range(10, 20)])
    assert agents_use(state.agents.values()).text <= SMALL.text_bytes
    assert outputs.unused


def test_idle_agents_make_room_and_busy_ones_do_not() -> None:
    ended = [frame([name], outcome="success") for name in "ab"]
    _, state = track([*ended, frame(["c"])])
    for agent in state.agents.values():
        agent.changed = False
    outputs, state = track([frame(["d"])], state, now_s=START_S + 30)
    assert refused(outputs) == [("d", "1")]
    outputs, state = track([frame(["d"])], state, now_s=START_S + 61)
    assert not refused(outputs)
    assert set(state.agents) == {"c", "d"}


def test_an_agent_that_was_forgotten_is_new_and_its_copies_count_again() -> None:
    config = ResilienceConfig()
    once = frame(["a"], outcome="success")
    outputs, state = track([once, once], config=config)
    assert [each.steps for each in outputs.unused] == [1]
    tracker = EpisodeTracker(config, bounded=True)
    tracker.close_idle(state, START_S + 10)
    tracker.close_idle(state, START_S + config.forget_agent_s)
    outputs, state = track([once], state, config, now_s=START_S + config.forget_agent_s)
    assert [each.reason for each in outputs.unused] == ["duplicate"]
    tracker.close_idle(state, START_S + 2 * config.forget_agent_s + 1)
    tracker.close_idle(state, START_S + 3 * config.forget_agent_s)
    assert not state.agents
    outputs, _ = track([once], state, config, now_s=START_S + 4 * config.forget_agent_s)
    assert (outputs.unused, len(outputs.summaries)) == ([], 1)


def test_offline_nothing_is_refused() -> None:
    tracker, state = EpisodeTracker(CONFIG), TrackerState()
    arrived = [ArrivedFrame(frame([f"a{number}" for number in range(50)]), START_S)]
    outputs = tracker.track(tabulate(arrived), [state], nothing_learned(CONFIG))
    assert (outputs.unused, len(state.agents)) == ([], 50)


@by_seed(30)
@given(seed=seeds, sizes=st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_what_is_refused_does_not_depend_on_how_frames_come_in_batches(seed: int, sizes: list[int]) -> None:
    frames = cut_into_frames(random_episodes(seed, references=3, others=2), seed)
    changed = [
        msgspec.structs.replace(each, session=f"boot-{number // 7 % 3}", producer=f"robot-{number % 3}")
        for number, each in enumerate(frames)
    ]
    kept: list[tuple[Any, ...]] = []
    for lengths in ([len(frames)], sizes):
        state, tracker, outputs = TrackerState(), EpisodeTracker(CONFIG, bounded=True), TrackerOutputs()
        numbers, start = iter(lengths), 0
        while start < len(changed):
            size = next(numbers, 1)
            arrived = [ArrivedFrame(e, START_S + i) for i, e in enumerate(changed[start : start + size], start)]
            add_outputs(outputs, tracker.track(tabulate(arrived), [state] * len(arrived), nothing_learned(CONFIG)))
            start += size
            assert agents_use(state.agents.values()).episodes <= SMALL.producers * SMALL.episodes
            assert len(state.agents) <= SMALL.producers * SMALL.agents
        unused = Counter((u.key, u.reason, u.lowest, u.highest) for u in outputs.unused)
        kept.append((unused, sorted(msgspec.msgpack.encode(each) for each in outputs.begun), sorted(state.agents)))
    assert kept[0] == kept[1]


@by_seed(30)
@given(seed=seeds)
def test_room_is_followed_as_a_count_of_the_state_would_have_it(seed: int) -> None:
    rooms: list[Room] = []

    class Remembered(Room):
        def __init__(self, config: BoundsConfig | None) -> None:
            super().__init__(config)
            rooms.append(self)

    frames = cut_into_frames(random_episodes(seed, references=3, others=2), seed)
    changed = [
        msgspec.structs.replace(e, session=f"boot-{n // 7 % 3}", producer=f"robot-{n % 3}")
        for n, e in enumerate(frames)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(admission, "Room", Remembered)
        _, state = track(changed)
    [room] = rooms
    [total] = room._totals.values()
    counted = agents_use(state.agents.values())
    assert (total.agents, total.episodes, total.text) == (counted.agents, counted.episodes, counted.text)


def large_state(bounds: BoundsConfig, agents: int = 40) -> TrackerState:
    config = ResilienceConfig(bounds=bounds, status_interval_s=1e9)
    numbers = count()
    frames = []
    for agent in range(agents):
        frames += [frame([f"a{agent}"], episode=str(next(numbers)), outcome="success") for _ in range(100)]
        rows = [row for mode in range(30) for row in nominal_rows(20 * mode, 20 * mode + 20, mode=f"mode {mode}")]
        header = header_of(agent=f"a{agent}", episode="open", reference=True)
        frames.append(frame_of_parts([(header, rows, None)]))
    return track(frames, config=config)[1]


def test_a_state_that_is_too_large_is_made_smaller_by_what_is_missed_least() -> None:
    bounds = BoundsConfig(state_bytes=250_000)
    state = large_state(bounds)
    before = len(msgspec.msgpack.encode(state))
    assert before > 4 * bounds.state_bytes
    data, shed = fit(state, msgspec.msgpack.encode, bounds)
    assert shed
    assert len(data) <= bounds.state_bytes
    assert msgspec.msgpack.decode(data, type=TrackerState) == state
    # All open episodes are there; some teach nothing any more, but not more of them than need be.
    episodes = [agent.open["open"] for agent in state.agents.values()]
    assert (len(episodes), {len(agent.ended) for agent in state.agents.values()}) == (40, {16})
    assert 0 < sum(episode.learning is not None for episode in episodes) < 40
    assert fit(state, msgspec.msgpack.encode, bounds) == (data, False)


def test_idle_agents_are_the_first_to_go() -> None:
    bounds = BoundsConfig(state_bytes=100_000)
    config = ResilienceConfig(bounds=bounds)
    names = [f"agent {number}" for number in range(300)]
    _, state = track([frame(names, outcome="success")], config=config)
    for agent in state.agents.values():
        agent.changed = False
    _, state = track([frame(["busy"])], state, config, now_s=START_S + bounds.crowded_idle_s + 1)
    assert len(state.agents) == 301
    assert fit(state, msgspec.msgpack.encode, bounds)[1]
    assert set(state.agents) == {"busy"}


@settings(max_examples=20, deadline=None)
@given(
    agents=st.integers(1, 60),
    episodes=st.integers(1, 8),
    text=st.text(st.characters(codec="utf-8"), min_size=40, max_size=80),
)
def test_whatever_comes_a_state_is_brought_below_its_bound_but_for_open_episodes(
    agents: int, episodes: int, text: str
) -> None:
    bounds = BoundsConfig(state_bytes=20_000, agents=50, episodes=100, text_bytes=8_000, producers=1)
    config = ResilienceConfig(bounds=bounds, status_interval_s=1e9)
    frames = [
        frame([text + str(agent) for agent in range(agents)], episode=text + str(number)) for number in range(episodes)
    ]
    _, state = track(frames, config=config)
    fit(state, msgspec.msgpack.encode, bounds)
    use = agents_use(state.agents.values())
    # A kilobyte and a half for an episode with all that does not depend on what its producer says.
    of_open = 3 * use.text + 1500 * use.episodes + 600 * use.agents
    assert len(msgspec.msgpack.encode(state)) <= max(bounds.state_bytes, of_open)

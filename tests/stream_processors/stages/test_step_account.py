"""Every step that a producer sends is used, or counted by the reason for which it is not: offline and on the stream."""

from collections import Counter
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.producers.contract.codec import encode_json
from springback.producers.contract.frame import StepFrame
from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.stream_processors.exact.port import Output, StageEvent
from springback.stream_processors.offline.evaluation import evaluate_frames
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.tracking.tracker_state import MOST_LOSING_SESSIONS
from springback.stream_processors.stages.track_steps import TrackSteps
from springback.stream_processors.topics import DEAD_LETTER
from tests.stream_processors.frame_builders import START_S, frame_of, nominal_rows, nothing_learned
from tests.stream_processors.random_episodes import by_seed, cut_into_frames, random_episodes, seeds

CONFIG = ResilienceConfig(idle_timeout_s=30.0)
REASONS = ("duplicate", "overtaken", "after_end", "old_session", "session_again")


def stage() -> TrackSteps:
    blank = nothing_learned(CONFIG)
    return TrackSteps(CONFIG, blank)


def events_of(frames: list[StepFrame], **fields: Any) -> list[StageEvent]:
    return [
        StageEvent("steps", 0, number, **{"key": frame.producer.encode(), "value": encode_json(frame)} | fields,
                   time_s=START_S + 10.0 * number)
        for number, frame in enumerate(frames)
    ]  # fmt: skip


def dead(outputs: list[Output]) -> list[tuple[str, bytes]]:
    return [(dict(o.headers)["reason"].decode(), o.value or b"") for o in outputs if o.topic == DEAD_LETTER]


def frame_numbers(frame: StepFrame, name: str) -> np.ndarray:
    column = frame.steps[name]
    assert isinstance(column, np.ndarray)
    return column


def changed_in(frame: StepFrame, name: str, column: np.ndarray) -> StepFrame:
    return msgspec.structs.replace(frame, steps=frame.steps | {name: column})


def spoilt(frames: list[StepFrame], data: st.DataObject) -> list[StepFrame]:
    """The frames shuffled a little, some of them lost, repeated, cut in two, of another session or with a bad row."""
    changed: list[StepFrame] = []
    for frame in frames:
        what = data.draw(st.sampled_from(["as it is"] * 4 + ["lost", "twice", "session", "again", "bad"]))
        if what == "lost":
            continue
        if what == "session":
            frame = msgspec.structs.replace(frame, session=data.draw(st.sampled_from(["boot", "reboot", "third"])))
        if what == "again" and frame.n_steps:
            frame = changed_in(frame, "travel", frame_numbers(frame, "travel") + 1.0)
            changed.append(frame)
        if what == "bad" and frame.n_steps:
            progress = frame_numbers(frame, "progress").copy()
            progress[0] = 7.0
            frame = changed_in(frame, "progress", progress)
        changed += [frame] * (2 if what == "twice" else 1)
    for _ in range(data.draw(st.integers(0, 6))):
        if changed:
            place = data.draw(st.integers(0, len(changed) - 1))
            changed.insert(data.draw(st.integers(0, len(changed) - 1)), changed.pop(place))
    return changed


@by_seed(40)
@given(seed=seeds, data=st.data())
def test_sent_is_used_and_rejected_and_unused_by_reason(seed: int, data: st.DataObject) -> None:
    parts = random_episodes(seed, references=2, others=1, families=1)
    # One agent runs two of the episodes, so that its sessions close episodes.
    parts[1] = (msgspec.structs.replace(parts[1][0], agent=parts[0][0].agent, episode="2"), *parts[1][1:])
    frames = spoilt(cut_into_frames(parts, seed), data)
    sent = sum(frame.n_steps for frame in frames)
    account = evaluate_frames(frames, CONFIG).steps
    assert account.sent == sent == account.used + account.rejected + sum(account.unused.values())
    assert account.examples.keys() == account.unused.keys()

    reducer = stage()
    state, outputs, batch = reducer.blank(), [], data.draw(st.integers(1, 5))
    events = events_of(frames)
    for start in range(0, len(events), batch):
        piece = events[start : start + batch]
        outputs += reducer.apply(piece, [state] * len(piece))
        if data.draw(st.booleans()):
            outputs += reducer.tick(state, piece[-1].time_s + data.draw(st.sampled_from([1.0, 100.0]))) or []
    counted = Counter[str]()
    for agent in state.agents.values():
        counted["used"] += agent.counts.steps
        counted.update({reason: getattr(agent.counts, f"{reason}_steps") for reason in REASONS})
    letters = dead(outputs)
    rejected = sum("step" in msgspec.json.decode(row) for reason, row in letters if reason not in REASONS)
    assert sent == sum(counted.values()) + rejected
    told = Counter[str]()
    for reason, row in letters:
        if reason in REASONS:
            told[reason] += msgspec.json.decode(row)["steps"]
    # Copies are counted alone: nothing of them is lost.
    assert told == Counter({reason: counted[reason] for reason in REASONS[1:] if counted[reason]})


def test_what_an_emitter_says_that_it_has_sent_is_what_an_evaluation_finds() -> None:
    kept = MemoryPublisher()
    with StepEmitter(kept, producer="robot-7") as emitter:
        for number in range(3):
            episode = emitter.begin_episode(episode=str(number), family="navigation")
            for step in range(20):
                episode.step(progress=(step + 1) / 20)
            episode.end("success")
    account = evaluate_frames([*kept.frames, *kept.frames], CONFIG).steps
    assert emitter.report.steps_sent == 60
    assert (account.sent, account.used, account.unused) == (120, 60, Counter(duplicate=60))


@pytest.mark.parametrize("key", [b"", b"robot-8"])
def test_a_frame_without_its_producers_key_is_a_dead_letter(key: bytes) -> None:
    reducer = stage()
    state = reducer.blank()
    [event] = events_of([frame_of(nominal_rows(0, 5))], key=key)
    outputs = reducer.apply([event], [state])
    assert dead(outputs) == [("wrong_key", event.value)]
    assert "send it under the producer's id" in dict(outputs[0].headers)["detail"].decode()
    assert state == reducer.blank()


def test_what_is_lost_goes_to_the_dead_letters_with_the_reason() -> None:
    again = [{**row, "time_s": row["time_s"] + 60, "travel": 0.5} for row in nominal_rows(0, 20)]
    frames = [frame_of(nominal_rows(0, 20), "success"), frame_of(nominal_rows(0, 20), "success"), frame_of(again)]
    reducer = stage()
    events = events_of(frames)
    outputs = reducer.apply(events, [reducer.blank()] * 3)
    [(reason, row)] = dead(outputs)
    assert reason == "session_again"
    assert msgspec.json.decode(row) == {
        "agent": "robot-7", "session": "boot", "episode": "1", "steps": 20, "lowest_step": 0, "highest_step": 19,
    }  # fmt: skip


def test_steps_that_a_producer_says_are_lost_count_once_over_replays_and_workers() -> None:
    def telling(lost: int, session: str = "boot", place: int = 0) -> StageEvent:
        frame = msgspec.structs.replace(frame_of(nominal_rows(0, 1)), session=session, lost_steps=lost)
        return events_of([frame])[0]._replace(offset=place)

    first, state = stage(), stage().blank()
    written = first.encode(state)
    first.apply([telling(3)], [state])
    first.settle(False)  # given up: it comes again
    state = first.decode(written)
    first.apply([telling(3), telling(3, place=1), telling(5, place=2)], [state] * 3)
    assert first.told_losses == 0
    first.settle(True)
    assert first.told_losses == 5
    later, taken_over = stage(), first.decode(first.encode(state))
    later.apply([telling(5, place=3), telling(6, place=4), telling(2, "reboot", place=5)], [taken_over] * 3)
    later.settle(True)
    assert later.told_losses == 1 + 2


def test_what_is_known_of_losing_sessions_is_bounded() -> None:
    state = stage().blank()
    told = [state.note_losses("r7", f"session-{number}", 1) for number in range(MOST_LOSING_SESSIONS + 5)]
    assert sum(told) == len(told)
    assert len(state.losses) == MOST_LOSING_SESSIONS
    assert state.note_losses("r7", f"session-{MOST_LOSING_SESSIONS}", 1) == 0

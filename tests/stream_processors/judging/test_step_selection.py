"""Which steps are judged, and what is shown of the episode around them."""

from typing import Any

import numpy as np
import pytest

from springback.producers.contract.columns import ABSENT
from springback.producers.contract.frame import EpisodeEnd, EpisodeHeader, StepFrame, TextColumn
from springback.stream_processors.judging.counts import JudgeCounts
from springback.stream_processors.judging.settings import JudgeSettings
from springback.stream_processors.judging.step_selection import StepSelection


def frame_of(steps: range | list[int], *, ends: bool = False, producer: str = "robot", **given: list[Any]) -> StepFrame:
    columns: dict[str, list[Any]] = {"progress": [step / 100 for step in steps], "episode": [0] * len(steps), **given}
    arrays: dict[str, Any] = {"step": np.array(steps, dtype=np.int64)}
    for name, cells in columns.items():
        text = name in ("mode", "action", "feedback")
        arrays[name] = TextColumn.of(cells) if text else np.array(cells, dtype=np.int64 if name == "episode" else float)
    headers = tuple(
        EpisodeHeader(agent=producer, episode=str(i), family="navigation", method="secret-method", stress=0.7)
        for i in range(2)
    )
    end = (EpisodeEnd(episode=0, outcome="success"),) if ends else ()
    return StepFrame(producer=producer, session="s", episodes=headers, steps=arrays, ends=end)


def selection_of(**changes: Any) -> tuple[StepSelection, JudgeCounts]:
    counts = JudgeCounts()
    return StepSelection(JudgeSettings(**({"trajectory_steps": 2} | changes)), counts), counts


def test_steps_with_an_event_are_judged() -> None:
    selection, counts = selection_of()
    frame = frame_of(
        range(8),
        retries=[0, 1, 0, 0, 0, 0, 0, 0],
        violation=[0, 0, 0, ABSENT, 0, 2, 0, 0],
        progress=[0, 0.1, 0.2, 0.1, 0.2, 0.3, 0.4, 0.5],
        feedback=["", "", "", "", "", "", "bump", "bump"],
    )
    (request,) = selection.requests(frame)
    assert request.rows == [1, 3, 5, 6]
    assert [request.steps[at].get("feedback", "") for at in request.judged] == ["", "", "", "bump"]
    assert counts.steps["skipped"] == 4


def test_feedback_and_setbacks_count_from_frame_to_frame() -> None:
    selection, _ = selection_of()
    assert [request.rows for request in selection.requests(frame_of([0, 1], feedback=["ok", "ok"]))] == [[0]]
    assert selection.requests(frame_of([2, 3], feedback=["ok", "ok"])) == []
    (request,) = selection.requests(frame_of([4], feedback=["ok"], progress=[0.0]))
    assert [step["progress"] for step in request.steps] == [0.02, 0.03, 0.0]


def test_every_and_every_nth() -> None:
    selection, _ = selection_of(which="every", steps_per_call=3)
    found = selection.requests(frame_of(range(7)))
    assert [request.rows for request in found] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [[step["progress"] for step in request.steps] for request in found[1:]] == [
        [0.01, 0.02, 0.03, 0.04, 0.05], [0.04, 0.05, 0.06],
    ]  # fmt: skip
    selection, _ = selection_of(which="nth", every_nth=3)
    assert [request.rows for request in selection.requests(frame_of([2, 3, 4, 5, 6]))] == [[1, 4]]


def test_steps_far_apart_are_asked_about_apart() -> None:
    selection, _ = selection_of(which="nth", every_nth=10)
    found = selection.requests(frame_of(range(30)))
    assert [(request.rows, len(request.steps)) for request in found] == [([0], 1), ([10], 3), ([20], 3)]


def test_rows_are_taken_by_episode_and_step_whatever_their_order() -> None:
    selection, _ = selection_of(which="every")
    found = selection.requests(frame_of([3, 0, 2, 1], episode=[1, 0, 1, 0]))
    assert [request.rows for request in found] == [[1, 3], [2, 0]]


def test_what_the_tracker_drops_is_not_judged() -> None:
    selection, counts = selection_of(which="every")
    selection.requests(frame_of(range(3)))
    odd = frame_of([1, 2, 3, 3, 4, 5], episode=[0, 0, 0, 0, 5, 0], progress=[0.1] * 5 + [7.0])
    (request,) = selection.requests(odd)
    assert request.rows == [2]
    assert counts.steps["skipped"] == 5


def test_scores_of_the_producer_are_left_alone() -> None:
    selection, counts = selection_of(which="every")
    (request,) = selection.requests(
        frame_of(range(4), judge_goal=[0.5, ABSENT, ABSENT, np.nan], judge_efficiency=[ABSENT, 0.5, ABSENT, ABSENT])
    )
    assert request.rows == [2]
    assert counts.steps["given"] == 3


def test_an_episode_that_ended_is_forgotten_and_so_are_all() -> None:
    selection, _ = selection_of(which="every")
    selection.requests(frame_of(range(3), ends=True))
    assert len(selection.requests(frame_of([0]))[0].steps) == 1
    selection.forget()
    assert len(selection.requests(frame_of([0]))[0].steps) == 1


def test_no_more_episodes_are_remembered_than_allowed() -> None:
    selection, _ = selection_of(which="every", remembered_episodes=2)
    for producer in "abc":
        selection.requests(frame_of(range(3), producer=producer))
    shown = {producer: len(selection.requests(frame_of([5], producer=producer))[0].steps) for producer in "ca"}
    assert shown == {"c": 3, "a": 1}


def test_one_frame_takes_no_more_calls_than_allowed() -> None:
    selection, counts = selection_of(which="every", steps_per_call=2, calls_per_frame=3)
    assert len(selection.requests(frame_of(range(20)))) == 3
    assert counts.steps["crowded_out"] == 14


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e300, ABSENT])
def test_broken_numbers_are_not_shown(value: float) -> None:
    selection, _ = selection_of(which="every")
    (request,) = selection.requests(frame_of([1], travel=[value], risk=[0.25]))
    assert request.steps == [{"progress": 0.01, "risk": 0.25} | ({"travel": value} if value == -1e300 else {})]


def test_the_judge_does_not_learn_what_it_must_not_go_by() -> None:
    selection, _ = selection_of(which="every")
    (request,) = selection.requests(frame_of(range(2)))
    assert not {"secret-method", "robot", "0.7"} & {str(value) for step in request.steps for value in step.values()}
    assert set(request.__slots__) == {"family", "instruction", "steps", "judged", "rows"}

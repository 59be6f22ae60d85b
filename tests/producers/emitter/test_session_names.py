from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.producers.emitter import session_names
from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.session_names import SessionNames
from springback.producers.emitter.step_emitter import EndTogether, StepEmitter
from springback.producers.errors import EmitterStateError


class Borrower:
    """Whoever is lent a name."""


@pytest.fixture
def emitter() -> Iterator[StepEmitter]:
    with StepEmitter(MemoryPublisher(), producer="robot-7", session="s", clock=lambda: 1.8e9) as emitter:
        yield emitter


def test_an_episode_that_is_open_cannot_begin_again(emitter: StepEmitter) -> None:
    first = emitter.begin_episode(episode="12", family="f")
    with pytest.raises(
        EmitterStateError, match=r"episode 12 of robot-7 is open already: end it first, or .* its agent"
    ):
        emitter.begin_episode(episode="12", family="f")
    emitter.begin_episode("robot-8", episode="12", family="f")  # another agent's is another episode
    first.step(progress=1.0)
    first.end("success")
    assert emitter.begin_episode(episode="12", family="f").header.episode == "12#1"


def test_an_episode_that_ended_among_others_may_begin_again(emitter: StepEmitter) -> None:
    import numpy as np

    both = [emitter.begin_episode(agent, episode="1", family="f") for agent in ("a", "b")]
    emitter.step_together(both, np.array([0, 0]), {"progress": np.ones(2)}, [EndTogether(1, "success")])
    emitter.begin_episode("b", episode="1", family="f")
    with pytest.raises(EmitterStateError, match="episode 1 of a is open already"):
        emitter.begin_episode("a", episode="1", family="f")


def test_episodes_without_an_id_are_numbered_by_agent_and_pass_over_numbers_that_were_given(
    emitter: StepEmitter,
) -> None:
    emitter.begin_episode("a", episode="2", family="f")
    ids = [emitter.begin_episode("a", family="f").header.episode for _ in range(3)]
    assert ids == ["1", "3", "4"]  # one was begun; 2 is taken
    assert emitter.begin_episode("b", family="f").header.episode == "0"


def test_an_id_that_comes_again_gets_a_number_which_is_said_once(
    emitter: StepEmitter, caplog: pytest.LogCaptureFixture
) -> None:
    headers = []
    with caplog.at_level(logging.WARNING):
        for task in (None, None, "round"):
            handle = emitter.begin_episode(episode="lap", family="f", task=task)
            headers.append((handle.header.episode, handle.header.task))
            handle.end("success")
    assert headers == [("lap", None), ("lap#1", "lap"), ("lap#2", "round")]
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        "episode lap of robot-7 has been in this session before, and is called lap#1"
    ]


def test_an_id_of_a_task_gets_its_number_beside_an_open_episode_too_and_nothing_is_said(
    emitter: StepEmitter, caplog: pytest.LogCaptureFixture
) -> None:
    ids: list[str] = []

    def begin() -> None:
        ids.append(emitter.begin_episode(episode="lap", family="f", may_repeat=True).header.episode)

    with caplog.at_level(logging.WARNING):
        threads = [threading.Thread(target=begin) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(ids) == sorted(["lap", *(f"lap#{number}" for number in range(1, 20))])
    assert not caplog.records


def test_an_id_as_long_as_one_may_be_keeps_its_end_when_it_comes_again(emitter: StepEmitter) -> None:
    ids = []
    for _ in range(3):
        handle = emitter.begin_episode(episode="x" * 255 + "7", family="f")
        ids.append(handle.header.episode)
        handle.end("success")
    assert ids == ["x" * 255 + "7", "x" * 253 + "7#1", "x" * 253 + "7#2"]


def test_a_number_that_the_emitter_has_given_is_not_another_s(emitter: StepEmitter) -> None:
    emitter.begin_episode(family="f").end("success")
    assert emitter.begin_episode(episode="0", family="f").header.episode == "0#1"


def test_what_is_not_remembered_gets_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_names, "MOST_REMEMBERED", 2)
    names = SessionNames()
    for episode in ("x", "y"):
        assert names.unused("a", episode) == episode
        names.begun("a", episode, given=True)
    assert names.unused("a", "z") == "z#2"


def test_a_lent_name_is_free_again_when_it_is_given_back_or_its_borrower_is_gone() -> None:
    names = SessionNames()
    first, second, third = Borrower(), Borrower(), Borrower()
    assert [names.lend_agent("arm", who) for who in (first, second, third)] == ["arm", "arm#2", "arm#3"]
    assert names.lend_agent("arm", first) == "arm"
    names.return_agents(second)
    assert names.lend_agent("arm", fourth := Borrower()) == "arm#2"
    del first
    assert names.lend_agent("arm", Borrower()) == "arm"
    assert fourth is not None


@given(st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.integers(0, 6).map(str) | st.sampled_from("xyz"))))
def test_no_id_that_the_names_choose_comes_twice(wishes: list[tuple[str, str | None]]) -> None:
    names, begun = SessionNames(), set()
    for agent, wanted in wishes:
        episode = names.numbered(agent) if wanted is None else names.unused(agent, wanted)
        assert (agent, episode) not in begun
        names.begun(agent, episode, given=wanted is not None)
        begun.add((agent, episode))

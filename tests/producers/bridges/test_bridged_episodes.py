"""Which episodes a will ends."""

from __future__ import annotations

from springback.producers.bridges.mqtt_bridge import MOST_EPISODES, MOST_PRODUCERS, BridgedEpisodes
from springback.producers.contract.frame import EpisodeEnd, EpisodeHeader, StepFrame

NOW_S = 1_790_000_000.0


def frame(*episodes: str, session: str = "s1", ended: int | None = None, producer: str = "r7") -> StepFrame:
    headers = tuple(EpisodeHeader(agent=producer, episode=name, family="delivery") for name in episodes)
    ends = () if ended is None else (EpisodeEnd(episode=ended, outcome="success"),)
    return StepFrame(producer=producer, session=session, episodes=headers, steps={}, ends=ends)


def aborted(known: BridgedEpisodes, producer: str = "r7") -> tuple[str, list[str]] | None:
    told = known.abort(producer, NOW_S)
    if told is None:
        return None
    assert [(end.outcome, end.time_s) for end in told.ends] == [("aborted", NOW_S)] * len(told.episodes)
    return told.session, [told.episodes[end.episode].episode for end in told.ends]


def test_all_that_run_end_and_those_that_ended_do_not() -> None:
    known = BridgedEpisodes()
    known.note(frame("1", "2"))
    known.note(frame("2", "3", ended=0))
    assert aborted(known) == ("s1", ["1", "3"])
    assert aborted(known) is None
    assert aborted(known, "unheard of") is None


def test_a_new_session_forgets_the_old_one() -> None:
    known = BridgedEpisodes()
    known.note(frame("1"))
    known.note(frame("2", session="s2"))
    assert aborted(known) == ("s2", ["2"])


def test_an_end_of_no_episode_does_no_harm() -> None:
    known = BridgedEpisodes()
    known.note(frame("1", ended=7))
    assert aborted(known) == ("s1", ["1"])


def test_it_is_bounded() -> None:
    known = BridgedEpisodes()
    for number in range(MOST_PRODUCERS + 1):
        known.note(frame("1", producer=f"r{number}"))
    assert aborted(known, "r0") is None
    known.note(frame(*(str(number) for number in range(MOST_EPISODES + 5)), producer="busy"))
    told = aborted(known, "busy")
    assert told is not None
    assert len(told[1]) == MOST_EPISODES

"""Which episodes run, as far as frames tell: for the one that has to end them when their producer cannot."""

from collections import OrderedDict
from typing import Final

from springback.producers.frame_parts import EpisodeEnd, EpisodeHeader, StepFrame

MOST_PRODUCERS: Final = 1000
MOST_EPISODES: Final = 1000


class OpenEpisodes:
    """The open episodes of the producers heard of last.

    >>> header = EpisodeHeader(agent="r7", episode="12", family="delivery")
    >>> known = OpenEpisodes()
    >>> known.note(StepFrame(producer="r7", session="s", episodes=(header,), steps={}, ends=()))
    >>> frame = known.abort("r7", time_s=1790000000.0)
    >>> frame.ends[0].outcome, known.abort("r7", time_s=1790000000.0)
    ('aborted', None)
    """

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, tuple[str, dict[tuple[str, str], EpisodeHeader]]] = OrderedDict()

    def note(self, frame: StepFrame) -> None:
        """Take notice of a frame: its episodes run, but for those that end in it. A new session replaces an old one."""
        session, running = self._sessions.get(frame.producer, ("", {}))
        if session != frame.session:
            running = {}
        for header in frame.episodes:
            running[header.agent, header.episode] = header
        for end in frame.ends:
            if 0 <= end.episode < len(frame.episodes):
                header = frame.episodes[end.episode]
                running.pop((header.agent, header.episode), None)
        while len(running) > MOST_EPISODES:
            del running[next(iter(running))]
        self._sessions[frame.producer] = frame.session, running
        self._sessions.move_to_end(frame.producer)
        while len(self._sessions) > MOST_PRODUCERS:
            self._sessions.popitem(last=False)

    def abort(self, producer: str, time_s: float) -> StepFrame | None:
        """A frame that ends all open episodes of this producer as aborted; None where there are none.

        Args:
            producer: its id.
            time_s: the instant of the ends, s UTC epoch.
        """
        session, running = self._sessions.pop(producer, ("", {}))
        if not running:
            return None
        headers = tuple(running.values())
        ends = tuple(EpisodeEnd(episode=place, outcome="aborted", time_s=time_s) for place in range(len(headers)))
        return StepFrame(producer=producer, session=session, episodes=headers, steps={}, ends=ends)

"""From when on a list is whole, where something was before: a page reads back what the topics hold, no more."""

from collections.abc import Mapping

from nicegui import ui

from springback.dashboards.live_page.explained import When, text
from springback.dashboards.live_page.live_sink import LiveSink
from springback.sinks.sink import Earlier, TopicReach

EARLIER: Mapping[Earlier, str] = {
    "gone": "earlier ones are no longer in the topics.",
    "left": "earlier ones are in the topics, and were left unread: more than there is room for.",
}
"""What is said of what was before."""


class ReachNote:
    """The note; hidden where nothing was before.

    Args:
        sink: what was read.
        topic: of whose readings it tells, without the prefix.
    """

    def __init__(self, sink: LiveSink, topic: str) -> None:
        self._sink, self._topic = sink, topic
        self._shown: TopicReach | None = None
        with ui.element("p").classes("sb-note") as self._note:
            self._since = text("Since ")
            self._when = When()
            self._told = text()
        self._note.set_visibility(False)

    def refresh(self, *, wanted: bool = True) -> None:
        """Shows what holds now.

        Args:
            wanted: whether there is anything to be said it of.
        """
        with self._sink.look() as (view, _):
            reach = view.reach_of(self._topic)
        is_cut = reach is not None and reach.earlier != "none"
        self._note.set_visibility(wanted and is_cut)
        if reach is None or not is_cut or reach == self._shown:
            return
        self._shown = reach
        told = EARLIER[reach.earlier]
        for part in (self._since, self._when):
            part.set_visibility(reach.since_s is not None)
        self._when.show(reach.since_s)
        self._told.text = told.capitalize() if reach.since_s is None else f"; {told}"

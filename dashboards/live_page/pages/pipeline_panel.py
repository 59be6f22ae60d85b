"""How the pipeline itself fares: the broker, the workers, what arrives, what could not be used."""

from nicegui import ui

from springback.dashboards.live_page.live_sink import LiveSink
from springback.dashboards.live_page.page_parts import NOTHING, section_title, stat, stat_at
from springback.dashboards.live_page.pages.reach_note import ReachNote
from springback.sinks.fleet.sight import Blindness
from springback.stream_processors import topics

_BROKER = {True: "answers", False: "does not answer", None: "not asked yet"}
_READ: dict[Blindness | None, str] = {
    None: "yes",
    "catching up": "not yet",
    "no broker": "not now",
    "no worker": "yes",
}
_LARGEST_REASONS = 20
_READ_BACK = {
    "Rebound windows read": topics.WINDOWS,
    "Episodes read": topics.SUMMARIES,
    "Statuses of agents read": topics.STATUS,
    "Dead letters read": topics.DEAD_LETTER,
}
_MOST_PARTITIONS = 32
_NO_FRAME, _ALL_USED, _NOT_KNOWN = "No frame waits.", "All could be used.", "Not known while no broker answers."


class PipelinePanel:
    """The figures, and how many frames wait in each partition, and dead letters by reason."""

    def __init__(self, sink: LiveSink, bootstrap: str) -> None:
        self._sink = sink
        self._figures: dict[str, ui.label] = {}
        with ui.element("section").classes("sb-card").props('aria-label="Pipeline"'):
            section_title("Pipeline")
            with ui.element("dl").classes("sb-stats"):
                for name in (
                    *("Broker", "Caught up", "Frames behind", "Readings a second", "Steps a second"),
                    *("Agents", "Episodes ended", "Dead letters", "Unreadable messages"),
                ):
                    self._figures[name] = stat(name)
                self._last = stat_at("Last report of an agent")
            ui.label(f"The broker is at {bootstrap}.").classes("sb-note")
            with ui.element("dl").classes("sb-counts"):
                self._reaches = {topic: _ReachRow(sink, name, topic) for name, topic in _READ_BACK.items()}
        with ui.element("div").classes("sb-halves"):
            self._behind = _Counts("Frames that no worker has read yet", _MOST_PARTITIONS)
            self._reasons = _Counts("Input that could not be used", _LARGEST_REASONS)

    def refresh(self) -> None:
        """Shows what holds now."""
        with self._sink.look() as (view, now_s):
            sight, blindness = view.sight, view.sight.blindness
            behind = dict(sight.frames_behind)
            reasons = view.dead_letters.most_common(_LARGEST_REASONS)
            texts = {
                "Broker": _BROKER[sight.broker_reachable],
                "Caught up": _READ[blindness],
                "Frames behind": f"{sum(behind.values()):,}" if sight.broker_reachable else NOTHING,
                "Readings a second": f"{view.readings_per_second(now_s):,.1f}",
                "Steps a second": f"{view.steps_per_second(now_s):,.1f}",
                "Agents": f"{sum(1 for _ in view.agents()):,}",
                "Episodes ended": f"{view.episodes_ended:,}",
                "Dead letters": f"{view.dead_letters.total():,}",
                "Unreadable messages": f"{view.unreadable:,}",
            }
            newest_s = sight.newest_s
        for name, text in texts.items():
            self._figures[name].text = text
        self._last.show(newest_s)
        for row in self._reaches.values():
            row.refresh()
        waiting = sorted((partition, frames) for partition, frames in behind.items() if frames)
        self._behind.show(
            [(f"partition {partition}", frames) for partition, frames in waiting[:_MOST_PARTITIONS]],
            _NO_FRAME if sight.broker_reachable else _NOT_KNOWN,
        )
        self._reasons.show([(reason.replace("_", " "), number) for reason, number in reasons], _ALL_USED)


class _ReachRow:
    """From when on the readings of a topic are whole."""

    def __init__(self, sink: LiveSink, name: str, topic: str) -> None:
        self._sink, self._topic = sink, topic
        with ui.element("div"):
            with ui.element("dt"):
                ui.label(name)
            with ui.element("dd"):
                self._none = ui.label(NOTHING)
                self._all = ui.label("all that there were")
                self._note = ReachNote(sink, topic)

    def refresh(self) -> None:
        with self._sink.look() as (view, _):
            reach = view.reach_of(self._topic)
        self._none.set_visibility(reach is None)
        self._all.set_visibility(reach is not None and reach.earlier == "none")
        self._note.refresh()


class _Counts:
    """Names with a number each, in rows that are made once."""

    def __init__(self, title: str, rows: int) -> None:
        with ui.element("section").classes("sb-card"):
            section_title(title)
            self._none = ui.label().classes("sb-none")
            with ui.element("dl").classes("sb-counts"):
                self._rows = [_CountRow() for _ in range(rows)]

    def show(self, counts: list[tuple[str, int]], none: str) -> None:
        self._none.text = none
        self._none.set_visibility(not counts)
        for number, row in enumerate(self._rows):
            row.show(*(counts[number] if number < len(counts) else (None, 0)))


class _CountRow:
    def __init__(self) -> None:
        with ui.element("div") as self._row:
            with ui.element("dt"):
                self._name = ui.label()
            with ui.element("dd"):
                self._number = ui.label()

    def show(self, name: str | None, number: int) -> None:
        self._row.set_visibility(name is not None)
        self._name.text, self._number.text = name or "", f"{number:,}"

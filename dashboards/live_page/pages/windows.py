"""Rebound windows: as a list of sentences with when, where and how much, and the page of recent ones."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from nicegui import ui

from springback.dashboards.live_page.explained import When, term, text
from springback.dashboards.live_page.links import agent_link, episode_link, family_link
from springback.dashboards.live_page.live_sink import LiveSink
from springback.dashboards.live_page.page_parts import ChoiceBar, StateChip, group_name, section_title
from springback.dashboards.live_page.page_query import PageQuery, SearchBox
from springback.dashboards.live_page.pages.downloads import download_link
from springback.dashboards.live_page.pages.pager import Pager
from springback.dashboards.live_page.pages.reach_note import ReachNote
from springback.dashboards.live_page.window_words import WINDOW_LOOKS, window_figures, window_sentence
from springback.sinks.fleet.fleet_state import clean_group
from springback.sinks.fleet.labels import clean_label_value
from springback.stream_processors.metrics.figure_words import stress_text
from springback.stream_processors.resilience.readings import EpisodeTraits, WindowReading
from springback.stream_processors.topics import WINDOWS

Density = Literal["full", "short"]

SPANS: Mapping[str, tuple[str, float]] = {
    "": ("All that is remembered", float("inf")),
    "24h": ("Last 24 hours", 86_400.0),
    "1h": ("Last hour", 3600.0),
    "10m": ("Last 10 minutes", 600.0),
}
"""How far back a list goes, by what stands for it in addresses: its words, and seconds."""

UNSTEADY_S = 2.0
"""The clock of an agent is estimated anew all the time, and moves what is told by it: less is not shown."""

_STATES: Mapping[str, str] = {"": "Any", **{state: look[2].capitalize() for state, look in WINDOW_LOOKS.items()}}
_ROWS = 25
_FIGURES: tuple[tuple[str, str], ...] = (
    ("cause", "cause"),
    ("channel", "channel"),
    ("lost cycles", "lost cycles"),
    ("peak g", "peak g"),
    ("recovery cost C_rec", "cost"),
)


class WindowList:
    """The newest windows, in rows that are made once and then only change their text.

    Args:
        rows: the most windows that are shown.
        density: `short` leaves the figures out.
        of_agent: whether all are of one agent, which need not be named again.
    """

    def __init__(self, rows: int, density: Density = "full", *, of_agent: bool = False) -> None:
        self._none = ui.label().classes("sb-none")
        with ui.element("ul").classes(f"sb-windows sb-windows--{density}") as self._list:
            self._rows = [_WindowRow(density, of_agent) for _ in range(rows)]

    def show(
        self,
        windows: Sequence[WindowReading],
        skew_s: Callable[[str], float],
        none: str = "No rebound window yet.",
    ) -> None:
        """Shows these, the first ones if there are more than rows.

        Args:
            windows: newest first.
            skew_s: how far an agent's clock, by which its windows' times are, is ahead of the broker's.
            none: what is said where there is none.
        """
        self._none.text = none
        self._none.set_visibility(not windows)
        self._list.set_visibility(bool(windows))
        for row, window in zip(self._rows, windows, strict=False):
            row.show(window, window.departure_time_s - skew_s(window.key.agent))
        for row in self._rows[len(windows) :]:
            row.hide()


class Whereabouts:
    """When something was, and of whom: the time, agent, family, task and stress, with links.

    Args:
        of_agent: whether the agent need not be named.
    """

    def __init__(self, *, of_agent: bool = False) -> None:
        with ui.element("div").classes("sb-where"):
            self._when = When()
            self._agent = None if of_agent else ui.link("", "").classes("sb-link")
            self._family = ui.link("", "").classes("sb-link")
            self._task = text()
            with ui.element("span"):
                term("stress λ", "λ")
                self._stress = text()

    def show(self, agent: str, traits: EpisodeTraits, at_s: float) -> None:
        """Shows these; the time is in seconds since 1970, by the broker's clock."""
        before = self._when.props.get("at")
        if before is None or not abs(before - at_s) < UNSTEADY_S:
            self._when.show(at_s)
        if self._agent is not None:
            self._agent.text = clean_label_value(agent)
            self._agent.props["href"] = agent_link(agent)
        self._family.text = group_name(*clean_group(traits))
        self._family.props["href"] = family_link(traits)
        self._task.text = clean_label_value(traits.task)
        self._stress.text = f" {stress_text(traits.declared_stress)}"


class _WindowRow:
    def __init__(self, density: Density, of_agent: bool) -> None:
        self._shown: tuple[WindowReading, float] | None = None
        with ui.element("li") as self._row:
            self._chip = StateChip()
            self._link = ui.link("", "").classes("sb-sentence")
            self._where = Whereabouts(of_agent=of_agent)
            self._figures: list[ui.label] = []
            if density == "full":
                with ui.element("dl").classes("sb-figures"):
                    for word, name in _FIGURES:
                        with ui.element("div"):
                            with ui.element("dt"):
                                term(word, name)
                            with ui.element("dd"):
                                self._figures.append(ui.label())
        self._row.set_visibility(False)

    def hide(self) -> None:
        if self._shown is not None:
            self._shown = None
            self._row.set_visibility(False)

    def show(self, window: WindowReading, departed_s: float) -> None:
        if self._shown is not None and self._shown[0] is window and abs(self._shown[1] - departed_s) < UNSTEADY_S:
            return
        self._shown = window, departed_s
        self._row.set_visibility(True)
        self._chip.show_as(*WINDOW_LOOKS[window.state])
        self._link.text = window_sentence(window)
        self._link.props["href"] = episode_link(window.key, window.number)
        self._where.show(window.key.agent, window.traits, departed_s)
        for label, told in zip(self._figures, window_figures(window), strict=False):
            label.text = told


class WindowPanel:
    """The windows that are remembered, newest first, a page at a time; which of them is said by the address.

    Args:
        sink: what is shown.
        query: what the address says: `search`, `state`, `since` and `page`.
    """

    def __init__(self, sink: LiveSink, query: PageQuery) -> None:
        self._sink, self._query = sink, query
        with ui.element("section").classes("sb-card").props('aria-label="Recent rebound windows"'):
            section_title("Recent rebound windows")
            with ui.element("div").classes("sb-choices-bar"):
                SearchBox(query, "Find an agent, a family or a task", self.refresh, begins=("page", "episodes"))
                self._state = ChoiceBar("State", _STATES, lambda state: self._choose("state", state))
                words = {value: words for value, (words, _) in SPANS.items()}
                self._since = ChoiceBar("Time", words, lambda since: self._choose("since", since))
            self._windows = WindowList(_ROWS)
            self._pager = Pager(_ROWS, self._turn)
            self._reach = ReachNote(sink, WINDOWS)
            download_link("windows")
        query.read_by(self.refresh)

    def refresh(self) -> None:
        """Shows what holds now."""
        self._reach.refresh()
        query = self._query
        state, since = query.choice("state", _STATES), query.choice("since", SPANS)
        self._state.show(state)
        self._since.show(since)
        with self._sink.look() as (view, now_s):
            known = view.windows()
            skews = {agent: view.skew_s(agent) for agent in {window.key.agent for window in known}}
        oldest_s = now_s - SPANS[since][1]
        chosen = [
            window
            for window in known
            if (not state or window.state == state)
            and not window.departure_time_s - skews[window.key.agent] < oldest_s
            and has_words(query.text("search"), window.key.agent, window.traits)
        ]
        first = self._pager.show(query.number("page", 1), len(chosen), len(known))
        none = "No rebound window is like that." if known else "No rebound window yet."
        self._windows.show(chosen[first : first + _ROWS], skews.__getitem__, none)

    def _turn(self, page: int) -> None:
        self._query.put({"page": page if page > 1 else None})
        self.refresh()

    def _choose(self, name: str, value: str) -> None:
        self._query.put({"page": None, "episodes": None, name: value})
        self.refresh()


def has_words(searched: str, agent: str, traits: EpisodeTraits) -> bool:
    """Whether each word that is searched for is in the agent's name, its family, its method or its task."""
    fields = [clean_label_value(name).casefold() for name in (agent, traits.family, traits.method, traits.task)]
    return all(any(word in field for field in fields) for word in searched.casefold().split())

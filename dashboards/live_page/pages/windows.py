"""Rebound windows: in a sentence, as a list with figures, and the page of recent ones."""

from collections.abc import Sequence
from typing import Literal

from nicegui import ui

from springback.dashboards.live_page.live_sink import LiveSink
from springback.dashboards.live_page.page_parts import NOTHING, figure, section_title
from springback.sinks.fleet.fleet_state import agent_key
from springback.sinks.fleet.labels import clean_label_value
from springback.stream_processors.resilience.readings import ChannelCosts, WindowCause, WindowReading, WindowState

_CAUSES: dict[WindowCause, str] = {
    "effort": "with more effort than is normal there",
    "delay": "as its task came no nearer",
    "effort+delay": "with more effort than is normal there, and as its task came no nearer",
}

_LOOKS: dict[WindowState, tuple[str, str, str]] = {
    "open": ("rebound", "settings_backup_restore", "open"),
    "recovered": ("calm", "check_circle_outline", "recovered"),
    "unrecovered": ("stalled", "report", "unrecovered"),
    "censored": ("unknown", "help_outline", "censored"),
}
Density = Literal["full", "short"]
_ROWS = 25


def dominant_channel(costs: ChannelCosts) -> str | None:
    """The channel that cost most; None where none did."""
    shares = {"cognitive": costs.cognitive, "physical": costs.physical, "debt": costs.debt}
    name = max(shares, key=lambda channel: shares[channel])
    return name if shares[name] > 0 else None


def window_sentence(window: WindowReading) -> str:
    """What happened, what has become of it, and whether it counts."""
    told = _sentence(window)
    return f"{told} Provisional: its family is still learning." if window.provisional else told


def _sentence(window: WindowReading) -> str:
    agent = clean_label_value(window.key.agent)
    head = f"{agent} departed from its baseline at step {window.departure_step:,}, {_CAUSES[window.cause]},"
    steps = f"{window.length_steps:,} step{'' if window.length_steps == 1 else 's'}"
    match window.state:
        case "recovered":
            return f"{head} and re-entered at step {window.reentry_step:,}, after {steps}."
        case "unrecovered":
            return f"{head} and had not re-entered when its episode ended, {steps} on."
        case "censored":
            return f"{head} and was lost sight of after {steps}: whether it recovered is not known."
        case "open":
            return f"{head} and has not re-entered yet."


class WindowList:
    """The newest windows, in rows that are made once and then only change their text.

    Args:
        rows: the most windows that are shown.
        density: `short` leaves the figures out.
        linked: whether a sentence leads to its agent.
    """

    def __init__(self, rows: int, density: Density = "full", *, linked: bool = True) -> None:
        self._none = ui.label("No rebound window yet.").classes("sb-none")
        with ui.element("ul").classes(f"sb-windows sb-windows--{density}"):
            self._rows = [_WindowRow(density, linked) for _ in range(rows)]

    def show(self, windows: Sequence[WindowReading]) -> None:
        """Shows these, the first ones if there are more than rows."""
        self._none.set_visibility(not windows)
        for number, row in enumerate(self._rows):
            row.show(windows[number] if number < len(windows) else None)


class _WindowRow:
    def __init__(self, density: Density, linked: bool) -> None:
        self._window: WindowReading | None = None
        with ui.element("li") as self._row:
            with ui.element("span").classes("sb-state") as self._chip:
                self._icon, self._word = ui.icon(""), ui.label()
            if linked:
                self._link: ui.link | None = ui.link("", "").classes("sb-sentence")
            else:
                self._link, self._sentence = None, ui.label().classes("sb-sentence")
            self._figures: list[ui.label] = []
            if density == "full":
                with ui.element("dl").classes("sb-figures"):
                    for name in ("cause", "channel", "lost cycles", "peak g", "cost"):
                        with ui.element("div"):
                            with ui.element("dt"):
                                ui.label(name)
                            with ui.element("dd"):
                                self._figures.append(ui.label())
        self._mark = ""
        self._row.set_visibility(False)

    def show(self, window: WindowReading | None) -> None:
        if window == self._window:
            return
        self._window = window
        self._row.set_visibility(window is not None)
        if window is None:
            return
        mark, self._icon.name, self._word.text = _LOOKS[window.state]
        self._chip.classes(add=f"sb-state--{mark}", remove=self._mark)
        self._mark = f"sb-state--{mark}"
        if self._link is None:
            self._sentence.text = window_sentence(window)
        else:
            self._link.text = window_sentence(window)
            self._link.props["href"] = f"/agent/{agent_key(clean_label_value(window.key.agent)).hex()}"
        closed = window.state != "open"
        texts = (
            window.cause.replace("+", " and "),
            dominant_channel(window.costs) or NOTHING,
            figure(window.lost_cycles),
            figure(window.peak),
            figure(window.recovery_cost) if closed else f"{figure(window.recovery_cost)} at the alarm",
        )
        for label, text in zip(self._figures, texts, strict=False):
            label.text = text


class WindowPanel:
    """The windows that are remembered, newest first, a page at a time."""

    def __init__(self, sink: LiveSink) -> None:
        self._sink = sink
        self._first = 0
        with ui.element("section").classes("sb-card").props('aria-label="Recent rebound windows"'):
            section_title("Recent rebound windows")
            self._windows = WindowList(_ROWS)
            with ui.element("div").classes("sb-pager") as self._pager:
                self._told = ui.label().classes("sb-note")
                with ui.element("div"):
                    for icon, name, step in (("chevron_left", "Newer", -_ROWS), ("chevron_right", "Older", _ROWS)):
                        button = ui.button(icon=icon, color=None, on_click=lambda step=step: self._turn(step))
                        button.props(f'flat round dense aria-label="{name}"')

    def refresh(self) -> None:
        """Shows what holds now."""
        with self._sink.look() as (view, _):
            newest = view.windows()
        self._first = max(0, min(self._first, (len(newest) - 1) // _ROWS * _ROWS))
        shown = newest[self._first : self._first + _ROWS]
        self._windows.show(shown)
        self._pager.set_visibility(bool(shown))
        last = self._first + len(shown)
        self._told.text = f"{self._first + 1:,}\N{EN DASH}{last:,} of {len(newest):,} that are remembered"

    def _turn(self, step: int) -> None:
        self._first += step
        self.refresh()

"""Rebound windows as a list: cause, dominant channel, lost cycles, cost, and a sentence."""

from collections.abc import Sequence
from typing import Literal

from nicegui import ui
from springback.dashboards.live_page.fleet_view import agent_key
from springback.dashboards.live_page.page_text import NOTHING, figure
from springback.dashboards.live_page.window_sentence import dominant_channel, window_sentence
from springback.sinks.label_values import clean_label_value
from springback.stream_processors.resilience.readings import WindowReading, WindowState

_LOOKS: dict[WindowState, tuple[str, str, str]] = {
    "open": ("rebound", "settings_backup_restore", "open"),
    "recovered": ("calm", "check_circle_outline", "recovered"),
    "unrecovered": ("stalled", "report", "unrecovered"),
    "censored": ("unknown", "help_outline", "censored"),
}
Density = Literal["full", "short"]


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
        """Show these, the first ones where there are more than rows."""
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

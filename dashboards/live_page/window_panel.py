"""The page of recent rebound windows, over all agents."""

from nicegui import ui
from springback.dashboards.live_page.live_sink import LiveSink
from springback.dashboards.live_page.page_parts import section_title
from springback.dashboards.live_page.window_list import WindowList

_ROWS = 25


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
        """Show what holds now."""
        with self._sink.look() as (view, _):
            newest = view.windows.newest_first()
        self._first = max(0, min(self._first, (len(newest) - 1) // _ROWS * _ROWS))
        shown = newest[self._first : self._first + _ROWS]
        self._windows.show(shown)
        self._pager.set_visibility(bool(shown))
        last = self._first + len(shown)
        self._told.text = f"{self._first + 1:,}\N{EN DASH}{last:,} of {len(newest):,} that are remembered"

    def _turn(self, step: int) -> None:
        self._first += step
        self.refresh()

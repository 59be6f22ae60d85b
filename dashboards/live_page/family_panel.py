"""The families: the table, and the stress-response curve of the one that is chosen."""

from nicegui import ui
from springback.dashboards.live_page.chart_style import LiveChart
from springback.dashboards.live_page.family_table import FamilyTable, family_key, family_title
from springback.dashboards.live_page.live_sink import LiveSink
from springback.dashboards.live_page.page_parts import section_title
from springback.dashboards.live_page.stress_curve import curve_words, stress_curve
from springback.stream_processors.resilience.family_readings import FamilyReading


class FamilyPanel:
    """The page's content. Until somebody chooses, a family in breach is shown, or the first."""

    def __init__(self, sink: LiveSink) -> None:
        self._sink = sink
        self._families: list[FamilyReading] = []
        self._chosen: str | None = None
        self._none = ui.label("No episode of any family has ended yet.").classes("sb-card sb-none")
        with ui.element("div").classes("sb-family-page") as self._content:
            with ui.element("section").classes("sb-card").props('aria-label="Families"'):
                section_title("Families")
                ui.label(
                    "Success says whether agents arrive, cost what the way back took. A click shows the curve."
                ).classes("sb-note")
                self._table = FamilyTable(on_choose=self._choose)
            with ui.element("section").classes("sb-card sb-curve").props('aria-label="Stress response"'):
                self._title = section_title()
                self._words = ui.label().classes("sb-note")
                self._curve = LiveChart("margin over stress", "sb-chart sb-chart--tall")
                ui.label("Hollow points stand on too few episodes to decide anything.").classes("sb-note")

    def refresh(self) -> None:
        """Show what holds now."""
        with self._sink.look() as (view, _):
            self._families = view.families()
        self._none.set_visibility(not self._families)
        self._content.set_visibility(bool(self._families))
        if not self._families:
            return
        self._table.show(self._families)
        shown = next((family for family in self._families if family_key(family) == self._chosen), None)
        shown = shown or next((family for family in self._families if family.in_breach), self._families[0])
        self._title.text = f"Stress response of {family_title(shown)}"
        self._words.text = curve_words(shown)
        self._curve.show(stress_curve(shown))

    def _choose(self, key: str) -> None:
        self._chosen = key
        self.refresh()

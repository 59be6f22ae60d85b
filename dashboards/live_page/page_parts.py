"""Small parts of several pages: the title of a section, a figure with its name."""

from nicegui import ui
from springback.dashboards.live_page.page_text import NOTHING


def section_title(text: str = "") -> ui.label:
    """The title of a section, which those who do not see it can jump to."""
    return ui.label(text).classes("sb-title").props('role="heading" aria-level="2"')


def stat(name: str) -> ui.label:
    """A figure with its name above it, in a `dl`; the label of the figure."""
    with ui.element("div"):
        with ui.element("dt"):
            ui.label(name)
        with ui.element("dd"):
            return ui.label(NOTHING)

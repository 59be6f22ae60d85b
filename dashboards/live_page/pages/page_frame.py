"""What every page has: the name, the way to the other pages, whether we see, the switch for dark and light."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from nicegui import context, ui

from springback.dashboards.live_page import links
from springback.dashboards.live_page.explained import PageScript, When, text, word_list
from springback.dashboards.live_page.live_sink import LiveSink
from springback.dashboards.live_page.page_query import PageQuery
from springback.sinks.fleet.sight import Blindness
from springback.sinks.sink import ReadingBack

PageName = Literal["Fleet", "Families", "Windows", "Alerts", "Pipeline"]

PAGES: dict[PageName, str] = {
    "Fleet": links.FLEET,
    "Families": links.FAMILIES,
    "Windows": links.WINDOWS,
    "Alerts": links.ALERTS,
    "Pipeline": links.PIPELINE,
}

Refresh = Callable[[], None]
"""Brings a part of a page to what holds now; called about once a second."""

_INTERVAL_S = 1.0
_THEME_ICONS = {None: "brightness_auto", True: "dark_mode", False: "light_mode"}
_THEME_WORDS = {None: "as the system", True: "dark", False: "light"}
_NEXT_THEME = {None: True, True: False, False: None}
_THEME_VALUES = {None: "auto", True: "dark", False: "light"}
THEME_COOKIE = "springback_theme"


def theme_of(cookie: str | None) -> bool | None:
    """Whether the page is dark by the choice that the browser remembers; None where it follows the system.

    >>> theme_of("dark"), theme_of(None)
    (True, None)
    """
    return {"dark": True, "light": False}.get(cookie or "")


@contextmanager
def page_frame(
    sink: LiveSink,
    bootstrap: str,
    active: PageName | None,
    dark: bool | None,
    query: PageQuery,
    *,
    heading: str | None = None,
) -> Iterator[Callable[[Refresh], None]]:
    """A page; its content is what the block makes, and the words of the glossary follow.

    Args:
        sink: what is shown.
        bootstrap: the broker's address, so that one can find out why it does not answer.
        active: which page this is.
        dark: as `theme_of` tells.
        query: what the address says of what is shown.
        heading: of the whole page, for those who do not see it; None where the content has one.

    Yields:
        what takes the parts that are to be refreshed.
    """
    refreshes: list[Refresh] = []
    with sink.look() as (_, now_s):
        pass
    # What NiceGUI puts a page's content into is its `main` already, and a banner is none inside of that.
    with context.client.layout, ui.element("header").classes("sb-header") as header:
        ui.link("springback", links.FLEET).classes("sb-brand")
        with ui.element("nav").classes("sb-nav").props('aria-label="Pages"'):
            for name, address in PAGES.items():
                link = ui.link(name, address)
                if name == active:
                    link.classes("sb-nav--active").props('aria-current="page"')
                if name == "Alerts":
                    with link:
                        refreshes.append(_alert_count(sink))
        refreshes.append(_sight_chip(sink))
        _theme_switch(dark)
        query.bind(PageScript(now_s))
    header.move(target_index=0)
    with ui.element("div").classes("sb-main"):
        if heading is not None:
            text(heading, "h1").classes("sb-unseen")
        refreshes.append(_banner(sink, bootstrap))
        yield refreshes.append
        word_list()

    def refresh() -> None:
        for part in refreshes:
            part()

    refresh()
    ui.timer(_INTERVAL_S, refresh)


def _alert_count(sink: LiveSink) -> Refresh:
    """How many alerts there are, beside the way to their page; none is no number, for that is not that all is well."""
    count = text().classes("sb-alert-count")

    def refresh() -> None:
        number = sum(alert.over_s is None for alert in sink.alerts())
        shown = "" if not number else f"{number:,}" if number < 100 else "99+"
        if count.text != shown:
            count.text = shown
        count.set_visibility(bool(number))

    return refresh


def _sight_chip(sink: LiveSink) -> Refresh:
    with ui.element("div").classes("sb-sight").props('role="status"') as chip:
        icon = ui.icon("").props('aria-hidden="true"')
        word = ui.label().classes("sb-sight-word")
    looks: dict[Blindness | None, tuple[str, str]] = {
        None: ("sensors", "live"),
        "catching up": ("downloading", "catching up"),
        "no broker": ("visibility_off", "no broker"),
        "no worker": ("visibility_off", "steps unread"),
    }

    def refresh() -> None:
        with sink.look() as (view, _):
            blindness = view.sight.blindness
        icon.name, word.text = looks[blindness]
        chip.classes(add="sb-sight--blind" if blindness else "", remove="" if blindness else "sb-sight--blind")

    return refresh


def _banner(sink: LiveSink, bootstrap: str) -> Refresh:
    with ui.element("div").classes("sb-banner").props('role="alert"') as banner:
        ui.icon("visibility_off").props('aria-hidden="true"')
        with ui.element("div") as reading:
            progress, since = text("Reading what the topics hold."), When()
        words = ui.label()
    told: dict[Blindness, str] = {
        "no broker": f"No broker answers at {bootstrap}. What agents do now is unknown; what is shown is from before.",
        "catching up": "What agents do now is not known yet. Should this not end: `springback topics` declares topics "
        "that are missing.",
        "no worker": "Steps wait that no worker has read: start `springback worker`, or wait until it has caught up. "
        "What agents do now is unknown; what is shown is from before.",
    }

    def refresh() -> None:
        with sink.look() as (view, _):
            blindness, back = view.sight.blindness, view.read_back
        banner.set_visibility(blindness is not None)
        reading.set_visibility(blindness == "catching up")
        if blindness == "catching up":
            progress.text, since_s = reading_words(back), back.since_s
            since.set_visibility(since_s is not None)
            since.show(since_s)
        if blindness is not None:
            fault = sink.faults.text if blindness in ("no broker", "catching up") else None
            words.text = told[blindness] if fault is None else f"{told[blindness]} ({fault})"

    return refresh


def reading_words(back: ReadingBack) -> str:
    r"""How far the reading back is, in tenths: who has it read out to them is not told each second.

    >>> reading_words(ReadingBack(12_000, 35_000)), reading_words(ReadingBack())
    ('Reading what happened: 30\u202f% of 35,000 readings.', 'Reading what the topics hold.')
    """
    if not back.total:
        return "Reading what the topics hold."
    tenths = int(10 * back.share) * 10
    told = f"Reading what happened: {tenths}\N{NARROW NO-BREAK SPACE}% of {back.total:,} readings."
    return told if back.since_s is None else f"{told} They go back to "


def _theme_switch(dark: bool | None) -> None:
    mode = ui.dark_mode(dark)
    button = ui.button(icon=_THEME_ICONS[dark], color=None).props("flat round dense").classes("sb-theme")
    with button:
        hint = ui.tooltip()

    def tell() -> None:
        words = f"Colours: {_THEME_WORDS[mode.value]}"
        hint.text = words
        button.props(f'icon={_THEME_ICONS[mode.value]} aria-label="{words}"')

    def switch() -> None:
        mode.value = _NEXT_THEME[mode.value]
        value = _THEME_VALUES[mode.value]
        ui.run_javascript(f"document.cookie = '{THEME_COOKIE}={value}; path=/; max-age=31536000; samesite=lax'")
        tell()

    tell()
    button.on_click(switch)

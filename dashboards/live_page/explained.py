"""What explains itself where it stands: the words of the glossary, and times.

Each can be pointed at, tapped or reached by keys, and screen readers tell it. The meaning of a word is sent to the
browser once, in the list of words at the end of every page; a time is sent once too, and grows old there. What the
browser does of this is `browser/index.js`.
"""

import math

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

from springback.stream_processors.metrics.glossary import GLOSSARY

_WORD_IDS = {word: f"sb-word-{number}" for number, word in enumerate(GLOSSARY)}
# What a Date of a browser can hold, with room for its time zone.
_LATEST_S = 8.6e12


def text(content: str = "", tag: str = "span") -> TextElement:
    """A text in an element of its own."""
    return TextElement(tag=tag, text=content)


def word_id(word: str) -> str:
    """The id of the element of the page that says what a word of the glossary means."""
    return _WORD_IDS[word]


def term(word: str, shown: str | None = None) -> TextElement:
    """A word of the glossary that says what it means when it is asked.

    Args:
        word: as the glossary has it.
        shown: what stands on the page, such as the symbol alone; the word where not given.
    """
    element = text(shown or word, "button").classes("sb-term")
    element.props["type"] = "button"
    element.props["data-word"] = element.props["aria-describedby"] = word_id(word)
    return element


def word_list() -> None:
    """All words, each with its sentence; folded away until somebody asks."""
    with ui.element("details").classes("sb-card sb-words"):
        with ui.element("summary"):
            ui.label("What the words mean")
        with ui.element("dl"):
            for word in GLOSSARY.values():
                with ui.element("div"):
                    with ui.element("dt"):
                        ui.label(word.word)
                        ui.label(f"of {word.of}").classes("sb-under")
                    with ui.element("dd").props(f'id="{word_id(word.word)}"'):
                        ui.label(word.meaning)


def moment(at_s: float | None) -> float | None:
    """A time as a browser can show it, to the millisecond; None where it is not known, or none at all.

    >>> moment(1000.12345), moment(None), moment(float("inf"))
    (1000.123, None, None)
    """
    return round(at_s, 3) if at_s is not None and math.isfinite(at_s) and abs(at_s) < _LATEST_S else None


class PageScript(ui.element, component="browser/page_script.js", esm={"springback-live": "browser"}):
    """What the browser does on every page: it keeps time, explains what is asked, and knows the page's address.

    Args:
        now_s: seconds since 1970 by the server's clock, by which all pages tell how long ago something was.
    """

    def __init__(self, now_s: float) -> None:
        super().__init__()
        self.props["now"] = round(now_s, 3)


class When(ui.element, component="browser/when.js"):
    """A time: "2 min ago", and the exact one, in the zone of whoever looks, when it is asked."""

    def show(self, at_s: float | None) -> None:
        """Shows this time, in seconds since 1970 by the broker's clock; None is not known."""
        at_s = moment(at_s)
        if self.props.get("at") != at_s:
            self.props["at"] = at_s

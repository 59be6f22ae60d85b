"""The parts that several pages share: how numbers and states are written, titles, figures, chips and tables.

A state is shown by a word and an icon, never by a colour alone, and a table can be sorted by keys too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from nicegui import ui

from springback.dashboards.live_page.explained import When, term, text, word_id
from springback.dashboards.live_page.fleet_rows import URGENCY
from springback.stream_processors.metrics.glossary import meaning
from springback.stream_processors.metrics.spec import AgentStateName

NOTHING = "\N{EN DASH}"
"""What is not known."""

PROVISIONAL = "provisional"
"""What is said of a window whose family is still learning."""


class StateLook(NamedTuple):
    """How a state is shown: a word of the glossary, and an icon of the Material set."""

    word: str
    icon: str


STATE_LOOKS: dict[AgentStateName, StateLook] = {
    "rebound": StateLook("in rebound", "settings_backup_restore"),
    "stalled": StateLook("stalled", "hourglass_bottom"),
    "stale": StateLook("stale", "repeat"),
    "silent": StateLook("silent", "sensors_off"),
    "contested": StateLook("contested", "call_split"),
    "unknown": StateLook("unknown", "help_outline"),
    "calm": StateLook("calm", "check_circle_outline"),
    "ended": StateLook("ended", "stop_circle"),
}


def figure(value: float | None) -> str:
    """A number with as many digits as it is worth.

    >>> figure(1.234), figure(123.4), figure(12345.6)
    ('1.23', '123', '12,346')
    """
    if value is None:
        return NOTHING
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
    return text.replace("-", "\N{MINUS SIGN}")


def percent(value: float | None) -> str:
    r"""A share.

    >>> percent(0.756), percent(-0.35), percent(None) == NOTHING
    ('76\u202f%', '\u221235\u202f%', True)
    """
    if value is None:
        return NOTHING
    return f"{value:.0%}".replace("%", "\N{NARROW NO-BREAK SPACE}%").replace("-", "\N{MINUS SIGN}")


def group_name(family: str, method: str, version: str) -> str:
    """A family, method and version; the last two only where they say something.

    >>> group_name("navigation", "default", "0"), group_name("navigation", "reflexion", "1.4")
    ('navigation', 'navigation · reflexion 1.4')
    """
    if (method, version) in (("default", "0"), ("", "")):
        return family
    return f"{family} \N{MIDDLE DOT} {method} {version}"


def section_title(told: str = "") -> ui.label:
    """The title of a section, which those who do not see it can jump to."""
    return ui.label(told).classes("sb-title").props('role="heading" aria-level="2"')


def card(title: str, note: str = "", *words: str) -> ui.element:
    """A section with a title, to be filled.

    Args:
        title: of it.
        note: what is said below that; empty for nothing.
        words: of the glossary, that say what it shows.
    """
    made = ui.element("section").classes("sb-card")
    with made:
        section_title(title)
        if note:
            ui.label(note).classes("sb-note")
        if words:
            with ui.element("div").classes("sb-where"):
                for word in words:
                    term(word)
    return made


@contextmanager
def _named(name: str, word: str | None = None) -> Iterator[None]:
    """What the block makes is the value of this name, in a `dl`."""
    with ui.element("div"):
        with ui.element("dt"):
            ui.label(name) if word is None else term(word, name)
        with ui.element("dd"):
            yield


def stat(name: str, word: str | None = None) -> ui.label:
    """A figure with its name above it, in a `dl`; the label of the figure.

    Args:
        name: the figure's.
        word: of the glossary, that says what the figure means.
    """
    with _named(name, word):
        return ui.label(NOTHING)


def stat_at(name: str) -> When:
    """A figure that is a time."""
    with _named(name):
        return When()


class LinkStat:
    """A figure that leads somewhere, where that is known."""

    def __init__(self) -> None:
        self._link, self._text = ui.link("", "").classes("sb-link"), text(NOTHING)
        self._link.set_visibility(False)

    def show(self, told: str, address: str | None) -> None:
        """Shows this, with the way there."""
        self._link.set_visibility(address is not None)
        self._text.set_visibility(address is None)
        self._link.text = self._text.text = told
        if address is not None and self._link.props.get("href") != address:
            self._link.props["href"] = address


def stat_link(name: str) -> LinkStat:
    """A figure that leads somewhere."""
    with _named(name):
        return LinkStat()


class StateChip:
    """The state of one agent, or of a rebound window, which says what it means when it is asked."""

    def __init__(self) -> None:
        self._mark = ""
        with ui.element("button").classes("sb-told-by sb-state").props('type="button"') as self._chip:
            self._icon = ui.icon("").props('aria-hidden="true"')
            self._word = text()

    def show(self, state: AgentStateName) -> None:
        """Shows this state of an agent."""
        look = STATE_LOOKS[state]
        self.show_as(state, look.icon, look.word)

    def show_as(self, state: AgentStateName, icon: str, word: str) -> None:
        """Shows something else by the colour of this state.

        Args:
            state: whose colour it has.
            icon: of the Material set.
            word: of the glossary.
        """
        if word == self._word.text:
            return
        self._icon.name, self._word.text = icon, word
        self._chip.props["data-word"] = self._chip.props["aria-describedby"] = word_id(word)
        mark = f"sb-state--{state}"
        self._chip.classes(add=mark, remove=self._mark)
        self._mark = mark

    def set_visibility(self, visible: bool) -> None:
        """Shows or hides it."""
        self._chip.set_visibility(visible)


class ChoiceBar:
    """Some choices of which one holds, side by side.

    Args:
        label: of what.
        choices: their words, by what stands for them in addresses.
        on_change: called with another one that is chosen.
    """

    def __init__(self, label: str, choices: Mapping[str, str], on_change: Callable[[str], None]) -> None:
        self._buttons: dict[str, ui.element] = {}
        with ui.element("div").classes("sb-choices") as bar:
            bar.props["role"], bar.props["aria-label"] = "group", label
            for value, word in choices.items():
                button = text(word, "button").classes("sb-chip")
                button.props["type"] = "button"
                button.on("click", lambda value=value: on_change(value))
                self._buttons[value] = button

    def show(self, chosen: str) -> None:
        """Shows that this one holds."""
        for value, button in self._buttons.items():
            press(button, value == chosen)


def press(button: ui.element, pressed: bool) -> None:
    """Shows a button as pressed, or as not."""
    told = str(pressed).lower()
    if button.props.get("aria-pressed") != told:
        button.props["aria-pressed"] = told
        button.classes(add="sb-chip--on" if pressed else "", remove="" if pressed else "sb-chip--on")


class StateFilter:
    """All states with how many agents are in each; those that are pressed are shown.

    Args:
        on_change: called when another one is pressed.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self.chosen: set[AgentStateName] = set()
        self._on_change = on_change
        self._buttons: dict[AgentStateName, ui.element] = {}
        self._counts: dict[AgentStateName, ui.label] = {}
        with ui.element("div").classes("sb-filter").props('role="group" aria-label="Show only agents that are"'):
            for state in URGENCY:
                self._add(state)

    def show(self, counts: Mapping[AgentStateName, int]) -> None:
        """Shows how many agents are in each state."""
        for state, label in self._counts.items():
            number = counts.get(state, 0)
            label.text = f"{number:,}"
            button = self._buttons[state]
            button.classes(add="" if number else "sb-chip--none", remove="sb-chip--none" if number else "")

    def choose(self, states: Iterable[str]) -> None:
        """Presses those of these that are states, and no others."""
        self.chosen = {state for state in URGENCY if state in set(states)}
        for state, button in self._buttons.items():
            press(button, state in self.chosen)

    def _add(self, state: AgentStateName) -> None:
        look = STATE_LOOKS[state]
        button = ui.element("button").classes(f"sb-chip sb-state--{state}").props('type="button" aria-pressed="false"')
        with button:
            ui.icon(look.icon).props('aria-hidden="true"')
            text(look.word)
            self._counts[state] = ui.label("0").classes("sb-count")
            ui.tooltip(meaning(look.word))
        button.on("click", lambda: self._press(state))
        self._buttons[state] = button

    def _press(self, state: AgentStateName) -> None:
        self.choose(self.chosen ^ {state})
        self._on_change()


Look = Literal["", "agent", "family", "state", "mark", "share", "cost", "remark", "link", "when"]
"""How a column's cells look; `live_table.js` knows of which fields of the row."""


class Column(NamedTuple):
    """A column: what it shows (a field of the rows), and how. A cell without a look is the field's text.

    What its header means is said by a word of the glossary, or else by a hint.
    """

    name: str
    label: str
    align: Literal["left", "right"]
    classes: str = ""
    look: Look = ""
    hint: str | None = None
    word: str | None = None


class LiveTable(ui.table, component="browser/live_table.js"):
    """A table of NiceGUI, whose slots would make all cells anew whenever a figure changes: so it has none.

    Args:
        columns: its columns.
        row_key: the field that rows are told from others by.
        pagination: as `ui.table` takes it.
        sizes: how many rows a page may have.
        sort_suffix: what the name of a field ends with that rows are sorted by in place of the column's.
        sortable: whether a click on a header sorts.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        row_key: str,
        pagination: dict[str, Any],
        sizes: Sequence[int],
        sort_suffix: str = "",
        sortable: bool = True,
    ) -> None:
        fields = [
            {
                **{"name": column.name, "label": column.label, "field": column.name + sort_suffix},
                "sortable": sortable,
                **{"align": column.align, "classes": column.classes, "headerClasses": column.classes},
                **{
                    "look": column.look,
                    "hint": column.hint,
                    "word": None if column.word is None else word_id(column.word),
                },
            }
            for column in columns
        ]
        super().__init__(columns=fields, rows=[], row_key=row_key, pagination=pagination)
        self.props(f'flat binary-state-sort rows-per-page-label="Rows" :rows-per-page-options="{list(sizes)}"')
        self.classes("sb-table")

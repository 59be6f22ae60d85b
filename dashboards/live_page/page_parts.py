"""The parts that several pages share: how numbers and states are written, titles, figures, chips and tables.

A state is shown by a word and an icon, never by a colour alone, and a table can be sorted by keys too.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from nicegui import ui

from springback.dashboards.live_page.fleet_rows import URGENCY
from springback.stream_processors.metrics.spec import AgentStateName

NOTHING = "\N{EN DASH}"
"""What is not known."""

PROVISIONAL = "provisional"
"""What is said of a window whose family is still learning."""

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400
_JUST_NOW_S = 10


class StateLook(NamedTuple):
    """How a state is shown: a word, an icon of the Material set, and what it means."""

    word: str
    icon: str
    meaning: str


STATE_LOOKS: dict[AgentStateName, StateLook] = {
    "rebound": StateLook("in rebound", "settings_backup_restore", "It has departed from its baseline."),
    "stalled": StateLook("stalled", "hourglass_bottom", "It takes steps, but its progress does not rise."),
    "stale": StateLook("stale", "repeat", "Its link repeats itself: messages come, but no new step."),
    "silent": StateLook("silent", "sensors_off", "It has an episode open, and nothing comes from it."),
    "contested": StateLook("contested", "call_split", "Two programs report under its name, so that steps are lost."),
    "unknown": StateLook("unknown", "help_outline", "Nothing can be said: we do not see it, or it has no baseline."),
    "calm": StateLook("calm", "check_circle_outline", "It works as is normal at its stage of the task."),
    "ended": StateLook("ended", "stop_circle", "It has no episode open."),
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

    >>> percent(0.756), percent(None) == NOTHING
    ('76\u202f%', True)
    """
    return NOTHING if value is None else f"{value:.0%}".replace("%", "\N{NARROW NO-BREAK SPACE}%")


def ago(seconds: float | None) -> str:
    """How long ago something was, so coarse that it seldom changes.

    >>> [ago(seconds) for seconds in (3, 47, 125, 7300, 200_000)]
    ['now', '40 s ago', '2 min ago', '2 h ago', '2 d ago']
    """
    if seconds is None:
        return NOTHING
    if seconds < _JUST_NOW_S:
        return "now"
    if seconds < _MINUTE_S:
        return f"{seconds // 10 * 10:.0f} s ago"
    if seconds < _HOUR_S:
        return f"{seconds // _MINUTE_S:.0f} min ago"
    if seconds < _DAY_S:
        return f"{seconds // _HOUR_S:.0f} h ago"
    return f"{seconds // _DAY_S:.0f} d ago"


def group_name(family: str, method: str, version: str) -> str:
    """A family, method and version; the last two only where they say something.

    >>> group_name("navigation", "default", "0"), group_name("navigation", "reflexion", "1.4")
    ('navigation', 'navigation · reflexion 1.4')
    """
    if (method, version) in (("default", "0"), ("", "")):
        return family
    return f"{family} \N{MIDDLE DOT} {method} {version}"


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


class StateChip:
    """The state of one agent."""

    def __init__(self) -> None:
        self._state: AgentStateName | None = None
        with ui.element("span").classes("sb-state") as self._chip:
            self._icon = ui.icon("")
            self._word = ui.label()
            self._hint = ui.tooltip()

    def show(self, state: AgentStateName) -> None:
        """Shows this one."""
        if state == self._state:
            return
        look = STATE_LOOKS[state]
        self._icon.name, self._word.text, self._hint.text = look.icon, look.word, look.meaning
        self._chip.classes(add=f"sb-state--{state}", remove=f"sb-state--{self._state}")
        self._state = state


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

    def _add(self, state: AgentStateName) -> None:
        look = STATE_LOOKS[state]
        button = ui.element("button").classes(f"sb-chip sb-state--{state}").props('type="button" aria-pressed="false"')
        with button:
            ui.icon(look.icon)
            ui.label(look.word)
            self._counts[state] = ui.label("0").classes("sb-count")
            ui.tooltip(look.meaning)
        button.on("click", lambda: self._press(state))
        self._buttons[state] = button

    def _press(self, state: AgentStateName) -> None:
        self.chosen ^= {state}
        pressed = state in self.chosen
        button = self._buttons[state]
        button.classes(add="sb-chip--on" if pressed else "", remove="" if pressed else "sb-chip--on")
        button.props(f'aria-pressed="{str(pressed).lower()}"')
        self._on_change()


Look = Literal["", "agent", "family", "state", "mark", "share", "cost", "remark"]
"""How a column's cells look; `live_table.js` knows of which fields of the row."""


class Column(NamedTuple):
    """A column: what it shows (a field of the rows), and how. A cell without a look is the field's text."""

    name: str
    label: str
    align: Literal["left", "right"]
    classes: str = ""
    look: Look = ""
    hint: str | None = None


class LiveTable(ui.table, component="live_table.js"):
    """A table of NiceGUI, whose slots would make all cells anew whenever a figure changes: so it has none.

    Args:
        columns: its columns.
        row_key: the field that rows are told from others by.
        pagination: as `ui.table` takes it.
        sizes: how many rows a page may have.
        sort_suffix: what the name of a field ends with that rows are sorted by in place of the column's.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        row_key: str,
        pagination: dict[str, Any],
        sizes: Sequence[int],
        sort_suffix: str = "",
    ) -> None:
        fields = [
            {
                **{"name": column.name, "label": column.label, "field": column.name + sort_suffix, "sortable": True},
                **{"align": column.align, "classes": column.classes, "headerClasses": column.classes},
                **{"look": column.look, "hint": column.hint},
            }
            for column in columns
        ]
        super().__init__(columns=fields, rows=[], row_key=row_key, pagination=pagination)
        self.props(f'flat binary-state-sort rows-per-page-label="Rows" :rows-per-page-options="{list(sizes)}"')
        self.classes("sb-table")

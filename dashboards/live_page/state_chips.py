"""The agents' states as chips: one at an agent, or all with their numbers, as the fleet table's filter."""

from collections.abc import Callable, Mapping

from nicegui import ui
from springback.dashboards.live_page.fleet_rows import URGENCY
from springback.dashboards.live_page.page_text import STATE_LOOKS
from springback.stream_processors.resilience.metric_spec import AgentStateName


class StateChip:
    """The state of one agent."""

    def __init__(self) -> None:
        self._state: AgentStateName | None = None
        with ui.element("span").classes("sb-state") as self._chip:
            self._icon = ui.icon("")
            self._word = ui.label()
            self._hint = ui.tooltip()

    def show(self, state: AgentStateName) -> None:
        """Show this one."""
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
        """Show how many agents are in each state."""
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

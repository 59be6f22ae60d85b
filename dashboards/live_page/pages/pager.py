"""The way through a list that is shown a page at a time."""

import math
from collections.abc import Callable

from nicegui import ui


class Pager:
    """Which entries are shown, of how many, and the way to newer and older ones.

    Args:
        size: entries of a page.
        on_turn: given the page that is asked for, counted from 1.
    """

    def __init__(self, size: int, on_turn: Callable[[int], None]) -> None:
        self._size, self._page = size, 1
        with ui.element("div").classes("sb-pager") as self._bar:
            self._told = ui.label().classes("sb-note")
            with ui.element("div"):
                for icon, name, step in (("chevron_left", "Newer", -1), ("chevron_right", "Older", 1)):
                    button = ui.button(
                        icon=icon, color=None, on_click=lambda step=step: on_turn(max(1, self._page + step))
                    )
                    button.props(f'flat round dense aria-label="{name}"')

    def show(self, page: int, total: int, remembered: int) -> int:
        """Shows that this page of so many entries is shown, or the last one where there are fewer.

        Args:
            page: counted from 1.
            total: entries that are like what was asked for.
            remembered: entries that there are at all.

        Returns:
            the index of the page's first entry.
        """
        self._page = max(1, min(page, math.ceil(total / self._size)))
        first = (self._page - 1) * self._size
        self._bar.set_visibility(total > 0)
        last = min(first + self._size, total)
        like = "" if total == remembered else f" like that, of {remembered:,}"
        self._told.text = f"{first + 1:,}\N{EN DASH}{last:,} of {total:,}{like} that are remembered"
        return first

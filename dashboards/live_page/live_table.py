"""The tables of the page: cells that stay, columns that keys sort by too."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from nicegui import ui

Look = Literal["", "agent", "family", "state", "mark", "share", "cost"]
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

"""The console that tables are printed on."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_PIPED_WIDTH = 160


def table_console() -> "Console":
    """Standard output; in a file or a pipe there is no width to keep to, so tables are whole there."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH)

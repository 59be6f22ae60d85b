import io

from rich.console import Console

from springback.deploy.table_views import family_table_view
from springback.stream_processors.offline.tables import FamilyRow


def shown(family: str, method: str = "default") -> str:
    row = FamilyRow(
        family=family,
        method=method,
        stress=0.8,
        episodes=12,
        success_rate=0.25,
        censored=1,
        provisional=0,
        unscored=2,
        windows=3,
        windows_by_state={"recovered": 2, "unrecovered": 1},
        windows_by_cause={"effort": 3},
        recovery_cost_mean=3.14159,
        recovery_cost_median=None,
        lost_cycles_mean=123.4,
        window_length_mean=7.0,
    )
    console = Console(file=io.StringIO(), width=80)
    console.print(family_table_view([row]))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_row_says_what_was_found() -> None:
    lines = [line.split() for line in shown("navigation").splitlines()]
    assert ["navigation", "·", "default"] in lines
    assert ["0.8", "12(-3)", "25%", "2/1/0", "3/0/0", "3.14", "-", "123", "7.00"] in lines


def test_names_are_shown_as_they_are_and_steer_no_terminal() -> None:
    text = shown("[/bold][red]x", "a\x1b[2J\rb")
    assert "[/bold][red]x · a�[2J�b" in text
    assert "\x1b" not in text

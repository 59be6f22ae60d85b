import io
import re

import pytest
from rich.console import Console, RenderableType

from springback.deploy.comparison_view import comparison_view
from springback.deploy.table_views import family_table_view, resilience_table_view, window_sentence
from springback.stream_processors.offline.comparison import ScoredVersion, compare_versions
from springback.stream_processors.offline.comparison_contract import VersionContract
from springback.stream_processors.offline.tables import FamilyRow, evaluation_json
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.readings import EpisodeTraits, FamilyReading
from tests.reading_builders import failed_level, family_reading, window_reading
from tests.stream_processors.offline.version_episodes import summary_of


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
    return printed(family_table_view([row]))


def printed(view: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=80)
    console.print(view)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def withstood(reading: FamilyReading) -> str:
    """What is printed of a family, line breaks taken out."""
    text = printed(resilience_table_view(evaluation_json((), (), [reading]).resilience))
    assert max(map(len, text.splitlines())) <= 80
    return re.sub(r"\s+", " ", text)


def test_a_row_says_what_was_found() -> None:
    lines = [line.split() for line in shown("navigation").splitlines()]
    assert ["navigation", "·", "default"] in lines
    assert ["0.8", "12(-3)", "25%", "2/1/0", "3/0/0", "3.14", "-", "123", "7.00"] in lines


def test_names_are_shown_as_they_are_and_steer_no_terminal() -> None:
    text = shown("[/bold][red]x", "a\x1b[2J\rb")
    assert "[/bold][red]x · a�[2J�b" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("dependable", "tested_up_to", "capacity", "flag", "cells", "sentence"),
    [
        (
            0.0,
            0.0,
            0.0,
            "open",
            "≥ 0.0 ≥ 0.0",
            "The level without stress is kept. Above 0.0 there are too few episodes to tell.",
        ),
        (0.4, 1.0, 0.8, "ok", "0.4 0.8", "Every tested level up to 0.4 is kept"),
        (None, 1.0, 0.0, "none", "none none", "Not even its lowest tested level is kept"),
        (None, None, None, "insufficient", "not known not known", "Too few episodes at any declared stress"),
    ],
)
def test_a_capacity_on_the_terminal_says_no_more_than_was_tested(
    dependable: float | None, tested_up_to: float | None, capacity: float | None, flag: str, cells: str, sentence: str
) -> None:
    text = withstood(
        family_reading(
            dependable=dependable, tested_up_to=tested_up_to, capacity=capacity, capacity_flag=flag, first_breach=None
        )
    )
    assert f"3.50 3.00 {cells} -" in text
    assert sentence in text
    assert "≥: at least; not tested above" in text


def test_what_stands_behind_a_family_is_told_below_the_table() -> None:
    """Situations 4, 6 and 10: undeclared failures, a beta within noise, a family that is learning."""
    text = withstood(
        family_reading(
            undeclared=failed_level(),
            contract_violated=True,
            stability_repeatability=0.7,
            bound_references=12,
            episodes=30,
            censored=50,
        )
    )
    assert "Under undeclared stress 20 of 20 (84 to 100 %) episodes broke the contract: broken." in text
    assert "Contract violated: under undeclared stress 20 of 20 (84 to 100 %) episodes broke it." in text
    assert "Aborted, and in none of these figures: 50 of 80 episodes." in text
    assert "β 3.50 over 17 pairs says nothing: within run-to-run noise" in text
    assert "7 unpaired: 4 no twin, 3 other version." in text
    assert "Learning: 12 of 20 references; its windows are provisional. Provisional, and in no margin: 7" in text


def test_a_window_is_told_in_a_line_without_what_would_steer_the_terminal() -> None:
    disturbed = EpisodeTraits(family="navigation", task="kitchen", stress=0.8)
    assert window_sentence(window_reading("robot\x1b[31m7", episode="12", traits=disturbed)) == (
        "recovery cost 1.50 in 8 steps from step 4 on (effort, recovered): agent robot\N{REPLACEMENT CHARACTER}[31m7, "
        "episode 12, family navigation, λ 0.8"
    )
    undeclared = EpisodeTraits(family="navigation", task="kitchen", stress=None)
    assert window_sentence(window_reading(traits=undeclared)).endswith("family navigation, stress undeclared")


def test_a_row_of_undeclared_stress_is_not_one_of_0() -> None:
    row = FamilyRow(
        family="field",
        method="default",
        stress=None,
        episodes=1,
        success_rate=0.0,
        censored=0,
        provisional=0,
        unscored=0,
        windows=0,
        windows_by_state={},
        windows_by_cause={},
        recovery_cost_mean=0.0,
        recovery_cost_median=0.0,
        lost_cycles_mean=0.0,
        window_length_mean=None,
    )
    text = printed(family_table_view([row]))
    assert "λ -: the stress is undeclared, which is not 0" in text
    assert ["-", "1", "0%", "0/0/0", "0/0/0", "0.00", "0.00", "0.00", "-"] in [
        line.split() for line in text.splitlines()
    ]
    assert "undeclared" not in shown("navigation")
    assert max(map(len, text.splitlines())) <= 80


def test_a_comparison_names_each_stress_level_as_it_is() -> None:
    """With one decimal, as most grids have, 0.25 would be 0.2, which is another level."""
    before, after = (
        ScoredVersion([summary_of(place, version, stress=0.25) for place in range(6)], []) for version in ("1", "2")
    )
    comparison = compare_versions(
        before,
        after,
        groups=before.groups(),
        contract=VersionContract(schema_version=1, resamples=100),
        versions=("1", "2"),
        config=AggregateConfig(grid=(0.0, 0.25, 1.0)),
    )
    text = printed(comparison_view(comparison))
    assert "ended before, after by stress: λ=0.25 6, 6" in text
    assert "margin λ=0.25" in text

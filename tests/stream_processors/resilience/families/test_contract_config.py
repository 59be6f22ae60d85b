"""Contracts come from the settings file; what cannot be meant is refused by name."""

from pathlib import Path

import pytest

from springback.stream_processors.errors import SettingsError
from springback.stream_processors.resilience.families.contract_config import AggregateConfig, FamilyContract
from springback.stream_processors.settings import load_settings


def aggregate_of(tmp_path: Path, text: str) -> AggregateConfig:
    file = tmp_path / "worker.toml"
    file.write_text(text)
    return load_settings(file, {}).resilience.aggregate


def test_contracts_of_families(tmp_path: Path) -> None:
    found = aggregate_of(
        tmp_path,
        """
        [resilience.aggregate]
        min_episodes = 8
        grid = [0, 0.5, 1]
        [resilience.aggregate.default]
        progress = 0.8
        [resilience.aggregate.families.navigation]
        recovery = 12
        stability = "auto"
        safety = 2.5
        [resilience.aggregate.families.manipulation]
        evolution = ["1.0", "1.1", "1.2"]
        """,
    )
    assert (found.min_episodes, found.grid) == (8, (0.0, 0.5, 1.0))
    assert found.contract("anything") == FamilyContract(progress=0.8)
    assert found.contract("navigation") == FamilyContract(recovery=12.0, safety=2.5)
    assert found.contract("manipulation").evolution == ("1.0", "1.1", "1.2")


def test_a_default_contract_from_the_environment() -> None:
    found = load_settings(environment={"SPRINGBACK_RESILIENCE__AGGREGATE__DEFAULT__RECOVERY": "12.5"})
    assert found.resilience.aggregate.default.recovery == 12.5


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[resilience.aggregate.default]\nrecovery = 0", 'recovery is 0.0, expected a number above 0, or "auto"'),
        ("[resilience.aggregate.default]\nrecovery = 'none'", "recovery"),
        ("[resilience.aggregate.default]\nprogress = 0", "progress is 0.0, expected a number above 0 and at most 1"),
        ("[resilience.aggregate.default]\nprogress = 1.1", "progress is 1.1, expected a number above 0 and at most 1"),
        (
            "[resilience.aggregate.auto]\nbenefit_most = 0.01",
            "benefit_most is 0.01, expected 0.05 .benefit_floor. to 1",
        ),
        ("[resilience.aggregate]\nhold_s = -1", "hold_s is -1.0, expected seconds, 0 or more"),
        ("[resilience.aggregate]\nlevel_generation = 3", "level_generation is 3, expected at least min_episodes .5."),
        ("[resilience.aggregate.default]\nevolution = ['1']", "evolution is .*two or more different versions"),
        ("[resilience.aggregate.default]\nevolution = ['1', '1']", "evolution is .*two or more different versions"),
        ("[resilience.aggregate.default]\ncolour = 1", "colour: not known; the keys there are progress"),
        ("[resilience.aggregate]\ngrid = [0.5, 0.2]", "grid is .*expected rising values"),
        ("[resilience.aggregate]\ngrid = []", "grid is .*expected rising values"),
        ("[resilience.aggregate]\ngrid = [0, 2]", "grid is .*expected rising values from 0 to 1"),
        # Clean episodes, whose stress is 0, would be taken for a stress of 0.5; a stress of 1 for one of 0.5.
        ("[resilience.aggregate]\ngrid = [0.5, 1]", "grid is .*expected rising values from 0 to 1"),
        ("[resilience.aggregate]\ngrid = [0, 0.5]", "grid is .*expected rising values from 0 to 1"),
        ("[resilience.aggregate]\ngrid = [1]", "grid is .*expected rising values from 0 to 1"),
        ("[resilience.aggregate]\nalpha = 1", "alpha is 1.0, expected a share"),
        ("[resilience.aggregate]\nsmallest = 0", "smallest is 0, expected at least 1"),
        ("[resilience.aggregate.auto]\nfactor = -1", "factor is -1.0, expected a number above 0"),
    ],
)
def test_what_cannot_be_meant(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        aggregate_of(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        # One entry at 0, the other at the cap: (0 + 2)/2 - 1 = 0, which is not below 0.
        (
            "ratio_cap = 2",
            r"everything fails would keep its contract, \(0 \+ 2\) / 2 - 1 .* below 2, or smallest 1",
        ),
        # With a third entry that nothing has measured, a total failure would be insufficient.
        ("smallest = 3", "smallest is 3, expected 1 or 2: with more, a level at which everything fails"),
        ("ratio_cap = 1\nsmallest = 5", "smallest is 5, expected 1 or 2"),
        ("ratio_cap = 0.9", "ratio_cap is 0.9, expected a number from 1 on"),
        ("ratio_cap = inf\nsmallest = 1", "ratio_cap is inf, expected a number from 1 on"),
        # All of one episode are bad with 10 %, of three at alpha = 0.5 with 12.5 %.
        ("min_episodes = 1", "min_episodes is 1 with alpha 0.1: so few episodes cannot show .* chance with 0.1"),
        ("min_episodes = 4\nalpha = 0.5", "bad by chance with 0.062"),
    ],
)
def test_settings_by_which_a_total_failure_would_pass_are_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        aggregate_of(tmp_path, f"[resilience.aggregate]\n{text}")


@pytest.mark.parametrize("text", ["ratio_cap = 1.99", "ratio_cap = 100\nsmallest = 1", "min_episodes = 2"])
def test_settings_on_the_right_side_of_the_boundary_are_taken(tmp_path: Path, text: str) -> None:
    aggregate_of(tmp_path, f"[resilience.aggregate]\n{text}")

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
        ("[resilience.aggregate.default]\nprogress = 'auto'", "progress"),
        ("[resilience.aggregate.default]\nprogress = 0", "progress is 0.0, expected a number above 0"),
        ("[resilience.aggregate.default]\nevolution = ['1']", "evolution is .*two or more different versions"),
        ("[resilience.aggregate.default]\nevolution = ['1', '1']", "evolution is .*two or more different versions"),
        ("[resilience.aggregate.default]\ncolour = 1", "unknown field `colour`"),
        ("[resilience.aggregate]\ngrid = [0.5, 0.2]", "grid is .*expected rising values"),
        ("[resilience.aggregate]\ngrid = []", "grid is .*expected rising values"),
        ("[resilience.aggregate]\ngrid = [0, 2]", "grid is .*expected rising values"),
        ("[resilience.aggregate]\nalpha = 1", "alpha is 1.0, expected a share"),
        ("[resilience.aggregate]\nsmallest = 0", "smallest is 0, expected at least 1"),
        ("[resilience.aggregate.auto]\nfactor = -1", "factor is -1.0, expected a number above 0"),
    ],
)
def test_what_cannot_be_meant(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        aggregate_of(tmp_path, text)

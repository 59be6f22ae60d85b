"""The contract file: what it says, and what is said of one that is wrong."""

import math

import pytest

from springback.stream_processors.offline.comparison_contract import (
    METRICS,
    Allowance,
    ContractError,
    EvidenceRules,
    VersionContract,
    load_contract,
)
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from tests.house import PACKAGE

SHIPPED = PACKAGE / "deploy" / "contracts" / "non_degradation.toml"


def test_the_shipped_contract_is_one() -> None:
    contract = load_contract(SHIPPED.read_bytes(), "shipped")
    assert contract.rule == "certain"
    checked = {name for name in METRICS if contract.allowance("any", name) is not None}
    assert checked == set(METRICS) - {"beta"}
    assert (contract.evidence, contract.confidence) == (EvidenceRules(), VersionContract(schema_version=1).confidence)


def test_the_comments_of_the_shipped_contract_name_the_defaults() -> None:
    """What it leaves out is there as a comment, and means the same."""
    commented = SHIPPED.read_text(encoding="utf-8").replace("# least_episodes = 5 ", "least_episodes = 5 ")
    contract = load_contract(commented.encode(), "shipped")
    assert contract.evidence == EvidenceRules(least_episodes=AggregateConfig().min_episodes)


def test_a_family_has_allowances_of_its_own() -> None:
    contract = load_contract(
        b"""
        schema_version = 1
        [allowances]
        success_rate = 0.05
        recovery_cost = {absolute = 1, relative = 0.1}
        [families.navigation]
        success_rate = 0
        margin = inf
        """,
        "c.toml",
    )
    assert contract.allowance("navigation", "success_rate") == Allowance(absolute=0.0)
    assert contract.allowance("manipulation", "success_rate") == Allowance(absolute=0.05)
    assert contract.allowance("navigation", "margin") == Allowance(absolute=math.inf)
    assert contract.allowance("manipulation", "margin") is None
    cost = contract.allowance("navigation", "recovery_cost")
    assert cost is not None
    assert [cost.of(value) for value in (2.0, 30.0, -30.0)] == [1.0, 3.0, 3.0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rule =", "c.toml is not valid TOML"),
        ("\xff", "c.toml is not valid TOML"),
        ("[allowances]\nmargin = 1", "schema_version"),
        ("schema_version = 2", "schema_version is 2, this springback reads 1"),
        ("schema_version = 1", "checks nothing"),
        ("schema_version = 1\n[allowances]\nspeed = 1.0", "allowances.speed: not known"),
        ("schema_version = 1\n[allowances]\nspeed = 1.0", "success_rate, recovery_cost"),
        ("schema_version = 1\n[allowances]\nmargin = -0.1", "an allowance is -0.1, expected a number of at least 0"),
        ("schema_version = 1\n[allowances]\nmargin = nan", "an allowance is nan"),
        (
            "schema_version = 1\n[allowances]\nmargin = 'much'",
            "allowances.margin is 'much', expected a number or a table of keys",
        ),
        ("schema_version = 1\n[families.x]\nmargin = {share = 1}", "share: not known"),
        ("schema_version = 1\nrule = 'perhaps'\n[allowances]\nmargin = 1", "rule is 'perhaps', expected"),
        ("schema_version = 1\nconfidence = 1.0\n[allowances]\nmargin = 1", "confidence is 1.0"),
        ("schema_version = 1\nresamples = 5\n[allowances]\nmargin = 1", "resamples is 5"),
        ("schema_version = 1\n[evidence]\nleast = 1\n[allowances]\nmargin = 1", "evidence.least: not known"),
        (
            "schema_version = 1\n[evidence]\nmissing_level = 'no'\n[allowances]\nmargin = 1",
            "evidence.missing_level is 'no', expected",
        ),
        ("schema_version = 1\n[evidence]\nleast_episodes = 0\n[allowances]\nmargin = 1", "least_episodes is 0"),
        ("schema_version = 1\n[evidence]\nsmall_sample = -1\n[allowances]\nmargin = 1", "small_sample is -1"),
        ("schema_version = 1\n[evidence]\naborted_p = 1.5\n[allowances]\nmargin = 1", "aborted_p is 1.5"),
        ("schema_version = 1\nleast_tasks = 1\n[allowances]\nmargin = 1", "least_tasks is 1"),
    ],
)
def test_a_wrong_contract_is_refused_with_its_reason(text: str, said: str) -> None:
    with pytest.raises(ContractError) as refused:
        load_contract(text.encode("latin-1"), "c.toml")
    assert "c.toml" in str(refused.value)
    assert said in str(refused.value)

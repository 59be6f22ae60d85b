"""The contract between two versions of the agents: what may not get worse, and by how much (ours).

A TOML file. An allowance is a number, in the metric's own unit, or a table with `absolute` and `relative` (a share of
the baseline version's value), of which the larger counts. A metric without an allowance is shown and not checked.
"""

import math
from typing import Any, Literal

import msgspec

from springback.producers.setting_words import setting_fault
from springback.stream_processors.errors import StreamError

CONTRACT_SCHEMA_VERSION = 1

METRICS: dict[str, int] = {
    "success_rate": 1,
    "recovery_cost": -1,
    "window_length": -1,
    "stability_loss": -1,
    "beta": -1,
    "beta_p95": -1,
    "margin": 1,
    "capacity": 1,
}
"""The metrics that versions are compared by: 1 where higher is better, -1 where lower is."""


class ContractError(StreamError, ValueError):
    """A contract file is not valid; the message names the key, what arrived and what was expected."""


class Allowance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """By how much a metric may get worse: the larger of the two parts. `inf` allows anything."""

    absolute: float = 0.0
    relative: float = 0.0

    def __post_init__(self) -> None:
        """Checks the ranges."""
        for value in (self.absolute, self.relative):
            _check_allowance(value)

    def of(self, value: float) -> float:
        """The allowance where the baseline version has this value, in the metric's unit."""
        return max(self.absolute, self.relative * abs(value))


class Allowances(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The allowance of each metric that is checked.

    Attributes:
        success_rate: SR, share of the episodes that were seen to end.
        recovery_cost: mean C_rec of an episode, dimensionless.
        window_length: mean length of a rebound window, steps.
        stability_loss: mean l of an episode.
        beta: the largest ratio of equation 6 over the pairs; one pair decides it.
        beta_p95: the 0.95 quantile of the same ratio.
        margin: M_f at each stress level.
        capacity: lambda*, on the stress grid.
    """

    success_rate: float | Allowance | None = None
    recovery_cost: float | Allowance | None = None
    window_length: float | Allowance | None = None
    stability_loss: float | Allowance | None = None
    beta: float | Allowance | None = None
    beta_p95: float | Allowance | None = None
    margin: float | Allowance | None = None
    capacity: float | Allowance | None = None

    def __post_init__(self) -> None:
        """Checks the ranges."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, float):
                _check_allowance(value)


class EvidenceRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a candidate version must have shown before any metric is looked at, and what of it fails the comparison.

    Attributes:
        least_episodes: ended episodes that each family, and each stress level that the baseline version was played at,
            needs; n_min of the settings if not given. Aborted and provisional episodes are none of them.
        missing_family: whether a family with too little evidence, of either version, fails the comparison.
        missing_level: whether a stress level of the baseline version with too little evidence of the candidate does.
        aborted_rose: whether a share of aborted episodes that rose does.
        aborted_p: the share rose if its p, one-sided and Holm-corrected over families, is at most this.
        small_sample: with fewer episodes of either version in a family, a test finds only what is gross, and
        small_rise: a share that rose by more than this counts as well.
    """

    least_episodes: int | None = None
    missing_family: Literal["fail", "pass"] = "fail"
    missing_level: Literal["fail", "pass"] = "fail"
    aborted_rose: Literal["fail", "pass"] = "fail"
    aborted_p: float = 0.05
    small_sample: int = 20
    small_rise: float = 0.3

    def __post_init__(self) -> None:
        """Checks the ranges."""
        if self.least_episodes is not None and self.least_episodes < 1:
            message = f"least_episodes is {self.least_episodes}, expected at least 1"
            raise ValueError(message)
        if self.small_sample < 0:
            message = f"small_sample is {self.small_sample}, expected at least 0 (a number of episodes)"
            raise ValueError(message)
        for key in ("aborted_p", "small_rise"):
            if not 0.0 <= getattr(self, key) <= 1.0:
                message = f"{key} is {getattr(self, key)}, expected a number from 0 to 1"
                raise ValueError(message)


class VersionContract(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a candidate version is held to.

    Attributes:
        schema_version: version of the file's form.
        rule: `certain` finds a breach where a metric got worse by more than its allowance *and* the whole bootstrap
            interval of the difference lies beyond it, so that noise breaks no build; `point` where the difference
            itself does, whatever its interval.
        confidence: of the intervals; high, for a contract checks dozens of metrics at once.
        resamples: of the bootstrap.
        seed: of the bootstrap.
        least_tasks: tasks that each version needs for a metric to be decided by; with fewer it is undetermined.
        undetermined: whether a checked metric that could not be determined counts as a breach.
        evidence: what the candidate must have shown at all.
        allowances: of every family.
        families: allowances of single families, metric by metric in the place of the general ones.
    """

    schema_version: int
    rule: Literal["certain", "point"] = "certain"
    confidence: float = 0.995
    resamples: int = 2000
    seed: int = 0
    least_tasks: int = 5
    undetermined: Literal["pass", "breach"] = "pass"
    evidence: EvidenceRules = EvidenceRules()
    allowances: Allowances = Allowances()
    families: dict[str, Allowances] = {}

    def __post_init__(self) -> None:
        """Checks the ranges."""
        if self.schema_version != CONTRACT_SCHEMA_VERSION:
            message = f"schema_version is {self.schema_version}, this springback reads {CONTRACT_SCHEMA_VERSION}"
            raise ValueError(message)
        if not 0.5 <= self.confidence < 1.0:
            message = f"confidence is {self.confidence}, expected a number from 0.5 to below 1"
            raise ValueError(message)
        for key, least, most in (("resamples", 100, 1_000_000), ("seed", 0, 2**63 - 1), ("least_tasks", 2, 2**63 - 1)):
            if not least <= getattr(self, key) <= most:
                message = f"{key} is {getattr(self, key)}, expected a number from {least} to {most}"
                raise ValueError(message)

    def allowance(self, family: str, metric: str) -> Allowance | None:
        """The allowance of a metric in a family; None where it is not checked."""
        own = getattr(self.families[family], metric) if family in self.families else None
        value = getattr(self.allowances, metric) if own is None else own
        return Allowance(absolute=value) if isinstance(value, float) else value

    @property
    def checks(self) -> bool:
        """Whether anything at all is checked."""
        return any(
            getattr(allowances, name) is not None
            for allowances in (self.allowances, *self.families.values())
            for name in METRICS
        )


def load_contract(data: bytes, source: str) -> VersionContract:
    """The contract in a file's bytes.

    Args:
        data: TOML.
        source: how errors name it.

    Raises:
        ContractError: it is no TOML, or a key is unknown or has a value that is not allowed.
    """
    try:
        found: Any = msgspec.toml.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"{source} is not valid TOML: {error}"
        raise ContractError(message) from error
    try:
        contract = msgspec.convert(found, VersionContract)
    except msgspec.ValidationError as error:
        fault = setting_fault(VersionContract, found, strict=True) or error
        message = f"{source}: {fault}. Allowances are those of: {', '.join(METRICS)}."
        raise ContractError(message) from error
    if not contract.checks:
        message = f"{source} checks nothing: expected a table [allowances] with some of: {', '.join(METRICS)}."
        raise ContractError(message)
    return contract


def _check_allowance(value: float) -> None:
    if math.isnan(value) or value < 0.0:
        message = f"an allowance is {value}, expected a number of at least 0 (by how much the metric may get worse)"
        raise ValueError(message)

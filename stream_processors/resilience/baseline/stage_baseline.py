"""Stage baselines as they are learned: per family, the sums of every leaf cell, mergeable in any order.

A cell N(a) is an anchor without its family: (mode, progress bin, residual bin). Only leaves are kept; the coarser
levels that back-off needs are merges of leaves and are worked out when a baseline is materialised.

Besides the sums of its samples a cell may have policy sums: count and sum of discounted returns, then count, mean and
upper triangle of the centred co-moments of the stability vector. Either part may be empty (count 0). Source: N(a) of
the paper; what is learned, and when, is ours.

Two steps of one cell that planned for 1 s and 3 s teach it a mean of 2 s, and the same episode teaches only once:

>>> samples = np.zeros((2, N_SAMPLE))
>>> samples[:, 0] = 1.0, 3.0
>>> _, sums = merge_groups(np.array([0, 0]), Moments.of_samples(samples))
>>> place, key = ("navigate", 0, 4), EpisodeKey("robot-7", "boot", "1")
>>> taught = EpisodeContribution(family="f", key=key, cells=(place,), sums=sums.packed().tobytes())
>>> baseline = StageBaseline()
>>> baseline.add(taught, BaselineConfig()), baseline.add(taught, BaselineConfig())
({('navigate', 0, 4)}, set())
>>> n, planning_s, *_ = sums_matrix(baseline.families["f"].cells[place])[0].tolist()
>>> n, planning_s
(2.0, 2.0)
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np

from springback.stream_processors.resilience.anchor import N_SAMPLE, AnchorGrid, Floats, Ints
from springback.stream_processors.resilience.baseline.moments import Moments, merge_groups
from springback.stream_processors.resilience.readings import EpisodeKey

CellT = TypeVar("CellT", bound=Hashable)

BASELINE_SCHEMA_VERSION = 2
"""2: largest sums carry the count of references behind them. Those of version 1, which do not, count for nothing."""
CellKey = tuple[str, int, int]
"""Mode, progress bin, residual bin."""

GROWTH_PART = 10
"""The references of a family must grow by one in so many before steps are scored by what they have taught (ours)."""
SUMS_WIDTH = 1 + N_SAMPLE + N_SAMPLE * (N_SAMPLE + 1) // 2
N_STABILITY = 3
"""|delta|, |A| and the variance of V: the vector x^stab of equation 5."""

POLICY_WIDTH = 2 + 1 + N_STABILITY + N_STABILITY * (N_STABILITY + 1) // 2


class BaselineConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How cells are smoothed and alarms calibrated (ours).

    Attributes:
        pseudo_counts: kappa, the weight of the level above in a cell's estimate.
        calibration_episodes: reference episodes with sums that count, from which on alarm bounds are calibrated.
        calibration_rank: the quantile of the reference episodes' largest sums that becomes the bound.
        calibration_floor: the smallest calibrated bound.
        calibration_share: as a family learns episode by episode, an episode's sums count as long as the baseline that
            scored it held at least this share of the references of now: that of the first ones knew little yet.
        learning_references: references that must stand behind a family's bounds (see `WindowConfig.bound_references`).
            With fewer the family is learning, and its windows and episodes are provisional.
        mature_episodes: reference episodes that a family must have while it learns live before its baseline is used:
            excess over a baseline of one or two episodes says nothing of the task, and its sums would spoil the bounds.
        calibration_memory: how many of the latest largest sums are kept.
        contribution_memory: how many of the latest contributions are remembered, to count each once.
        largest_family: cells that a family may have. An episode that passes through more, or would take its family
            beyond it, teaches nothing: modes that are never the same twice must not fill the state.
    """

    pseudo_counts: float = 20.0
    calibration_episodes: int = 10
    calibration_rank: float = 0.95
    calibration_floor: float = 5.0
    calibration_share: float = 0.5
    learning_references: int = 20
    mature_episodes: int = 10
    calibration_memory: int = 1024
    contribution_memory: int = 4096
    largest_family: int = 2048

    def __post_init__(self) -> None:
        """Checks that a family can ever learn enough: one that cannot is in no margin, for good."""
        if not 0 < self.calibration_rank < 1:
            message = f"calibration_rank is {self.calibration_rank}, expected a share between 0 and 1"
            raise ValueError(message)
        if not 0 <= self.calibration_share < 1:
            message = f"calibration_share is {self.calibration_share}, expected a share from 0 to below 1"
            raise ValueError(message)
        for name, least in (("calibration_episodes", 1), ("learning_references", 0)):
            if not least <= getattr(self, name) <= self.calibration_memory:
                message = (
                    f"{name} is {getattr(self, name)}, expected {least} to {self.calibration_memory} "
                    f"(calibration_memory): no more references can stand behind a family's bounds"
                )
                raise ValueError(message)


class LargestSums(msgspec.Struct, frozen=True, array_like=True):
    """The largest value that each detector's sum reached in one reference episode, run through without a stop.

    `references` is how many references the baseline held that the episode was scored by, itself not among them; 0
    where that is not known.
    """

    effort: float
    delay: float
    references: int = 0


class EpisodeContribution(msgspec.Struct, frozen=True, kw_only=True, tag="episode"):
    """What one reference episode teaches: the sums of the cells that it passed through.

    `sums` is little-endian float64, one row (n, mean, M2) per cell. `largest` is absent while the family had no
    baseline to score the whole episode by, and where a gap lies in it. `policy` holds a row of policy sums per cell,
    in the same order, or nothing; `valued` and `stable` say whether there are returns and stability vectors among them.
    `cycle_s` is the median of its first cycle times, in seconds; None where too few are known.
    """

    family: str
    key: EpisodeKey
    cells: tuple[CellKey, ...]
    sums: bytes
    largest: LargestSums | None = None
    policy: bytes = b""
    valued: bool = False
    stable: bool = False
    cycle_s: float | None = None
    schema_version: int = BASELINE_SCHEMA_VERSION


class FamilyBaseline(msgspec.Struct, kw_only=True):
    """Everything learned of one task family; also the state that `learn_baselines` keeps for it.

    `valued` and `stable` count the reference episodes that have taught returns and stability vectors. `largest` are
    the sums that alarm bounds are calibrated by, `recent` the marks of the latest contributions' episodes; both oldest
    first, as are `cycles`, the median cycle times of episodes. `origin` names the import that it goes back to; it is
    empty if all of it was learned here.
    """

    cells: dict[CellKey, bytes] = msgspec.field(default_factory=dict)
    policy: dict[CellKey, bytes] = msgspec.field(default_factory=dict)
    references: int = 0
    valued: int = 0
    stable: int = 0
    largest: list[LargestSums] = msgspec.field(default_factory=list)
    cycles: list[float] = msgspec.field(default_factory=list)
    frozen: bool = False
    origin: str = ""
    recent: list[int] = msgspec.field(default_factory=list)
    schema_version: int = BASELINE_SCHEMA_VERSION

    def add(self, contribution: EpisodeContribution, config: BaselineConfig) -> set[CellKey]:
        """Takes in one episode; a contribution seen before changes nothing.

        Returns:
            the cells that changed: none if it was a repetition, this baseline is frozen, or it would grow too large.
        """
        mark = contribution.key.mark()
        changed = set(contribution.cells)
        if self.frozen or mark in self.recent or len(changed | self.cells.keys()) > config.largest_family:
            return set()
        self.references += 1
        if contribution.largest is not None:
            self.largest = [*self.largest, contribution.largest]
        if contribution.cycle_s is not None:
            self.cycles = [*self.cycles, contribution.cycle_s][-config.calibration_memory :]
        # References only become more: what no longer counts never will.
        needed = config.calibration_share * self.references
        latest = [sums for sums in self.counting_sums() if sums.references >= needed]
        self.largest = latest[-config.calibration_memory :]
        self.recent = [*self.recent, mark][-config.contribution_memory :]
        self.merge_cells(contribution.cells, sums_matrix(contribution.sums))
        if contribution.policy:
            self.policy.update(merge_policy(self.policy, list(contribution.cells), policy_matrix(contribution.policy)))
            self.valued += contribution.valued
            self.stable += contribution.stable
        return changed

    def counting_sums(self) -> list[LargestSums]:
        """The largest sums that alarm bounds may rest on: those of which it is known what scored them (ours)."""
        return [sums for sums in self.largest if sums.references > 0]

    def stage(self, config: BaselineConfig) -> tuple[bool, ...]:
        """What of it may be used by now: returns, stability, its own alarm bounds, windows that are not provisional."""
        behind_bounds = len(self.counting_sums())
        return (
            self.valued >= config.mature_episodes,
            self.stable >= config.mature_episodes,
            behind_bounds >= config.calibration_episodes,
            behind_bounds >= config.learning_references,
            self.references >= config.learning_references,
        )

    def outgrows(self, before: "FamilyBaseline", config: BaselineConfig) -> bool:
        """Whether it says so much more than a former one that steps are to be scored by it from now on (ours).

        That is when its references have grown by a tenth, when more of it may be used, or when it is not what the
        former one has grown to: an import has taken its place, or it is frozen, or no longer.
        """
        replaced = (self.origin, self.frozen) != (before.origin, before.frozen) or self.references < before.references
        more = self.references - before.references
        grown = more > 0 and more * GROWTH_PART >= before.references
        return replaced or grown or self.stage(config) != before.stage(config)

    def matured(self, episodes: int) -> "FamilyBaseline":
        """The same baseline, without the returns or the stability that fewer episodes than these have taught."""
        valued = self.valued if self.valued >= episodes else 0
        return msgspec.structs.replace(self, valued=valued, stable=self.stable if self.stable >= episodes else 0)

    def merge_cells(self, cells: Iterable[CellKey], sums: Floats) -> None:
        """Merges sums into the cells named. Shape: sums (k, SUMS_WIDTH), one row per cell."""
        self.cells.update(merge_into_cells(self.cells, list(cells), sums))


class StageBaseline(msgspec.Struct, kw_only=True):
    """The learned baselines of every family."""

    families: dict[str, FamilyBaseline] = msgspec.field(default_factory=dict)
    grid: AnchorGrid = AnchorGrid()

    def add(self, contribution: EpisodeContribution, config: BaselineConfig) -> set[CellKey]:
        """Takes in one episode, in its own family, and returns the cells that changed."""
        return self.families.setdefault(contribution.family, FamilyBaseline()).add(contribution, config)

    def mature(self, config: BaselineConfig) -> "StageBaseline":
        """The families that may be scored by while they learn: with enough reference episodes, or frozen."""
        usable = {
            name: family if family.frozen else family.matured(config.mature_episodes)
            for name, family in self.families.items()
            if family.frozen or family.references >= config.mature_episodes
        }
        return StageBaseline(families=usable, grid=self.grid)


def sums_matrix(packed: bytes) -> Floats:
    """The rows (n, mean, M2) that the bytes hold. Shape: (k, SUMS_WIDTH)."""
    return np.frombuffer(packed, dtype="<f8").reshape(-1, SUMS_WIDTH)


def merge_into_cells(known: dict[CellKey, bytes], cells: list[CellKey], sums: Floats) -> dict[CellKey, bytes]:
    """What the named cells hold once the sums are merged in: the update to `known`, which itself stays as it was."""
    met = [cell for cell in dict.fromkeys(cells) if cell in known]
    number = {cell: i for i, cell in enumerate(dict.fromkeys([*met, *cells]))}
    codes = np.array([number[cell] for cell in [*met, *cells]], dtype=np.int64)
    rows = np.concatenate([sums_matrix(b"".join(known[cell] for cell in met)), sums])
    merged_codes, merged = merge_groups(codes, Moments.unpacked(rows, N_SAMPLE))
    by_number = list(number)
    packed = merged.packed()
    return {by_number[code]: packed[i].tobytes() for i, code in enumerate(merged_codes.tolist())}


class PolicySums(NamedTuple):
    """The sums of k cells. Shape: returns (k, 2) with count and sum; stability k groups of 3-vectors."""

    returns: Floats
    stability: Moments

    @staticmethod
    def unpacked(rows: Floats) -> "PolicySums":
        """The sums in rows as they are stored. Shape: (k, POLICY_WIDTH)."""
        return PolicySums(rows[:, :2], Moments.unpacked(rows[:, 2:], N_STABILITY))

    def packed(self) -> Floats:
        """The inverse of `unpacked`."""
        return np.column_stack([self.returns, self.stability.packed()])

    def merged(self, codes: Ints) -> tuple[Ints, "PolicySums"]:
        """The distinct codes, sorted, and their sums: cells that share a code are merged."""
        distinct, stability = merge_groups(codes, self.stability)
        returns = np.zeros((len(distinct), 2))
        np.add.at(returns, np.searchsorted(distinct, codes), self.returns)
        return distinct, PolicySums(returns, stability)


def policy_matrix(packed: bytes) -> Floats:
    """The rows that the bytes hold. Shape: (k, POLICY_WIDTH)."""
    return np.frombuffer(packed, dtype="<f8").reshape(-1, POLICY_WIDTH)


def policy_rows(known: Mapping[CellT, bytes], cells: Iterable[CellT]) -> Floats:
    """The rows of these cells, zeros where a cell has none. Shape: (k, POLICY_WIDTH)."""
    nothing = bytes(8 * POLICY_WIDTH)
    return policy_matrix(b"".join(known.get(cell, nothing) for cell in cells))


def merge_policy(known: Mapping[CellT, bytes], cells: list[CellT], rows: Floats) -> dict[CellT, bytes]:
    """What the named cells hold once the rows are merged in; `known` itself stays as it was. Cells may repeat."""
    distinct = list(dict.fromkeys(cells))
    number = {cell: i for i, cell in enumerate(distinct)}
    codes = np.array([*range(len(distinct)), *(number[cell] for cell in cells)], dtype=np.int64)
    _, merged = PolicySums.unpacked(np.concatenate([policy_rows(known, distinct), rows])).merged(codes)
    return {cell: row.tobytes() for cell, row in zip(distinct, merged.packed(), strict=True)}

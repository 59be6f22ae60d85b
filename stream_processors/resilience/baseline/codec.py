"""Stage baselines on the wire and on disk: contributions, records of the compacted topic, and the exported file.

The compacted topic holds one record per cell and one per family (reference count, largest sums, frozen flag). A
record's key is a MessagePack array: [family] or [family, mode, progress bin, residual bin].
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import numpy as np

from springback.stream_processors.resilience.anchor import N_SAMPLE, AnchorGrid, Floats
from springback.stream_processors.resilience.baseline.moments import triangle
from springback.stream_processors.resilience.baseline.stage_baseline import (
    BASELINE_SCHEMA_VERSION,
    POLICY_WIDTH,
    SUMS_WIDTH,
    CellKey,
    EpisodeContribution,
    FamilyBaseline,
    LargestSums,
    PolicySums,
    StageBaseline,
    policy_matrix,
    sums_matrix,
)

_SQUARES = 1 + N_SAMPLE + np.flatnonzero(np.equal(*triangle(N_SAMPLE)))
"""Where the diagonal of M2 stands in a row of sums."""
_SUMS_BYTES = 8 * SUMS_WIDTH


class BaselineFormatError(ValueError):
    """A baseline record or file is not what this version of springback can read."""


class BaselineReplacement(msgspec.Struct, frozen=True, kw_only=True, tag="replace"):
    """A baseline to put in the place of what was learned of a family: the message that an import sends.

    `request` names the import; it is shown in the family's record, so that the importer sees its work done.
    """

    family: str
    request: str
    baseline: FamilyBaseline
    schema_version: int = BASELINE_SCHEMA_VERSION


class FamilyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The family's own record on the compacted topic."""

    references: int
    largest: list[LargestSums]
    frozen: bool
    valued: int = 0
    stable: int = 0
    cycles: list[float] = []
    request: str = ""
    origin: str = ""
    schema_version: int = BASELINE_SCHEMA_VERSION


class StoredCell(msgspec.Struct, frozen=True, kw_only=True):
    """One cell in a baseline file: its place, its sums (n, mean, upper triangle of M2), and its policy sums, if any."""

    mode: str
    progress_bin: int
    residual_bin: int
    sums: list[float]
    policy: list[float] = []


class StoredFamily(msgspec.Struct, frozen=True, kw_only=True):
    """One family in a baseline file."""

    references: int
    largest: list[LargestSums]
    cells: list[StoredCell]
    valued: int = 0
    stable: int = 0
    cycles: list[float] = []


class BaselineFile(msgspec.Struct, frozen=True, kw_only=True):
    """A whole baseline file: JSON, so that people can read it and other tools can make it."""

    schema_version: int
    grid: AnchorGrid
    families: dict[str, StoredFamily]


class ScoringFamily(msgspec.Struct, frozen=True, array_like=True):
    """A family as it scores, in a form that equal families have equal bytes of: cells in sorted order.

    `grid` is its progress and residual bins. Cells are (mode, progress bin, residual bin, sums, policy sums).
    """

    schema_version: int
    grid: AnchorGrid
    references: int
    valued: int
    stable: int
    frozen: bool
    origin: str
    largest: list[LargestSums]
    cycles: list[float]
    cells: list[tuple[str, int, int, bytes, bytes]]


Contribution = EpisodeContribution | BaselineReplacement
_encoder = msgspec.msgpack.Encoder()
_contribution_decoder = msgspec.msgpack.Decoder(Contribution)
_record_decoder = msgspec.msgpack.Decoder(FamilyRecord)
_scoring_decoder = msgspec.msgpack.Decoder(ScoringFamily)


def encode_contribution(contribution: Contribution) -> bytes:
    """The contribution as MessagePack, tagged with its kind."""
    return _encoder.encode(contribution)


def decode_contribution(data: bytes) -> Contribution:
    """The contribution in a message's value.

    Raises:
        msgspec.DecodeError: the bytes are no contribution, or one of a newer version.
    """
    contribution = _contribution_decoder.decode(data)
    try:
        _check_version(contribution.schema_version, f"contribution to family {contribution.family!r}")
        if isinstance(contribution, EpisodeContribution):
            cells, policy_cells = contribution.cells, contribution.cells if contribution.policy else ()
            sums, policy = contribution.sums, contribution.policy
        else:
            baseline = contribution.baseline
            cells, policy_cells = tuple(baseline.cells), tuple(baseline.policy)
            sums, policy = b"".join(baseline.cells.values()), b"".join(baseline.policy.values())
        for cell, row in zip(cells, sums_matrix(sums), strict=True):
            _check_sums(row, f"cell {cell} of family {contribution.family!r}")
        for cell, row in zip(policy_cells, policy_matrix(policy), strict=True):
            _check_policy(row, f"cell {cell} of family {contribution.family!r}")
    except ValueError as error:
        raise msgspec.ValidationError(str(error)) from error
    return contribution


def family_record_key(family: str) -> bytes:
    """The key of a family's own record."""
    return _encoder.encode([family])


def baseline_records(
    family: str, baseline: FamilyBaseline, cells: Iterable[CellKey], request: str = ""
) -> Iterator[tuple[bytes, bytes | None]]:
    """Keys and values of the compacted topic's records for these cells, the family's own record last.

    A cell that the baseline does not hold becomes a tombstone (value None).
    """
    for cell in cells:
        sums = baseline.cells.get(cell)
        yield _encoder.encode([family, *cell]), None if sums is None else sums + baseline.policy.get(cell, b"")
    record = FamilyRecord(
        references=baseline.references,
        largest=baseline.largest,
        frozen=baseline.frozen,
        valued=baseline.valued,
        stable=baseline.stable,
        cycles=baseline.cycles,
        request=request,
        origin=baseline.origin,
    )
    yield family_record_key(family), _encoder.encode(record)


def apply_record(baseline: StageBaseline, key: bytes, value: bytes | None) -> FamilyRecord | None:
    """Takes a record of the compacted topic into a baseline, and returns the family's record if it was one.

    Raises:
        BaselineFormatError: the key or the value is not in this format, or of a newer version.
    """
    try:
        family, *cell = msgspec.msgpack.decode(key, type=list[Any])
        known = baseline.families.setdefault(str(family), FamilyBaseline())
        if cell:
            place = msgspec.convert(cell, CellKey)
            if value is None:
                known.cells.pop(place, None)
                known.policy.pop(place, None)
            else:
                what = f"cell {place} of family {family!r}"
                _check_place(place, baseline.grid, what)
                sums, policy = value[:_SUMS_BYTES], value[_SUMS_BYTES:]
                _check_sums(np.frombuffer(sums, dtype="<f8"), what)
                if policy:
                    _check_policy(np.frombuffer(policy, dtype="<f8"), what)
                    known.policy[place] = policy
                else:
                    known.policy.pop(place, None)
                known.cells[place] = sums
            return None
        if value is None:
            del baseline.families[str(family)]
            return None
        record = _record_decoder.decode(value)
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        message = f"unreadable stage-baseline record with key {key!r}: {error}"
        raise BaselineFormatError(message) from error
    _check_version(record.schema_version, f"stage-baseline record of family {family!r}")
    known.references, known.largest, known.frozen = record.references, record.largest, record.frozen
    known.valued, known.stable, known.cycles = record.valued, record.stable, record.cycles
    known.origin = record.origin
    return record


def encode_scoring_family(family: FamilyBaseline, grid: AnchorGrid) -> bytes:
    """All that scoring by a family takes. Which contributions it remembers plays no part in it."""
    cells = [(*place, family.cells[place], family.policy.get(place, b"")) for place in sorted(family.cells)]
    counts = family.references, family.valued, family.stable, family.frozen
    content = ScoringFamily(BASELINE_SCHEMA_VERSION, grid, *counts, family.origin, family.largest, family.cycles, cells)
    return _encoder.encode(content)


def decode_scoring_family(data: bytes) -> tuple[FamilyBaseline, AnchorGrid]:
    """The family, and the grid that it was learned with.

    Raises:
        BaselineFormatError: the bytes hold none, or one of another version.
    """
    try:
        content = _scoring_decoder.decode(data)
    except msgspec.MsgspecError as error:
        message = f"unreadable scoring baseline ({len(data)} bytes): {error}"
        raise BaselineFormatError(message) from error
    _check_version(content.schema_version, "scoring baseline")
    family = FamilyBaseline(
        cells={(mode, p, q): sums for mode, p, q, sums, _ in content.cells},
        policy={(mode, p, q): policy for mode, p, q, _, policy in content.cells if policy},
        references=content.references,
        valued=content.valued,
        stable=content.stable,
        frozen=content.frozen,
        origin=content.origin,
        largest=content.largest,
        cycles=content.cycles,
    )
    return family, content.grid


def dump_baseline(baseline: StageBaseline) -> bytes:
    """The baseline as a file's content (indented JSON, exact floats, families and cells in sorted order)."""
    families = {
        name: StoredFamily(
            references=family.references,
            largest=family.largest,
            cells=[
                StoredCell(
                    mode=mode,
                    progress_bin=p,
                    residual_bin=q,
                    sums=sums_matrix(family.cells[mode, p, q])[0].tolist(),
                    policy=np.frombuffer(family.policy.get((mode, p, q), b""), dtype="<f8").tolist(),
                )
                for mode, p, q in sorted(family.cells)
            ],
            valued=family.valued,
            stable=family.stable,
            cycles=family.cycles,
        )
        for name, family in sorted(baseline.families.items())
    }
    content = BaselineFile(schema_version=BASELINE_SCHEMA_VERSION, grid=baseline.grid, families=families)
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def load_baseline(data: bytes) -> StageBaseline:
    """The baseline in a file's content.

    Raises:
        BaselineFormatError: the content is no baseline, or of a newer version; says what is wrong and where.
    """
    try:
        content = msgspec.json.decode(data, type=BaselineFile)
    except msgspec.MsgspecError as error:
        message = f"not a baseline file: {error}; expected what `springback baseline export` writes"
        raise BaselineFormatError(message) from error
    _check_version(content.schema_version, "baseline file")
    families = {}
    for name, stored in content.families.items():
        cells, policies = {}, {}
        for cell in stored.cells:
            place = (cell.mode, cell.progress_bin, cell.residual_bin)
            sums = np.array(cell.sums, dtype="<f8")
            what = f"cell {place} of family {name!r}"
            _check_place(place, content.grid, what)
            _check_sums(sums, what)
            cells[place] = sums.tobytes()
            if cell.policy:
                policy = np.array(cell.policy, dtype="<f8")
                _check_policy(policy, what)
                policies[place] = policy.tobytes()
        families[name] = FamilyBaseline(
            cells=cells,
            policy=policies,
            references=stored.references,
            largest=list(stored.largest),
            valued=stored.valued,
            stable=stored.stable,
            cycles=list(stored.cycles),
        )
    return StageBaseline(families=families, grid=content.grid)


def _check_version(version: int, what: str) -> None:
    if version > BASELINE_SCHEMA_VERSION:
        message = (
            f"{what} has schema_version {version}; this version of springback reads up to "
            f"{BASELINE_SCHEMA_VERSION}: upgrade springback, or export the baseline again with this version"
        )
        raise BaselineFormatError(message)


def _check_place(place: CellKey, grid: AnchorGrid, what: str) -> None:
    _, progress_bin, residual_bin = place
    if not (0 <= progress_bin < grid.progress_bins and 0 <= residual_bin < grid.residual_bins):
        message = (
            f"{what}: expected bins below {grid.progress_bins} and {grid.residual_bins}; "
            "it was learned with another grid: use that one, or learn anew"
        )
        raise BaselineFormatError(message)


def _check_sums(sums: Floats, what: str) -> None:
    if sums.shape != (SUMS_WIDTH,) or not np.isfinite(sums).all():
        message = f"{what}: expected {SUMS_WIDTH} finite numbers (n, mean, upper triangle of M2), got {len(sums)}"
        raise BaselineFormatError(message)
    if sums[0] < 1 or (sums[_SQUARES] < 0).any():
        message = f"{what}: expected n >= 1 and no negative sum of squares, got n = {sums[0]:g}"
        raise BaselineFormatError(message)


def _check_policy(row: Floats, what: str) -> None:
    if row.shape != (POLICY_WIDTH,) or not np.isfinite(row).all():
        message = f"{what}: expected {POLICY_WIDTH} finite policy sums (returns, then stability), got {len(row)}"
        raise BaselineFormatError(message)
    sums = PolicySums.unpacked(row[None])
    spread = np.diagonal(sums.stability.covariance_sums(), axis1=1, axis2=2)
    if sums.returns[0, 0] < 0 or sums.stability.n[0] < 0 or (spread < 0).any():
        message = f"{what}: expected counts and sums of squares of policy sums not below 0"
        raise BaselineFormatError(message)

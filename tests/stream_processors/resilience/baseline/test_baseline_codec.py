"""Baselines in files, in records of the compacted topic and in contributions: exact round trips, clear refusals."""

import msgspec
import numpy as np
import pytest
from hypothesis import given

from springback.stream_processors.offline.evaluation import learn_baseline
from springback.stream_processors.resilience.anchor import AnchorGrid, Floats
from springback.stream_processors.resilience.baseline.codec import (
    BaselineFormatError,
    BaselineReplacement,
    apply_record,
    baseline_records,
    decode_contribution,
    dump_baseline,
    encode_contribution,
    family_record_key,
    load_baseline,
)
from springback.stream_processors.resilience.baseline.stage_baseline import (
    SUMS_WIDTH,
    EpisodeContribution,
    FamilyBaseline,
    LargestSums,
    StageBaseline,
)
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import EpisodeKey
from tests.stream_processors.frame_builders import nominal_baseline
from tests.stream_processors.random_episodes import by_seed, cut_into_frames, random_episodes, seeds

CONFIG = ResilienceConfig()
SUMS = np.r_[1.0, np.full(10, 0.5), np.zeros(55)]
POLICY = np.r_[1.0, -2.5, 1.0, 0.5, 0.25, 0.125, np.zeros(6)]
BAD_POLICIES = {
    "too short": POLICY[:-1],
    "too long": np.r_[POLICY, 0.0],
    "NaN": np.r_[np.nan, POLICY[1:]],
    "infinite return": np.r_[1.0, np.inf, POLICY[2:]],
    "negative visits": np.r_[-1.0, POLICY[1:]],
    "negative count": np.r_[POLICY[:2], -1.0, POLICY[3:]],
    "negative square": np.r_[POLICY[:-1], -1.0],
}
"""What may not pass for the policy sums of one cell."""


def contribution() -> EpisodeContribution:
    return EpisodeContribution(
        family="f",
        key=EpisodeKey("a", "s", "1"),
        cells=(("run", 0, 4),),
        sums=SUMS.tobytes(),
        largest=LargestSums(1, 2, 10),
        policy=POLICY.tobytes(),
        valued=True,
        stable=True,
    )


def learned(seed: int) -> StageBaseline:
    baseline = learn_baseline(cut_into_frames(random_episodes(seed, references=3, others=0), seed), CONFIG)
    for family in baseline.families.values():
        assert (set(family.policy), family.valued, family.stable) == (set(family.cells), 3, 3)
        family.largest.append(LargestSums(1 / 3, 2 / 7, 3))
    return baseline


def known(family: FamilyBaseline) -> tuple[object, ...]:
    """What a baseline says, without the memory of whom it came from."""
    return family.cells, family.policy, family.references, family.valued, family.stable, family.largest


@by_seed(5)
@given(seed=seeds)
def test_a_file_holds_every_bit(seed: int) -> None:
    baseline = learned(seed)
    data = dump_baseline(baseline)
    again = load_baseline(data)
    assert {name: known(f) for name, f in again.families.items()} == {n: known(f) for n, f in baseline.families.items()}
    assert again.grid == baseline.grid
    assert dump_baseline(again) == data  # sorted: the same baseline is always the same file


@by_seed(5)
@given(seed=seeds)
def test_records_hold_every_bit_in_any_order(seed: int) -> None:
    baseline = learned(seed)
    records = [
        record
        for name, family in baseline.families.items()
        for record in baseline_records(name, family, family.cells, request="import-1")
    ]
    shuffled = [records[i] for i in np.random.default_rng(seed).permutation(len(records))]
    again = StageBaseline()
    shown = [apply_record(again, key, value) for key, value in [*shuffled, *shuffled]]
    assert {name: known(f) for name, f in again.families.items()} == {n: known(f) for n, f in baseline.families.items()}
    assert {record.request for record in shown if record is not None} == {"import-1"}


def test_a_contribution_comes_through_whole() -> None:
    assert decode_contribution(encode_contribution(contribution())) == contribution()
    replacement = BaselineReplacement(family="f", request="r", baseline=FamilyBaseline(references=2, frozen=True))
    assert decode_contribution(encode_contribution(replacement)) == replacement


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 3},
        {"cells": ()},
        {"cells": (("run", 0, 4), ("run", 1, 4))},
        {"sums": SUMS.tobytes()[:-8]},
        {"sums": np.r_[np.nan, SUMS[1:]].tobytes()},
        {"sums": np.r_[0.0, SUMS[1:]].tobytes()},
        {"sums": b"123"},
        *({"policy": policy.tobytes()} for policy in BAD_POLICIES.values()),
        {"policy": b"123"},
    ],
    ids=["newer version", "no cell", "too many cells", "too short", "NaN", "n = 0", "no floats"]
    + [f"policy sums: {what}" for what in [*BAD_POLICIES, "no floats"]],
)
def test_a_contribution_that_makes_no_sense_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_contribution(encode_contribution(msgspec.structs.replace(contribution(), **change)))


def test_garbage_is_no_contribution() -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_contribution(b"\xc1garbage")


def test_tombstones_take_cells_and_families_away() -> None:
    baseline = nominal_baseline(CONFIG)
    family = baseline.families["navigation"]
    cell = next(iter(family.cells))
    del family.cells[cell]
    [(key, value), _] = baseline_records("navigation", family, [cell])
    assert value is None
    again = nominal_baseline(CONFIG)
    apply_record(again, key, value)
    assert again.families["navigation"].cells == family.cells
    apply_record(again, key, value)  # a second time: nothing more to take
    assert apply_record(again, family_record_key("navigation"), None) is None
    assert again.families == {}
    assert apply_record(again, family_record_key("never seen"), None) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\xc1", b""),
        (b"", b""),
        (msgspec.msgpack.encode("navigation"), b""),
        (msgspec.msgpack.encode(["f", "run", 0]), SUMS.tobytes()),
        (msgspec.msgpack.encode(["f", "run", "x", 4]), SUMS.tobytes()),
        (msgspec.msgpack.encode(["f", "run", 10, 4]), SUMS.tobytes()),
        (msgspec.msgpack.encode(["f", "run", 0, 5]), SUMS.tobytes()),
        (msgspec.msgpack.encode(["f", "run", -1, 4]), SUMS.tobytes()),
        (msgspec.msgpack.encode(["f", "run", 0, 4]), SUMS.tobytes()[:-8]),
        (msgspec.msgpack.encode(["f", "run", 0, 4]), SUMS.tobytes() * 2),
        (msgspec.msgpack.encode(["f", "run", 0, 4]), np.full(SUMS_WIDTH, np.inf).tobytes()),
        (msgspec.msgpack.encode(["f", "run", 0, 4]), (-SUMS).tobytes()),
        (msgspec.msgpack.encode(["f"]), b"\xc1"),
        (msgspec.msgpack.encode(["f"]), msgspec.msgpack.encode({"references": "many"})),
    ],
)
def test_an_unreadable_record_is_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(BaselineFormatError, match="record"):
        apply_record(StageBaseline(), key, value)


def test_a_newer_record_is_refused_with_what_to_do() -> None:
    newer = {"references": 1, "largest": [], "frozen": False, "schema_version": 3}
    with pytest.raises(BaselineFormatError, match=r"schema_version 3.*upgrade"):
        apply_record(StageBaseline(), family_record_key("f"), msgspec.msgpack.encode(newer))


def changed_file(**changes: object) -> bytes:
    content = msgspec.json.decode(dump_baseline(nominal_baseline(CONFIG)))
    return msgspec.json.encode({**content, **changes})


def file_with_cell(**changes: object) -> bytes:
    cell = {"mode": "run", "progress_bin": 0, "residual_bin": 4, "sums": SUMS.tolist(), **changes}
    return changed_file(families={"f": {"references": 1, "largest": [], "cells": [cell]}})


def test_a_good_file_is_taken() -> None:
    assert set(load_baseline(file_with_cell()).families["f"].cells) == {("run", 0, 4)}
    grid = {"progress_bins": 20, "residual_bins": 5}
    assert load_baseline(changed_file(grid=grid)).grid == AnchorGrid(20, 5)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not a baseline file"),
        (b"{}", "not a baseline file.*export"),
        (b"\x1f\x8b", "not a baseline file"),
        (changed_file(schema_version=3), "schema_version 3.*upgrade"),
        (file_with_cell(sums=SUMS.tolist()[:-1]), r"cell \('run', 0, 4\) of family 'f'.*66 finite numbers.*got 65"),
        (file_with_cell(sums=[None, *SUMS.tolist()[1:]]), "not a baseline file"),
        (file_with_cell(sums=[0.0, *SUMS.tolist()[1:]]), "n >= 1"),
        (file_with_cell(sums=[*SUMS.tolist()[:-1], -1.0]), "no negative sum of squares"),
        (file_with_cell(progress_bin=10), "another grid"),
        (file_with_cell(residual_bin=-1), "another grid"),
    ],
)
def test_a_bad_file_is_refused_with_what_is_wrong(data: bytes, says: str) -> None:
    with pytest.raises(BaselineFormatError, match=says):
        load_baseline(data)


@pytest.mark.parametrize("policy", BAD_POLICIES.values(), ids=BAD_POLICIES)
def test_bad_policy_sums_are_refused_wherever_they_come_from(policy: Floats) -> None:
    key = msgspec.msgpack.encode(["f", "run", 0, 4])
    with pytest.raises(BaselineFormatError, match=r"cell \('run', 0, 4\) of family 'f'.*policy sums"):
        apply_record(StageBaseline(), key, SUMS.tobytes() + policy.tobytes())
    family = FamilyBaseline(cells={("run", 0, 4): SUMS.tobytes()}, policy={("run", 0, 4): policy.tobytes()})
    with pytest.raises(msgspec.DecodeError):
        decode_contribution(encode_contribution(BaselineReplacement(family="f", request="r", baseline=family)))
    if np.isfinite(policy).all():
        with pytest.raises(BaselineFormatError, match="policy sums"):
            load_baseline(file_with_cell(policy=policy.tolist()))


OLD_SUMS = [[6.0, 7.0]] * 30
"""As version 1 stored them: without the count of references behind each."""


def test_sums_of_version_1_are_read_and_count_for_nothing() -> None:
    # They were, or may have been, by a baseline that the episode itself had taught: no bound can rest on them.
    cell = {"mode": "run", "progress_bin": 0, "residual_bin": 4, "sums": SUMS.tolist()}
    stored = {"f": {"references": 30, "largest": OLD_SUMS, "cells": [cell]}}
    file = load_baseline(changed_file(schema_version=1, families=stored)).families["f"]
    record = {"references": 30, "largest": OLD_SUMS, "frozen": False, "schema_version": 1}
    topic = StageBaseline()
    apply_record(topic, family_record_key("f"), msgspec.msgpack.encode(record))
    for family in (file, topic.families["f"]):
        assert (family.references, family.largest[0]) == (30, LargestSums(6.0, 7.0, 0))
        assert family.counting_sums() == []
    fields = msgspec.msgpack.decode(encode_contribution(contribution()))
    old = decode_contribution(msgspec.msgpack.encode({**fields, "largest": [1.0, 2.0], "schema_version": 1}))
    assert isinstance(old, EpisodeContribution)
    assert old.largest == LargestSums(1.0, 2.0, 0)


def test_good_policy_sums_are_taken_and_those_of_old_files_missed() -> None:
    assert load_baseline(file_with_cell()).families["f"].policy == {}
    family = load_baseline(file_with_cell(policy=POLICY.tolist())).families["f"]
    assert family.policy == {("run", 0, 4): POLICY.tobytes()}
    assert (family.valued, family.stable) == (0, 0)


def test_a_record_without_policy_sums_takes_the_old_ones_away() -> None:
    baseline = StageBaseline()
    key = msgspec.msgpack.encode(["f", "run", 0, 4])
    apply_record(baseline, key, SUMS.tobytes() + POLICY.tobytes())
    assert baseline.families["f"].policy == {("run", 0, 4): POLICY.tobytes()}
    apply_record(baseline, key, SUMS.tobytes())
    assert (baseline.families["f"].cells, baseline.families["f"].policy) == ({("run", 0, 4): SUMS.tobytes()}, {})
    apply_record(baseline, key, SUMS.tobytes() + POLICY.tobytes())
    apply_record(baseline, key, None)
    assert (baseline.families["f"].cells, baseline.families["f"].policy) == ({}, {})


def test_the_import_that_a_family_goes_back_to_is_told_by_its_record() -> None:
    family = FamilyBaseline(references=7, origin="request-1")
    received = StageBaseline()
    for key, value in baseline_records("navigation", family, []):
        apply_record(received, key, value)
    assert received.families["navigation"].origin == "request-1"

"""Running moments against numpy's covariance, and the algebra that merging must keep."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springback.stream_processors.resilience.anchor import Floats, Ints
from springback.stream_processors.resilience.baseline.moments import (
    Moments,
    centred,
    merge_groups,
    sums_about_mean,
    sums_in_order,
    triangle,
)
from tests.examples import examples

seeds = st.integers(0, 2**32 - 1)


def merged(codes: Ints, parts: Moments) -> Moments:
    return merge_groups(codes, parts)[1]


def all_merged(parts: Moments) -> Moments:
    return merged(np.zeros(len(parts), dtype=np.int64), parts)


def assert_close(one: Moments, other: Moments, scale: float = 1.0) -> None:
    np.testing.assert_array_equal(one.n, other.n)
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-12, atol=1e-12 * scale)
    np.testing.assert_allclose(one.m2, other.m2, rtol=1e-12, atol=1e-12 * scale**2 * float(one.n.max(initial=1)))


def together(first: Moments, second: Moments) -> Moments:
    """The groups of both, those of the first in front."""
    return Moments(
        np.concatenate([first.n, second.n]),
        np.concatenate([first.mean, second.mean]),
        np.concatenate([first.m2, second.m2]),
    )


def some_samples(seed: int, n: int = 40, d: int = 4) -> Floats:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=(n, d)) * rng.lognormal(size=d) + rng.normal(size=d))


@settings(max_examples=examples(40), deadline=None)
@given(seed=seeds, groups=st.integers(1, 6))
def test_agrees_with_numpy_cov_per_group(seed: int, groups: int) -> None:
    samples = some_samples(seed)
    codes = np.random.default_rng(seed).integers(0, groups, len(samples))
    found, sums = merge_groups(codes, Moments.of_samples(samples))
    assert found.tolist() == sorted(set(codes.tolist()))
    for i, code in enumerate(found):
        own = samples[codes == code]
        assert sums.n[i] == len(own)
        np.testing.assert_allclose(sums.mean[i], own.mean(axis=0), rtol=1e-12, atol=1e-13)
        expected = np.cov(own.T, bias=True) * len(own)
        np.testing.assert_allclose(sums.covariance_sums()[i], expected, rtol=1e-9, atol=1e-11)


@settings(max_examples=examples(30), deadline=None)
@given(seed=seeds)
def test_order_of_parts_does_not_matter(seed: int) -> None:
    samples = some_samples(seed)
    shuffled = np.random.default_rng(seed).permutation(samples)
    scale = float(np.abs(samples).max())
    assert_close(all_merged(Moments.of_samples(samples)), all_merged(Moments.of_samples(shuffled)), scale)


@settings(max_examples=examples(30), deadline=None)
@given(seed=seeds, cuts=st.lists(st.integers(1, 39), min_size=2, max_size=2, unique=True))
def test_merge_is_associative(seed: int, cuts: list[int]) -> None:
    samples = some_samples(seed)
    a, b, c = (all_merged(Moments.of_samples(part)) for part in np.split(samples, sorted(cuts)))
    left = all_merged(together(all_merged(together(a, b)), c))
    right = all_merged(together(a, all_merged(together(b, c))))
    scale = float(np.abs(samples).max())
    assert_close(left, right, scale)
    assert_close(left, all_merged(Moments.of_samples(samples)), scale)


@settings(max_examples=examples(30), deadline=None)
@given(seed=seeds)
def test_one_by_one_equals_all_at_once(seed: int) -> None:
    samples = some_samples(seed, n=25)
    running = Moments.of_samples(samples[:1])
    for sample in samples[1:]:
        running = all_merged(together(running, Moments.of_samples(sample[None])))
    assert_close(running, all_merged(Moments.of_samples(samples)), float(np.abs(samples).max()))


@settings(max_examples=examples(30), deadline=None)
@given(seed=seeds)
def test_covariance_sums_are_symmetric_and_positive_semidefinite(seed: int) -> None:
    samples = some_samples(seed, n=6, d=5)
    samples[:, 1] = samples[:, 0]  # a degenerate direction
    full = all_merged(Moments.of_samples(samples)).covariance_sums()[0]
    np.testing.assert_array_equal(full, full.T)
    assert np.linalg.eigvalsh(full).min() >= -1e-12 * np.trace(full)


@pytest.mark.parametrize("offset", [1e6, 1e9, 1.79e9])
def test_a_large_common_offset_cancels_nothing(offset: float) -> None:
    # E[xx'] - E[x]E[x]' would lose every digit at 1e9: the squares are 1e18, the spread is 1.
    samples = np.array([[0.0], [1.0], [2.0], [3.0]] * 50)
    far = all_merged(Moments.of_samples(samples + offset))
    assert far.m2[0, 0] == pytest.approx(250.0, rel=1e-12)
    halves = [all_merged(Moments.of_samples(half)) for half in (samples[:100] + offset, samples[100:] + offset)]
    assert all_merged(together(*halves)).m2[0, 0] == pytest.approx(250.0, rel=1e-12)


def test_no_parts_make_no_groups() -> None:
    codes, sums = merge_groups(np.zeros(0, dtype=np.int64), Moments.of_samples(np.zeros((0, 3))))
    assert len(codes) == len(sums) == 0


def test_packing_loses_nothing() -> None:
    sums = all_merged(Moments.of_samples(some_samples(3)))
    again = Moments.unpacked(sums.packed(), 4)
    for name in ("n", "mean", "m2"):
        np.testing.assert_array_equal(getattr(sums, name), getattr(again, name))


def test_the_triangle_goes_row_by_row() -> None:
    rows, columns = triangle(3)
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 40), max_size=6))
def test_sums_in_order_are_those_of_any_merge_and_no_cut_changes_a_bit(seed: int, cuts: list[int]) -> None:
    rng = np.random.default_rng(seed)
    samples = rng.normal(rng.normal(0, 1e4), 1.0, (100, 3))
    groups = rng.integers(0, 4, 100).tolist()
    whole = sums_in_order({}, groups, samples)
    known: dict[int, bytes] = {}
    at = 0
    for size in [*cuts, 100]:
        part = slice(at, at + size)
        known |= sums_in_order(known, groups[part], samples[part]) if groups[part] else {}
        at += size
    assert known == whole
    codes, parts = merge_groups(np.array(groups), Moments.of_samples(samples))
    found = centred([whole[code] for code in codes.tolist()], 3)
    np.testing.assert_allclose(found.packed(), parts.packed(), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(centred(sums_about_mean(parts), 3).packed(), parts.packed())


def test_what_never_varies_has_no_sum_of_squares() -> None:
    sums = sums_in_order({}, ["a"] * 7, np.full((7, 1), 0.1))
    assert centred([sums["a"]], 1).m2.tolist() == [[0.0]]

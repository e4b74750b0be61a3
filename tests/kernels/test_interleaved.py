"""Sequences side by side, against enumeration; also run with the compiler switched off."""

import numpy as np
import pytest

from crfkit._parallel import ThreadMap
from crfkit._types import Counts
from crfkit.compiler.jit import frozen, kernel
from crfkit.kernels.chain.arrays import ChainSums
from crfkit.kernels.chain.interleaved import lanes_order, lanes_sum
from crfkit.kernels.chain.sum import OK
from crfkit.structures import Chain, NoPathError, chain
from crfkit.structures.chain import MAX_LABELS, MOST_LABELS, lane_rooms, lane_tables
from crfkit.structures.potentials import chain_arrays, exp_pair
from tests.oracles import enumerated_sum, random_scores

LENGTHS = [2, 0, 3, 1, 1, 4, 2, 3] * 6


def sum_in_lanes(scores, weight):
    scores = chain_arrays(scores)
    factor, pair_shift = exp_pair(scores)
    out = Counts(np.zeros(scores.unary.shape), np.zeros(scores.pair.shape))
    sums = ChainSums(out.unary, out.pair, np.zeros(len(weight)), np.full(len(weight), OK))
    tables, rooms = (
        lane_tables(factor, pair_shift),
        lane_rooms(scores.offsets, scores.unary.shape[1]),
    )
    lanes_sum(scores, tables, frozen(weight), rooms, sums)
    out.pair[...] *= factor
    return sums.log_z, out, np.flatnonzero(sums.status != OK)


def check_against_enumeration(scores, weight):
    """All sequences are summed, and their sums and counts are those of all labelings."""
    log_z, out, failed = sum_in_lanes(scores, weight)
    assert len(failed) == 0
    expected_z, expected = enumerated_sum(scores, weight)
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(out.unary, expected.unary, rtol=0, atol=1e-12)
    np.testing.assert_allclose(out.pair, expected.pair, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 4])
def test_sums_of_lanes_equal_enumeration(n_labels):
    scores = random_scores(n_labels, LENGTHS, n_labels, scale=3.0)
    weight = np.linspace(0.5, 2.0, len(LENGTHS))
    check_against_enumeration(scores, weight)


def test_a_sequence_whose_probabilities_vanish_is_left_out_and_spoils_no_other():
    scores = random_scores(0, LENGTHS, 3)
    begin = scores.offsets[[5, 21, 30]]
    scores.unary[begin[0]] = [0.0, -600.0, 0.0]
    scores.unary[begin[1], 1] = -np.inf
    scores.unary[begin[2] + 1] = -np.inf
    weight = np.ones(len(LENGTHS))
    log_z, out, failed = sum_in_lanes(scores, weight)
    assert failed.tolist() == [5, 21, 30]
    others = scores._replace(unary=scores.unary.copy())
    mask = np.repeat(np.isin(np.arange(len(LENGTHS)), failed), LENGTHS)
    others.unary[mask] = 0.0
    weight[failed] = 0.0
    expected_z, expected = enumerated_sum(others, weight)
    kept = np.setdiff1d(np.arange(len(LENGTHS)), failed)
    np.testing.assert_allclose(log_z[kept], expected_z[kept], rtol=1e-12)
    np.testing.assert_allclose(out.unary[~mask], expected.unary[~mask], rtol=0, atol=1e-12)
    np.testing.assert_allclose(out.pair, expected.pair, rtol=0, atol=1e-12)


def test_what_is_expected_in_a_sequence_does_not_depend_on_its_lane():
    scores = random_scores(0, [5] * 16, 3)
    rows = scores.unary.reshape(16, 5, 3)
    rows[...] = rows[0]
    log_z, out, failed = sum_in_lanes(scores, np.ones(16))
    assert len(failed) == 0 and (log_z == log_z[0]).all()
    marginals = out.unary.reshape(16, 5, 3)
    assert (marginals == marginals[0]).all()


@pytest.mark.parametrize("lengths", [[4] * 17 + [900], [900], [900, 2, 2]])
def test_a_sequence_that_is_far_longer_than_the_others_is_left(lengths):
    scores, count = random_scores(0, lengths, 2), len(lengths)
    log_z, out, left = sum_in_lanes(scores, np.ones(count))
    assert left.tolist() == [lengths.index(900)]
    kept = np.repeat(np.array(lengths) < 900, lengths)
    np.testing.assert_allclose(out.unary[kept].sum(axis=1), 1.0, rtol=1e-12)
    assert not out.unary[~kept].any()


def sum_without_lanes(monkeypatch, scores):
    monkeypatch.setattr(chain, "lanes_sum", None)
    weight = np.ones(len(scores.offsets) - 1)
    return Chain(ThreadMap(1)).log_partition(scores, weight, Chain().zeros(scores))


def test_no_sequences_are_not_dealt(monkeypatch):
    assert sum_without_lanes(monkeypatch, random_scores(0, [], 2)).shape == (0,)


@pytest.mark.parametrize("lengths", [[0, 0], [5], [0, 3], [4] * 9, [6, 1, 1, 2, 0, 5, 5, 5, 5, 1]])
def test_a_few_sequences_are_summed_too(lengths):
    scores, weight = random_scores(1, lengths, 3), np.linspace(0.5, 1.0, len(lengths))
    check_against_enumeration(scores, weight)


def test_of_empty_sequences_none_is_left():
    log_z, _, left = sum_in_lanes(random_scores(0, [0] * 16, 2), np.ones(16))
    assert len(left) == 0 and not log_z.any()


@pytest.mark.parametrize(
    ("n_labels", "own_steps"),
    [(2, True), (MAX_LABELS + 2, False), (24, False), (MOST_LABELS + 4, False)],
)
def test_own_tables_of_steps_or_very_many_labels_are_not_dealt(monkeypatch, n_labels, own_steps):
    scores = random_scores(0, LENGTHS, n_labels, own_steps=own_steps)
    assert np.isfinite(sum_without_lanes(monkeypatch, scores)).all()


@pytest.mark.parametrize("n_labels", [MAX_LABELS, 26, MOST_LABELS])
def test_rows_that_would_leave_lanes_empty_are_dealt(monkeypatch, n_labels):
    scores = random_scores(0, LENGTHS, n_labels)
    monkeypatch.setattr(chain, "chain_sum", None)
    weight = np.ones(len(LENGTHS))
    assert np.isfinite(
        Chain(ThreadMap(1)).log_partition(scores, weight, Chain().zeros(scores))
    ).all()


@kernel
def put_in_order(offsets, places, order):
    """Sort sequences."""
    lanes_order(offsets, places, order)


def test_the_longest_sequences_come_first():
    offsets, order = np.array([0, 1, 4, 4, 6, 8, 8]), np.empty(6, np.int64)
    put_in_order(frozen(offsets), np.zeros(3 + 2, np.int64), order)
    assert order.tolist() == [1, 3, 4, 0, 2, 5]


@pytest.mark.parametrize("n_labels", [1, 2, 5, 6, 7, MAX_LABELS, 29])
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e4])
def test_a_batch_sums_to_what_its_sequences_do_alone(n_labels, scale):
    lengths = [*LENGTHS, 40, 9, 7, 12]
    scores = random_scores(n_labels, lengths, n_labels, scale=scale)
    scores.unary[scores.offsets[3], 1:] = -np.inf
    weight = np.random.default_rng(0).normal(size=len(lengths))
    results = []
    for structure in (Chain(ThreadMap(1)), Chain()):
        out = structure.zeros(scores)
        results.append((structure.log_partition(scores, weight, out), out))
    (log_z, out), (expected_z, expected) = results
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(out.unary, expected.unary, rtol=0, atol=1e-10)
    np.testing.assert_allclose(out.pair, expected.pair, rtol=0, atol=1e-10)


def test_the_error_names_a_sequence_of_a_lane_that_has_no_path():
    scores = random_scores(3, LENGTHS, 2)._replace(first=10)
    scores.unary[scores.offsets[7] + 2] = -np.inf
    with pytest.raises(NoPathError, match=r"sequence 17: no path is left at position 2"):
        Chain(ThreadMap(1)).log_partition(scores, np.ones(len(LENGTHS)), Chain().zeros(scores))


def test_forbidden_steps_have_probability_zero_in_a_batch():
    scores = random_scores(0, LENGTHS, 3)
    scores.pair[0, 1, 2] = -np.inf
    weight = np.ones(len(LENGTHS))
    out = Chain().zeros(scores)
    log_z = Chain(ThreadMap(1)).log_partition(scores, weight, out)
    expected_z, expected = enumerated_sum(scores, weight)
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12)
    np.testing.assert_allclose(out.pair, expected.pair, rtol=0, atol=1e-12)
    assert out.pair[0, 1, 2] == 0.0

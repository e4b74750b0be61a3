"""Kernels against enumeration on tiny inputs; also run with the compiler switched off."""

import numpy as np
import pytest
from hypothesis import given

from crfkit._types import Counts
from crfkit.compiler.jit import frozen
from crfkit.kernels.chain import max as chain_path
from crfkit.kernels.chain import sum as kernels
from crfkit.kernels.chain.arrays import ChainExponentials, ChainSums
from crfkit.structures.chain import chain_workspace
from crfkit.structures.potentials import chain_arrays, transposed
from tests.oracles import chain_paths, chain_scores, enumerated_sum, log_domain_sum, random_scores
from tests.sampling import examples


def scaled_sum(scores, weight):
    node, shift = np.empty_like(scores.unary), np.empty(len(scores.unary))
    kernels.chain_shift(frozen(scores.unary), node, shift)
    pair_shift = np.where(np.isinf(m := scores.pair.max(axis=(1, 2))), 0.0, m)
    factor = np.exp(scores.pair - pair_shift[:, None, None])
    swapped = transposed(factor)
    n_sequences = len(weight)
    out = Counts(np.zeros_like(scores.unary), np.zeros_like(scores.pair))
    log_z, status = np.empty(n_sequences), np.empty(n_sequences, np.int64)
    kernels.chain_sum(
        chain_arrays(scores),
        ChainExponentials(*map(frozen, (np.exp(node), shift, factor, swapped, pair_shift))),
        frozen(np.arange(n_sequences)),
        frozen(weight),
        chain_workspace(scores),
        ChainSums(out.unary, out.pair, log_z, status),
    )
    return log_z, Counts(out.unary, out.pair * factor), status


@given(chain_scores())
@examples(12)
def test_scaled_sum_equals_enumeration(scores):
    weight = np.linspace(0.5, 2.0, len(scores.offsets) - 1)
    log_z, out, status = scaled_sum(scores, weight)
    assert (status == kernels.OK).all()
    expected_z, expected = enumerated_sum(scores, weight)
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(out.unary, expected.unary, rtol=0, atol=1e-12)
    np.testing.assert_allclose(out.pair, expected.pair, rtol=0, atol=1e-12)


@given(chain_scores(scales=(1.0, 30.0, 1e3, 1e4)))
@examples(12)
def test_log_domain_sum_equals_enumeration(scores):
    weight = np.linspace(0.5, 2.0, len(scores.offsets) - 1)
    expected_z, expected = enumerated_sum(scores, weight)
    out = Counts(np.zeros_like(scores.unary), np.zeros_like(scores.pair))
    work, norm = np.empty((3, scores.unary.shape[1])), np.empty(len(scores.unary))
    sums = ChainSums(out.unary, out.pair, np.empty(len(weight)), np.empty(len(weight), np.int64))
    for s in np.flatnonzero(np.diff(scores.offsets)):
        status = kernels.chain_sum_log(
            chain_arrays(scores), int(s), frozen(weight), norm, work, sums
        )
        assert status == kernels.OK
        np.testing.assert_allclose(sums.log_z[s], expected_z[s], rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(out.unary, expected.unary, rtol=0, atol=1e-10)
    np.testing.assert_allclose(out.pair, expected.pair, rtol=0, atol=1e-10)


def test_scaled_sum_hands_over_where_probabilities_underflow():
    scores = random_scores(0, [3], 2)
    scores.unary[0] = [0.0, -600.0]
    scores.unary[1] = [-600.0, 0.0]
    scores.pair[0] = [[0.0, -600.0], [-600.0, 0.0]]
    *_, status = scaled_sum(scores, np.ones(1))
    assert status.tolist() == [kernels.UNDERFLOW]


def test_scaled_sum_tells_where_no_path_is_left():
    scores = random_scores(0, [2, 4], 3)
    scores.unary[4] = -np.inf
    *_, status = scaled_sum(scores, np.ones(2))
    assert status.tolist() == [kernels.OK, 4]


def test_a_label_behind_forbidden_steps_is_not_taken_for_an_underflow():
    scores = random_scores(0, [4], 3)
    scores.pair[0, :, 2] = -np.inf
    scores.unary[0, 2] = -np.inf
    log_z, _, status = scaled_sum(scores, np.ones(1))
    assert status.tolist() == [kernels.OK]
    np.testing.assert_allclose(log_z, enumerated_sum(scores, np.ones(1))[0])


@given(chain_scores(scales=(1.0, 1e4)))
@examples(12)
def test_max_finds_the_best_path_with_the_lowest_labels_from_behind(scores):
    labels, value, status = run_max(scores)
    assert (status == kernels.OK).all()
    for s in range(len(value)):
        paths = list(chain_paths(scores, s))
        best = max(score for _, score in paths)
        np.testing.assert_allclose(value[s], best, rtol=1e-12)
        found = tuple(labels[scores.offsets[s] : scores.offsets[s + 1]].tolist())
        np.testing.assert_allclose(dict(paths)[found], best, rtol=1e-12)


def run_max(scores):
    n_sequences = len(scores.offsets) - 1
    labels = np.empty(len(scores.unary), np.int32)
    value, status = np.empty(n_sequences), np.empty(n_sequences, np.int64)
    work = np.empty_like(scores.unary)
    chain_path.chain_max(chain_arrays(scores), work, labels, value, status)
    return labels, value, status


def test_equal_paths_are_decided_by_the_lowest_label():
    scores = random_scores(0, [3], 3, scale=0.0)
    labels, _, _ = run_max(scores)
    assert labels.tolist() == [0, 0, 0]


def test_max_tells_where_no_path_is_left():
    scores = random_scores(0, [2, 3], 2)
    scores.pair[0] = [[-np.inf, 0.0], [-np.inf, -np.inf]]
    _, _, status = run_max(scores)
    assert status.tolist() == [kernels.OK, 4]


@given(chain_scores())
@examples(10)
def test_score_and_path_are_adjoint(scores):
    rng = np.random.default_rng(0)
    labels = rng.integers(scores.unary.shape[1], size=len(scores.unary)).astype(np.int32)
    finite = scores._replace(
        unary=np.nan_to_num(scores.unary, neginf=-3.0), pair=np.nan_to_num(scores.pair, neginf=-3.0)
    )
    weight = rng.normal(size=len(scores.offsets) - 1)
    score = np.empty_like(weight)
    chain_path.chain_score(chain_arrays(finite), labels, score)
    unary, pair = np.zeros_like(scores.unary), np.zeros_like(scores.pair)
    chain_path.chain_add_path(finite.transition_index, finite.offsets, labels, weight, unary, pair)
    inner = (unary * finite.unary).sum() + (pair * finite.pair).sum()
    np.testing.assert_allclose(weight @ score, inner, rtol=1e-12, atol=1e-12)


def test_shift_makes_the_largest_of_each_row_zero():
    unary = np.array([[1.0, 3.0], [-np.inf, -2.0], [-np.inf, -np.inf]])
    shifted, shift = np.empty_like(unary), np.empty(3)
    kernels.chain_shift(unary, shifted, shift)
    np.testing.assert_array_equal(shift, [3.0, -2.0, -np.inf])
    np.testing.assert_array_equal(shifted, [[-2.0, 0.0], [-np.inf, 0.0], [-np.inf, -np.inf]])


@pytest.mark.parametrize("n_labels", [1, 2])
def test_an_empty_sequence_has_one_path_of_score_zero(n_labels):
    scores = random_scores(1, [0, 2, 0], n_labels)
    log_z, _, status = scaled_sum(scores, np.ones(3))
    assert (status == kernels.OK).all()
    assert log_z[0] == log_z[2] == 0.0
    assert run_max(scores)[1][0] == 0.0


@pytest.mark.parametrize("n_labels", [7, 8, 9, 23, 24, 25, 40])
@pytest.mark.parametrize("own_steps", [False, True])
def test_sums_and_paths_of_many_labels_equal_those_of_the_log_domain(n_labels, own_steps):
    scores = random_scores(1, [5, 0, 1, 9], n_labels, own_steps=own_steps)
    weight = np.array([1.0, 1.0, 0.5, 2.0])
    log_z, out, status = scaled_sum(scores, weight)
    assert (status == kernels.OK).all()
    for s in (0, 2, 3):
        expected_z, marginals = log_domain_sum(scores, s)
        begin, end = scores.offsets[s : s + 2]
        assert log_z[s] == pytest.approx(expected_z, rel=1e-13, abs=1e-13)
        np.testing.assert_allclose(out.unary[begin:end], weight[s] * marginals, atol=1e-13)
    # A step goes to each label as often as the label has a predecessor.
    starts = scores.offsets[:-1][np.diff(scores.offsets) > 0]
    inner = np.delete(out.unary, starts, axis=0).sum(axis=0)
    np.testing.assert_allclose(out.pair.sum(axis=(0, 1)), inner, rtol=1e-12)
    np.testing.assert_allclose(out.pair.sum(axis=(0, 1)).sum(), 4 * 1.0 + 8 * 2.0, rtol=1e-13)


@pytest.mark.parametrize("n_labels", [8, 9, 11])
def test_sums_of_more_labels_than_a_vector_has_lanes_equal_enumeration(n_labels):
    scores = random_scores(2, [3, 2], n_labels)
    scores.pair[0, 0, 1] = scores.unary[1, 2] = -np.inf
    weight = np.array([1.0, 0.25])
    log_z, out, status = scaled_sum(scores, weight)
    expected_z, expected = enumerated_sum(scores, weight)
    assert (status == kernels.OK).all()
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-13)
    np.testing.assert_allclose(out.unary, expected.unary, rtol=0, atol=1e-13)
    np.testing.assert_allclose(out.pair, expected.pair, rtol=0, atol=1e-13)


def of_single_sequences(scores, weight):
    """Sums of sequences that are given one by one."""
    parts = []
    for s in range(len(weight)):
        begin, end = scores.offsets[s : s + 2]
        one = scores._replace(
            unary=scores.unary[begin:end].copy(), offsets=np.array([0, end - begin])
        )
        parts.append(scaled_sum(one, weight[s : s + 1]))
    return parts


@pytest.mark.parametrize("n_labels", [8, 11, 22, 24, 25, 31, 50])
@pytest.mark.parametrize("lengths", [[1, 1], [4, 9, 1], [2, 0, 7, 7, 1, 12, 3], [60, 3, 55, 40]])
def test_sequences_side_by_side_have_the_sums_of_each_alone(n_labels, lengths):
    scores = random_scores(3, lengths, n_labels)
    weight = np.linspace(0.5, 2.0, len(lengths))
    log_z, out, status = scaled_sum(scores, weight)
    alone = of_single_sequences(scores, weight)
    np.testing.assert_array_equal(status, kernels.OK)
    np.testing.assert_allclose(log_z, [z[0] for z, _, _ in alone], rtol=1e-15)
    unary = np.concatenate([part.unary for _, part, _ in alone])
    np.testing.assert_allclose(out.unary, unary, rtol=1e-13, atol=0)
    np.testing.assert_allclose(out.pair, sum(part.pair for _, part, _ in alone), rtol=1e-12)


@pytest.mark.parametrize("bad", [0, 1])
@pytest.mark.parametrize("token", [0, 2, 6])
def test_a_sequence_that_fails_leaves_the_one_beside_it_alone(bad, token):
    lengths = [4, 4]
    lengths[bad] = 7
    scores = random_scores(4, [*lengths, 5, 6], 9)
    begin = scores.offsets[bad]
    scores.unary[begin + token] = [0.0] + [-500.0] * 8  # tiny, and yet to be reached
    *_, status = scaled_sum(scores, np.ones(4))
    scores.unary[begin + token] = -np.inf
    log_z, out, dead = scaled_sum(scores, np.ones(4))
    expected = [kernels.OK] * 4
    expected[bad] = kernels.UNDERFLOW
    assert status.tolist() == expected
    expected[bad] = begin + token
    assert dead.tolist() == expected
    pair = np.zeros_like(out.pair)
    for s, (z, part, _) in enumerate(of_single_sequences(scores, np.ones(4))):
        if s != bad:
            assert log_z[s] == pytest.approx(z[0], rel=1e-15)
            tokens = slice(*scores.offsets[s : s + 2])
            np.testing.assert_allclose(out.unary[tokens], part.unary, rtol=1e-13)
            pair += part.pair
    np.testing.assert_allclose(out.pair, pair, rtol=1e-12)

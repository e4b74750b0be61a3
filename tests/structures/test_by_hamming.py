"""Best labelings for each number of wrong labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit.structures import Chain, chain
from tests.oracles import chain_paths, chain_scores, filled_up, random_scores, sparse_chain_scores


def some_labels(scores, seed=0):
    return np.random.default_rng(seed).integers(
        scores.unary.shape[1], size=len(scores.unary), dtype=np.int32
    )


def best_by_errors(scores, labels, most):
    """The largest score for each number of wrong labels, shape (S, L), by enumeration."""
    value = np.full((len(scores.offsets) - 1, most + 1), -np.inf)
    for s, (begin, end) in enumerate(zip(scores.offsets[:-1], scores.offsets[1:], strict=True)):
        for path, score in chain_paths(scores, s):
            errors = min(int(np.sum(labels[begin:end] != path)), most)
            value[s, errors] = max(value[s, errors], score)
    return value


def check_paths(structure, scores, labels, value, most):
    """Whether a path has the errors that were asked for, and the largest score of such."""
    for errors in range(value.shape[1]):
        asked = np.where(np.isfinite(value[:, errors]), errors, 0)
        path = structure.path_at_hamming(scores, labels, asked, most)
        wrong = np.add.reduceat(np.append(labels != path, False), scores.offsets[:-1])
        wrong = np.where(np.diff(scores.offsets) > 0, wrong, 0)
        wrong = wrong if most is None else np.minimum(wrong, most)
        np.testing.assert_array_equal(wrong, asked)
        found = structure.score(scores, path)[asked > 0]
        np.testing.assert_allclose(found, value[asked > 0, errors], rtol=1e-13, atol=1e-13)


@given(chain_scores((0.1, 1.0, 1e4)), st.integers(0, 99), st.sampled_from([None, 1, 2, 9]))
def test_each_number_of_errors_has_its_best_path(scores, seed, most):
    labels = some_labels(scores, seed)
    value = Chain().max_by_hamming(scores, labels, most)
    longest = int(np.diff(scores.offsets).max())
    expected = best_by_errors(scores, labels, max(longest if most is None else most, 1))
    np.testing.assert_allclose(value, expected, rtol=1e-13, atol=1e-13)
    check_paths(Chain(), scores, labels, value, most)


@pytest.mark.parametrize("n_labels", [8, 9, 23, 30])
@pytest.mark.parametrize("own_steps", [False, True])
def test_wide_rows_are_those_of_narrow_ones(n_labels, own_steps):
    """Labels beyond the first two are forbidden: the same paths as with two labels."""
    scores = random_scores(n_labels, [4, 0, 6, 1], n_labels, own_steps=own_steps)
    scores.unary[:, 2:] = -np.inf
    labels = some_labels(scores) % 2
    narrow = scores._replace(unary=scores.unary[:, :2].copy(), pair=scores.pair[:, :2, :2].copy())
    value = Chain().max_by_hamming(scores, labels)
    np.testing.assert_array_equal(value, Chain().max_by_hamming(narrow, labels))
    errors = np.array([3, 0, 2, 1])
    np.testing.assert_array_equal(
        Chain().path_at_hamming(scores, labels, errors),
        Chain().path_at_hamming(narrow, labels, errors),
    )


@pytest.mark.parametrize("n_labels", [3, 8, 26])
def test_the_best_of_all_levels_is_the_best_path(n_labels):
    scores = random_scores(1, [30, 7, 12], n_labels, shared_tables=True)
    labels = some_labels(scores)
    value = Chain().max_by_hamming(scores, labels)
    path, best = Chain().argmax(scores)
    np.testing.assert_allclose(value.max(axis=1), best, rtol=1e-13)
    np.testing.assert_array_equal(
        Chain().path_at_hamming(scores, labels, value.argmax(axis=1)), path
    )


@given(sparse_chain_scores((0.1, 1.0)))
def test_a_sparse_chain_answers_as_a_dense_one(pair):
    structure, scores = pair
    labels, dense = some_labels(scores), filled_up(scores, structure)
    value = structure.max_by_hamming(scores, labels)
    np.testing.assert_array_equal(value, Chain().max_by_hamming(dense, labels))
    check_paths(structure, scores, labels, value, None)


def test_a_single_label_is_never_wrong():
    scores = random_scores(0, [3, 0], 1)
    value = Chain().max_by_hamming(scores, some_labels(scores))
    assert np.isneginf(value[:, 1:]).all()
    with pytest.raises(ValueError, match="sequence 5: no labeling of finite score has 2 wrong"):
        Chain().path_at_hamming(scores._replace(first=5), some_labels(scores), np.array([2, 0]))


def test_no_data_have_no_levels():
    scores = random_scores(0, [], 3)
    labels = some_labels(scores)
    assert Chain().max_by_hamming(scores, labels).shape == (0, 2)
    assert Chain().path_at_hamming(scores, labels, np.empty(0, np.int64)).shape == (0,)


def test_a_sequence_too_long_for_the_search_is_named(monkeypatch):
    monkeypatch.setattr(chain, "MOST_LEVEL_BYTES", 1000)
    scores, labels = random_scores(0, [2, 9], 3), np.zeros(11, np.int32)
    assert len(Chain().path_at_hamming(scores, labels, np.array([1, 0]))) == 11
    with pytest.raises(ValueError, match="sequence 1: finding its labeling with 8 wrong labels"):
        Chain().path_at_hamming(scores, labels, np.array([1, 8]))

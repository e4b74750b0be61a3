"""The best labellings of a sequence, against enumeration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit.structures import Chain, ChainPotentials, NoPathError
from tests.oracles import chain_paths, random_scores


@given(
    seed=st.integers(0, 2**32 - 1), length=st.integers(1, 4), n_labels=st.integers(1, 4),
    count=st.integers(1, 9), own_steps=st.booleans(), forbidden=st.sampled_from((0.0, 0.4)),
)  # fmt: skip
def test_they_are_those_of_the_largest_scores(seed, length, n_labels, count, own_steps, forbidden):
    scores = random_scores(seed, [length], n_labels, own_steps=own_steps, forbidden=forbidden)
    found, levels = Chain().k_best(scores, count)
    value = {path: score for path, score in chain_paths(scores, 0) if score > -np.inf}
    expected = sorted(value.values(), reverse=True)[:count]
    assert len({tuple(path) for path in found.tolist()}) == len(found) == len(expected)
    np.testing.assert_allclose([value[tuple(path)] for path in found.tolist()], expected)
    np.testing.assert_allclose(levels, expected, rtol=1e-12, atol=1e-12)


@given(seed=st.integers(0, 2**32 - 1), length=st.integers(1, 4), n_labels=st.integers(1, 4))
def test_of_equal_scores_the_lowest_labels_come_first(seed, length, n_labels):
    rng = np.random.default_rng(seed)
    unary = rng.integers(0, 2, size=(length, n_labels)).astype(float)
    pair = rng.integers(0, 2, size=(1, n_labels, n_labels)).astype(float)
    scores = ChainPotentials.of(unary, pair, np.array([0, length]))
    paths = [(-score, path[::-1]) for path, score in chain_paths(scores, 0)]
    expected = [list(path[::-1]) for _, path in sorted(paths)]
    for count in (1, 3, len(expected) + 2):
        assert Chain().k_best(scores, count)[0].tolist() == expected[:count]
    np.testing.assert_array_equal(Chain().k_best(scores, 1)[0][0], Chain().argmax(scores)[0])


@pytest.mark.parametrize("count", [1, 3])
def test_a_sequence_without_tokens_has_one_labelling(count):
    empty = ChainPotentials.of(np.zeros((0, 3)), np.zeros((1, 3, 3)), np.array([0, 0]))
    labels, value = Chain().k_best(empty, count)
    assert labels.shape == (1, 0)
    assert value.tolist() == [0.0]


def test_a_sequence_without_a_path_is_named():
    scores = ChainPotentials.of(np.full((2, 3), -np.inf), np.zeros((1, 3, 3)), np.array([0, 2]), 7)
    with pytest.raises(NoPathError, match="sequence 7"):
        Chain().k_best(scores, 2)

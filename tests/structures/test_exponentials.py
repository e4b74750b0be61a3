"""Exponentials of the scores of tokens."""

import numpy as np
import pytest

from crfkit.structures.potentials import ChainPotentials, exp_in_place, exp_unary


@pytest.mark.parametrize("size", range(20))
def test_numbers_of_an_array_of_any_length_become_their_exponentials(rng, size):
    given = rng.normal(size=size) * 300.0
    array = given.copy().reshape(1, size)
    assert exp_in_place(array) is array
    np.testing.assert_allclose(array[0], np.exp(given), rtol=5e-16)


def test_extremes_of_exponentials():
    given = np.array([-np.inf, -1e4, -745.0, -740.0, -708.5, -0.0, 0.0, 1e-300, 709.0, 710.0])
    found = exp_in_place(given.copy())
    np.testing.assert_allclose(found[[5, 6, 7, 8]], np.exp(given[[5, 6, 7, 8]]), rtol=5e-16)
    assert found[0] == found[1] == 0.0 and found[-1] == np.inf
    np.testing.assert_allclose(found[2:5], np.exp(given[2:5]), rtol=0, atol=1e-323)


@pytest.mark.parametrize("size", [1, 5, 8, 9, 21])
def test_scores_of_tokens_are_relative_to_the_largest(rng, size):
    unary = rng.normal(size=(7, size)) * 1e3
    unary[2] = -np.inf
    node, shift = exp_unary(ChainPotentials.of(unary, np.zeros((1, size, size)), [0, 3, 7]))
    kept = np.arange(7) != 2
    np.testing.assert_array_equal(shift, unary.max(axis=1))
    expected = np.exp(unary[kept] - unary[kept].max(axis=1, keepdims=True))
    np.testing.assert_allclose(node[kept], expected, rtol=5e-16, atol=1e-320)
    np.testing.assert_array_equal(node[2], 0.0)

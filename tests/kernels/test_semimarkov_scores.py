"""Scores of tokens in segments: tables of each kind, and from attributes and back."""

import numpy as np
import pytest

from crfkit.compiler.jit import frozen
from crfkit.kernels.semimarkov.arrays import semimarkov_part, semimarkov_shift


@pytest.mark.parametrize("size", [1, 3, 4, 7, 8, 9, 17])
def test_the_shift_is_the_largest_score_of_going_on_and_beginning(rng, size):
    unary = 30.0 * rng.normal(size=(5, 4 * size))
    unary[1, : 2 * size] = -np.inf
    unary[2, size:] = -np.inf
    unary[3] += 1e4
    shifted, shift = np.empty_like(unary), np.empty(5)
    semimarkov_shift(frozen(unary), size, 20.0, shifted, shift)
    top = unary[:, : 2 * size].max(axis=1)
    np.testing.assert_array_equal(shift, np.where(top > -np.inf, top, 0.0))
    np.testing.assert_array_equal(shifted[:, 2 * size :], np.minimum(unary[:, 2 * size :], 20.0))
    np.testing.assert_array_equal(shifted[:, : 2 * size], unary[:, : 2 * size] - shift[:, None])


@pytest.mark.parametrize("size", [1, 8, 9])
def test_each_kind_of_score_has_a_table(rng, size):
    unary, width = rng.normal(size=(4, 4 * size)), -(-size // 8) * 8
    tables = [np.full((4, width), 7.0) for _ in range(4)]
    semimarkov_part(frozen(unary), size, *tables)
    for i, table in enumerate(tables):
        np.testing.assert_array_equal(table[:, :size], unary[:, i * size : (i + 1) * size])
        assert (table[:, size:] == 7.0).all()

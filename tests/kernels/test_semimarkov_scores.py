"""Scores of tokens in segments as exponentials, and from attributes and back."""

import numpy as np
import pytest

from crfkit._jit import frozen
from crfkit.kernels.semimarkov_scores import (
    semimarkov_add_inside,
    semimarkov_collect_inside,
    semimarkov_exponentials,
)


@pytest.mark.parametrize("size", [1, 3, 7, 8, 9, 16, 17])
def test_exponentials_are_those_of_numpy_and_zero_in_further_columns(rng, size):
    unary = 30.0 * rng.normal(size=(5, 3 * size))
    unary[1, : 2 * size] = -np.inf
    unary[2, size:] = -np.inf
    unary[3] += 1e4
    width = -(-size // 8) * 8
    tables, shift = [np.zeros((5, width)) for _ in range(3)], np.empty(5)
    unary[:, 2 * size :] = np.minimum(unary[:, 2 * size :], 100.0)
    work = np.full((1, width), -np.inf)
    semimarkov_exponentials(frozen(unary), size, work, *tables, shift)
    top = unary[:, : 2 * size].max(axis=1)
    expected = np.where(top > -np.inf, top, 0.0)
    np.testing.assert_array_equal(shift, expected)
    for i, table in enumerate(tables):
        own = unary[:, i * size : (i + 1) * size] - (expected[:, None] if i < 2 else 0.0)
        np.testing.assert_allclose(table[:, :size], np.exp(own), rtol=1e-15, atol=1e-320)
        assert not table[:, size:].any()


def test_collecting_is_the_adjoint_of_adding(rng):
    size = 3
    x, y = rng.normal(size=(2, 4, 3 * size))
    forward, back = x.copy(), y.copy()
    semimarkov_add_inside(forward, size)
    semimarkov_collect_inside(back, size)
    np.testing.assert_allclose(np.sum(forward * y), np.sum(x * back), rtol=1e-13)
    np.testing.assert_allclose(forward[:, size : 2 * size], x[:, :size] + x[:, size : 2 * size])
    np.testing.assert_array_equal(forward[:, :size], x[:, :size])

"""Rows of tables in vectors, against the same sums by NumPy, for widths around multiples of 8."""

import numpy as np
import pytest

from crfkit.compiler.jit import frozen, kernel
from crfkit.kernels import _strips as strips

WIDTHS = [8, 9, 15, 16, 17, 22, 24, 25, 31, 33, 48, 50, 73]


@kernel
def every_strip(slots, values, step, table, left, tables, node, out, sums, best, outer):
    """Call what kernels call."""
    strips.strips_add(slots, values, step, 1, slots.shape[0], table, 2, out)
    strips.strips_product(left, 1, tables, 1, sums, 0)
    strips.strips_best(left, 1, tables, 1, node, 0, best, 0)
    strips.strips_outer(left, -1, node, 1, node.shape[0], outer, 1, 0, outer.shape[2])


@pytest.mark.parametrize("size", WIDTHS)
@pytest.mark.parametrize("step", [0, 1])
def test_sums_and_maxima_of_rows(rng, size, step):
    slots = rng.integers(5, size=7).astype(np.uint32)
    values = rng.normal(size=7) if step else np.ones(1)
    table, left = rng.normal(size=(5, size)), rng.normal(size=(4, size))
    tables, node = rng.normal(size=(2, size, size)), rng.normal(size=(4, size))
    out, outer = rng.normal(size=(3, size)), rng.normal(size=(2, size, size))
    start, before = out.copy(), outer.copy()
    sums, best = np.empty((1, size)), np.empty((1, size))
    every_strip(
        frozen(slots), frozen(values), step, frozen(table), frozen(left), frozen(tables),
        frozen(node), out, sums, best, outer,
    )  # fmt: skip
    start[2] += (values[1:] if step else np.ones(6)) @ table[slots[1:]]
    before[1] += left[:3].T @ node[1:]
    np.testing.assert_allclose(out, start, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sums[0], left[1] @ tables[1], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(best[0], (left[1][:, None] + tables[1]).max(axis=0) + node[0])
    np.testing.assert_allclose(outer, before, rtol=1e-12, atol=1e-12)


@kernel
def elementwise(unary, shifted, shift, work, node, t, scale, alpha, row, beta, message, marginals):
    """Call what works on single rows; returns the sum and the least weight."""
    strips.strips_shift(unary, shifted, shift)
    sums = strips.strips_weigh(work, node, t, scale, alpha, row)
    strips.strips_step_back(node, t, scale, alpha, row, beta, message, marginals)
    return sums


@pytest.mark.parametrize("size", WIDTHS)
def test_single_rows(rng, size):
    unary, node, work = rng.normal(size=(3, size)), rng.random((3, size)), rng.random((1, size))
    unary[1, 1:], unary[2] = -np.inf, -np.inf
    work[0, 2] = 0.0
    beta = rng.random((1, size))
    beta[0, 2] = np.inf
    shifted, shift = np.empty_like(unary), np.empty(3)
    alpha, message, marginals = (np.empty((3, size)) for _ in range(3))
    found = elementwise(frozen(unary), shifted, shift, frozen(work), frozen(node), 1, 0.3, alpha, 2,
                        frozen(beta), message, marginals)  # fmt: skip
    np.testing.assert_array_equal(shift, unary.max(axis=1))
    expected = unary - np.where(shift == -np.inf, 0.0, shift)[:, None]
    np.testing.assert_array_equal(shifted, expected)
    weighed = 0.3 * node[1] * work[0]
    np.testing.assert_allclose(alpha[2], weighed, rtol=1e-14)
    np.testing.assert_allclose(found, (weighed.sum(), weighed.min()), rtol=1e-13)
    back = np.where(weighed > 0.0, beta[0], 0.0)
    np.testing.assert_allclose(marginals[1], weighed * back, rtol=1e-14)
    np.testing.assert_allclose(message[2], 0.3 * node[1] * back, rtol=1e-14)

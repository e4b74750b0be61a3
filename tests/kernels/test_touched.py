"""The weights that a batch touches, and steps of the dual; also run without the compiler."""

import numpy as np
import pytest

from crfkit.kernels.design import touched
from crfkit.kernels.solvers.eg import compare, mix
from crfkit.kernels.solvers.stochastic import dual_step
from tests.kernels.test_gather import column_arrays, make_problem


def touched_arrays(columns, ptr, labels):
    counts = np.diff(ptr.view(np.int64))
    local = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64)
    places, found = (np.empty(len(labels), np.uint32) for _ in range(2))
    touched.touched_pattern(columns, ptr, labels, places, found)
    return places, found, local


@pytest.mark.parametrize("ones", [True, False])
def test_gather_is_a_matrix_product_and_scatter_its_transpose(rng, ones):
    x, rows, table, mask, ptr, labels = make_problem(rng, ones)
    columns, *entries = column_arrays(rows.tocsc(), ones)
    places, found, local = touched_arrays(columns, ptr, labels)
    w, out = table[mask], np.zeros((6, 3))
    touched.touched_gather(places, found, local, *entries, w, np.empty(len(w)), out)
    np.testing.assert_allclose(out, x @ table, rtol=1e-13, atol=1e-15)
    residual, gradient = rng.normal(size=(6, 3)), np.zeros(len(w))
    touched.touched_scatter(found, local, *entries, residual, gradient)
    np.testing.assert_allclose(gradient, (x.T @ residual)[mask][places], rtol=1e-12, atol=1e-14)


def test_the_pattern_lists_the_weights_of_the_attributes_that_occur(rng):
    *_, mask, ptr, labels = make_problem(rng, True)
    attributes = np.array([0, 3], np.uint32)
    count = int(mask[attributes].sum())
    places, found = (np.empty(count, np.uint32) for _ in range(2))
    touched.touched_pattern(attributes, ptr, labels, places, found)
    expected = [np.arange(ptr[a], ptr[a + 1]) for a in attributes.astype(int)]
    np.testing.assert_array_equal(places, np.concatenate(expected))
    np.testing.assert_array_equal(found, labels[places])


@pytest.mark.parametrize("threshold", [0.0, 0.3])
def test_a_dual_step_moves_shrinks_and_tells_the_rise_of_the_square(rng, threshold):
    dual, places = rng.normal(size=9), np.array([1, 4, 8], np.uint32)
    w = np.sign(dual) * np.maximum(np.abs(dual) - threshold, 0.0)
    change, before, moved = rng.normal(size=3), w @ w, dual.copy()
    moved[places] += -0.5 * change
    rise = dual_step(places, change, -0.5, threshold, dual, w)
    np.testing.assert_allclose(dual, moved, rtol=1e-15)
    expected = np.sign(moved) * np.maximum(np.abs(moved) - threshold, 0.0)
    np.testing.assert_allclose(w, expected, rtol=1e-15)
    np.testing.assert_allclose(rise, w @ w - before, rtol=0, atol=1e-14)


def test_the_change_of_a_mixture_is_what_the_dual_needs_of_it(rng):
    before, target, counts, counts_after = rng.normal(size=(4, 7))
    stored, after, direction, change = before.astype(np.float32), target.copy(), *np.empty((2, 7))
    mix(0, 7, 0, 0.3, stored, after, direction)
    np.testing.assert_array_equal(after, (stored + 0.3 * (target - stored)).astype(np.float32))
    np.testing.assert_array_equal(direction, target - stored)
    inner, slope = compare(0, 7, 0, counts, after, direction, counts_after, change)
    np.testing.assert_allclose(change, counts_after - counts, rtol=1e-15)
    np.testing.assert_allclose(inner, after @ counts_after, rtol=1e-13)
    np.testing.assert_allclose(slope, change @ direction, rtol=0, atol=1e-13)

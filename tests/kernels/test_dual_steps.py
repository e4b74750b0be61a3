"""Steps of the dual; also run without the compiler."""

import numpy as np
import pytest

from crfkit.kernels.solvers.eg import compare, mix
from crfkit.kernels.solvers.stochastic import dual_step


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

"""Steps of the dual; also run without the compiler."""

import numpy as np
import pytest

from crfkit.kernels.solvers import eg
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


def of_batch(rng, size):
    """A batch of labels, its vectors, and what its residuals were."""
    potentials, residual, before = rng.normal(size=(3, size))
    vectors = eg.BatchVectors(potentials.copy(), *np.empty((1, size)), residual.copy(), before * 0)
    return eg.BlockPlace(0, 0, 0, size, 0), vectors, potentials, residual, before


def test_the_change_of_a_mixture_is_what_the_dual_needs_of_it(rng):
    place, vectors, target, exact, before = of_batch(rng, 7)
    stored = before.astype(np.float32)
    eg.mix_singles(place, 0.3, stored, vectors)
    after = (stored + 0.3 * (target - stored)).astype(np.float32)
    np.testing.assert_array_equal(vectors.potentials, after)
    np.testing.assert_array_equal(vectors.direction, target - stored)
    inner, slope = eg.compare_singles(place, stored, vectors)
    np.testing.assert_array_equal(vectors.residual, exact.astype(np.float32))
    np.testing.assert_allclose(vectors.change, vectors.residual - stored, rtol=1e-15)
    np.testing.assert_allclose(inner, after @ vectors.residual, rtol=1e-13)
    np.testing.assert_allclose(slope, vectors.change @ vectors.direction, rtol=0, atol=1e-13)


def test_numbers_of_16_bits_are_those_that_were_kept(rng):
    place, vectors, target, exact, _ = of_batch(rng, 7)
    before, step = np.full(7, eg.ZERO, np.uint16), np.abs(exact).max() / eg.MOST**2
    direction = vectors.direction
    eg.mix_short(place, 0.3, -1.0, 0.1, np.arange(7, dtype=np.uint16), vectors)
    known = 0.1 * np.arange(7) - 1.0
    np.testing.assert_allclose(vectors.potentials, known + 0.3 * (target - known), rtol=1e-13)
    along = direction.copy()
    inner, slope, square = eg.compare_short(place, 1.0, step, before, vectors)
    close = step * (2 * np.sqrt(np.abs(exact) / step) + 1)  # between two squares
    assert (np.abs(vectors.residual - exact) <= close).all()
    np.testing.assert_array_equal(vectors.change, vectors.residual)
    np.testing.assert_allclose(inner, vectors.potentials @ vectors.residual, rtol=1e-13)
    np.testing.assert_allclose(slope, vectors.change @ along, rtol=0, atol=1e-13)
    np.testing.assert_allclose(square, vectors.change @ vectors.change, rtol=1e-13)
    kept, roots = np.empty((2, 7), np.uint16)
    low, step_kept = vectors.potentials.min(), np.ptp(vectors.potentials) / eg.LARGEST
    rounded = vectors.potentials.copy()
    eg.round_short(place, low, step_kept, rounded)
    assert (np.abs(rounded - vectors.potentials) <= step_kept).all()
    eg.keep_short(place, low, step_kept, vectors._replace(potentials=rounded), kept, roots)
    np.testing.assert_allclose(low + step_kept * kept, rounded, rtol=0, atol=1e-9 * step_kept)
    signed = roots.astype(float) - eg.ZERO
    np.testing.assert_allclose(step * signed * np.abs(signed), vectors.residual, rtol=1e-13)

"""The vector instructions of steps of the dual, against NumPy."""

import numpy as np

from crfkit.compiler.jit import kernel
from crfkit.compiler.simd import decay, exponential, fill, load, store, subtract, where_bits


@kernel
def raised(x, out):
    """Exponentiate all rows."""
    for row in range(x.shape[0]):
        store(exponential(load(x, row, 0)), out, row, 0)


@kernel
def chosen(bits, x, out):
    """Choose lanes of each row, minus 1."""
    for row in range(x.shape[0]):
        store(where_bits(bits[row], subtract(load(x, row, 0), fill(1.0))), out, row, 0)


@kernel
def decayed(x, out):
    """Exponentiate all rows, of numbers that are not positive."""
    for row in range(x.shape[0]):
        store(decay(load(x, row, 0)), out, row, 0)


def ulps(x, kernel=raised):
    """How far the exponentials are from those of extended precision, in units of the last place."""
    out = np.empty_like(x)
    kernel(x, out)
    exact = np.exp(x.astype(np.longdouble))
    return np.abs((out - exact) / np.spacing(exact.astype(float)))


def test_exponentials_are_exact_to_two_units_in_the_last_place(rng):
    for low, high in ((-745.0, -708.0), (-708.0, -1.0), (-1.0, 1.0), (1.0, 709.7), (-1e-9, 1e-9)):
        assert ulps(rng.uniform(low, high, size=(500, 8))).max() < 2.0


def test_decays_are_exact_to_two_units_in_the_last_place(rng):
    for low, high in ((-708.0, -600.0), (-708.0, -1.0), (-1.0, 0.0), (-1e-9, 0.0)):
        assert ulps(rng.uniform(low, high, size=(500, 8)), decayed).max() < 2.0
    x = np.array([[0.0, -0.0, -np.inf, -1e308, -708.1, -1e4, -1.7e300, np.nan]])
    out = np.empty_like(x)
    decayed(x, out)
    np.testing.assert_array_equal(out, [[1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, np.nan]])


def test_exponentials_of_extremes():
    x = np.array([[0.0, -0.0, -np.inf, -1e300, -746.0, np.inf, 1e300, np.nan]])
    out = np.empty_like(x)
    with np.errstate(over="ignore"):  # without the compiler
        raised(x, out)
    np.testing.assert_array_equal(out, [[1.0, 1.0, 0.0, 0.0, 0.0, np.inf, np.inf, np.nan]])


def test_bits_choose_lanes(rng):
    x, bits = rng.normal(size=(5, 8)), np.array([0, 1, 128, 170, 255], np.uint8)
    out = np.empty_like(x)
    chosen(bits, x, out)
    lanes = np.unpackbits(bits[:, None], axis=1, bitorder="little")
    np.testing.assert_array_equal(out, np.where(lanes, x - 1.0, 0.0))

"""Numbers of 16 bits: rounding to the nearest, compiled and not."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit._types import FloatArray, LabelArray
from crfkit.compiler.bfloat import of_bfloat, to_bfloat
from crfkit.compiler.jit import kernel


@kernel
def _there_and_back(x: FloatArray, bits: LabelArray, out: FloatArray) -> None:
    for i in range(x.shape[0]):
        bits[i] = to_bfloat(x[i])
        out[i] = of_bfloat(bits[i])


def there_and_back(x):
    x = np.atleast_1d(np.asarray(x, np.float64))
    bits, out = np.empty(len(x), np.uint16), np.empty(len(x))
    _there_and_back(x, bits, out)
    return bits, out


@given(st.floats(2.0**-120, 2.0**120), st.booleans())
def test_the_nearest_number_of_eight_bits_is_taken(x, negative):
    x = -x if negative else x
    _, (found,) = there_and_back(x)
    step = 2.0 ** (math.frexp(x)[1] - 8)
    assert found % step == 0.0
    assert abs(found - np.float32(x)) <= 0.5 * step


def test_numbers_of_sixteen_bits_stay_what_they_are():
    bits = np.arange(1 << 16).astype(np.uint16)
    singles = (bits.astype(np.uint32) << 16).view(np.float32)
    finite = np.isfinite(singles)
    found, out = there_and_back(singles[finite])
    np.testing.assert_array_equal(found, bits[finite])
    np.testing.assert_array_equal(out, singles[finite])


@pytest.mark.parametrize("x", [0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, -1e-300])
def test_what_has_no_eight_bits_is_what_it_is_in_single_precision(x):
    _, (found,) = there_and_back(x)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, float(np.float32(x)))


def test_of_two_that_are_as_near_the_one_with_an_even_last_bit_is_taken():
    _, found = there_and_back([1.0 + 2.0**-8, 1.0 + 3 * 2.0**-8])
    np.testing.assert_array_equal(found, [1.0, 1.0 + 2.0**-6])

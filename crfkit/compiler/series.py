"""Series with fewer terms."""

from __future__ import annotations

import math

import numpy as np


def rest_of_exponential(half: float, n_terms: int, n_kept: int) -> list[float]:
    """Return the coefficients of a polynomial for ``(exp(x) - 1 - x) / x**2``, ``|x| <= half``.

    It is the series of so many terms, but for the last ones of its Chebyshev series (Lanczos 1938).
    """
    from numpy.polynomial.chebyshev import cheb2poly, poly2cheb

    scales = half ** np.arange(n_terms)
    series = scales / [math.factorial(k + 2) for k in range(n_terms)]
    found: list[float] = (cheb2poly(poly2cheb(series)[:n_kept]) / scales[:n_kept]).tolist()
    return found

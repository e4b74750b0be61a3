"""Numba, with all that it loads to compile, and scikit-learn: what forks of a process have."""

import numba
import scipy.sparse  # noqa: F401
import sklearn.base  # noqa: F401


@numba.njit
def double(x):
    return 2.0 * x


double(1.0)

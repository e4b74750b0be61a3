import numpy as np

from crfkit.kernels.solvers.vector import vector_add, vector_dot


def test_dot_and_add_are_numpys(rng):
    a, b = rng.normal(size=37), rng.normal(size=37)
    np.testing.assert_allclose(vector_dot(a, b), a @ b, rtol=1e-13)
    expected = b + 0.3 * a
    vector_add(0.3, a, b)
    np.testing.assert_allclose(b, expected, rtol=1e-14)

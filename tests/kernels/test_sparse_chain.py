"""The loops of a sparse chain on tiny inputs, also without the compiler."""

import numpy as np
import pytest

from crfkit.kernels import sparse_chain as kernels
from crfkit.structures import SparseChain
from tests.oracles import enumerated_max, enumerated_sum, filled_up, random_scores, thinned

PATTERN = SparseChain([0, 0, 1, 2, 2], [0, 1, 0, 1, 2], 3)


@pytest.mark.parametrize("scale", [1.0, 60.0])
@pytest.mark.parametrize("forbidden", [0.0, 0.3])
def test_sums_and_best_paths_equal_enumeration(scale, forbidden):
    scores = thinned(random_scores(0, [3, 0, 1, 4], 3, scale=scale, forbidden=forbidden), PATTERN)
    dense, weight = filled_up(scores, PATTERN), np.array([1.0, 1.0, 2.0, -0.5])
    out = PATTERN.zeros(scores)
    log_z = PATTERN.log_partition(scores, weight, out)
    expected_z, expected = enumerated_sum(dense, weight)
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(out.unary, expected.unary, rtol=0, atol=1e-11)
    steps = expected.pair[0, PATTERN.source, PATTERN.target]
    np.testing.assert_allclose(out.pair[0], steps, rtol=0, atol=1e-11)
    labels, value = PATTERN.argmax(scores)
    best = [enumerated_max(dense, s) for s in range(4)]
    np.testing.assert_allclose(value, best, rtol=1e-13)
    np.testing.assert_allclose(PATTERN.score(scores, labels), value, rtol=1e-13)


def test_an_exact_sum_adds_up_all_terms():
    values = np.array([[1.0, 2.0, 4.0, 8.0]])
    ids, factor = np.array([1, 3], np.uint32), np.array([10.0, 100.0])
    assert kernels._sum_exactly(values, 0, ids, factor, 0, 2, 0.5) == 2.5 + 20.0 + 800.0
    assert kernels._sum_exactly(values, 0, ids, factor, 0, 0, 0.5) == 7.5


def test_the_path_counts_the_scored_steps_it_takes():
    labels, out = np.array([0, 1, 2, 2], np.int32), np.zeros(5)
    kernels.sparse_add_path(
        PATTERN._pattern, np.array([0, 4]), labels, np.array([2.0]), np.zeros((4, 3)), out
    )
    assert out.tolist() == [0.0, 2.0, 0.0, 0.0, 2.0]

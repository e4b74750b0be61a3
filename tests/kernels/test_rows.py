import numpy as np
import pytest
import scipy.sparse as sp

from crfkit.features.attributes import SKIP, AttributeRows

rng = np.random.default_rng(0)


@pytest.mark.parametrize("longest", [3, 40, 700])
@pytest.mark.parametrize("valued", [False, True])
@pytest.mark.parametrize("columns", [9, 100_000])
def test_rows_are_sorted_and_what_is_equal_is_added_up(longest, valued, columns):
    sizes = rng.integers(0, longest + 1, 12)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    indices = rng.integers(SKIP, columns, indptr[-1]).astype(np.int32)
    values = rng.integers(-4, 5, len(indices)) / 4 if valued else None
    numbers = rng.permutation(columns).astype(np.int32)
    numbers[rng.random(columns) < 0.2] = SKIP
    for mapping in (None, numbers):
        rows = AttributeRows(indices, values, indptr, np.array([0, 12])).in_order(mapping)
        found = np.where(indices < 0, SKIP, indices if mapping is None else numbers[indices])
        kept = found >= 0
        expected = sp.coo_array(
            ((np.ones(len(indices)) if values is None else values)[kept],
             (np.repeat(np.arange(12), sizes)[kept], found[kept])), shape=(12, columns)
        ).tocsr()  # fmt: skip
        expected.sum_duplicates()
        assert rows.indptr.tolist() == expected.indptr.tolist()
        assert rows.indices.tolist() == expected.indices.tolist()
        assert rows.value_array().tolist() == expected.data.tolist()
        assert (rows.values is None) == bool((expected.data == 1).all())

import numpy as np
import pytest
import scipy.sparse as sp

from crfkit.kernels import gather


def make_problem(rng, ones):
    n_tokens, n_features, n_labels = 6, 5, 3
    x = (rng.random((n_tokens, n_features)) < 0.5) * (1.0 if ones else rng.normal(size=(6, 5)))
    mask = rng.random((n_features, n_labels)) < 0.6
    table = mask * rng.normal(size=mask.shape)
    rows, weights = sp.csr_array(x), sp.csr_array(mask.astype(float))
    ptr, labels = weights.indptr.astype(np.uint64), weights.indices.astype(np.uint32)
    return x, rows, table, mask, ptr, labels


@pytest.mark.parametrize("ones", [True, False])
def test_gather_pairs_is_a_matrix_product(rng, ones):
    x, rows, table, mask, ptr, labels = make_problem(rng, ones)
    values, step = (np.ones(1), 0) if ones else (rows.data, 1)
    out = np.zeros((3, 3))
    gather.gather_pairs(
        rows.indptr.astype(np.uint64), rows.indices.astype(np.uint32), values, step, 2, 5,
        ptr, labels, table[mask], out,
    )  # fmt: skip
    np.testing.assert_allclose(out, (x @ table)[2:5], rtol=1e-14)


@pytest.mark.parametrize("ones", [True, False])
def test_gather_columns_is_the_same_matrix_product(rng, ones):
    x, rows, table, mask, ptr, labels = make_problem(rng, ones)
    columns = rows.tocsc()
    out = np.zeros((6, 3))
    gather.gather_columns(*column_arrays(columns, ones), ptr, labels, table[mask], out)
    np.testing.assert_allclose(out, x @ table, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("ones", [True, False])
@pytest.mark.parametrize("cut", [0, 2, 5])
def test_scatter_columns_is_the_transposed_product_for_any_cut(rng, ones, cut):
    x, rows, _, mask, ptr, labels = make_problem(rng, ones)
    residual = rng.normal(size=(6, 3))
    arrays = column_arrays(rows.tocsc(), ones)
    out = np.zeros(len(labels))
    for begin, end in ((0, cut), (cut, 5)):
        gather.scatter_columns(*arrays, begin, end, ptr, labels, residual, out)
    np.testing.assert_allclose(out, (x.T @ residual)[mask], rtol=1e-13, atol=1e-15)


def column_arrays(columns, ones):
    values, step = (np.ones(1), 0) if ones else (columns.data, 1)
    return (
        np.arange(5, dtype=np.uint32), columns.indptr.astype(np.uint64),
        columns.indices.astype(np.uint32), values, step,
    )  # fmt: skip


def test_dense_gather_and_scatter_are_matrix_products(rng):
    x, table, residual = rng.normal(size=(6, 4)), rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    x[x < 0] = 0.0
    out = np.zeros((4, 3))
    gather.gather_dense(x, 1, 5, table, out)
    np.testing.assert_allclose(out, x[1:5] @ table, rtol=1e-13, atol=1e-15)
    back = np.zeros((4, 3))
    gather.scatter_dense(x, 1, 0, 2, residual, back)
    gather.scatter_dense(x, 1, 2, 4, residual, back)
    np.testing.assert_allclose(back, x[1:5].T @ residual, rtol=1e-13, atol=1e-15)

import numpy as np
import pytest
import scipy.sparse as sp

from crfkit.compiler.jit import frozen
from crfkit.kernels.design import gather
from crfkit.potentials.attributes import AS_THEY_ARE
from crfkit.potentials.rows import Cells, exchanged


def make_problem(rng, ones):
    n_tokens, n_features, n_labels = 6, 5, 3
    x = (rng.random((n_tokens, n_features)) < 0.5) * (1.0 if ones else rng.normal(size=(6, 5)))
    mask = rng.random((n_features, n_labels)) < 0.6
    table = mask * rng.normal(size=mask.shape)
    rows, weights = sp.csr_array(x), sp.csr_array(mask.astype(float))
    ptr, labels = weights.indptr.astype(np.uint64), weights.indices.astype(np.uint32)
    return x, rows, table, mask, ptr, labels


@pytest.mark.parametrize("ones", [True, False])
@pytest.mark.parametrize("full", [[], [0, 3], [0, 1, 2, 3, 4]])
def test_gather_tokens_and_rows_are_together_a_matrix_product(rng, ones, full):
    x, rows, table, mask, ptr, labels = make_problem(rng, ones)
    values, step = (np.ones(1), 0) if ones else (rows.data, 1)
    counts, size = mask.sum(axis=1), len(full)
    slots = np.where(counts == 1, size + mask.argmax(axis=1), size + 3).astype(np.uint32)
    slots[full] = np.arange(size)
    row_ptr, found = np.empty(4, np.int64), np.empty(len(rows.data), np.uint32)
    factor, out = np.empty(len(rows.data)), np.zeros((3, 3))
    gather.gather_tokens(
        gather.SparseRows(
            *map(frozen, (rows.indptr.astype(np.uint64), rows.indices.astype(np.uint32), values)),
            step,
        ),
        2,
        5,
        gather.PairWeights(
            frozen(slots), size, *map(frozen, (table.sum(axis=1), ptr, labels, table[mask]))
        ),
        gather.ListedRows(row_ptr, found, factor),
        out,
    )
    listed = map(frozen, (row_ptr, found, factor))
    gather.gather_rows(AS_THEY_ARE, *listed, step, 0, 3, frozen(table[full]), out)
    np.testing.assert_allclose(out, (x @ table)[2:5], rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("ones", [True, False])
@pytest.mark.parametrize("cut", [0, 2, 5])
def test_gathering_lists_of_tokens_is_the_transposed_product_for_any_cut(rng, ones, cut):
    x = (rng.random((30, 5)) < 0.6) * (1.0 if ones else rng.normal(size=(30, 5)))
    residual, out = rng.normal(size=(30, 3)), np.zeros((5, 3))
    _, ptr, rows, values, step = column_arrays(sp.csc_array(x), ones)
    listed = [*map(frozen, (np.arange(5, dtype=np.uint32), ptr.view(np.int64), rows, values))]
    for begin, end in ((0, cut), (cut, 5)):
        gather.gather_rows(*listed, step, begin, end, frozen(residual), out)
    np.testing.assert_allclose(out, x.T @ residual, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("ones", [True, False])
@pytest.mark.parametrize("cut", [0, 4, 8])
@pytest.mark.parametrize("bits", [1, 16])
def test_exchanged_cells_are_the_adjoint(monkeypatch, rng, ones, cut, bits):
    """In groups of any size; of few bits, the lower ones are all that an entry keeps."""
    cells, places = rng.integers(8, size=9), np.sort(rng.integers(8, size=9))
    values, step = (np.ones(1), 0) if ones else (rng.normal(size=9), 1)
    monkeypatch.setattr("crfkit.potentials.rows.BITS", bits)
    entries, bounds = Cells.of(cells, places, values, np.array([0, cut, 8]))
    assert bits == 16 or len(entries.first_cell) > 2
    w, r = rng.normal(size=8), rng.normal(size=8)
    scores, gradient = np.zeros(8), np.zeros(8)
    gather.add_cells(entries, 0, len(entries.first_cell), step, frozen(w), scores)
    for begin, end in zip(bounds, bounds[1:], strict=False):
        gather.add_cells(exchanged(entries), int(begin), int(end), step, frozen(r), gradient)
    matrix = np.zeros((8, 8))
    np.add.at(matrix, (cells, places), values)
    np.testing.assert_allclose(scores, matrix @ w, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(gradient, matrix.T @ r, rtol=1e-13, atol=1e-15)


def test_collecting_the_rows_of_a_table_is_the_adjoint_of_spreading_them(rng):
    *_, mask, ptr, labels = make_problem(rng, True)
    attributes, ptr, labels = map(frozen, (np.array([1, 3, 4], np.uint32), ptr, labels))
    w, table = rng.normal(size=len(labels)), np.zeros((3, 3))
    gather.spread_rows(attributes, ptr, labels, frozen(w), table)
    full = np.zeros_like(mask, float)
    full[mask] = w
    np.testing.assert_array_equal(table, full[attributes])
    r, out = rng.normal(size=(3, 3)), np.zeros(len(labels))
    for begin, end in ((0, 2), (2, 3)):
        gather.collect_rows(attributes, begin, end, ptr, labels, frozen(r), out)
    np.testing.assert_allclose(out @ w, (r * table).sum(), rtol=1e-13)


def column_arrays(columns, ones):
    values, step = (np.ones(1), 0) if ones else (columns.data, 1)
    return (
        np.arange(5, dtype=np.uint32), columns.indptr.astype(np.uint64),
        columns.indices.astype(np.uint32), values, step,
    )  # fmt: skip


@pytest.mark.parametrize("n_labels", [1, 3, 8, 9, 26, 49])
def test_dense_gather_and_scatter_are_matrix_products(rng, n_labels):
    x, table = rng.normal(size=(80, 5)), rng.normal(size=(1, 5, n_labels))
    x[rng.random(x.shape) < 0.3] = 0.0
    out, before = np.ones((75, n_labels)), rng.normal(size=(1, 5, n_labels))
    gather.gather_dense(frozen(x), 1, 76, frozen(table), out)
    np.testing.assert_allclose(out, 1.0 + x[1:76] @ table[0], rtol=1e-12, atol=1e-13)
    residual, back = rng.normal(size=(75, n_labels)), before.copy()
    gather.scatter_dense(frozen(x), 1, 0, 2, frozen(residual), back)
    gather.scatter_dense(frozen(x), 1, 2, 5, frozen(residual), back)
    np.testing.assert_allclose(back[0], before[0] + x[1:76].T @ residual, rtol=1e-12, atol=1e-12)

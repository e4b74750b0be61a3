"""Weights in full rows and single cells, against a plain matrix product."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit._parallel import ThreadMap
from crfkit.data import PackedSequences
from crfkit.kernels.design.gather import spread_rows
from crfkit.potentials import rows as module
from crfkit.potentials.attributes import AttributeWeights, BoundWeights, NewRows, Part
from crfkit.potentials.rows import ActiveRows, PreparedRows
from tests.sampling import examples


def problem(seed, n_columns, ones, complete=False, n_dense=0, n_tokens=23):
    """Random features and weights: of attributes of none, one, some and all columns."""
    rng = np.random.default_rng(seed)
    n_sparse = 9
    x = (rng.random((n_tokens, n_sparse)) < 0.5) * (
        1.0 if ones else rng.normal(size=(n_tokens, n_sparse))
    )
    dense = rng.normal(size=(n_tokens, n_dense)) if n_dense else None
    share = np.linspace(0.0, 1.0, n_sparse)[:, None]
    mask = rng.random((n_sparse + n_dense, n_columns)) < 1.0
    if not complete:
        mask[:n_sparse] = rng.random((n_sparse, n_columns)) <= share
        mask[1] = np.arange(n_columns) == n_columns - 1
    table = mask * rng.normal(size=mask.shape)
    weights = AttributeWeights(
        np.concatenate([[0], np.cumsum(mask.sum(axis=1))]), np.nonzero(mask)[1],
        n_columns=n_columns, n_sparse=n_sparse,
    )  # fmt: skip
    used = x != 0.0
    data = PackedSequences._from_arrays(
        offsets=np.array([0, n_tokens]), indptr=np.concatenate([[0], np.cumsum(used.sum(axis=1))]),
        indices=np.nonzero(used)[1].astype(np.int32), values=None if ones else x[used],
        n_sparse=n_sparse, dense=dense, names=None,
    )  # fmt: skip
    whole = x if dense is None else np.hstack([x, dense])
    cuts = [0, n_tokens // 3, n_tokens // 3, n_tokens]  # a part may be empty
    parts = [Part(data, b, e) for b, e in zip(cuts, cuts[1:], strict=False)]
    return weights, parts, whole, mask, table


problems = st.builds(
    problem, st.integers(0, 99), st.sampled_from([1, 2, 3, 5, 9, 22]), st.booleans(),
    st.booleans(), st.sampled_from([0, 2]), st.sampled_from([0, 1, 23]),
)  # fmt: skip


@examples(12)
@given(problems)
def test_all_ways_to_score_are_one_matrix_product(case):
    weights, parts, x, mask, table = case
    bound = BoundWeights(weights, table[mask])
    with ThreadMap(1) as threads:
        new, prepared = (kind(weights, parts, threads) for kind in (NewRows, PreparedRows))
        active = [ActiveRows(weights, [part], threads) for part in parts]
    for index, part in enumerate(parts):
        expected = (x @ table)[part.begin : part.end]
        outs = [np.zeros_like(expected) for _ in range(3)]
        new.gather(bound, index, outs[0])
        prepared.gather(bound, index, outs[1])
        active[index].gather(bound, 0, outs[2])
        for out in outs:
            np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-13)


@examples(12)
@given(problems, st.integers(1, 3))
def test_the_pullback_is_the_transposed_product_and_the_same_for_any_number_of_threads(case, n):
    weights, parts, x, mask, _ = case
    residual = np.random.default_rng(0).normal(size=(len(x), weights.n_columns))
    residuals = [residual[part.begin : part.end] for part in parts]
    gradients = []
    for n_jobs in (1, n):
        with ThreadMap(n_jobs) as threads:
            prepared = PreparedRows(weights, parts, threads)
            gradients.append(np.ones(weights.n_parameters))
            prepared.pullback(residuals, 0, threads, gradients[-1])
    np.testing.assert_array_equal(*gradients)
    expected = 1.0 + (x.T @ residual)[mask]
    np.testing.assert_allclose(gradients[0], expected, rtol=1e-12, atol=1e-13)


def test_weights_of_all_pairs_are_the_table_itself():
    weights, _, _, mask, table = problem(0, 3, ones=True, complete=True)
    w = table[mask]
    assert np.shares_memory(BoundWeights(weights, w).table, w)


def test_a_table_of_weights_is_not_made_for_small_parts():
    weights, parts, _, mask, table = problem(0, 3, ones=True)
    bound = BoundWeights(weights, table[mask])
    with ThreadMap(1) as threads:
        active = ActiveRows(weights, parts[2:3], threads)
    active.gather(bound, 0, np.zeros((parts[2].end - parts[2].begin, 3)))
    assert bound._table is None


def test_threads_that_need_a_table_at_the_same_time_make_one(monkeypatch):
    """Also where `cached_property` takes no lock, as from Python 3.12 on."""
    weights, _, _, mask, table = problem(0, 3, ones=True)
    bound, asked, made = BoundWeights(weights, table[mask]), [], []
    every = threading.Event()

    def spread(*arrays):
        made.append(0)
        every.wait(10.0)
        spread_rows(*arrays)

    def ask(index):
        asked.append(0)
        if len(asked) == 3:
            every.set()
        return bound.table

    monkeypatch.setattr("crfkit.kernels.design.gather.spread_rows", spread)
    with ThreadMap(3) as threads:
        tables = threads(ask, range(3))
    assert len(made) == 1 and all(found is tables[0] for found in tables)


def test_more_scores_than_can_be_numbered_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MAX_CELLS", 40)
    weights, parts, *_ = problem(0, 3, ones=True)
    with ThreadMap(1) as threads, pytest.raises(ValueError, match="16 tokens has more than 40"):
        PreparedRows(weights, parts, threads)

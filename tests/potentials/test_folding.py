"""Rows that stand for others as well, against the table itself."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit._parallel import ThreadMap
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.kernels.design.folding import TokenRows
from crfkit.potentials import rows as module
from crfkit.potentials.attributes import AttributeWeights, BoundWeights, Part
from crfkit.potentials.rows import PreparedRows, find_folding
from tests.sampling import examples


def implying(seed, n_tokens, n_rows):
    """Random sets of rows, of which many imply others or are the same."""
    rng = np.random.default_rng(seed)
    x = rng.random((n_tokens, n_rows)) < rng.random(n_rows)
    for a in range(1, n_rows):
        kind, b = rng.integers(4), rng.integers(a)
        if kind == 0:
            x[:, b] |= x[:, a]
        elif kind == 1:
            x[:, b] = x[:, a]
    return x


def tokens_of(x):
    """The sets of rows as `find_folding` wants them, in two parts.

    Attributes of even numbers have the rows, those of odd ones none; each token has some of these.
    """
    n_tokens, n_rows = x.shape
    used = np.zeros((n_tokens, 2 * n_rows), bool)
    used[:, ::2], used[:, 1::2] = x, np.random.default_rng(1).random(x.shape) < 0.3
    slots = np.full(2 * n_rows, n_rows, np.uint32)
    slots[::2] = np.arange(n_rows)
    indptr = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    indices = frozen(np.nonzero(used)[1].astype(np.uint32))
    cut = n_tokens // 3
    return [
        TokenRows(frozen(part), indices, frozen(slots))
        for part in (indptr[: cut + 1], indptr[cut:])
    ]


def folded(x, found):
    """The sets that are left."""
    left, n = np.zeros(x.shape), 0
    for part in tokens_of(x):
        entries = found.split(part)
        assert np.all(np.diff(entries.tokens) >= 0)
        np.testing.assert_array_equal(
            np.searchsorted(entries.tokens, np.arange(len(part.indptr))), entries.row_ptr
        )
        left[n + entries.tokens, entries.slots] = 1.0
        n += len(part.indptr) - 1
        every = np.repeat(np.arange(len(part.indptr) - 1), np.diff(part.indptr))
        own = part.indices[part.indptr[0] : part.indptr[-1]]
        np.testing.assert_array_equal(entries.others, own[own % 2 == 1])
        np.testing.assert_array_equal(entries.their_tokens, every[own % 2 == 1])
    return left


def search(x, least_uses=1):
    """What may be folded, if data of any size are searched."""
    with mock.patch.multiple(module, LEAST_ENTRIES=0, LEAST_SAVED=0, LEAST_USES=least_uses):
        return find_folding(tokens_of(x), x.shape[1])


sets = st.builds(
    implying, st.integers(0, 10_000), st.sampled_from([0, 1, 2, 5, 40]), st.integers(1, 12)
)


@examples(30)
@given(sets)
def test_the_rows_that_are_left_of_a_folded_table_have_the_same_sums(x):
    found = search(x)
    if found is None:
        return
    left = folded(x, found)
    rng = np.random.default_rng(0)
    table, residual = rng.normal(size=(x.shape[1], 3)), rng.normal(size=(len(x), 3))
    rows = table.copy()
    found.fold(rows)
    np.testing.assert_allclose(left @ rows, x @ table, rtol=1e-12, atol=1e-13)
    gradient = left.T @ residual
    found.unfold(gradient)
    np.testing.assert_allclose(gradient, x.T @ residual, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(found.left(x.sum(axis=0)), left.sum(axis=0))


def test_what_comes_only_together_is_one_row_where_it_can_be():
    x = np.ones((6, 4), bool)
    x[3:, 1] = False  # row 1 has the others with it, and these are the same
    found = search(x)
    np.testing.assert_array_equal(folded(x, found).sum(axis=1), 1.0)


def test_a_row_is_taken_along_by_the_most_frequent_of_two():
    x = np.zeros((9, 3), bool)
    x[:, 0] = x[:5, 1] = x[4:7, 2] = True  # 1 and 2 imply 0, and meet once
    found = search(x)
    np.testing.assert_array_equal(folded(x, found).sum(axis=0), [4, 5, 3])


def test_links_that_are_seldom_made_use_of_are_left_out():
    x = np.zeros((20, 2), bool)
    x[:, 0] = x[:3, 1] = True
    assert search(x, least_uses=4) is None
    x[:4, 1] = True
    assert search(x, least_uses=4) is not None


def test_little_data_are_not_searched():
    x = np.ones((20, 2), bool)
    assert find_folding(tokens_of(x), 2) is None


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("ones", [True, False])
def test_folded_attributes_score_and_pull_back_as_all_others(monkeypatch, ones, n_jobs):
    monkeypatch.setattr(module, "LEAST_ENTRIES", 0)
    monkeypatch.setattr(module, "LEAST_SAVED", 0)
    rng = np.random.default_rng(5)
    x = implying(1, 60, 12).astype(float) * (1.0 if ones else rng.normal(size=(60, 12)))
    used, n_columns = x != 0.0, 9
    mask = rng.random((12, n_columns)) < np.linspace(0.2, 1.0, 12)[:, None]
    table = mask * rng.normal(size=mask.shape)
    weights = AttributeWeights(
        np.concatenate([[0], np.cumsum(mask.sum(axis=1))]), np.nonzero(mask)[1],
        n_columns=n_columns, n_sparse=12,
    )  # fmt: skip
    data = PackedSequences._from_arrays(
        offsets=np.array([0, 60]), indptr=np.concatenate([[0], np.cumsum(used.sum(axis=1))]),
        indices=np.nonzero(used)[1].astype(np.int32), values=None if ones else x[used],
        n_sparse=12, dense=None, names=None,
    )  # fmt: skip
    parts = [Part(data, begin, begin + 20) for begin in (0, 20, 40)]
    residual = rng.normal(size=(60, n_columns))
    with ThreadMap(n_jobs) as threads:
        prepared = PreparedRows(weights, parts, threads)
        out, gradient = np.zeros((60, n_columns)), np.zeros(weights.n_parameters)
        for index, part in enumerate(parts):
            prepared.gather(BoundWeights(weights, table[mask]), index, out[part.begin : part.end])
        residuals = [residual[part.begin : part.end] for part in parts]
        prepared.pullback(residuals, 0, threads, gradient)
    assert (prepared.folding is not None) == ones
    np.testing.assert_allclose(out, x @ table, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(gradient, (x.T @ residual)[mask], rtol=1e-12, atol=1e-13)

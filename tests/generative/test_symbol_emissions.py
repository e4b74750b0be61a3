"""Emissions of symbols: estimates, scores, draws, weights, tables of files."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from crfkit import PackedSequences
from crfkit.generative.emissions import Categorical, SymbolTables
from crfkit.generative.emissions import symbols as module
from tests.sampling import examples

PAIR = st.tuples(st.sampled_from("abc"), st.integers(0, 2))
N_LABELS = 3
ROWS = st.lists(st.tuples(PAIR, st.integers(0, 2)), min_size=1, max_size=8)


def packed(X, emission):
    return emission.vectorizer().fit_transform(X)


def counted(emission, data, codes, weight=None):
    weight = np.ones(len(codes)) if weight is None else weight
    return emission.count_labels(data, np.asarray(codes, np.int32), weight, N_LABELS)


def score(emission, tables, data, tokens=slice(None)):
    begin, end, _ = tokens.indices(data.n_tokens)
    out = np.zeros((end - begin, N_LABELS))
    emission.scores(tables, data, slice(begin, end), out)
    return out


@examples(12)
@given(
    st.lists(st.tuples(PAIR, st.integers(0, 2)), min_size=1, max_size=8),
    st.sampled_from([0.0, 0.5]),
)
def test_estimates_are_normalized_counts(rows, alpha):
    tokens, codes = zip(*rows, strict=True)
    emission = Categorical(alpha=alpha)
    data = packed([tokens], emission)
    tables = emission.estimate(counted(emission, data, codes), data)
    emission.check_tables(tables, N_LABELS, data.n_features)
    starts = data.names.starts
    expected = np.zeros((data.n_features, N_LABELS))
    for token, code in enumerate(codes):
        expected[data.indices[2 * token : 2 * token + 2], code] += 1.0
    for begin, end in zip(starts[:-1], starts[1:], strict=True):
        expected[begin:end] += alpha
        sums = expected[begin:end].sum(axis=0)
        expected[begin:end] = np.where(
            sums > 0, expected[begin:end] / np.where(sums, sums, 1), 1 / (end - begin)
        )
    found = np.exp(tables.dense())
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-15)
    assert np.allclose(tables.totals(), 1.0)
    with np.errstate(divide="ignore"):
        logs = np.log(expected)[data.indices].reshape(len(codes), 2, -1).sum(axis=1)
    assert np.allclose(score(emission, tables, data), logs)
    with np.errstate(invalid="ignore"):
        linear = emission.linear(tables)
        weighted = np.array([linear.coef[[i]].toarray()[0] for i in data.indices])
        assert np.allclose(weighted.reshape(len(codes), 2, -1).sum(axis=1) + linear.constant, logs)
    if alpha:
        assert emission.log_prior(tables) == pytest.approx(alpha * np.log(expected).sum())


@pytest.fixture
def sample():
    rng = np.random.RandomState(0)
    tokens = [(f"w{a}", f"t{b}") for a, b in rng.randint(0, 6, (60, 2))]
    return tokens, rng.randint(0, N_LABELS, 60).astype(np.int32), rng.rand(60)


def test_counts_add_up_and_may_be_sparse(sample, monkeypatch):
    tokens, codes, weight = sample
    emission = Categorical()
    data = packed([tokens[:20], tokens[20:]], emission)
    (counts,) = counted(emission, data, codes, weight)
    shares = weight[:, None] * np.eye(N_LABELS)[codes]
    monkeypatch.setattr(module, "MANY", 0)
    (sparse,) = counted(emission, data, codes, weight)
    parts = [emission.count(data, part, shares[part])[0] for part in (slice(0, 20), slice(20, 60))]
    assert sp.issparse(sparse) and all(map(sp.issparse, parts))
    monkeypatch.undo()
    parts += [emission.count(data, part, shares[part])[0] for part in (slice(0, 20), slice(20, 60))]
    assert np.allclose(sparse.toarray(), counts) and np.allclose(
        (parts[0] + parts[1]).toarray(), counts
    )
    assert np.allclose(parts[2] + parts[3], counts) and np.allclose(parts[0] + parts[3], counts)
    for item in (counts, sparse):
        again = emission.estimate((item,), data)
        assert np.allclose(again.dense(), emission.estimate((counts,), data).dense())
    columns = np.arange(1, 2 * data.n_features, 2)
    (larger,) = emission.extend((counts,), columns, 2 * data.n_features)
    assert np.array_equal(larger[columns], counts) and larger.sum() == pytest.approx(counts.sum())


def test_draws_have_the_probabilities_of_their_labels(sample):
    tokens, codes, _ = sample
    emission = Categorical(alpha=0.5)
    vectorizer = emission.vectorizer()
    data = vectorizer.fit_transform([tokens])
    tables = emission.estimate(counted(emission, data, codes), data)
    labels = np.repeat(np.arange(N_LABELS, dtype=np.int32), 4000)
    drawn = emission.draw(tables, labels, np.random.RandomState(0), vectorizer)
    again = vectorizer.transform([drawn])
    found = counted(emission, again, labels)[0] / 4000
    assert np.abs(found - np.exp(tables.dense())).max() < 0.03
    rows = emission.draw(tables, labels, np.random.RandomState(0), None)
    assert np.array_equal(rows.indices, again.indices)


@pytest.mark.parametrize("columns", [1, 2])
def test_tables_of_probabilities_set_by_hand(columns):
    rng = np.random.RandomState(0)
    parts = rng.dirichlet(np.ones(4), (columns, N_LABELS)).transpose(0, 2, 1)
    emission = Categorical()
    tables = SymbolTables.from_probabilities(np.concatenate(parts), 4 * np.arange(columns + 1))
    emission.check_tables(tables, N_LABELS, 4 * columns)
    assert np.allclose(np.exp(tables.dense()), np.concatenate(parts))
    damaged = {
        "floor": tables.floor[:, 1:], "starts": tables.starts + 1, "column": tables.column + 1,
        "ptr": tables.ptr[::-1].copy(), "labels": tables.labels + 1, "values": tables.values * 2,
    }  # fmt: skip
    for name, part in damaged.items():
        with pytest.raises(ValueError, match="symbols"):
            emission.check_tables(tables._replace(**{name: part}), N_LABELS, 4 * columns)
    with pytest.raises(ValueError, match="symbols"):
        emission.check_tables(tables, N_LABELS, 4 * columns + 1)


def test_tokens_that_have_no_symbols_are_named():
    emission = Categorical()
    emission.check(PackedSequences(sp.csr_array(np.eye(3)), offsets=[0, 3]))
    two = sp.csr_array([[1, 0], [1, 1.0]])
    with pytest.raises(ValueError, match="sequence 1, position 0: the token has the attributes"):
        emission.check(PackedSequences(two, offsets=[0, 1, 2]))
    for block in ({"sparse": 2.0 * two}, {"dense": np.ones((2, 1))}):
        with pytest.raises(ValueError, match="values other than 1"):
            emission.check(PackedSequences(**block, offsets=[0, 2]))


def test_random_tables_are_distributions():
    emission = Categorical(alpha=0.1)
    data = packed([["a", "b", "c", "a"]], emission)
    tables = emission.initial(data, N_LABELS, np.random.RandomState(0))
    emission.check_tables(tables, N_LABELS, data.n_features)
    assert len(np.unique(tables.dense()[0])) == N_LABELS

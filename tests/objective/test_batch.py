"""The objective as a whole: gradients of parameters, threads, blocks."""

import numpy as np
import pytest
import scipy.sparse as sp

from crfkit import _parallel
from crfkit._parallel import ThreadMap
from crfkit.data import PackedSequences
from crfkit.losses import LogLoss, Loss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.potentials.linear import choose_features
from crfkit.structures import Capability, Chain, SparseChain
from tests.oracles import finite_difference


def make_data(rng, blocks="sparse dense", lengths=(3, 1, 5, 2), n_features=4):
    n_tokens = sum(lengths)
    x = rng.normal(size=(n_tokens, n_features)) * (rng.random((n_tokens, n_features)) < 0.6)
    parts = {
        "sparse": sp.csr_array(x) if "sparse" in blocks else None,
        "dense": rng.normal(size=(n_tokens, 2)) if "dense" in blocks else None,
    }
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
    return PackedSequences(**parts, offsets=offsets), rng.integers(3, size=n_tokens).astype(
        np.int32
    )


SMOOTH = ElasticNet(0.0, 0.3)


def make_objective(data, codes, threads, penalty=SMOOTH, weight=None, **features):
    model = choose_features(data, codes, 3, **features)
    weight = np.ones(len(codes)) if weight is None else weight
    return Objective(model, Chain(), LogLoss(), penalty, data, codes, weight, threads)


@pytest.mark.parametrize("blocks", ["sparse", "dense", "sparse dense"])
@pytest.mark.parametrize("all_states", [False, True])
@pytest.mark.parametrize("boundaries", [False, True])
def test_gradient_equals_finite_differences(rng, blocks, all_states, boundaries):
    data, codes = make_data(rng, blocks)
    with ThreadMap(1) as threads:
        objective = make_objective(
            data, codes, threads, all_states=all_states, all_transitions=all_states,
            boundaries=boundaries, weight=rng.random(len(codes)),
        )  # fmt: skip
        w = rng.normal(size=objective.n_parameters)
        _, gradient = objective.value_and_grad(w)
        numeric = finite_difference(lambda v: objective.value_and_grad(v)[0], w, 1e-3)
    np.testing.assert_allclose(gradient, numeric, rtol=0, atol=1e-9)


def test_value_at_zero_is_the_number_of_tokens_times_log_labels(rng):
    data, codes = make_data(rng)
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads)
        value, _ = objective.value_and_grad(np.zeros(objective.n_parameters))
    np.testing.assert_allclose(value, data.n_tokens * np.log(3), rtol=1e-13)


def test_rows_that_others_take_along_are_pulled_back_block_by_block(rng, monkeypatch):
    monkeypatch.setattr("crfkit.potentials.rows.LEAST_ENTRIES", 1)
    monkeypatch.setattr("crfkit.potentials.rows.LEAST_SAVED", 0)
    size = 300
    word = rng.integers(12, size=size)
    rows = np.concatenate([np.arange(size)] * 2)
    columns = np.concatenate([word, 12 + word // 4])  # the second comes with each of the first
    x = sp.csr_array((np.ones(2 * size), (rows, columns)), shape=(size, 15))
    data, codes = PackedSequences(x, offsets=np.arange(0, size + 1, 5)), rng.integers(3, size=size)
    codes[word == 0] = 0  # so that not all pairs have a weight
    found = []
    for cells, n_jobs in ((10**6, 1), (60, 1), (60, 2), (60, 4)):
        monkeypatch.setattr(_parallel, "CHUNK_CELLS", cells)
        with ThreadMap(n_jobs) as threads:
            objective = make_objective(data, codes.astype(np.int32), threads, all_states=False)
            w = np.random.default_rng(1).normal(size=objective.n_parameters)
            found.append(objective.value_and_grad(w))
            parts = objective._prepared.parts
        assert parts.blocks["state"].rows.folding is not None
        assert len(parts.chunks) == (1 if cells > 60 else 20)
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-14)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=0, atol=1e-12)
    for value, gradient in found[2:]:
        assert value == found[1][0]
        np.testing.assert_array_equal(gradient, found[1][1])


@pytest.mark.parametrize("blocks", ["sparse", "dense", "sparse dense"])
def test_values_are_bit_equal_for_any_number_of_threads(rng, monkeypatch, blocks):
    monkeypatch.setattr(_parallel, "CHUNK_CELLS", 60)
    data, codes = make_data(rng, blocks, lengths=tuple(rng.integers(1, 9, size=200)), n_features=40)
    results = []
    for n_jobs in (1, 2, 4):
        with ThreadMap(n_jobs) as threads:
            objective = make_objective(data, codes, threads, boundaries=True)
            w = np.random.default_rng(1).normal(size=objective.n_parameters)
            results.append(objective.value_and_grad(w))
    for value, gradient in results[1:]:
        assert value == results[0][0]
        np.testing.assert_array_equal(gradient, results[0][1])


def test_small_blocks_give_the_value_of_one_block(rng, monkeypatch):
    data, codes = make_data(rng, lengths=tuple(rng.integers(1, 9, size=60)))
    results = []
    for cells in (1 << 23, 45):
        monkeypatch.setattr(_parallel, "CHUNK_CELLS", 30)
        monkeypatch.setattr(_parallel, "CHUNKS_EACH", 100)
        monkeypatch.setattr(_parallel, "BLOCK_CELLS", cells)
        with ThreadMap(2) as threads:
            objective = make_objective(data, codes, threads, boundaries=True)
            w = np.random.default_rng(1).normal(size=objective.n_parameters)
            results.append((*objective.value_and_grad(w), len(objective._prepared.blocks)))
    assert results[0][2] == 1
    assert results[1][2] > 10
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-13)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-11, atol=1e-12)


def test_chunks_cover_every_sequence_once_and_never_cut_one(rng, monkeypatch):
    monkeypatch.setattr(_parallel, "CHUNK_CELLS", 30)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 40, size=50))]).astype(np.int64)
    made = _parallel.make_chunks(offsets, _parallel.chunk_tokens(3, own_transitions=False))
    pieces = [chunk.offsets for chunk in made]
    np.testing.assert_array_equal(
        np.concatenate([pieces[0], *(p[1:] for p in pieces[1:])]), offsets
    )
    assert [chunk.first for chunk in made] == np.cumsum(
        [0, *(len(p) - 1 for p in pieces[:-1])]
    ).tolist()
    assert _parallel.make_chunks(np.zeros(1, np.int64), 3) == []


def test_only_pairs_that_are_frequent_enough_get_a_weight(rng):
    x = sp.csr_array(np.array([[1.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 5.0]]))
    data = PackedSequences(x, offsets=[0, 2, 4])
    codes = np.array([0, 1, 0, 1], dtype=np.int32)
    model = choose_features(data, codes, 2)
    assert model.state.ptr.tolist() == [0, 2, 4]
    assert list(zip(model.transition_from.tolist(), model.transition_to.tolist(), strict=True)) == [
        (0, 1)
    ]
    model = choose_features(data, codes, 2, min_freq=2)
    assert model.state.ptr.tolist() == [0, 1, 1]
    assert model.state.columns.tolist() == [0]
    assert len(model.transition_from) == 1
    assert len(choose_features(data, codes, 2, min_freq=3).transition_from) == 0
    assert choose_features(data, codes, 2, all_states=True, all_transitions=True).n_parameters == 8


def test_a_loss_without_the_structure_it_needs_is_a_readable_error(rng):
    class Sampled(LogLoss):
        requires = frozenset({Capability.COVARIANCES})

    data, codes = make_data(rng)
    chain, message = SparseChain([], [], 3), "Sampled needs.*covariances.*SparseChain"
    with ThreadMap(1) as threads, pytest.raises(ValueError, match=message):
        model = choose_features(data, codes, 3)
        Objective(model, chain, Sampled(), SMOOTH, data, codes, np.ones(11), threads)


def test_memory_of_a_block_counts_the_pairs_of_its_chunks():
    offsets = np.arange(0, 100_001, 10)
    made = _parallel.make_chunks(offsets, _parallel.chunk_tokens(1000, own_transitions=False))
    assert all(chunk.tokens.stop - chunk.tokens.start >= 1000 for chunk in made[:-1])
    model = choose_features(
        PackedSequences(sp.csr_array((100_000, 1)), offsets=offsets),
        np.zeros(100_000, np.int32), 1000, all_transitions=True,
    )  # fmt: skip
    for block in _parallel.make_blocks(made, [model.cells(None, chunk) for chunk in made], 2):
        tokens = block[-1].tokens.stop - block[0].tokens.start
        assert (tokens + 1000 * len(block)) * 1000 <= _parallel.BLOCK_CELLS


@pytest.mark.parametrize("blocks", ["sparse", "dense", "sparse dense"])
@pytest.mark.parametrize("boundaries", [False, True])
def test_products_with_the_hessian_equal_differences_of_gradients(rng, blocks, boundaries):
    data, codes = make_data(rng, blocks, lengths=(3, 1, 0, 5, 2))
    weight = np.repeat([1.0, 0.5, 2.0, 0.0], [3, 1, 5, 2])
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads, boundaries=boundaries, weight=weight)
        w, direction = rng.normal(size=(2, objective.n_parameters))
        found = objective.hessian_product(w, direction)
        numeric = finite_difference(
            lambda e: objective.value_and_grad(w + e[0] * direction)[1] @ found, np.zeros(1), 1e-3
        )
        dense = np.array([objective.hessian_product(w, unit) for unit in np.eye(len(w))])
    np.testing.assert_allclose(found @ found, numeric[0], rtol=1e-8)
    np.testing.assert_allclose(dense, dense.T, atol=1e-12)
    np.testing.assert_allclose(dense @ direction, found, atol=1e-11)
    assert np.linalg.eigvalsh(dense).min() >= 0.6 - 1e-9  # the penalty is 0.3 w**2


def test_products_with_the_hessian_know_attributes_of_steps(rng):
    data, codes = make_data(rng, lengths=(4, 1, 5))
    steps = sp.csr_array((rng.random((10, 3)) < 0.5).astype(float))
    data = data.with_transitions(PackedSequences(steps, offsets=data.offsets))
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads)
        w, direction = rng.normal(size=(2, objective.n_parameters))
        found = objective.hessian_product(w, direction)
        numeric = finite_difference(
            lambda e: objective.value_and_grad(w + e[0] * direction)[1] @ found, np.zeros(1), 1e-3
        )
    np.testing.assert_allclose(found @ found, numeric[0], rtol=1e-8)


def test_products_with_the_hessian_refuse_weights_that_differ_in_a_sequence(rng):
    data, codes = make_data(rng)
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads, weight=rng.random(len(codes)))
        w = np.zeros(objective.n_parameters)
        with pytest.raises(ValueError, match="same weight for all tokens"):
            objective.hessian_product(w, w)


def test_the_estimated_diagonal_is_exact_where_tokens_are_alone(rng):
    data, codes = make_data(rng, lengths=(1,) * 12)
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads, weight=rng.random(12))
        w = rng.normal(size=objective.n_parameters)
        found = objective.hessian_diagonal(w)
        dense = np.array([objective.hessian_product(w, unit) for unit in np.eye(len(w))])
    np.testing.assert_allclose(found, np.diag(dense), rtol=1e-10)


def test_the_estimated_diagonal_is_positive_for_any_weights(rng):
    data, codes = make_data(rng)
    with ThreadMap(1) as threads:
        objective = make_objective(
            data, codes, threads, ElasticNet(1.0, 0.0), weight=rng.random(len(codes))
        )
        found = objective.hessian_diagonal(rng.normal(size=objective.n_parameters))
    assert (found >= 0.0).all()
    assert found.sum() > 0.0


def test_a_loss_without_second_derivatives_is_a_readable_error(rng):
    class FirstOnly(Loss):
        value_and_grad = LogLoss.value_and_grad

    data, codes = make_data(rng)
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads)
        objective.loss = FirstOnly()
        with pytest.raises(ValueError, match="FirstOnly has no second derivatives"):
            objective.hessian_diagonal(np.zeros(objective.n_parameters))


def test_objectives_with_other_penalties_share_what_was_prepared(rng, monkeypatch):
    data, codes = make_data(rng)
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads)
        prepared, prepare = [], objective.model.prepare

        def counted(part, *args):
            prepared.append(part)
            return prepare(part, *args)

        monkeypatch.setattr(objective.model, "prepare", counted)
        for c2 in (0.1, 1.0, 10.0):
            other = objective.with_penalty(ElasticNet(0.0, c2))
            other.hessian_diagonal(rng.normal(size=objective.n_parameters))
    assert len(prepared) == 2  # the values and their squares

"""Updates of SAG: compiled ones of chains are those on the parts of any structure."""

import numpy as np
import pytest

from crfkit._parallel import ThreadMap
from crfkit.data import PackedSequences
from crfkit.objective.penalties import ElasticNet
from crfkit.oracles.batches import ChainBatchOracle
from crfkit.solvers.stochastic.general import GeneralBatchOracle
from crfkit.solvers.stochastic.lipschitz import Preconditioner
from crfkit.solvers.stochastic.sag import SagState
from tests.objective.test_batch import make_data, make_objective
from tests.solvers.test_dual_moves import LENGTHS, make_wide, wide_objective

FORMS = ["sparse", "dense", "both"]


def make_form(rng, form, n_labels, lengths):
    """Sparse attributes of few and of many labels, dense features of which some are 0, or both."""
    data, codes = make_wide(rng, n_labels, lengths, values=form != "sparse")
    if form == "sparse":
        return data, codes
    dense = rng.normal(size=(data.n_tokens, 5)) * (rng.random((data.n_tokens, 5)) < 0.6)
    dense[:, 0] = 1.0
    if form == "dense":
        return PackedSequences.from_flat(dense, lengths), codes
    return PackedSequences(data.to_csr(), dense=dense, offsets=data.offsets), codes


def pair(objective, tokens, start):
    """The compiled and the general form."""
    fast = SagState(objective.minibatches(tokens, 0), start)
    assert type(fast.oracle) is ChainBatchOracle
    batches = objective.minibatches(tokens, 0)
    return fast, SagState(batches, start, GeneralBatchOracle(batches))


def assert_same(fast, plain):
    np.testing.assert_allclose(fast.weights(), plain.weights(), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(fast.direction, plain.direction, rtol=1e-8, atol=1e-9)
    for name in ("estimates", "wait", "pause"):
        found, expected = (getattr(form.smoothness, name) for form in (fast, plain))
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    for name in ("lower_bound", "expected_gap", "gradient_norm"):
        found, expected = getattr(fast, name)(), getattr(plain, name)()
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("n_labels", [2, 9, 26])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_the_steps_of_a_chain_are_those_of_any_structure(rng, n_labels, form, l2):
    lengths = LENGTHS * 3
    data, codes = make_form(rng, form, n_labels, lengths)
    weight = np.repeat(rng.random(len(lengths)), lengths)
    with ThreadMap(1) as threads:
        objective = wide_objective(data, codes, n_labels, threads, weight, ElasticNet(0.0, l2))
        fast, plain = pair(objective, 7, np.zeros(objective.n_parameters))
        for seed in range(4):
            for averages in (fast, plain):
                averages.run_pass(np.random.RandomState(seed), 1)
            if seed % 2:
                assert_same(fast, plain)
        for averages in (fast, plain):
            averages.smoothness.raise_all()
            averages.refresh()
        assert_same(fast, plain)
        w = rng.normal(size=objective.n_parameters)
        np.testing.assert_allclose(fast.value(w), plain.value(w), rtol=1e-11)
        assert fast.batches.n_computed == plain.batches.n_computed


@pytest.mark.parametrize("form", FORMS)
def test_a_start_of_any_size_is_looked_at_first(rng, form):
    data, codes = make_form(rng, form, 9, LENGTHS)
    with ThreadMap(1) as threads:
        objective = wide_objective(data, codes, 9, threads)
        start = 1e3 * rng.normal(size=objective.n_parameters)
        before = start.copy()
        fast, plain = pair(objective, 7, start)
        np.testing.assert_array_equal(fast.weights(), before)
        np.testing.assert_allclose(fast.direction, plain.direction, atol=1e-9)
        np.testing.assert_allclose(fast.lower_bound(), plain.lower_bound(), rtol=1e-9)
        fast.run_pass(np.random.RandomState(0), 1)
        assert np.isfinite(fast.weights()).all()
        np.testing.assert_array_equal(start, before)


@pytest.mark.parametrize("lengths", [(), (0, 0), (1,), (0, 3, 0)])
@pytest.mark.parametrize("blocks", ["sparse", "dense", "sparse dense"])
def test_little_data_has_steps_too(rng, lengths, blocks):
    with ThreadMap(1) as threads:
        objective = make_objective(*make_data(rng, blocks, lengths), threads)
        fast, plain = pair(objective, 6, np.zeros(objective.n_parameters))
        for averages in (fast, plain):
            averages.run_pass(np.random.RandomState(0), 1)
        assert_same(fast, plain)


def test_one_label_has_nothing_to_move(rng):
    data, codes = make_form(rng, "both", 1, LENGTHS)
    with ThreadMap(1) as threads:
        objective = wide_objective(data, codes, 1, threads)
        fast = SagState(objective.minibatches(6, 0), np.zeros(objective.n_parameters))
        fast.run_pass(np.random.RandomState(0), 1)
        np.testing.assert_allclose(fast.weights(), 0.0, atol=1e-12)


def test_a_long_search_writes_its_weights_anew(rng):
    """The scale of the weights would underflow."""
    data, codes = make_form(rng, "sparse", 5, LENGTHS)
    with ThreadMap(1) as threads:
        objective = wide_objective(data, codes, 5, threads, penalty=ElasticNet(0.0, 1e3))
        fast, plain = pair(objective, 6, np.zeros(objective.n_parameters))
        for averages in (fast, plain):
            for seed in range(12):
                averages.run_pass(np.random.RandomState(seed), 1)
        assert_same(fast, plain)


def test_values_and_steps_are_bit_equal_for_any_number_of_threads(rng):
    data, codes = make_form(rng, "both", 11, tuple(rng.integers(0, 9, size=60).tolist()))
    found = []
    for n_jobs in (1, 2, 4):
        with ThreadMap(n_jobs) as threads:
            objective = wide_objective(data, codes, 11, threads)
            averages = SagState(objective.minibatches(9, 0), np.zeros(objective.n_parameters))
            for seed in range(3):
                averages.run_pass(np.random.RandomState(seed), 1 + seed)
            w = averages.weights()
            found.append((w, averages.value(w), averages.lower_bound()))
    assert found[0][0].any()
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("blocks", ["", "sparse", "dense", "sparse dense"])
def test_boundary_weights_and_attributes_of_transitions_are_compiled(rng, blocks):
    data, codes = make_data(rng, "sparse dense", LENGTHS)
    if blocks:
        data = data.with_transitions(make_data(rng, blocks, LENGTHS)[0])
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads, boundaries=True)
        fast, plain = pair(objective, 6, np.zeros(objective.n_parameters))
        for averages in (fast, plain):
            for together in (1, 3):
                averages.run_pass(np.random.RandomState(together), together)
        assert_same(fast, plain)


def test_tokens_of_different_weights_take_the_general_way(rng):
    with ThreadMap(1) as threads:
        data, codes = make_data(rng, "sparse dense", LENGTHS)
        uneven = make_objective(data, codes, threads, weight=rng.random(len(codes)))
        state = SagState(uneven.minibatches(6, 0), np.zeros(uneven.n_parameters))
        assert type(state.oracle) is GeneralBatchOracle


def test_the_metric_is_symmetric_and_shortens_no_step(rng):
    data, codes = make_form(rng, "both", 9, LENGTHS * 4)
    with ThreadMap(1) as threads:
        objective = wide_objective(data, codes, 9, threads)
        metric = Preconditioner(objective.minibatches(9, 0))
    size = metric.always.stop - metric.always.start
    matrix = np.array([metric(row) for row in np.eye(size)])
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    lengths = np.linalg.eigvalsh(metric.features)
    assert lengths.min() >= 1.0 - 1e-12
    assert np.linalg.eigvalsh(matrix).min() > 0.0
    assert metric.most >= lengths.max()


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_metric_is_good_for_features_of_any_size(rng, scale):
    data, codes = make_form(rng, "dense", 3, LENGTHS)
    data = PackedSequences.from_flat(scale * data.dense, LENGTHS)
    with ThreadMap(1) as threads:
        metric = Preconditioner(wide_objective(data, codes, 3, threads).minibatches(9, 0))
    assert np.linalg.eigvalsh(metric.features).min() >= 1.0 - 1e-12
    assert metric.transitions.min() >= 1.0
    assert metric.most <= 101.0


def test_without_dense_features_all_steps_are_alike(rng):
    with ThreadMap(1) as threads:
        metric = Preconditioner(
            make_objective(*make_data(rng, "sparse"), threads).minibatches(9, 0)
        )
    assert (metric.most, metric.always.stop - metric.always.start) == (1.0, 0)
    assert (metric.transitions == 1.0).all()

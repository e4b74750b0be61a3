"""Updates of the dual: compiled ones of chains are those on the parts of any structure."""

import numpy as np
import pytest
import scipy.sparse as sp

from crfkit._parallel import ThreadMap
from crfkit.data import PackedSequences
from crfkit.objective.batch import Objective
from crfkit.oracles.batches import ChainBatchOracle
from crfkit.potentials.linear import choose_features
from crfkit.solvers.stochastic.dual_store import InFile, InMemory
from crfkit.solvers.stochastic.exponentiated_gradient import GOLD, DualState
from crfkit.solvers.stochastic.general import GeneralBatchOracle
from crfkit.structures import SparseChain
from tests.objective.test_batch import make_data, make_objective

LENGTHS = (3, 0, 1, 5, 2, 0, 6, 0, 9, 1)


def make_wide(rng, n_labels, lengths, values):
    """Data with so many labels, and attributes of few and of many of them."""
    n_tokens = sum(lengths)
    x = np.zeros((n_tokens, 14 + n_tokens))
    tokens = np.arange(n_tokens)
    x[:, 0] = 1.0
    x[tokens, 1 + tokens % 2] = 1.0
    x[tokens, 3 + rng.integers(11, size=n_tokens)] = 1.0
    x[tokens, 14 + tokens] = rng.random(n_tokens) < 0.8
    if values:
        x *= rng.normal(size=x.shape)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    data = PackedSequences(sp.csr_array(x), offsets=offsets)
    return data, rng.integers(n_labels, size=n_tokens).astype(np.int32)


def wide_objective(data, codes, n_labels, threads, weight=None, penalty=None):
    base = make_objective(*make_data(np.random.default_rng(0), "sparse"), threads)
    model = choose_features(data, codes, n_labels)
    weight = np.ones(len(codes)) if weight is None else weight
    return Objective(
        model, model.structure, base.loss, penalty or base.penalty, data, codes, weight, threads
    )


def pair(batches, own_w):
    """The compiled form, whose distributions are in a file, and the general one."""
    fast, plain = DualState(batches, own_w), DualState(batches, own_w, GeneralBatchOracle(batches))
    assert type(fast.oracle) is ChainBatchOracle and type(plain.store) is InMemory
    fast.store = InFile(fast.oracle, GOLD)
    return fast, plain


def block(state, index):
    """The potentials and the residuals of a batch: labels, then transitions that can be used."""
    blocks = []

    def look(order, place, *vectors):
        for at in (place.unary, place.pair):
            blocks.extend(vector[at[index] : at[index + 1]].astype(float) for vector in vectors)

    state.store.work_on(np.array([index]), look)
    return blocks


def assert_same_distributions(fast, plain, **tolerance):
    for index in range(len(fast.batches)):
        for found, expected in zip(block(fast, index), block(plain, index), strict=True):
            if len(found) == len(expected):  # else one has a list in place of a table
                np.testing.assert_allclose(found, expected, **tolerance)


def assert_same_steps(objective, rng, threshold=0.0, tokens=6, together=1):
    """Some updates of all batches."""
    batches = objective.minibatches(tokens, 0)
    fast, plain = pair(batches, threshold > 0.0)
    for steps in (fast, plain):
        steps.rates[:] = 0.5
    for _ in range(3):
        order = rng.permutation(len(batches))
        for steps in (fast, plain):
            steps.advance(order, together, 0.05, threshold)
        tolerance = {"rtol": 1e-8, "atol": 1e-9}
        np.testing.assert_allclose(fast.oracle.unpack(fast.w), plain.w, **tolerance)
        np.testing.assert_allclose(fast.oracle.unpack(fast.dual), plain.dual, **tolerance)
        np.testing.assert_allclose(fast.rates, plain.rates, rtol=1e-7)
        np.testing.assert_allclose(fast.entropies, plain.entropies, atol=1e-8)
        np.testing.assert_allclose(fast.gaps, plain.gaps, rtol=1e-7, atol=1e-9)
        assert np.count_nonzero(fast.w) <= objective.n_parameters  # none where no weight is
    assert_same_distributions(fast, plain, rtol=1e-8, atol=1e-8)
    w = rng.normal(size=objective.n_parameters)
    np.testing.assert_allclose(fast.value(w), plain.value(w), rtol=1e-11)


@pytest.mark.parametrize("n_labels", [2, 7, 8, 9, 22, 26, 49])
@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("threshold", [0.0, 0.3])
def test_the_steps_of_a_chain_are_those_of_any_structure(rng, n_labels, values, threshold):
    lengths = LENGTHS * 3
    data, codes = make_wide(rng, n_labels, lengths, values)
    weight = np.repeat(rng.random(len(lengths)), lengths)
    with ThreadMap(1) as threads:
        objective = wide_objective(data, codes, n_labels, threads, weight)
        assert_same_steps(objective, rng, threshold)


@pytest.mark.parametrize("n_labels", [3, 11])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_distributions_become_those_of_parameters_of_any_size(rng, n_labels, scale):
    """Scores spread over thousands of nats are summed by their logarithms."""
    data, codes = make_wide(rng, n_labels, LENGTHS * 3, values=False)
    with ThreadMap(1) as threads:
        objective = wide_objective(data, codes, n_labels, threads)
        w = scale * rng.normal(size=objective.n_parameters)
        fast, plain = pair(objective.minibatches(6, 0), True)
        for steps in (fast, plain):
            steps.adopt(w, 0.1, 0.2)
        np.testing.assert_allclose(fast.oracle.unpack(fast.w), plain.w, atol=1e-9)
        np.testing.assert_allclose(fast.entropies, plain.entropies, atol=1e-10 * scale)
        assert_same_distributions(fast, plain, rtol=0.0, atol=1e-7 * scale)
        np.testing.assert_allclose(fast.value(w), plain.value(w), rtol=1e-11)
        fast.reset()
        assert not (fast.w.any() or fast.dual.any() or fast.entropies.any())


def test_one_label_has_nothing_to_move(rng):
    data, codes = make_wide(rng, 1, LENGTHS, values=True)
    with ThreadMap(1) as threads:
        objective = wide_objective(data, codes, 1, threads)
        steps = DualState(objective.minibatches(6, 0), own_w=False)
        steps.rates[:] = 0.5
        steps.advance(np.arange(len(steps.rates)), 1, 0.05, 0.0)
        np.testing.assert_allclose(steps.w, 0.0, atol=1e-13)
        np.testing.assert_allclose(steps.entropies, 0.0, atol=1e-12)
        w = rng.normal(size=objective.n_parameters)
        expected = objective.value_and_grad(w)[0]
        np.testing.assert_allclose(steps.value(w), expected, rtol=1e-12)


@pytest.mark.parametrize("lengths", [(), (0, 0), (1,), (0, 3, 0)])
def test_little_data_has_steps_too(rng, lengths):
    with ThreadMap(1) as threads:
        assert_same_steps(make_objective(*make_data(rng, "sparse", lengths), threads), rng)


@pytest.mark.parametrize("together", [1, 3])
def test_updates_are_bit_equal_for_any_number_of_threads(rng, together):
    data, codes = make_wide(rng, 11, tuple(rng.integers(0, 9, size=80).tolist()), values=True)
    found = []
    for n_jobs in (1, 2, 4):
        with ThreadMap(n_jobs) as threads:
            batches = wide_objective(data, codes, 11, threads).minibatches(30, 0)
            steps = DualState(batches, own_w=True)
            steps.rates[:] = 0.5
            for seed in range(5):
                order = np.random.RandomState(seed).permutation(len(batches))
                steps.advance(order, together, 0.01, 0.2)
            value = steps.value(np.ones(batches.n_parameters))
            found.append((steps.w, steps.dual, steps.rates, steps.entropies, value))
    assert found[0][0].any()
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_step_that_lowers_the_dual_is_undone(rng):
    data, codes = make_wide(rng, 9, LENGTHS * 2, values=False)
    with ThreadMap(1) as threads:
        batches = wide_objective(data, codes, 9, threads).minibatches(20, 0)
        steps = DualState(batches, own_w=False)
        steps.rates[:] = 0.5
        steps.advance(np.arange(len(batches)), 1, 0.05, 0.0)
        before, rate = block(steps, 0), steps.rates[0]
        w, entropy = steps.w.copy(), steps.entropies[0]
        steps.w[:] *= -40.0
        wrong = steps.w.copy()
        steps.advance(np.array([0]), 1, 0.05, 0.0)
        assert steps.rates[0] <= 0.5 * rate
        np.testing.assert_allclose(steps.w, wrong, atol=1e-12 * np.abs(wrong).max())
        np.testing.assert_array_equal(block(steps, 0)[0], before[0])
        assert steps.entropies[0] == entropy
        steps.w[:] = w


def test_scores_that_overflow_move_nothing(rng):
    data, codes = make_wide(rng, 9, LENGTHS, values=False)
    with ThreadMap(1) as threads:
        batches = wide_objective(data, codes, 9, threads).minibatches(20, 0)
        steps = DualState(batches, own_w=False)
        steps.rates[:] = 0.5
        steps.w[batches.n_parameters // 2 :: 7] = np.nan
        before = steps.w.copy()
        steps.advance(np.arange(len(batches)), 1, 0.05, 0.0)
        np.testing.assert_array_equal(steps.w, before)
        np.testing.assert_array_equal(steps.entropies, 0.0)
        assert (steps.rates < 0.5).any()


FORMS = {"dense": ("sparse dense", {}), "boundary weights": ("sparse", {"boundaries": True})}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("together", [1, 4])
def test_all_chains_are_compiled(rng, form, together):
    blocks, options = FORMS[form]
    with ThreadMap(1) as threads:
        objective = make_objective(*make_data(rng, blocks, LENGTHS), threads, **options)
        assert_same_steps(objective, rng, 0.2, together=together)


@pytest.mark.parametrize("blocks", ["sparse", "dense", "sparse dense"])
def test_attributes_of_transitions_are_compiled(rng, blocks):
    data, codes = make_data(rng, "sparse", LENGTHS)
    data = data.with_transitions(make_data(rng, blocks, LENGTHS)[0])
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads, boundaries=True)
        assert_same_steps(objective, rng, 0.2)


def test_many_labels_of_which_few_follow_one_another_are_compiled(rng):
    data, codes = make_wide(rng, 55, LENGTHS, values=False)
    with ThreadMap(1) as threads:
        objective = wide_objective(data, codes, 55, threads)
        assert type(objective.structure) is SparseChain
        assert_same_steps(objective, rng)

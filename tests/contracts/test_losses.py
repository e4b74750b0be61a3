"""Every loss on every structure: gradients, weights."""

import numpy as np
import pytest

from crfkit._types import Scores
from crfkit.losses import LOSSES
from crfkit.structures import Chain, SparseChain
from tests.oracles import finite_difference, random_scores, thinned

STRUCTURES = {"chain": Chain(), "sparse chain": SparseChain([0, 0, 1, 2], [0, 2, 1, 0], 3)}


@pytest.fixture(params=sorted(LOSSES))
def loss(request):
    return LOSSES[request.param]()


@pytest.fixture(params=sorted(STRUCTURES))
def structure(request):
    return STRUCTURES[request.param]


def problem(structure, seed, own_steps=False):
    scores = random_scores(seed, [3, 1, 4], 3, own_steps=own_steps)
    if isinstance(structure, SparseChain):
        scores = thinned(scores, structure)
    labels = np.random.default_rng(seed).integers(3, size=8).astype(np.int32)
    return scores, labels


def evaluate(loss, structure, scores, labels, weight):
    out = structure.empty(scores)
    return loss.value_and_grad(structure, scores, labels, weight, out), out


WEIGHTS = {
    "ones": np.ones(8),
    "per sequence": np.repeat([0.5, 2.0, 3.0], [3, 1, 4]),
    "per token": np.array([1.0, 2.0, 0.5, 3.0, 0.0, 1.0, 1.0, 2.5]),
    "zero for one sequence": np.repeat([1.0, 0.0, 1.0], [3, 1, 4]),
}


@pytest.mark.parametrize("own_steps", [False, True])
@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=list(WEIGHTS))
def test_gradient_equals_finite_differences(loss, structure, own_steps, weight):
    scores, labels = problem(structure, 0, own_steps)
    _, out = evaluate(loss, structure, scores, labels, weight)

    def at_unary(unary):
        return evaluate(loss, structure, scores._replace(unary=unary), labels, weight)[0]

    def at_pair(pair):
        return evaluate(loss, structure, scores._replace(pair=pair), labels, weight)[0]

    numeric = finite_difference(at_unary, scores.unary, 1e-3)
    np.testing.assert_allclose(out.unary, numeric, rtol=0, atol=1e-10)
    numeric = finite_difference(at_pair, scores.pair, 1e-3)
    np.testing.assert_allclose(out.pair, numeric, rtol=0, atol=1e-10)


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=list(WEIGHTS))
def test_weights_multiply(loss, structure, weight):
    scores, labels = problem(structure, 1)
    value, out = evaluate(loss, structure, scores, labels, weight)
    doubled, out2 = evaluate(loss, structure, scores, labels, 2 * weight)
    np.testing.assert_allclose(doubled, 2 * value, rtol=1e-12)
    np.testing.assert_allclose(out2.unary, 2 * out.unary, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(out2.pair, 2 * out.pair, rtol=1e-9, atol=1e-13)


def test_a_sequence_weight_is_a_repetition(loss, structure):
    scores, labels = problem(structure, 2)
    twice = Scores(
        np.concatenate([scores.unary[:3], scores.unary]),
        scores.pair,
        np.concatenate([[0], scores.offsets + 3]),
    )
    weight = np.repeat([2.0, 1.0, 1.0], [3, 1, 4])
    weighted, _ = evaluate(loss, structure, scores, labels, weight)
    again = np.concatenate([labels[:3], labels])
    repeated, _ = evaluate(loss, structure, twice, again, np.ones(11))
    np.testing.assert_allclose(weighted, repeated, rtol=1e-12)


def test_the_value_is_not_negative_and_zero_for_certain_labels(loss, structure):
    scores, labels = problem(structure, 3)
    for weight in WEIGHTS.values():
        assert evaluate(loss, structure, scores, labels, weight)[0] >= 0.0
    scores.unary[np.arange(8), labels] += 1e3
    assert evaluate(loss, structure, scores, labels, WEIGHTS["per token"])[0] < 1e-9

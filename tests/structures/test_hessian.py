"""Derivatives of expected counts along a direction: differences, covariances, extremes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from crfkit.kernels.chain.sum import UNDERFLOW
from crfkit.structures import Chain, ChainPotentials, NoPathError, chain
from tests.oracles import add_path, chain_paths, chain_scores, random_scores
from tests.sampling import examples


def direction(scores, seed=0):
    rng = np.random.default_rng(seed)
    return scores._replace(
        unary=rng.normal(size=scores.unary.shape), pair=rng.normal(size=scores.pair.shape)
    )


def product(scores, tangent, weight=None):
    weight = np.ones(len(scores.offsets) - 1) if weight is None else weight
    out = Chain().zeros(scores)
    Chain().hessian_product(scores, tangent, weight, out)
    return out


def enumerated_product(scores, tangent, weight):
    """Covariances of all parts with the tangent of the path, path by path."""
    out = Chain().zeros(scores)
    for s in range(len(weight)):
        paths = list(chain_paths(scores, s))
        share = np.exp([score - logsumexp([x for _, x in paths]) for _, score in paths])
        moves = np.array([move for _, move in chain_paths(tangent, s)])
        for (path, _), p, move in zip(paths, share, moves, strict=True):
            add_path(scores, s, path, weight[s] * p * (move - share @ moves), out)
    return out


@examples(12)
@given(chain_scores(scales=(0.1, 1.0, 30.0, 1000.0)), st.integers(0, 100))
def test_products_are_covariances(scores, seed):
    tangent = direction(scores, seed)
    weight = np.random.default_rng(seed).random(len(scores.offsets) - 1)
    found, expected = product(scores, tangent, weight), enumerated_product(scores, tangent, weight)
    np.testing.assert_allclose(found.unary, expected.unary, atol=1e-11)
    np.testing.assert_allclose(found.pair, expected.pair, atol=1e-11)


@pytest.mark.parametrize("forbidden", [0.0, 0.3])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_both_domains_agree(monkeypatch, forbidden, scale):
    scores = random_scores(3, [30, 1, 0, 12], 5, scale=scale, forbidden=forbidden)
    tangent, weight = direction(scores), np.array([1.0, 2.0, 3.0, 0.5])
    found = product(scores, tangent, weight)

    def give_up(factors, index, offsets, weight, workspace, out):
        out.status[...] = UNDERFLOW

    monkeypatch.setattr(chain, "chain_hessian", give_up)
    expected = product(scores, tangent, weight)
    np.testing.assert_allclose(found.unary, expected.unary, atol=1e-11)
    np.testing.assert_allclose(found.pair, expected.pair, atol=1e-11)


def test_products_of_long_sequences_keep_their_digits():
    """The tangent of a path grows with its length; covariances with it are local."""
    scores = random_scores(0, [20_000], 3)
    tangent = direction(scores)._replace(pair=np.zeros((1, 3, 3)))
    shifted = tangent._replace(unary=tangent.unary + 1000.0)
    found, moved = product(scores, tangent), product(scores, shifted)
    np.testing.assert_allclose(found.unary.sum(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(moved.unary, found.unary, atol=1e-10)
    short = ChainPotentials.of(scores.unary[:60], scores.pair, np.array([0, 60]))
    part = product(short, tangent._replace(unary=tangent.unary[:60], offsets=short.offsets))
    np.testing.assert_allclose(part.unary[:20], found.unary[:20], atol=1e-9)


def test_one_label_and_no_data_have_no_curvature():
    scores = random_scores(1, [4, 0, 1], 1)
    assert not product(scores, direction(scores)).unary.any()
    empty = ChainPotentials.of(np.zeros((0, 2)), np.zeros((1, 2, 2)), np.zeros(1, np.int64))
    assert product(empty, empty).unary.shape == (0, 2)


def test_a_sequence_without_a_path_is_an_error():
    scores = random_scores(1, [3, 4], 2)
    scores.unary[5] = -np.inf
    with pytest.raises(NoPathError) as caught:
        product(scores, direction(scores))
    assert (caught.value.sequence, caught.value.position) == (1, 2)

"""Marginals of labels and steps: consistent, and of the distribution of the largest entropy."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit.solvers.historical.margin_dual import ChainMarginals
from crfkit.structures import ChainPotentials
from tests.oracles import chain_paths


def moved(seed, length, n_labels, moves=6):
    """Marginals after some moves of mass between labelings."""
    random = np.random.RandomState(seed)
    marginals = ChainMarginals(random.randint(n_labels, size=length), n_labels)
    for _ in range(moves):
        source = marginals.draw(random)
        target = random.randint(n_labels, size=length).astype(np.int32)
        share = random.choice([0.3, 0.9, 1.0])
        marginals.shift(target, source, share * marginals.movable(target, source))
    return marginals


def labelings(length, n_labels):
    return [np.array(path, np.int32) for path in product(range(n_labels), repeat=length)]


sizes = {"seed": st.integers(0, 10_000), "length": st.integers(1, 4), "n_labels": st.integers(1, 3)}


@given(**sizes)
def test_marginals_stay_consistent_and_never_fall_below_0(seed, length, n_labels):
    marginals = moved(seed, length, n_labels)
    assert (marginals.node >= 0.0).all()
    assert (marginals.edge >= 0.0).all()
    np.testing.assert_allclose(marginals.node.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(marginals.edge.sum(axis=2), marginals.node[:-1], atol=1e-12)
    np.testing.assert_allclose(marginals.edge.sum(axis=1), marginals.node[1:], atol=1e-12)


@given(**sizes)
def test_probabilities_of_all_labelings_are_a_distribution_with_these_marginals(
    seed, length, n_labels
):
    marginals = moved(seed, length, n_labels)
    node, edge = np.zeros_like(marginals.node), np.zeros_like(marginals.edge)
    for labels in labelings(length, n_labels):
        mass = marginals.probability(labels)
        node[np.arange(length), labels] += mass
        edge[np.arange(length - 1), labels[:-1], labels[1:]] += mass
    np.testing.assert_allclose(node, marginals.node, atol=1e-10)
    np.testing.assert_allclose(edge, marginals.edge, atol=1e-10)


@given(**sizes)
def test_no_labeling_gives_away_more_than_it_may(seed, length, n_labels):
    marginals = moved(seed, length, n_labels)
    target = np.zeros(length, np.int32)
    for source in labelings(length, n_labels):
        most = marginals.movable(target, source)
        assert marginals.probability(source) <= most + 1e-12
        marginals.shift(target, source, most)
        assert marginals.node.min() >= 0.0
        np.testing.assert_allclose(marginals.node.sum(axis=1), 1.0, atol=1e-12)


def test_where_labelings_agree_their_mass_does_not_limit_a_move():
    marginals = ChainMarginals(np.array([0, 0, 0]), 2)
    marginals.shift(np.array([0, 1, 1]), np.array([0, 0, 0]), 0.25)
    assert marginals.movable(np.array([0, 0, 0]), np.array([0, 1, 1])) == 0.25
    assert marginals.movable(np.array([0, 1, 0]), np.array([0, 0, 0])) == 0.75
    assert marginals.movable(np.array([1, 0, 0]), np.array([0, 1, 1])) == 0.25
    assert marginals.movable(np.array([0, 1, 1]), np.array([0, 1, 1])) == 1.0


@given(**sizes, tables=st.booleans())
def test_the_support_is_that_of_the_distribution(seed, length, n_labels, tables):
    marginals = moved(seed, length, n_labels)
    rng = np.random.default_rng(seed)
    count = length if tables else 1
    scores = ChainPotentials.of(
        rng.normal(size=(length, n_labels)), rng.normal(size=(count, n_labels, n_labels)),
        np.array([0, length]),
    )  # fmt: skip
    paths = list(chain_paths(scores, 0))
    mass = np.array([marginals.probability(np.array(path)) for path, _ in paths])
    values = np.array([score for _, score in paths])
    left = np.array([score for _, score in chain_paths(marginals.supported(scores), 0)])
    np.testing.assert_array_equal(np.isfinite(left), mass > 0.0)
    np.testing.assert_allclose(left[mass > 0.0], values[mass > 0.0], atol=1e-12)


def test_labelings_are_drawn_as_often_as_they_should():
    marginals, random = moved(3, 3, 2), np.random.RandomState(0)
    counts = {}
    for _ in range(4000):
        path = tuple(marginals.draw(random).tolist())
        counts[path] = counts.get(path, 0) + 1
    for labels in labelings(3, 2):
        share = counts.get(tuple(labels.tolist()), 0) / 4000
        assert share == pytest.approx(marginals.probability(labels), abs=0.03)


def test_a_sequence_of_no_tokens_has_one_labeling():
    marginals = ChainMarginals(np.zeros(0, np.int32), 3)
    assert marginals.probability(np.zeros(0, np.int32)) == 1.0
    assert marginals.draw(np.random.RandomState(0)).shape == (0,)

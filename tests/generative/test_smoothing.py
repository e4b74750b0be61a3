"""Smoothed transitions against values that were worked out by hand."""

import numpy as np
import pytest

from crfkit.generative.base import StepCounts
from crfkit.generative.counting import count_transitions
from crfkit.generative.model import HiddenMarkovModel
from crfkit.generative.smoothing import (
    SMOOTHINGS,
    Additive,
    DeletedInterpolation,
    WittenBell,
    find_smoothing,
)


class FirstOrder:
    order, n_labels = 1, 2


class SecondOrder:
    order, n_labels = 2, 2


def counted(*sequences, model=FirstOrder):
    """The counts of sequences of the labels A and B, given as strings."""
    codes = np.array(["AB".index(label) for label in "".join(sequences)], np.int32)
    offsets = np.cumsum([0, *map(len, sequences)])
    return count_transitions(codes, offsets, np.ones(len(codes)), model)


def test_witten_bell_of_a_toy_corpus():
    """After A: A, B and the end, once each; after B the end, twice; 3 A, 2 B and 3 ends."""
    tables = WittenBell().estimate(counted("AB", "AA", "B"), stop=True)
    np.testing.assert_allclose(tables.steps, [[23 / 66, 20 / 66], [4 / 33, 3 / 33]], rtol=1e-14)
    np.testing.assert_allclose(tables.end, [23 / 66, 26 / 33], rtol=1e-14)
    np.testing.assert_allclose(tables.start, [22 / 35, 13 / 35], rtol=1e-14)


def test_deleted_interpolation_of_a_toy_corpus():
    """Half of the votes are for the frequency of the label alone."""
    tables = DeletedInterpolation().estimate(counted("AB", "AA", "B"), stop=True)
    below = np.array([3, 2, 3]) / 8
    expected = 0.5 * below + 0.5 * np.array([[1 / 3, 1 / 3, 1 / 3], [0, 0, 1]])
    np.testing.assert_allclose(np.column_stack([tables.steps, tables.end]), expected, rtol=1e-14)
    start = 0.5 * np.array([3, 2]) / 5 + 0.5 * np.array([2, 1]) / 3
    np.testing.assert_allclose(tables.start, start, rtol=1e-14)


def test_deleted_interpolation_of_triples():
    """Of five votes three are for single labels; one is shared by pairs and triples."""
    counts = counted("ABA", "ABB", "AA", model=SecondOrder)
    tables = DeletedInterpolation().estimate(counts, stop=False)
    one, two = np.array([5, 3]) / 8, np.array([[1, 2], [2, 2]]) / [[3], [4]]
    start_a = 0.6 * one + 0.4 * two[0]
    np.testing.assert_allclose(tables.triples[2, 0], start_a, rtol=1e-14)
    a_b = 0.6 * one + 0.2 * two[1] + 0.2 * np.array([0.5, 0.5])
    np.testing.assert_allclose(tables.triples[0, 1], a_b, rtol=1e-14)
    unseen = 0.6 * one + 0.4 * two[1]
    np.testing.assert_allclose(tables.triples[1, 1], unseen, rtol=1e-14)


def test_without_smoothing_probabilities_are_relative_frequencies():
    """A row without counts is uniform, and no NaN."""
    tables = Additive(alpha=0).estimate(counted("AB", "AA", "B"), stop=True)
    np.testing.assert_array_equal(tables.steps, [[1 / 3, 1 / 3], [0, 0]])
    np.testing.assert_array_equal(tables.end, [1 / 3, 1])
    np.testing.assert_array_equal(tables.start, [2 / 3, 1 / 3])
    tables = Additive(alpha=0).estimate(counted("AB", "AA", "B"), stop=False)
    np.testing.assert_array_equal(tables.steps, [[0.5, 0.5], [0.5, 0.5]])
    assert tables.end is None


@pytest.mark.parametrize("stop", [True, False])
@pytest.mark.parametrize("name", [*SMOOTHINGS, "zero"])
def test_all_rows_are_distributions(name, stop):
    """For integer and for expected counts, and labels that were never seen."""
    random = np.random.RandomState(0)
    smoothing = Additive(alpha=0) if name == "zero" else find_smoothing(name)
    for scale in (1.0, 0.3, 0.0):
        triples = scale * random.poisson(0.7, (4, 3, 3))
        triples[:, 2] = 0
        first, last = scale * np.array([[3.0, 1, 0], [1, 0, 4]])
        counts = StepCounts(first, triples.sum(axis=0), last, triples)
        tables = smoothing.estimate(counts, stop)
        rest = tables.end if stop else np.zeros(3)
        assert (tables.end is None) != stop
        np.testing.assert_allclose(tables.start.sum(), 1, rtol=1e-14)
        np.testing.assert_allclose(tables.steps.sum(axis=1) + rest, 1, rtol=1e-14)
        np.testing.assert_allclose(tables.triples.sum(axis=2) + rest, 1, rtol=1e-14)
        assert all(np.all(part >= 0) for part in tables if part is not None)


@pytest.mark.parametrize("model", [FirstOrder, SecondOrder])
@pytest.mark.parametrize("stop", [True, False])
def test_additive_smoothing_maximizes_the_posterior(model, stop):
    """Tables that are moved a little have a smaller likelihood times prior."""
    smoothing, counts = Additive(alpha=0.5), counted("ABA", "ABB", "AA", "BAAB", model=model)
    best = smoothing.estimate(counts, stop)

    def value(tables):
        parts = [(counts.start, tables.start)]
        parts += [(counts.end, tables.end)] if stop else []
        second = model is SecondOrder
        parts += [(counts.triples, tables.triples) if second else (counts.steps, tables.steps)]
        return sum(np.sum(n * np.log(p)) for n, p in parts) + smoothing.log_prior(tables)

    random = np.random.RandomState(0)
    for _ in range(20):
        changes = [
            None if part is None else part * np.exp(0.01 * random.randn(*part.shape))
            for part in best
        ]
        start, steps, end, triples = changes
        going = 1.0 if end is None else (1.0 - end)[:, None]
        steps = steps / steps.sum(axis=1, keepdims=True) * going
        if triples is not None:
            triples = triples / triples.sum(axis=2, keepdims=True) * going
        other = best._replace(start=start / start.sum(), steps=steps, end=end, triples=triples)
        assert value(other) < value(best)


def test_a_smoothing_that_is_not_known_is_refused():
    with pytest.raises(ValueError, match="smoothing='laplace' is not known"):
        find_smoothing("laplace")
    with pytest.raises(ValueError, match="alpha=-1"):
        Additive(alpha=-1).estimate(counted("A"), stop=True)


def test_order_zero_counts_tokens_alone():
    class Zero:
        order, n_labels = 0, 2

    counts = counted("ABA", "B", model=Zero)
    np.testing.assert_array_equal(counts.start, [2, 2])
    assert not counts.steps.any() and not counts.end.any()
    assert HiddenMarkovModel(None, 2, order=0).stop is False

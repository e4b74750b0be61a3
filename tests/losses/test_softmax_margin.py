"""The log loss with a cost, and the hinge loss with rounded corners."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from crfkit.labels.costs import AdditiveCost
from crfkit.losses import (
    AnnealedHingeLoss,
    HingeLoss,
    LogLoss,
    SoftenedHingeLoss,
    SoftmaxMarginLoss,
)
from crfkit.structures import Chain
from tests.losses.test_margin import problems
from tests.oracles import chain_paths, evaluate, random_scores

TABLE = np.array([[0.0, 1.0, 0.5], [2.0, 0.0, 0.0], [0.0, 3.0, 0.0]])


def value(loss, scores, labels):
    weight = np.ones(len(labels))
    return evaluate(loss, Chain(), scores, labels, weight)[0]


def enumerated(scores, labels, table, heat):
    """``heat log sum exp((cost + score) / heat) - score of the labels``, by enumeration."""
    total = 0.0
    for s, (begin, end) in enumerate(zip(scores.offsets[:-1], scores.offsets[1:], strict=True)):
        gold = labels[begin:end]
        paths = dict(chain_paths(scores, s))
        costs = [table[gold, list(path)].sum() for path in paths]
        total += heat * logsumexp((np.array(costs) + list(paths.values())) / heat)
        total -= paths[tuple(gold.tolist())]
    return total


@given(problems((0.1, 1.0, 30.0)), st.sampled_from([1.0, 0.2, 5.0]))
def test_the_value_is_that_of_the_enumerated_labelings(problem, heat):
    scores, labels = problem
    n_labels = scores.unary.shape[1]
    table = np.random.default_rng(n_labels).random((n_labels, n_labels)) * (1 - np.eye(n_labels))
    cost = AdditiveCost(table)
    loss = SoftmaxMarginLoss(cost) if heat == 1.0 else SoftenedHingeLoss(cost, temperature=heat)
    expected = enumerated(scores, labels, table, heat)
    np.testing.assert_allclose(value(loss, scores, labels), expected, rtol=1e-9, atol=1e-9)


def test_without_a_cost_it_is_the_log_loss():
    scores, labels = random_scores(0, [3, 0, 5], 3), np.arange(8, dtype=np.int32) % 3
    free = SoftmaxMarginLoss(AdditiveCost(np.zeros((3, 3))))
    assert value(free, scores, labels) == value(LogLoss(), scores, labels)


def test_temperature_one_is_the_softmax_margin():
    scores, labels = random_scores(1, [4, 2], 3), np.arange(6, dtype=np.int32) % 3
    softened = SoftenedHingeLoss(AdditiveCost(TABLE), temperature=1)
    plain = SoftmaxMarginLoss(AdditiveCost(TABLE))
    assert value(softened, scores, labels) == value(plain, scores, labels)


@given(problems((0.1, 1.0, 1e4)), st.sampled_from([1.0, 0.1, 1e-3]))
def test_it_lies_above_the_hinge_loss_by_at_most_the_temperature_times_the_entropy(problem, heat):
    scores, labels = problem
    hinge = value(HingeLoss(), scores, labels)
    softened = value(SoftenedHingeLoss(temperature=heat), scores, labels)
    most = heat * len(labels) * np.log(scores.unary.shape[1])
    rounding = 1e-12 * (1.0 + np.abs(scores.unary[np.isfinite(scores.unary)]).sum())
    assert hinge - rounding <= softened <= hinge + most + rounding


def test_annealing_ends_at_the_last_temperature():
    loss = AnnealedHingeLoss(AdditiveCost(TABLE), temperatures=(2.0, 0.5))
    scores, labels = random_scores(2, [4, 2], 3), np.arange(6, dtype=np.int32) % 3
    first, last = loss.stages()
    assert (first.temperature, last.temperature) == (2.0, 0.5)
    assert value(last, scores, labels) == value(loss, scores, labels)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (SoftenedHingeLoss(temperature=0.0), "temperature=0.0 must be above 0"),
        (SoftenedHingeLoss(temperature=1e-320), "must be above 0"),
        (SoftenedHingeLoss(temperature="warm"), "temperature='warm' must be a number"),
        (AnnealedHingeLoss(temperatures=()), "must be falling numbers, at least one"),
        (AnnealedHingeLoss(temperatures=(0.1, 0.1)), "must be falling numbers"),
        (AnnealedHingeLoss(temperatures=(1.0, -1.0)), "temperatures=-1.0"),
        (SoftmaxMarginLoss("zero_one"), "ZeroOneCost is no sum over tokens"),
        (SoftmaxMarginLoss(cost=0.5), "cost=0.5 must be"),
    ],
)
def test_losses_that_cannot_be_used_are_refused(loss, message):
    with pytest.raises((TypeError, ValueError), match=message):
        value(loss, random_scores(0, [2], 3), np.zeros(2, np.int32))


def test_labels_that_are_forbidden_are_an_error_that_names_the_sequence():
    scores = random_scores(0, [2, 2], 3)._replace(first=7)
    scores.unary[3, 0] = -np.inf
    with pytest.raises(ValueError, match="sequence 8: .*forbidden"):
        value(SoftenedHingeLoss(), scores, np.zeros(4, np.int32))

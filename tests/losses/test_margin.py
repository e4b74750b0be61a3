"""Losses given by the worst labeling, against enumeration of all labelings."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from crfkit.labels.costs import AdditiveCost, Cost, ZeroOneCost
from crfkit.losses import HingeLoss, PerceptronLoss
from crfkit.structures import Chain, NoPathError
from tests.oracles import chain_paths, chain_scores, evaluate, random_scores


class NoCost(Cost):
    """Nothing costs anything."""

    of_labels = of_segments = check_size = lambda self, *given: self

    def total(self, labels, predicted, offsets):
        return np.zeros(len(offsets) - 1)


COSTS = ("hamming", "zero_one", "weighted", "matrix", "free")


def make_cost(name, n_labels, seed=0):
    if name in ("hamming", "zero_one"):
        return name
    rng = np.random.default_rng(seed)
    table = {
        "weighted": rng.integers(0, 4, size=(n_labels, 1)) * np.ones((1, n_labels)),
        "matrix": 3.0 * rng.random((n_labels, n_labels)),
        "free": np.zeros((n_labels, n_labels)),
    }[name]
    return AdditiveCost(table * (1.0 - np.eye(n_labels)))


def all_losses(scores, labels, s, cost, loss_of):
    """The loss of each labeling of a sequence."""
    begin, end = scores.offsets[s : s + 2]
    gold = labels[begin:end]
    score = {path: value for path, value in chain_paths(scores, s)}
    one = np.array([0, end - begin])
    for path, value in score.items():
        found = cost.total(gold, np.array(path, np.int32), one)[0]
        if value > -np.inf:
            yield loss_of(found, value - score[tuple(gold.tolist())])


def check_worst(loss, cost, loss_of, scores, labels, *, exact=True):
    path, value = loss.worst(Chain(), scores, labels)
    total = cost.total(labels, path, scores.offsets)
    rise = Chain().score(scores, path) - Chain().score(scores, labels)
    np.testing.assert_allclose(
        [loss_of(*pair) for pair in zip(total, rise, strict=True)], value, rtol=1e-10, atol=1e-10
    )
    assert (value >= 0.0).all()
    largest = [
        max(all_losses(scores, labels, s, cost, loss_of)) for s in range(len(scores.offsets) - 1)
    ]
    if exact:
        np.testing.assert_allclose(value, np.maximum(largest, 0.0), rtol=1e-10, atol=1e-10)
    else:
        assert (value <= np.maximum(largest, 0.0) * (1 + 1e-10) + 1e-10).all()
    return value, np.array(largest)


def cost_object(cost, n_labels):
    if cost == "zero_one":
        return ZeroOneCost()
    return AdditiveCost(1.0 - np.eye(n_labels)) if cost == "hamming" else cost


def margin(cost, rise):
    return cost + rise


def slack(cost, rise):
    return cost * (1.0 + rise)


@st.composite
def problems(draw, scales=(0.1, 1.0, 1e4)):
    """Potentials, and labels that are not forbidden."""
    scores = draw(chain_scores(scales))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    labels = rng.integers(scores.unary.shape[1], size=len(scores.unary), dtype=np.int32)
    assume(np.isfinite(Chain().score(scores, labels)).all())
    return scores, labels


@given(problems(), st.sampled_from(COSTS), st.integers(0, 99))
def test_the_worst_labeling_by_a_margin_is_found(problem, name, seed):
    scores, labels = problem
    n_labels = scores.unary.shape[1]
    cost = make_cost(name, n_labels, seed)
    check_worst(HingeLoss(cost), cost_object(cost, n_labels), margin, *problem)


@given(problems(), st.sampled_from(["hamming", "zero_one"]))
def test_the_worst_labeling_with_rescaled_slack_is_found(problem, name):
    cost = cost_object(name, problem[0].unary.shape[1])
    check_worst(HingeLoss(name, rescaling="slack"), cost, slack, *problem)
    check_worst(HingeLoss(cost, rescaling="slack"), cost, slack, *problem)


@given(problems(), st.sampled_from(COSTS), st.integers(0, 99))
def test_an_approximate_search_returns_a_lower_bound(problem, name, seed):
    n_labels = problem[0].unary.shape[1]
    cost = cost_object(make_cost(name, n_labels, seed), n_labels)
    loss = HingeLoss(cost, rescaling="slack", search="approximate")
    check_worst(loss, cost, slack, *problem, exact=name == "zero_one")


def hull_best(points):
    """The largest slack loss among labelings that are best for some multiplier."""
    multipliers = np.unique(
        [0.0, 1e9]
        + [
            (b[1] - a[1]) / (a[0] - b[0]) + shift
            for a in points
            for b in points
            if a[0] > b[0] and b[1] >= a[1]
            for shift in (-1e-7, 1e-7)
        ]
    )
    best = 0.0
    for multiplier in multipliers[multipliers >= 0.0]:
        cost, rise = max(points, key=lambda point: point[1] + multiplier * point[0])
        best = max(best, cost * (1.0 + rise))
    return best


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", ["hamming", "matrix"])
def test_an_approximate_search_finds_the_best_corner_of_the_hull(seed, name):
    scores = random_scores(seed, [3], 3, scale=2.0)
    labels = np.random.default_rng(seed).integers(3, size=3, dtype=np.int32)
    cost = cost_object(make_cost(name, 3, seed), 3)
    points = list(all_losses(scores, labels, 0, cost, lambda *point: point))
    loss = HingeLoss(cost, rescaling="slack", search="approximate")
    value = loss.worst(Chain(), scores, labels)[1]
    np.testing.assert_allclose(value[0], hull_best(points), rtol=1e-12)


@given(problems())
def test_the_perceptron_loss_is_what_the_best_path_scores_above_the_labels(problem):
    check_worst(PerceptronLoss(), NoCost(), lambda cost, rise: rise, *problem)


@pytest.mark.parametrize("loss", [HingeLoss(), HingeLoss(rescaling="slack"), PerceptronLoss()])
def test_certain_labels_are_their_own_worst_labeling(loss):
    scores = random_scores(0, [3, 0, 2], 3)
    labels = np.array([0, 1, 2, 0, 1], np.int32)
    scores.unary[np.arange(5), labels] += 1e4
    path, value = loss.worst(Chain(), scores, labels)
    np.testing.assert_array_equal(path, labels)
    np.testing.assert_array_equal(value, 0.0)


@pytest.mark.parametrize("loss", [HingeLoss(), HingeLoss("zero_one"), PerceptronLoss()])
def test_labels_that_are_forbidden_are_an_error_that_names_the_sequence(loss):
    scores = random_scores(0, [2, 2], 3)._replace(first=7)
    labels = np.zeros(4, np.int32)
    scores.unary[3, 0] = -np.inf
    with pytest.raises(ValueError, match="sequence 8: .*forbidden"):
        loss.worst(Chain(), scores, labels)
    scores.unary[3] = -np.inf
    with pytest.raises(NoPathError):
        loss.worst(Chain(), scores, labels)


def test_an_overflow_of_the_scores_is_not_finite():
    scores = random_scores(0, [4], 3)
    with np.errstate(all="ignore"):
        scores = scores._replace(unary=scores.unary * 1e308 * 1e10)
        labels = scores.unary.argmax(1).astype(np.int32)
        value, _ = evaluate(HingeLoss(), Chain(), scores, labels, np.ones(4))
    assert not np.isfinite(value)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (HingeLoss(make_cost("matrix", 3), rescaling="slack"), "exact search for the costs"),
        (HingeLoss(rescaling="both"), "rescaling='both'"),
        (HingeLoss(search="fast"), "search='fast'"),
        (HingeLoss(cost={"a": 1}), "must be 'hamming', 'zero_one' or a cost"),
        (HingeLoss(cost=make_cost("matrix", 2)), "one of 2 labels, not of 3"),
        (HingeLoss(cost=NoCost()), "NoCost is no sum over tokens"),
    ],
)
def test_losses_that_cannot_be_used_are_refused(loss, message):
    with pytest.raises((TypeError, ValueError), match=message):
        loss.worst(Chain(), random_scores(0, [2], 3), np.zeros(2, np.int32))


def test_tokens_of_different_weight_are_refused():
    scores, weight = random_scores(0, [2], 3), np.array([1.0, 2.0])
    labels = np.zeros(2, np.int32)
    with pytest.raises(ValueError, match="HingeLoss needs the same weight for all tokens"):
        evaluate(HingeLoss(), Chain(), scores, labels, weight)

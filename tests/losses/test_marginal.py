"""Losses of the probabilities of single labels, against enumeration of all labelings."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from crfkit.labels.costs import AdditiveCost
from crfkit.losses import LabelwiseLoss, LogLoss, PointwiseLoss, PseudolikelihoodLoss, RiskLoss
from crfkit.structures import Chain, Tree, TreePotentials
from tests.contracts.structures import random_forest
from tests.oracles import chain_paths, evaluate, random_scores

TABLE = np.array([[0.0, 1.0, 0.5], [2.0, 0.0, 0.1], [0.3, 3.0, 0.0]])
WEIGHT = np.array([1.0, 2.0, 0.5, 0.0, 3.0, 1.0])
LOSSES = {
    "pointwise": PointwiseLoss(),
    "risk": RiskLoss(),
    "risk of a cost": RiskLoss(AdditiveCost(TABLE)),
    "labelwise": LabelwiseLoss(slopes=(5.0,)),
    "steep labelwise": LabelwiseLoss(slopes=(5.0, 40.0)),
}


def log_marginals(scores):
    """The logarithms of the probabilities of labels, by enumeration."""
    found = []
    for s, length in enumerate(np.diff(scores.offsets).tolist()):
        paths = list(chain_paths(scores, s))
        whole = logsumexp([score for _, score in paths])
        for t in range(length):
            sums = [logsumexp([v for path, v in paths if path[t] == k]) for k in range(3)]
            found.append(np.array(sums) - whole)
    return np.array(found)


def term(name, log_p, allowed):
    """What a loss is at a token, given the labels that it may have."""
    p = np.exp(log_p)
    if allowed.all():
        return 0.0
    if name == "pointwise":
        return -logsumexp(log_p[allowed])
    if name.startswith("risk"):
        table = TABLE if name == "risk of a cost" else 1.0 - np.eye(3)
        return table[allowed].min(axis=0) @ p
    return expit(-LOSSES[name].slopes[-1] * (p[allowed].max() - p[~allowed].max()))


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e3])
@pytest.mark.parametrize("name", LOSSES)
def test_the_value_is_that_of_enumerated_probabilities(name, scale):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        scores = random_scores(seed, [4, 0, 2], 3, scale=scale)
        labels = rng.integers(3, size=6).astype(np.int32)
        sets = rng.random((6, 3)) < 0.5
        sets[np.arange(6), labels] = True
        for allowed in (None, sets):
            value, _ = evaluate(LOSSES[name], Chain(), scores, labels, WEIGHT, allowed)
            known = labels[:, None] == np.arange(3) if allowed is None else allowed
            terms = map(term, [name] * 6, log_marginals(scores), known)
            np.testing.assert_allclose(value, WEIGHT @ list(terms), rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("name", LOSSES)
def test_a_single_allowed_label_is_a_known_one(name):
    scores, labels = random_scores(5, [4, 2], 3), np.array([0, 1, 2, 2, 1, 0], np.int32)
    allowed = labels[:, None] == np.arange(3)
    value, out = evaluate(LOSSES[name], Chain(), scores, labels, WEIGHT)
    again, counts = evaluate(LOSSES[name], Chain(), scores, labels, WEIGHT, allowed)
    np.testing.assert_allclose(again, value, rtol=1e-13)
    np.testing.assert_allclose(counts.unary, out.unary, atol=1e-14)
    np.testing.assert_allclose(counts.pair, out.pair, atol=1e-14)


@pytest.mark.parametrize("structure", [Chain(), Tree()], ids=["chain", "forest"])
@pytest.mark.parametrize("name", [*LOSSES, "pseudolikelihood"])
def test_large_scores_of_parts_that_cancel_change_nothing(name, structure):
    """What is added to labels, and taken from the transitions into them, is in no labeling."""
    loss = LOSSES.get(name) or PseudolikelihoodLoss()
    scores, labels = random_scores(6, [4, 2], 3), np.array([0, 1, 2, 2, 1, 0], np.int32)
    if isinstance(structure, Tree):
        scores = TreePotentials(*scores, *random_forest(np.random.default_rng(2), [4, 2]).arrays)
        inner = np.flatnonzero(scores.parent >= 0)
    else:
        inner = np.array([1, 2, 3, 5])
    unary, added = scores.unary.copy(), np.array([0.0, 1e3, -3e3])
    unary[inner] += added
    moved = scores._replace(unary=unary, pair=scores.pair - added)
    value, out = evaluate(loss, structure, scores, labels, WEIGHT)
    again, counts = evaluate(loss, structure, moved, labels, WEIGHT)
    np.testing.assert_allclose(again, value, rtol=1e-10)
    np.testing.assert_allclose(counts.unary, out.unary, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(counts.pair, out.pair, rtol=1e-7, atol=1e-10)


def test_a_nearly_certain_label_has_an_exact_gradient():
    """It is minus the probability of the others, which 1 minus that of the label has lost."""
    for loss, factor in ((PointwiseLoss(), 1.0), (PseudolikelihoodLoss(), 1.0), (RiskLoss(), 1.0)):
        scores, labels = random_scores(7, [1], 3), np.zeros(1, np.int32)
        scores.unary[0] = 60.0, 0.0, 1.0
        others = np.exp(-60.0) * (1.0 + np.e)
        value, out = evaluate(loss, Chain(), scores, labels, np.ones(1))
        np.testing.assert_allclose(value, factor * others, rtol=1e-12)
        np.testing.assert_allclose(out.unary[0, 0], -factor * others, rtol=1e-12)


class Printed:
    """The gradient of Gross et al. (2006) to the transitions, as printed in parts or corrected."""

    def __init__(self, scores, labels, slope):
        self.labels, self.size = labels, len(labels)
        self.steps = [np.exp(scores.pair[0] + row) for row in scores.unary]
        forward, backward = [np.exp(scores.unary[0])], [np.ones(3)]
        for step in self.steps[1:]:
            forward.append(forward[-1] @ step)
        for step in self.steps[:0:-1]:
            backward.insert(0, step @ backward[0])
        self.forward, self.backward, self.z = forward, backward, forward[-1].sum()
        p = np.array(forward) * backward / self.z
        own = p[np.arange(self.size), labels]
        p[np.arange(self.size), labels] = -1.0
        self.rivals, self.gaps = p.argmax(axis=1), own - p.max(axis=1)
        errors = expit(-slope * self.gaps)
        self.slopes = slope * errors * (1.0 - errors)  # Q' at each token

    def sums(self, path, *, of_next=True, of_path=True):
        """Equation 15 for transitions over Z: by equations 19 to 24."""
        marked = np.eye(3)[path] * self.slopes[:, None]  # 1{y_j = y*_j} Q'_j
        starred, ahead = [marked[0] * self.forward[0]], [np.zeros(3)]
        for j in range(1, self.size):
            starred.append((starred[-1] + 0 * marked[j]) @ self.steps[j])
            starred[-1] = starred[-1] + marked[j] * (self.forward[j - 1] @ self.steps[j])
        for j in range(self.size - 1, 0, -1):
            at = marked[j] if of_next else np.eye(3)[path[j]] * self.slopes[j - 1]
            ahead.insert(0, self.steps[j] @ (ahead[0] + at * self.backward[j]))
        total = np.zeros((3, 3))
        for j in range(1, self.size):
            here = marked[j] if of_path else np.eye(3)[self.labels[j]] * self.slopes[j]
            a = np.outer(starred[j - 1], self.backward[j]) + np.outer(self.forward[j - 1], ahead[j])
            b = np.outer(self.forward[j - 1], self.backward[j] * here)
            total += self.steps[j] * (a + b)
        return total / self.z

    def gradient(self, *, quotient=True, **kind):
        """Of the sum of Q; `quotient`: with the derivative of 1 / Z, which is not printed."""
        found = self.sums(self.labels, **kind) - self.sums(self.rivals, **kind)
        for j in range(1, self.size if quotient else 1):
            joint = np.outer(self.forward[j - 1], self.backward[j]) * self.steps[j] / self.z
            found -= (self.slopes @ self.gaps) * joint
        return found


def test_the_gradient_is_the_recursion_of_gross_et_al_without_its_misprints():
    scores, labels = random_scores(8, [5], 3), np.array([0, 2, 1, 1, 0], np.int32)
    _, out = evaluate(LabelwiseLoss(slopes=(5.0,)), Chain(), scores, labels, np.ones(5))
    recursion = Printed(scores, labels, 5.0)
    np.testing.assert_allclose(-out.pair[0], recursion.gradient(), atol=1e-12)
    for as_printed in ({"of_next": False}, {"of_path": False}, {"quotient": False}):
        assert np.abs(out.pair[0] + recursion.gradient(**as_printed)).max() > 1e-2


def test_labelwise_errors_are_those_of_the_most_probable_labels_where_the_slope_is_steep():
    scores, labels = random_scores(9, [6], 3, scale=3.0), np.array([0, 1, 2, 0, 1, 2], np.int32)
    value, _ = evaluate(LabelwiseLoss(slopes=(1e5,)), Chain(), scores, labels, np.ones(6))
    np.testing.assert_allclose(value, np.sum(log_marginals(scores).argmax(axis=1) != labels))


def test_labelwise_stages_are_the_log_loss_and_rising_slopes():
    first, *rest = LabelwiseLoss(slopes=(5, 20)).stages()
    assert isinstance(first, LogLoss)
    assert [loss.slopes for loss in rest] == [(5.0,), (20.0,)]
    assert len(LabelwiseLoss(slopes=(5, 20), start="given").stages()) == 2


def test_risk_starts_from_the_log_loss_and_keeps_its_cost():
    cost = AdditiveCost(TABLE)
    first, last = RiskLoss(cost).stages()
    assert isinstance(first, LogLoss) and last.cost is cost
    assert [type(loss) for loss in RiskLoss(start="given").stages()] == [RiskLoss]


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (LabelwiseLoss(slopes=()), "at least one number"),
        (LabelwiseLoss(slopes=(5.0, 5.0)), "must be rising numbers above 0"),
        (LabelwiseLoss(slopes=(-1.0,)), "must be rising numbers above 0|slopes=-1.0"),
        (LabelwiseLoss(slopes=("steep",)), "slopes='steep' must be a number"),
        (LabelwiseLoss(slopes=5.0), "slopes=5.0 must be a sequence of rising numbers"),
        (LabelwiseLoss(start="zeros"), "start='zeros' is not known"),
        (RiskLoss("zero_one"), "ZeroOneCost is no sum over tokens"),
        (RiskLoss(cost=0.5), "cost=0.5 must be"),
        (RiskLoss(start="zeros"), "start='zeros' is not known"),
    ],
)
def test_losses_that_cannot_be_used_are_refused(loss, message):
    with pytest.raises((TypeError, ValueError), match=message):
        evaluate(loss, Chain(), random_scores(0, [2], 3), np.zeros(2, np.int32), np.ones(2))
        loss.stages()


@pytest.mark.parametrize("weight", [1.0, 0.0])
@pytest.mark.parametrize("name", [*LOSSES, "pseudolikelihood"])
def test_a_forbidden_label_is_an_error_where_the_loss_would_be_infinite(name, weight):
    loss = LOSSES.get(name) or PseudolikelihoodLoss()
    scores = random_scores(0, [2, 2], 3)._replace(first=7)
    scores.unary[3, 0] = -np.inf
    weights = np.array([1.0, 1.0, 1.0, weight])
    if name == "pseudolikelihood" or (weight and name == "pointwise"):
        with pytest.raises(ValueError, match="sequence 8: .*forbidden"):
            evaluate(loss, Chain(), scores, np.zeros(4, np.int32), weights)
        return
    value, out = evaluate(loss, Chain(), scores, np.zeros(4, np.int32), weights)
    assert np.isfinite(value) and np.isfinite(out.unary).all() and np.isfinite(out.pair).all()


def test_losses_of_single_labels_need_a_structure_that_tells_their_probabilities():
    from tests.contracts.test_losses import problem
    from tests.extensions.ring import Ring

    scores, labels = problem(Ring(), 0)
    for loss in (PointwiseLoss(), PseudolikelihoodLoss()):
        with pytest.raises(ValueError, match="the structure Ring has no"):
            evaluate(loss, Ring(), scores, labels, np.ones(8))


@pytest.mark.parametrize("size", [7, 8, 9, 11, 24, 30])
def test_terms_given_the_neighbors_are_right_for_any_number_of_labels(size):
    """Numbers that fill vectors of columns, and others, whose vectors overlap."""
    scores = random_scores(0, [4, 0, 2], size, scale=5.0)
    labels = np.random.default_rng(0).integers(size, size=6).astype(np.int32)
    value, out = evaluate(PseudolikelihoodLoss(), Chain(), scores, labels, WEIGHT)
    given = Chain().conditional_scores(scores, labels)
    p = np.exp(given - logsumexp(given, axis=1, keepdims=True))
    np.testing.assert_allclose(value, -WEIGHT @ np.log(p[np.arange(6), labels]))
    slopes = WEIGHT[:, None] * (p - (labels[:, None] == np.arange(size)))
    np.testing.assert_allclose(out.unary, slopes, atol=1e-12)

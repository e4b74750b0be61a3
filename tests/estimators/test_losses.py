"""CRFs with other losses than the log loss."""

import re
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from crfkit import CRFClassifier, EarlyStopping, SemiMarkovCRF
from crfkit.labels.costs import AdditiveCost, ZeroOneCost
from crfkit.losses import (
    LOSSES,
    AnnealedHingeLoss,
    HingeLoss,
    LabelwiseLoss,
    LogLoss,
    PerceptronLoss,
    SoftenedHingeLoss,
    SoftmaxMarginLoss,
)
from crfkit.persistence import dumps, loads
from crfkit.solvers import LBFGS, SGD
from crfkit.solvers.margin import BlockFrankWolfe
from crfkit.testing import estimator_checks
from tests.estimators.checks import is_of_reading
from tests.sampling import in_turns

X = [["a", "b", "c"], ["b", "b"], ["a", "c", "a", "b"], ["c"]]
X = [[[word] for word in row] for row in X]
Y = [["p", "q", "p"], ["q", "p"], ["p", "p", "q", "q"], ["q"]]


class Enumerated:
    """The problem of a hinge loss with a constraint for each labeling, solved by SLSQP."""

    def __init__(self, X, Y, rescaling, c2):
        self.rows, self.c2, self.n_sequences = [], c2, len(X)
        self.names = sorted({word for row in X for [word] in row})
        self.labels = sorted({label for row in Y for label in row})
        for i, (row, gold) in enumerate(zip(X, Y, strict=True)):
            truth = self.counts(row, gold)
            for path in self.paths(len(row)):
                cost = sum(a != b for a, b in zip(path, gold, strict=True))
                change = self.counts(row, path) - truth
                factor = cost if rescaling == "slack" else 1.0
                self.rows.append((i, float(cost), factor * change))

    @property
    def size(self):
        n_labels = len(self.labels)
        return len(self.names) * n_labels + n_labels**2

    def paths(self, length):
        grid = np.indices((len(self.labels),) * length).reshape(length, -1).T
        return [[self.labels[k] for k in row] for row in grid]

    def counts(self, row, path):
        """How often each weight counts: (word, label) pairs, then steps."""
        n_labels = len(self.labels)
        found = np.zeros(self.size)
        codes = [self.labels.index(label) for label in path]
        for [word], code in zip(row, codes, strict=True):
            found[self.names.index(word) * n_labels + code] += 1
        for a, b in zip(codes[:-1], codes[1:], strict=True):
            found[len(self.names) * n_labels + a * n_labels + b] += 1
        return found

    def slacks(self, w):
        slack = np.zeros(self.n_sequences)
        for i, cost, change in self.rows:
            slack[i] = max(slack[i], cost + change @ w)
        return slack

    def value(self, w):
        return self.slacks(w).sum() + self.c2 * w @ w

    def solve(self):
        """Minimize over the weights and the slacks."""
        size = self.size
        left = np.zeros((len(self.rows), size + self.n_sequences))
        for n, (i, _, change) in enumerate(self.rows):
            left[n, :size], left[n, size + i] = -change, 1.0
        cost = np.array([cost for _, cost, _ in self.rows])
        start = np.concatenate([np.zeros(size), self.slacks(np.zeros(size))])
        found = minimize(
            lambda z: z[size:].sum() + self.c2 * z[:size] @ z[:size],
            start,
            jac=lambda z: np.concatenate([2 * self.c2 * z[:size], np.ones(self.n_sequences)]),
            constraints={"type": "ineq", "fun": lambda z: left @ z - cost, "jac": lambda z: left},
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 500},
        )
        assert found.success
        return found.x[:size]


def weights_of(crf):
    """The weights in the order of `Enumerated`."""
    return np.concatenate([crf.coef_.toarray().ravel(), crf.transitions_.ravel()])


def full(**parameters):
    return CRFClassifier(all_possible_states=True, all_possible_transitions=True, **parameters)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_the_hinge_loss_has_the_optimum_of_the_problem_with_all_constraints(rescaling):
    problem = Enumerated(X, Y, rescaling, 0.2)
    least = problem.value(problem.solve())
    solver = BlockFrankWolfe(tol=1e-4)
    crf = full(loss=HingeLoss(rescaling=rescaling), c2=0.2, solver=solver).fit(X, Y)
    np.testing.assert_allclose(crf.objective_, problem.value(weights_of(crf)), rtol=1e-10)
    np.testing.assert_allclose(crf.objective_, least, rtol=2e-4)


def test_annealing_comes_to_the_optimum_of_the_hinge_loss():
    problem = Enumerated(X, Y, "margin", 0.2)
    best = problem.solve()
    temperatures = (1.0, 0.1, 0.01, 1e-3)
    crf = full(
        loss=AnnealedHingeLoss(temperatures=temperatures), c2=0.2, solver=LBFGS(max_iter=5000)
    ).fit(X, Y)
    least, most = problem.value(best), 1e-3 * np.log(2) * sum(map(len, Y))
    assert least - 1e-9 <= crf.objective_ <= least + most + 1e-6
    assert problem.value(weights_of(crf)) <= least + most + 1e-6
    # The optimum is unique, and the distance to it is bounded by the distance of the values.
    assert np.linalg.norm(weights_of(crf) - best) <= np.sqrt((most + 1e-6) / 0.2)


def test_margin_and_slack_rescaling_are_different_models():
    """Margin rescaling also pays for labelings that lose by more than 1, and gives up a label."""
    words, labels, c2 = ("baab", "bbb", "bbbb"), ("qppq", "pqp", "qpqp"), 0.05
    X, Y = [[[word] for word in row] for row in words], [list(row) for row in labels]
    found = {}
    for rescaling in ("margin", "slack"):
        problem = Enumerated(X, Y, rescaling, c2)
        crf = full(
            loss=HingeLoss(rescaling=rescaling), c2=c2, solver=BlockFrankWolfe(tol=1e-4)
        ).fit(X, Y)
        np.testing.assert_allclose(crf.objective_, problem.value(problem.solve()), rtol=2e-4)
        found[rescaling] = ["".join(row) for row in crf.predict(X)], weights_of(crf)
    assert found["slack"][0] == list(labels)
    assert found["margin"][0] == ["qppq", "qqp", "qpqp"]
    assert problem.value(found["margin"][1]) > 1.1 * problem.value(found["slack"][1])


def test_a_loss_may_be_named_or_given():
    cost = AdditiveCost(np.array([[0.0, 3.0], [1.0, 0.0]]))
    pairs = [(CRFClassifier(loss="log"), CRFClassifier(loss=LogLoss()))]
    for name, given in (
        ("softmax_margin", SoftmaxMarginLoss({"p": 3.0})),
        ("annealed_hinge", AnnealedHingeLoss([[0, 3], [1, 0]])),
        ("softmax_margin", SoftmaxMarginLoss(cost)),
    ):
        pairs.append((CRFClassifier(loss=name, cost={"p": 3.0}), CRFClassifier(loss=given)))
    for first, second in pairs:
        named, other = first.fit(X, Y), second.fit(X, Y)
        np.testing.assert_array_equal(named.coef_.toarray(), other.coef_.toarray())
        np.testing.assert_array_equal(named.transitions_, other.transitions_)


def test_fitting_does_not_change_the_loss():
    loss = HingeLoss({"p": 2.0})
    crf = CRFClassifier(loss=loss).fit(X, Y)
    assert crf.loss is loss and loss.cost == {"p": 2.0}
    assert clone(crf).set_params(loss__rescaling="slack").loss.rescaling == "slack"


def test_a_cost_moves_what_is_predicted():
    """Where "a" is as often p as q, the label that costs more to miss is predicted."""
    X, Y = [[["a"]], [["a"]]], [["p"], ["q"]]
    for label in ("p", "q"):
        cost = {label: 3.0}
        for loss in (
            SoftmaxMarginLoss(cost),
            HingeLoss(cost, rescaling="slack", search="approximate"),
        ):
            crf = CRFClassifier(loss=loss, c2=0.01).fit(X, Y)
            assert crf.predict(X) == [[label], [label]]


@pytest.mark.parametrize("cost", ["zero_one", {"p": 3.0}, np.ones((2, 2)), None], ids=str)
@pytest.mark.parametrize("kind", [CRFClassifier, SemiMarkovCRF])
def test_a_cost_that_would_have_no_effect_is_an_error(kind, cost):
    using = r"\['annealed_hinge', 'hinge', 'risk', 'softmax_margin'\]"
    message = "^cost=.* no effect on loss='log': .* " + using
    with pytest.raises(ValueError, match=re.compile(message, re.DOTALL)):
        kind(cost=cost).fit(X, Y)
    message = "^cost=.* is for losses that are given by name: give SoftmaxMarginLoss its own"
    with pytest.raises(ValueError, match=re.compile(message, re.DOTALL)):
        kind(loss=SoftmaxMarginLoss(), cost=cost).fit(X, Y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "square"}, "loss='square' is not known; choose one of .*'hinge'"),
        ({"loss": HingeLoss}, "with the method 'value_and_grad'"),
        ({"loss": "hinge", "solver": "lbfgs"}, "LBFGS needs a differentiable loss, not HingeLoss"),
        ({"loss": "softmax_margin", "solver": "oeg"}, "OEG needs the log loss"),
        ({"loss": "risk", "solver": "newton"}, "needs a loss with second derivatives"),
        ({"loss": "softmax_margin", "cost": "zero_one"}, "no sum over tokens"),
        ({"cost": "square"}, "cost='square'"),
        ({"loss": "hinge", "cost": {"p": -1.0}}, "cost"),
        ({"loss": "hinge", "cost": np.ones((3, 3))}, "cost has the shape"),
        ({"loss": HingeLoss({"p": 2}, rescaling="slack")}, "exact search for the costs"),
        ({"loss": "annealed_hinge", "c1": 1.0, "solver": "lbfgs"}, "c1=1"),
    ],
)
def test_what_does_not_fit_together_is_refused(parameters, message):
    with pytest.raises((TypeError, ValueError), match=message):
        CRFClassifier(**parameters).fit(X, Y)


def test_a_solver_that_fits_no_staged_loss_is_refused_before_the_first_stage(capsys):
    with pytest.raises(ValueError, match="OEG needs the log loss, not LabelwiseLoss"):
        CRFClassifier(loss="labelwise", solver="oeg", verbose=2).fit(X, Y)
    assert "iteration" not in capsys.readouterr().out


def test_a_search_that_ends_at_a_kink_of_the_loss_says_so(capsys):
    """Of labels that are drawn, many errors have two labels that compete for them."""
    loss, told = LabelwiseLoss(slopes=(40.0,)), ""
    for seed in range(8):  # in most of them
        rng = np.random.default_rng(seed)
        sizes = rng.integers(2, 7, size=12)
        words = [[[f"w{i}"] for i in rng.integers(5, size=size)] for size in sizes]
        labels = [[f"y{i}" for i in rng.integers(4, size=size)] for size in sizes]
        crf = CRFClassifier(loss=loss, solver="lbfgs", verbose=1).fit(words, labels)
        told = capsys.readouterr().out
        if "the loss has kinks" in told:
            break
    assert "the loss has kinks, and the gradient next to one" in told
    assert crf.converged_ and np.isnan(crf.gap_) and crf.training_log_[-1].gradient_norm > 0.1
    again = CRFClassifier(
        loss=LabelwiseLoss(slopes=(40.0,), start="given"), init=crf,
        solver=LBFGS(tol=1e-9, period=100, max_iter=200),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        again.fit(words, labels)
    assert again.objective_ > 0.999 * crf.objective_


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_weights_of_tokens_are_refused_where_a_loss_has_no_meaning_for_them(loss):
    weight = [np.linspace(1.0, 2.0, len(row)) for row in Y]
    if not LOSSES[loss].needs_sequence_weights:
        assert CRFClassifier(loss=loss).fit(X, Y, sample_weight=weight).converged_
        return
    with pytest.raises(ValueError, match="same weight for all tokens"):
        CRFClassifier(loss=loss).fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize("loss", sorted(set(LOSSES) - {"log"}))
def test_a_loss_with_an_l1_penalty_has_a_solver(loss):
    crf = CRFClassifier(loss=loss, c1=0.1, c2=0.1).fit(X, Y)
    half = 0.4 if loss == "pseudolikelihood" else 0.5  # which takes a neighbor's label for known
    assert crf.score(X, Y) > half


def test_batches_are_learned_with_a_hinge_loss():
    crf = CRFClassifier(loss="hinge", cost="zero_one", solver=SGD(eta0=0.5), c2=0.01)
    for _ in range(10):
        crf.partial_fit(X, Y, classes=["p", "q"])
    assert crf.score(X, Y) > 0.6  # half of the labels are "p"


def test_probabilities_are_those_of_the_scores():
    crf = CRFClassifier(loss="hinge", c2=0.1, all_possible_transitions=True).fit(X, Y)
    problem = Enumerated(X, Y, "margin", 0.1)
    scores = [problem.counts(X[2], path) @ weights_of(crf) for path in problem.paths(4)]
    with np.errstate(all="raise"):
        expected = [score - np.log(np.sum(np.exp(scores))) for score in scores]
    found = crf.sequence_log_proba([X[2]] * len(expected), problem.paths(4))
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize(
    "loss",
    [
        LogLoss(),
        SoftmaxMarginLoss(AdditiveCost(np.array([[0.0, 3.0], [1.0, 0.0]]))),
        SoftenedHingeLoss({"p": 2.0}, temperature=0.5),
        AnnealedHingeLoss(temperatures=(1.0, 0.1)),
        HingeLoss(ZeroOneCost(), rescaling="slack"),
        HingeLoss([[0, 1], [2, 0]], rescaling="slack", search="approximate"),
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_models_with_a_loss_can_be_saved(loss):
    crf = CRFClassifier(loss=loss).fit(X, Y)
    again = loads(dumps(crf))
    assert type(again.loss) is type(loss)
    assert again.predict(X) == crf.predict(X)
    np.testing.assert_array_equal(again.fit(X, Y).coef_.toarray(), crf.coef_.toarray())


def test_a_model_saved_before_there_were_losses_has_the_log_loss():
    crf = CRFClassifier().fit(X, Y)
    del crf.loss, crf.cost
    again = loads(dumps(crf))
    assert again.get_params()["loss"] == "log" and again.get_params()["cost"] == "hamming"
    assert again.fit(X, Y).predict(X) == crf.predict(X)


def test_a_perceptron_loss_can_be_saved():
    assert type(loads(dumps(PerceptronLoss()))) is PerceptronLoss


# A gap leaves the weights open to the square root of the gap over c2: too much for what compares
# two fits closely.
CLOSE = ("check_integer_weights_repeat_sequences", "check_weight_zero_leaves_out")
CHECKS = [check for check in estimator_checks(CRFClassifier()) if not is_of_reading(check)]
CHECKED = [
    (CRFClassifier(c2=1.0, loss="softmax_margin" if check.__name__ in CLOSE else loss), check)
    for check, loss in in_turns(CHECKS, ["softmax_margin", "hinge"])
]


@pytest.mark.parametrize(
    ("estimator", "check"),
    CHECKED,
    ids=[f"{estimator.loss}-{check.__name__}" for estimator, check in CHECKED],
)
def test_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "cost", [{"r": 3.0}, [[0, 1, 2], [1, 0, 2], [3, 3, 0]]], ids=["dict", "matrix"]
)
def test_a_part_of_the_data_may_lack_a_label_that_has_a_cost(cost):
    rare, labels = [*X * 3, [["a"], ["d"]]], [*Y * 3, ["p", "r"]]
    lacking = 0
    for seed in range(8):
        rules = EarlyStopping(validation_fraction=0.3)
        crf = CRFClassifier(loss="softmax_margin", cost=cost, early_stopping=rules)
        crf.set_params(random_state=seed).fit(rare, labels)
        lacking += "r" not in crf.classes_
    assert 0 < lacking < 8


def test_a_loss_of_ones_own_is_not_taken_for_the_one_it_is_made_from():
    class Twice(HingeLoss):
        def value_and_grad(self, *given):
            return 2.0 * super().value_and_grad(*given)

    class Other(LogLoss):
        pass

    with pytest.raises(ValueError, match="BlockFrankWolfe needs a hinge loss, not Twice"):
        CRFClassifier(loss=Twice(), solver=BlockFrankWolfe()).fit(X, Y)
    with pytest.raises(ValueError, match="OEG needs the log loss, not Other"):
        CRFClassifier(loss=Other(), solver="oeg").fit(X, Y)

"""The max-margin chain as an estimator."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline

from crfkit import CRFClassifier, MaxMarginCRF, SequenceVectorizer, load
from crfkit.persistence import dumps, loads
from crfkit.solvers import LBFGS
from crfkit.solvers.margin import MARGIN_SOLVERS, BlockFrankWolfe, CuttingPlane, Subgradient
from tests.estimators.checks import parametrize_variants

X = [
    [{"w": "the"}, {"w": "dog"}, {"w": "runs"}],
    [{"w": "a"}, {"w": "cat"}],
    [{"w": "dog"}, {"w": "sees"}, {"w": "the"}, {"w": "old"}, {"w": "cat"}],
    [{"w": "cats"}, {"w": "run"}],
]
Y = [["D", "N", "V"], ["D", "N"], ["N", "V", "D", "A", "N"], ["N", "V"]]
EXACT = CuttingPlane(slack="n", tol=1e-9)
VARIANTS = [
    MaxMarginCRF(),
    MaxMarginCRF(
        loss="slack_rescaling", C=0.03, boundary_weights=True, n_jobs=2,
        solver=BlockFrankWolfe(tol=0.1),
    ),
    MaxMarginCRF(solver="cutting_plane", C=0.1, cost="zero_one", all_possible_states=True),
]  # fmt: skip


@parametrize_variants(VARIANTS, reading=False)
def test_it_passes_the_checks_of_estimators(estimator, check):
    check(estimator)


def labelings(length, n_labels):
    """Return the codes of all label sequences, shape (n, T)."""
    return np.array(list(np.ndindex(*[n_labels] * length)))


def slacks(model, cost, rescaling):
    """The slack of each sequence, from the public weights alone, by enumeration."""
    found, labels = [], model.classes_.tolist()
    for sequence, truth in zip(X, Y, strict=True):
        gold = np.array([labels.index(label) for label in truth])
        paths = labelings(len(gold), len(labels))
        unary = np.array([
            [model.state_features_.get((f"w:{token['w']}", label), 0.0) for label in labels]
            for token in sequence
        ])  # fmt: skip
        unary[0] += model.start_weights_
        unary[-1] += model.end_weights_
        score = unary[np.arange(len(gold)), paths].sum(axis=1)
        score += model.transitions_[paths[:, :-1], paths[:, 1:]].sum(axis=1)
        rise = score - score[(paths == gold).all(axis=1)]
        costs = cost[gold, paths].sum(axis=1)
        found.append((costs * (1.0 + rise) if rescaling == "slack" else costs + rise).max())
    return np.array(found)


def norm(model):
    """The square of the norm of the weights."""
    parts = (model.coef_.data, model.transitions_, model.start_weights_, model.end_weights_)
    return sum(float((part**2).sum()) for part in parts)


COSTS = {
    "hamming": 1.0 - np.eye(4),
    "weighted": np.array([[2.5], [1.0], [0.5], [1.0]]) * (1.0 - np.eye(4)),  # of A, D, N, V
}


@pytest.mark.parametrize(
    ("loss", "rescaling", "cost", "boundaries", "C"),
    [
        ("margin_rescaling", "margin", "hamming", False, 5.0),
        ("margin_rescaling", "margin", "weighted", True, 0.1),
        ("slack_rescaling", "slack", "hamming", True, 0.1),
    ],
)
def test_the_objective_is_half_the_square_plus_c_times_the_slacks(
    loss, rescaling, cost, boundaries, C
):
    given = {"A": 2.5, "N": 0.5} if cost == "weighted" else "hamming"
    weight = np.array([1.0, 2.0, 0.5, 1.0])
    model = MaxMarginCRF(C=C, loss=loss, cost=given, boundary_weights=boundaries, solver=EXACT).fit(
        X, Y, sample_weight=weight
    )
    expected = 0.5 * norm(model) + C * weight @ slacks(model, COSTS[cost], rescaling)
    np.testing.assert_allclose(model.objective_, expected, rtol=1e-9)
    assert 0.0 <= model.gap_ <= 1e-9 * model.objective_
    assert model.training_log_[-1].value == model.objective_
    assert model.training_log_[-1].gap == model.gap_


@pytest.mark.parametrize("solver", MARGIN_SOLVERS)
def test_all_solvers_learn_it(solver):
    model = MaxMarginCRF(C=10.0, solver=solver, max_iter=300)
    if solver == "subgradient":
        with pytest.warns(ConvergenceWarning):
            model.set_params(max_iter=100).fit(X, Y)
    else:
        model.fit(X, Y)
        best = MaxMarginCRF(C=10.0, solver=EXACT).fit(X, Y).objective_
        assert best * (1 - 1e-9) <= model.objective_ <= best + model.gap_ + 1e-9 * best
    assert model.predict(X) == Y
    assert model.n_iter_ == model.training_log_[-1].iteration


def test_parameters_to_start_from_are_kept_where_nothing_better_is_found():
    model = MaxMarginCRF(solver=EXACT, warm_start=True).fit(X, Y)
    first = model.objective_
    model.set_params(solver=BlockFrankWolfe(tol=0.1)).fit(X, Y)
    np.testing.assert_allclose(model.objective_, first, rtol=1e-9)
    assert model.gap_ <= 0.1 * first


def test_a_seed_orders_the_visits_of_a_named_solver():
    fits = [MaxMarginCRF(random_state=seed, max_iter=2) for seed in (0, 1, 0)]
    with pytest.warns(ConvergenceWarning, match="max_iter=2 passes were not enough"):
        weights = [fit.fit(X, Y).transitions_ for fit in fits]
    np.testing.assert_array_equal(weights[0], weights[2])
    assert (weights[0] != weights[1]).any()


def test_a_search_over_c_in_a_pipeline():
    pipeline = make_pipeline(SequenceVectorizer(), MaxMarginCRF())
    search = GridSearchCV(pipeline, {"maxmargincrf__C": [0.01, 1.0]}, cv=2, error_score="raise")
    search.fit(X * 3, Y * 3)
    assert search.best_params_["maxmargincrf__C"] in (0.01, 1.0)
    assert search.predict(X) == Y
    assert cross_val_predict(MaxMarginCRF(), X * 3, Y * 3, cv=3).tolist() == Y * 3


@pytest.mark.parametrize("name", MARGIN_SOLVERS)
def test_a_model_comes_back_from_a_file(name, tmp_path):
    solver = MARGIN_SOLVERS[name]()
    model = MaxMarginCRF(solver=solver, cost={"N": 2.0}, C=0.5).fit(X, Y)
    model.save(tmp_path / "model.crf")
    for copy in (load(tmp_path / "model.crf"), loads(dumps(model))):
        assert copy.get_params()["C"] == 0.5
        assert type(copy.solver) is type(solver)
        assert copy.predict(X) == model.predict(X)
        np.testing.assert_array_equal(copy.transitions_, model.transitions_)
        assert copy.training_log_ == model.training_log_


def test_it_has_no_probabilities():
    model = MaxMarginCRF().fit(X, Y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="MaxMarginCRF has no probabilities.* CRFClassifier"):
        _ = model.predict_proba
    assert model.score(X, Y) == 1.0


def test_margin_and_slack_rescaling_are_different_models():
    """Labelings with small costs matter less where the slack is rescaled."""
    margin, slack = (
        MaxMarginCRF(C=0.2, loss=loss, solver=EXACT).fit(X, Y)
        for loss in ("margin_rescaling", "slack_rescaling")
    )
    assert np.abs(margin.transitions_ - slack.transitions_).max() > 1e-2
    table = 1.0 - np.eye(4)
    for model, other, name in ((margin, slack, "margin"), (slack, margin, "slack")):
        values = [0.5 * norm(one) + 0.2 * slacks(one, table, name).sum() for one in (model, other)]
        assert values[0] < values[1] - 1e-6


def test_the_approximate_search_takes_any_cost_and_has_no_gap():
    model = MaxMarginCRF(loss="approximate_slack_rescaling", cost={"N": 2.0}).fit(X, Y)
    assert np.isnan(model.gap_)
    assert model.predict(X) == Y


def test_weights_that_differ_within_a_sequence_are_refused():
    weight = [np.linspace(0.5, 1.0, len(labels)) for labels in Y]
    for solver in MARGIN_SOLVERS:
        with pytest.raises(ValueError, match="same weight for all tokens") as error:
            MaxMarginCRF(solver=solver).fit(X, Y, sample_weight=weight)
        assert "lbfgs" not in str(error.value)
    even = [np.full(len(labels), 2.0) for labels in Y]
    by_token = MaxMarginCRF().fit(X, Y, sample_weight=even)
    by_sequence = MaxMarginCRF().fit(X, Y, sample_weight=np.full(4, 2.0))
    np.testing.assert_array_equal(by_token.transitions_, by_sequence.transitions_)


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"C": 0.0}, ValueError, "C=0.0 must be above 0"),
        ({"C": -1}, ValueError, "C=-1"),
        ({"C": "1"}, TypeError, "C='1'"),
        ({"loss": "hinge"}, ValueError, "loss='hinge'"),
        ({"cost": "edit"}, ValueError, "cost='edit'"),
        ({"cost": {"A": -1.0}}, ValueError, "cost"),
        ({"cost": np.ones((4, 4))}, ValueError, "0 on the diagonal"),
        (
            {"loss": "slack_rescaling", "cost": {"N": 2.0}},
            ValueError,
            "loss='slack_rescaling' needs cost=.*'approximate_slack_rescaling'",
        ),
        ({"solver": LBFGS()}, ValueError, "solver=LBFGS.* a margin is not. Use one of 'bcfw'"),
        ({"solver": "lbfgs"}, ValueError, "solver='lbfgs'"),
        ({"solver": BlockFrankWolfe}, TypeError, "solver"),
        ({"max_iter": -1}, ValueError, "max_iter=-1"),
        ({"kernel": "sigmoidal"}, ValueError, "kernel"),
    ],
)
def test_bad_parameters_are_named(parameters, error, words):
    with pytest.raises(error, match=words):
        MaxMarginCRF(**parameters).fit(X, Y)


def test_parameters_are_left_as_they_were_given():
    solver = BlockFrankWolfe(tol=1e-2)
    model = MaxMarginCRF(solver=solver, max_iter=70, random_state=3)
    clone(model).fit(X, Y)
    model.fit(X, Y)
    assert solver.max_iter == BlockFrankWolfe().max_iter
    assert solver.random_state == 0


def test_a_crf_takes_the_solver_for_its_hinge_loss():
    crf = CRFClassifier(loss="hinge", c2=0.5, solver=BlockFrankWolfe(tol=1e-6)).fit(X, Y)
    model = MaxMarginCRF(solver=BlockFrankWolfe(tol=1e-6)).fit(X, Y)
    np.testing.assert_array_equal(crf.transitions_, model.transitions_)
    assert crf.objective_ == model.objective_


def test_the_warning_of_too_few_passes_says_what_else_there_is():
    with pytest.warns(ConvergenceWarning, match="are numbers, scale them.*solver='cutting_plane'"):
        MaxMarginCRF(C=100.0, max_iter=2).fit(X, Y)


@pytest.mark.parametrize("C", [1e2, 1e4, 1e6])
def test_exponentiated_gradient_reaches_the_optimum_at_any_c(C):
    X = [np.eye(3)[[0, 1, 2]], np.eye(3)[[2, 0]], np.eye(3)[[1]]]
    y = [[0, 1, 2], [2, 0], [1]]
    best = MaxMarginCRF(C=C, solver=EXACT).fit(X, y)
    model = MaxMarginCRF(C=C, solver="eg").fit(X, y)
    assert model.converged_
    assert model.objective_ <= 1.02 * best.objective_


def test_subgradients_ignore_a_start_that_is_worse_than_none():
    model = MaxMarginCRF(solver=Subgradient(max_iter=3), warm_start=True)
    with pytest.warns(ConvergenceWarning):
        cold = clone(model).fit(X, Y)
        model.fit(X, Y)
        model.coef_ = -1e6 * model.coef_
        model.fit(X, Y)
    assert model.objective_ == cold.objective_
    np.testing.assert_array_equal(model.transitions_, cold.transitions_)

"""A warm start on other data: more or fewer attributes and labels, in any order, by any solver."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from crfkit import CRFClassifier, EarlyStopping, SequenceVectorizer
from crfkit.solvers import LBFGS, SOLVERS
from tests.estimators.test_early_stopping import make

X, Y = make(0, 20, noise=0.1)
EXACT = LBFGS(tol=0.0, gtol=1e-9)
MORE_X = [*X, [{"w": "new"}, {"w": "3", "flag": True}], [{"AAA": 2.0}, {"w": "5"}]]
MORE_Y = [*Y, [7, 0], [-1, 2]]
RENAMED = [[{"w": token["w"]} for token in s] for s in X]


def named(crf):
    weights = {**crf.state_features_, **crf.transition_features_, **crf.transition_attributes_}
    starts = zip(crf.classes_, crf.start_weights_, crf.end_weights_, strict=True)
    return weights | {("boundary", label): (s, e) for label, s, e in starts if s or e}


def started(crf, X, y):
    """The weights that a fit starts from."""
    crf.set_params(max_iter=0, solver=LBFGS(gtol=0.0))  # also where the start is the optimum
    with pytest.warns(ConvergenceWarning, match="max_iter=0"):
        crf.fit(X, y)
    return named(crf)


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        ((MORE_X, MORE_Y), lambda key: True),
        ((X[:5], Y[:5]), None),
        ((RENAMED, Y), lambda key: not str(key[0]).startswith("id:")),
        ((X[::-1], Y[::-1]), lambda key: True),
        ((X, [[0 if label == 2 else label for label in s] for s in Y]), lambda key: 2 not in key),
    ],
    ids=["more", "fewer", "fewer attributes", "another order", "fewer labels"],
)
@pytest.mark.parametrize("boundaries", [False, True])
def test_a_fit_starts_at_the_weights_of_the_same_names(data, kept, boundaries):
    crf = CRFClassifier(c2=0.1, boundary_weights=boundaries, warm_start=True).fit(X, Y)
    before = named(crf)
    after = started(crf, *data)
    if kept is None:
        places = CRFClassifier(c2=0.1, boundary_weights=boundaries).fit(*data)
        kept = named(places).__contains__
    assert after == {key: weight for key, weight in before.items() if kept(key)}


def test_attributes_of_steps_are_carried_over():
    def pack(X):
        packed = SequenceVectorizer().fit_transform(X)
        words = SequenceVectorizer().fit_transform([[[t.get("w", "?")] for t in s] for s in X])
        return packed.with_transitions(words)

    crf = CRFClassifier(c2=0.1, warm_start=True).fit(pack(X), Y)
    before = named(crf)
    assert started(crf, pack(MORE_X), MORE_Y) == before
    assert crf.transition_coef_.shape == (
        len(crf.transition_feature_names_in_),
        len(crf.classes_) ** 2,
    )
    plain = SequenceVectorizer().fit_transform(X)
    without = {key: w for key, w in before.items() if not isinstance(key[1], tuple)}
    assert started(crf, plain, Y) == without
    assert started(crf, pack(X), Y) == without


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_every_solver_goes_on_from_the_weights_it_is_given(name):
    crf = CRFClassifier(c2=0.1, solver=name, warm_start=True, max_iter=500, random_state=0)
    optimum = CRFClassifier(c2=0.1, solver=EXACT).fit(MORE_X, MORE_Y).objective_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of solvers with slow last steps
        cold = CRFClassifier(c2=0.1, solver=name, max_iter=500, random_state=0)
        cold.fit(MORE_X, MORE_Y)
        crf.fit(X, Y).fit(MORE_X, MORE_Y)
    if name != "oeg":  # it starts from distributions over labels, not from weights
        assert crf.training_log_[0].value < 0.8 * cold.training_log_[0].value
    assert optimum - 1e-6 <= crf.objective_ <= optimum * 1.01


def test_the_optimum_does_not_depend_on_the_start():
    crf = CRFClassifier(c2=0.1, solver=EXACT, warm_start=True).fit(X, Y).fit(MORE_X, MORE_Y)
    cold = CRFClassifier(c2=0.1, solver=EXACT).fit(MORE_X, MORE_Y)
    np.testing.assert_allclose(crf.coef_.toarray(), cold.coef_.toarray(), atol=1e-7)
    assert crf.n_iter_ < cold.n_iter_


def test_early_stopping_goes_on_from_the_best_weights():
    rules = EarlyStopping(patience=2)
    crf = CRFClassifier(c2=0.001, early_stopping=rules, warm_start=True, random_state=0).fit(X, Y)
    best = crf.best_score_
    crf.fit(X, Y)
    assert crf.validation_scores_[0] == best <= crf.best_score_


def test_weights_assigned_by_hand_are_a_start():
    crf = CRFClassifier(c2=0.1, warm_start=True).fit(X, Y)
    crf.transitions_ = np.full((3, 3), -np.inf)
    assert crf.fit(X, Y).converged_
    crf.transitions_ = np.full((3, 3), 0.25)
    started(crf, X, Y)
    assert set(crf.transition_features_.values()) == {0.25}


def test_a_failed_fit_leaves_the_start_of_the_next_one():
    crf = CRFClassifier(c2=0.1, warm_start=True).fit(X, Y)
    before = named(crf)
    with pytest.raises(ValueError, match="y has 19"):
        crf.fit(X, Y[:-1])
    assert named(crf) == before

"""Models that are fitted to distributions over labels."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

from crfkit import (
    CRFClassifier,
    EarlyStopping,
    MaxMarginCRF,
    SemiMarkovCRF,
    SequenceVectorizer,
    SoftLabels,
    StructuredPerceptron,
)
from crfkit.metrics import get_scorer
from crfkit.solvers import LBFGS
from tests.estimators.test_early_stopping import make

X, Y = make(0, 20, noise=0.1)
ONE = SoftLabels.from_labels(Y)
EXACT = LBFGS(tol=0.0, gtol=1e-9)


def with_transitions(X):
    packed = SequenceVectorizer().fit_transform(X)
    words = SequenceVectorizer().fit_transform([[[t["w"]] for t in s] for s in X])
    return packed.with_transitions(words)


@pytest.mark.parametrize("min_freq", [0, 3])
@pytest.mark.parametrize("data", [X, with_transitions(X)], ids=["states", "transitions"])
def test_labels_that_are_certain_give_the_model_of_these_labels(data, min_freq):
    options = {"c2": 0.1, "min_freq": min_freq, "boundary_weights": True, "solver": "lbfgs"}
    soft, hard = (CRFClassifier(**options).fit(data, y) for y in (ONE, Y))
    assert soft.n_parameters_ == hard.n_parameters_
    np.testing.assert_array_equal(soft.classes_, hard.classes_)
    assert [r.value for r in soft.training_log_] == [r.value for r in hard.training_log_]
    np.testing.assert_array_equal(soft.coef_.toarray(), hard.coef_.toarray())
    np.testing.assert_array_equal(soft.transitions_, hard.transitions_)


def test_the_optimum_has_the_expected_counts_of_the_teacher():
    """Without a penalty, a model of the same features becomes its teacher again, if that is one
    of independent tokens."""
    teacher = CRFClassifier(c2=1.0, all_possible_transitions=True, min_freq=99, solver=EXACT)
    tokens = [[token] for sequence in X for token in sequence]
    labels = [[label] for sequence in Y for label in sequence]
    teacher.set_params(min_freq=0).fit(tokens, labels)
    y = SoftLabels(teacher.predict_proba(tokens), teacher.classes_)
    student = CRFClassifier(c2=0.0, solver=EXACT).fit(tokens, y)
    for theirs, ours in zip(
        teacher.predict_proba(tokens), student.predict_proba(tokens), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_a_sequence_of_soft_labels_is_the_mean_of_its_labelings():
    """Two labelings that differ in one token, half of each: the losses of both, halved."""
    other = [list(labels) for labels in Y]
    other[3][1] = next(label for label in (0, 1, 2) if label != Y[3][1])
    y = SoftLabels.from_votes([Y, other])
    soft = CRFClassifier(c2=0.1, solver=EXACT).fit(X, y, sample_weight=np.arange(1.0, 21.0))
    weight = 0.5 * np.concatenate([np.arange(1.0, 21.0)] * 2)
    both = CRFClassifier(c2=0.1, solver=EXACT).fit([*X, *X], [*Y, *other], sample_weight=weight)
    np.testing.assert_allclose(soft.objective_, both.objective_, rtol=1e-9)
    np.testing.assert_allclose(soft.transitions_, both.transitions_, atol=1e-5)


@pytest.mark.parametrize("name", ["auto", "sgd", "sag", "newton", "dense_newton", "owlqn"])
def test_gradient_solvers_take_soft_labels(name):
    y = ONE.mixed(SoftLabels.from_votes([[[0] * len(s) for s in Y], Y]), 0.5)
    optimum = CRFClassifier(solver=EXACT).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = CRFClassifier(solver=name, max_iter=300, random_state=0).fit(X, y)
    assert optimum.objective_ - 1e-6 <= found.objective_ <= 1.01 * optimum.objective_


def test_n_jobs_and_counts_are_a_start():
    y = ONE.mixed(SoftLabels.from_votes([[[0] * len(s) for s in Y], Y]), 0.5)
    one, two = (CRFClassifier(n_jobs=n, init="counts").fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_.toarray(), two.coef_.toarray())
    zeros = CRFClassifier().fit(X, y)
    assert one.training_log_[0].value < 0.8 * zeros.training_log_[0].value


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (CRFClassifier(solver="oeg"), "OEG needs one known label.* y has prob.* solver='lbfgs'"),
        (CRFClassifier(solver="gis"), "GIS needs one known label.* y has prob.* solver='lbfgs'"),
        (CRFClassifier(loss="hinge"), "HingeLoss needs labels, but y has prob.*argmax"),
        (CRFClassifier(loss="labelwise"), "LabelwiseLoss needs labels, but y has prob.*argmax"),
        (CRFClassifier(loss="softmax_margin", cost={0: 2.0}), "needs labels, but y has prob"),
        (MaxMarginCRF(), "HingeLoss needs labels, but y has prob.*argmax"),
        (StructuredPerceptron(), "y has probabilities of labels.*argmax"),
        (SemiMarkovCRF(), "none over segmentations.*argmax"),
    ],
)
def test_what_needs_labels_says_so(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, ONE)


def test_weights_that_differ_within_a_sequence_are_refused():
    weights = [np.arange(1.0, len(s) + 1) for s in X]
    with pytest.raises(ValueError, match="need the same weight for all tokens of a sequence"):
        CRFClassifier().fit(X, ONE, sample_weight=weights)


def test_scores_compare_with_the_most_probable_labels():
    crf = CRFClassifier(solver="lbfgs").fit(X, ONE)
    assert crf.score(X, ONE) == crf.score(X, Y)
    np.testing.assert_array_equal(cross_val_score(crf, X, ONE), cross_val_score(crf, X, Y))
    found = []
    for y in (ONE, Y):
        grid = GridSearchCV(crf, {"c2": [0.1, 1.0]}, scoring=get_scorer("flat_f1_macro"), cv=2).fit(
            X, y
        )
        rules = EarlyStopping(scoring="sequence_accuracy")
        model = CRFClassifier(early_stopping=rules, random_state=0, solver="lbfgs").fit(X, y)
        found.append((*grid.cv_results_["mean_test_score"], model.validation_scores_))
    assert found[0] == found[1]

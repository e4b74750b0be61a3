"""Fitted arrays cannot be changed in place: what predicts was derived from them."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from crfkit import (
    CRFClassifier,
    CRFClassifierCV,
    EarlyStopping,
    MaxMarginCRF,
    SemiMarkovCRF,
    StructuredPerceptron,
)
from crfkit.compat.sklearn_crfsuite import CRF
from crfkit.persistence import dumps, loads
from crfkit.training.data import fitted_attributes

X = [[["a"], ["b"], ["a"]], [["b"], ["a"]], [["c"], ["b"]], [["a"], ["c"]]]
Y = [["p", "q", "p"], ["q", "p"], ["q", "q"], ["p", "q"]]
HALF = EarlyStopping(validation_fraction=0.5)
KINDS = {
    "crf": (CRFClassifier(c2=1.0, max_iter=3, boundary_weights=True), X),
    "l1": (CRFClassifier(max_iter=3, c1=0.1), X),
    "sgd": (CRFClassifier(max_iter=2, solver="sgd"), X),
    "stopped early": (CRFClassifier(max_iter=3, early_stopping=HALF), X),
    "cv": (CRFClassifierCV(c1s=[0.0], c2s=[1.0, 0.1], cv=2, max_iter=3), X),
    "semi-Markov": (SemiMarkovCRF(max_iter=3), X),
    "margin": (MaxMarginCRF(max_iter=3), X),
    "kernel": (MaxMarginCRF(max_iter=3, kernel="rbf"),
               [np.eye(3)[: len(row)] for row in X]),
    "perceptron": (StructuredPerceptron(max_iter=3), X),
    "voted": (StructuredPerceptron(max_iter=3, averaging="vote"), X),
    "sklearn-crfsuite": (CRF(max_iterations=3), X),
}  # fmt: skip


def fit(kind):
    estimator, data = KINDS[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few iterations
        return copy.deepcopy(estimator).fit(data, Y)


def arrays_of(model):
    """Return the fitted arrays by name, with those of sparse matrices and of a model within."""
    if isinstance(model, CRF):
        return arrays_of(model.model_)
    found = {}
    names = {*fitted_attributes(model), *(n for n in dir(type(model)) if n.endswith("names_in_"))}
    for name in names:
        value = getattr(model, name, None)
        if sp.issparse(value):
            found |= {f"{name}.{part}": getattr(value, part) for part in ("data", "indices")}
        elif isinstance(value, np.ndarray):
            found[name] = value
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "again",
    [lambda m: m, lambda m: pickle.loads(pickle.dumps(m)), copy.copy, copy.deepcopy,
     lambda m: loads(dumps(m))],
    ids=["fitted", "pickled", "copied", "copied deeply", "saved"],
)  # fmt: skip
def test_fitted_arrays_are_read_only(kind, again):
    arrays = arrays_of(again(fit(kind)))
    assert {"classes_", "transitions_"} <= set(arrays)
    assert [name for name, array in arrays.items() if array.flags.writeable] == []


def test_batches_leave_arrays_read_only_and_go_on():
    model = CRFClassifier(solver="sgd")
    for _ in range(2):
        model.partial_fit(X, Y, classes=["p", "q"])
        assert not any(array.flags.writeable for array in arrays_of(model).values())


def test_a_change_in_place_is_an_error():
    model = fit("crf")
    assert model.coef_[2, 0] == 0.0
    for change in (
        lambda: model.transitions_.__setitem__((0, 1), -np.inf),
        lambda: model.coef_.__setitem__((0, 0), 5.0),
        lambda: model.coef_.__setitem__((2, 0), 5.0),  # an entry that is new
        lambda: model.coef_.__imul__(2.0),
        lambda: model.feature_names_in_.__setitem__(0, "x"),
    ):
        with warnings.catch_warnings(), pytest.raises(ValueError, match="read-only"):
            warnings.simplefilter("ignore")  # SciPy's, that it is slow
            change()


def forbid(model):
    weights = model.transitions_.copy()
    weights[0, 1] = -np.inf
    model.transitions_ = weights
    return weights


def test_a_changed_copy_has_its_effect_also_after_a_prediction():
    model = fit("crf")
    before = model.predict(X)
    weights = forbid(model)
    after = model.predict(X)
    assert before != after and ("p", "q") not in {
        pair for row in after for pair in zip(row, row[1:], strict=False)
    }
    assert pickle.loads(pickle.dumps(model)).predict(X) == after
    with pytest.raises(ValueError, match="read-only"):  # and would have none
        weights[0, 1] = 0.0


def test_new_entries_of_a_sparse_matrix_have_their_effect():
    model = fit("crf")
    before = model.predict_proba(X)[0]
    model.coef_.data = 10.0 * model.coef_.data
    after = model.predict_proba(X)[0]
    assert np.abs(after - before).max() > 0.1
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X)[0], after)

"""Checks of the scikit-learn interface: parameters, fitting, copies, tags."""

from __future__ import annotations

import copy
import pickle
from itertools import starmap
from typing import Any

import numpy as np
import sklearn.utils.estimator_checks as sklearn_checks
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from crfkit.features import SequenceVectorizer
from crfkit.testing._data import (
    Check,
    Labels,
    Tokens,
    as_packed,
    assert_same_predictions,
    call_each,
    fitted,
    fresh,
    make_data,
    needs,
    raises,
    read_only,
)

_OF_SKLEARN = {
    "check_estimator_cloneable": "The estimator can be cloned, fitted or not",
    "check_estimator_repr": "The estimator can be printed",
    "check_no_attributes_set_in_init": "The constructor sets the parameters and nothing else",
    "check_do_not_raise_errors_in_init_or_set_params": "Bad parameters are found by fit alone",
    "check_parameters_default_constructible": "The class has plain defaults",
    "check_get_params_invariance": "The shallow parameters are among the deep ones",
    "check_set_params": "What set_params sets, get_params returns",
    "check_mixin_order": "Mixins come before BaseEstimator",
    "check_estimator_tags_renamed": "Tags are given in the present way",
    "check_valid_tag_types": "Tags have the right types",
}


def _of_sklearn(name: str, holds: str) -> Check:
    """Return a check of scikit-learn's."""

    def check(estimator: Any) -> None:
        getattr(sklearn_checks, name)(type(estimator).__name__, estimator)

    check.__name__, check.__doc__ = name, f"{holds} (scikit-learn's check)."
    return check


SKLEARN_CHECKS = tuple(starmap(_of_sklearn, _OF_SKLEARN.items()))


def check_class_works_without_parameters(estimator: Any) -> None:
    """The class works without parameters."""
    type(estimator)()


def check_tags_of_a_sequence_classifier(estimator: Any) -> None:
    """The tags say sequence classifier, so that scikit-learn does not stratify by y."""
    tags = get_tags(estimator)
    assert tags.estimator_type == "sequence_classifier"
    assert tags.target_tags.required and not tags.input_tags.two_d_array
    assert not is_classifier(estimator) and not is_regressor(estimator)


def check_fit_returns_self(estimator: Any) -> None:
    """``fit`` returns the estimator itself, which ``check_is_fitted`` accepts from then on."""
    model = fresh(estimator)
    with raises(NotFittedError, doing="check_is_fitted before fit"):
        check_is_fitted(model)
    assert model.fit(*make_data()) is model
    check_is_fitted(model)


def check_unfitted_raises_not_fitted(estimator: Any) -> None:
    """Each method that needs a fitted model raises NotFittedError before ``fit``."""
    for name, call in call_each(fresh(estimator), *make_data()):
        with raises(NotFittedError, "fit", doing=f"{name} before fit"):
            call()


def check_parameters_unchanged_by_fit(estimator: Any) -> None:
    """``fit`` neither replaces nor changes a parameter."""
    model = fresh(estimator)
    before = model.get_params(deep=False)
    states = {name: repr(value) for name, value in model.get_params().items()}
    model.fit(*make_data()).predict(make_data()[0])
    for name, value in model.get_params(deep=False).items():
        assert value is before[name], f"fit replaced the parameter {name}"
    assert {n: repr(v) for n, v in model.get_params().items()} == states, "fit changed a parameter"


def check_fit_adds_only_fitted_attributes(estimator: Any) -> None:
    """The public attributes that ``fit`` adds end in an underscore."""
    model = fresh(estimator)
    before = set(vars(model))
    added = set(vars(model.fit(*make_data()))) - before
    wrong = [name for name in added if not name.startswith("_") and not name.endswith("_")]
    assert not wrong, f"fit added {wrong}"


def check_fit_does_not_change_data(estimator: Any) -> None:
    """``fit`` leaves X and y, and the arrays of packed sequences, as they are."""
    for convert in (list, as_packed):
        (X, y), (X_before, y_before) = make_data(), make_data()
        data = convert(X)
        fitted(estimator, data, y)
        assert data == convert(X_before) and y == y_before, "fit changed its data"


def check_predict_changes_nothing(model: Any, X: Tokens, y: Labels) -> None:
    """Prediction and scoring leave X, y and the public attributes of the model as they are."""
    before, data = _public(model), make_data()
    for name, call in call_each(model, X, y):
        call()
        assert (X, y) == data, f"{name} changed its data"
        assert _public(model) == before, f"{name} changed the model"


def _public(model: Any) -> dict[str, bytes]:
    items = vars(model).items()
    return {name: pickle.dumps(value) for name, value in items if not name.startswith("_")}


def check_fit_twice_gives_the_same(estimator: Any, X: Tokens, y: Labels) -> None:
    """A second ``fit`` on the same data gives the same model to the last bit."""
    model, other = fitted(estimator), fitted(estimator)
    assert_same_predictions(model, other, X)
    assert_same_predictions(model, other.fit(X, y), X)


def check_refit_forgets(estimator: Any) -> None:
    """``fit`` on other data gives the model that a new estimator gives, without old names."""
    X = [[["p"], ["q"]], [["q"], ["p"], ["p"]]]
    y = [["P", "Q"], ["Q", "P", "P"]]
    model, new = fitted(estimator), fitted(estimator, X, y)
    model.predict(make_data()[0])
    model.fit(X, y)
    assert list(model.classes_) == ["P", "Q"], "fit kept old classes"
    assert model.n_features_in_ == 2, "fit kept old features"
    assert_same_predictions(model, new, X)
    model.fit([np.eye(2), np.eye(2)], [["P", "Q"], ["P", "Q"]])
    assert model.n_features_in_ == 2
    assert not hasattr(model, "feature_names_in_"), "fit kept old names of features"


def check_refit_forgets_parameters(estimator: Any, X: Tokens, y: Labels) -> None:
    """A model once fitted with another switch on or off is as one that never was."""
    for name, value in fresh(estimator).get_params(deep=False).items():
        if type(value) is bool and name != "warm_start":
            model = fresh(estimator, **{name: not value}).fit(X, y)
            if name != "refit":  # without it there is nothing that predicts
                model.predict(X)
            model.set_params(**{name: value}).fit(X, y)
            assert_same_predictions(fitted(estimator), model, X)


def check_failed_fit_keeps_the_model(model: Any, X: Tokens, y: Labels) -> None:
    """A ``fit`` that raises for its data leaves the model of the last fit working."""
    before = model.predict(X)
    with raises(ValueError, doing="fit with another number of label sequences"):
        model.fit(X, y[:-1])
    assert model.predict(X) == before


def check_y_is_required(estimator: Any) -> None:
    """``fit`` without labels raises an error that names y."""
    with raises((TypeError, ValueError), "y", doing="fit(X, None)"):
        fresh(estimator).fit(make_data()[0], None)


def check_clone_of_fitted_is_unfitted(model: Any) -> None:
    """A clone of a fitted model has its parameters and is not fitted."""
    copied = clone(model)
    assert repr(copied.get_params()) == repr(model.get_params())
    with raises(NotFittedError, doing="predict of a clone"):
        copied.predict(make_data()[0])


def check_pickle(model: Any, X: Tokens) -> None:
    """A pickled model predicts the same, also where it has predicted before."""
    assert_same_predictions(model, pickle.loads(pickle.dumps(model)), X)
    assert_same_predictions(model, pickle.loads(pickle.dumps(model)), X)


def check_read_only_model(model: Any, X: Tokens, y: Labels) -> None:
    """A model whose arrays are read-only, as in a memory-mapped file, predicts and refits."""
    mapped = read_only(model)
    assert_same_predictions(model, mapped, X)
    assert_same_predictions(model, mapped.fit(X, y), X)


def check_deepcopy(estimator: Any, model: Any, X: Tokens) -> None:
    """A deep copy predicts the same and does not follow the original."""
    copied = copy.deepcopy(model)
    assert_same_predictions(model, copied, X)
    model.fit([[["p"]]], [["P"]])
    assert_same_predictions(fitted(estimator), copied, X)


def check_html_repr(estimator: Any) -> None:
    """The HTML form names the class, fitted or not."""
    for model in (fresh(estimator), fitted(estimator)):
        assert type(model).__name__ in model._repr_html_()


def check_pipeline(estimator: Any, X: Tokens, y: Labels) -> None:
    """A pipeline of vectorizer and estimator predicts what the estimator does alone."""
    pipeline = make_pipeline(SequenceVectorizer(), fresh(estimator)).fit(X, y)
    assert_same_predictions(fitted(estimator), pipeline, X)
    assert pipeline.score(X, y) == fitted(estimator).score(X, y)


def check_cross_validation(estimator: Any) -> None:
    """Cross-validation with a number of folds works on ragged and equal lengths, packed or not."""
    for equal in (False, True):
        X, y = make_data(equal=equal)
        for form in (X, as_packed(X)):
            scores = cross_val_score(fresh(estimator), form, y, cv=2, error_score="raise")
            assert scores.shape == (2,) and np.all((scores >= 0) & (scores <= 1))
        predicted = cross_val_predict(fresh(estimator), X, y, cv=2)
        assert predicted.shape == (len(X),)
        assert [len(labels) for labels in predicted] == [len(labels) for labels in y]


@needs("warm_start")
def check_warm_start(estimator: Any, X: Tokens, y: Labels) -> None:
    """A first fit with ``warm_start`` is an ordinary one, and a second can be done."""
    model = fresh(estimator, warm_start=True).fit(X, y)
    assert_same_predictions(fresh(estimator, warm_start=False).fit(X, y), model, X)
    assert list(model.fit(X, y).classes_) == ["D", "N", "V"]

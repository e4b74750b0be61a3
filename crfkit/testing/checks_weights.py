"""Checks of sample weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.model_selection import cross_val_score

from crfkit.testing._data import (
    REPEATS,
    Labels,
    Tokens,
    assert_close_predictions,
    assert_same_predictions,
    fitted,
    fresh,
    needs,
    raises,
)


@needs("sample_weight")
def check_weights_of_one(estimator: Any, model: Any, X: Tokens, y: Labels) -> None:
    """Weights of 1, for sequences or tokens, are as good as none."""
    per_token = [np.ones(len(labels)) for labels in y]
    for weight in (np.ones(len(X)), per_token):
        assert_same_predictions(model, fitted(estimator, X, y, sample_weight=weight), X)


@needs("sample_weight")
def check_weight_containers(estimator: Any, X: Tokens, y: Labels) -> None:
    """Weights may be an array, a list, a tuple, of integers or of float32."""
    weight = np.arange(1.0, len(X) + 1)
    model = fitted(estimator, X, y, sample_weight=weight)
    for other in (list(weight), tuple(weight), weight.astype(int), weight.astype(np.float32)):
        assert_same_predictions(model, fitted(estimator, X, y, sample_weight=other), X)


@needs("sample_weight")
def check_weights_of_tokens(estimator: Any, X: Tokens, y: Labels) -> None:
    """A weight for all tokens of a sequence is the weight of the sequence."""
    weight = np.arange(1.0, len(X) + 1)
    per_token = [np.full(len(labels), w) for labels, w in zip(y, weight, strict=True)]
    model = fitted(estimator, X, y, sample_weight=weight)
    assert_same_predictions(model, fitted(estimator, X, y, sample_weight=per_token), X)


@needs("sample_weight")
def check_weights_are_not_changed(estimator: Any, X: Tokens, y: Labels) -> None:
    """``fit`` leaves the weights as they are."""
    weight = np.arange(1.0, len(X) + 1)
    fitted(estimator, X, y, sample_weight=weight)
    np.testing.assert_array_equal(weight, np.arange(1.0, len(X) + 1))


@needs("sample_weight")
def check_weights_are_used(estimator: Any) -> None:
    """Of two labellings of the same sequence the heavier one is learned."""
    X = [[["p"], ["q"]]] * 2
    y = [["A", "A"], ["B", "B"]]
    for weight, expected in (([9.0, 1.0], y[0]), ([1.0, 9.0], y[1])):
        assert fitted(estimator, X, y, sample_weight=weight).predict(X[:1]) == [expected]


@needs("sample_weight", "predict_proba", REPEATS)
def check_integer_weights_repeat_sequences(estimator: Any, X: Tokens, y: Labels) -> None:
    """A sequence of weight 3 is as good as three such sequences."""
    counts = [1, 3, 2, 1, 1, 2]
    repeated = [(s, t) for s, t, n in zip(X, y, counts, strict=True) for _ in range(n)]
    weighted = fitted(estimator, X, y, sample_weight=counts)
    plain = fitted(estimator, [s for s, _ in repeated], [t for _, t in repeated])
    assert_close_predictions(plain, weighted, X)


@needs("sample_weight", "predict_proba", REPEATS)
def check_weight_zero_leaves_out(estimator: Any, X: Tokens, y: Labels) -> None:
    """A sequence of weight 0 is as good as left out, where others have its features too."""
    weight = [1.0] * len(X) + [0.0] * 2
    weighted = fitted(estimator, X + X[:2], y + y[:2], sample_weight=weight)
    assert_close_predictions(fitted(estimator), weighted, X)


@needs("sample_weight")
def check_bad_weights_raise(estimator: Any, X: Tokens, y: Labels) -> None:
    """Weights of the wrong number, or that are negative, NaN, infinite or all 0, are refused."""
    n = len(X)
    cases: tuple[tuple[list[float], tuple[str, ...]], ...] = (
        ([1.0] * (n - 1), (str(n), str(n - 1), "sample_weight")),
        ([1.0, -1.0] + [1.0] * (n - 2), ("sequence 1", "-1")),
        ([np.nan] + [1.0] * (n - 1), ("sequence 0", "nan")),
        ([1.0] * (n - 1) + [np.inf], (f"sequence {n - 1}", "inf")),
        ([0.0] * n, ("weight", "0")),
    )
    for weight, parts in cases:
        with raises(ValueError, *parts, doing=f"fit with sample_weight={weight}"):
            fitted(estimator, X, y, sample_weight=weight)


@needs("sample_weight")
def check_weights_that_are_no_numbers_raise(estimator: Any, X: Tokens, y: Labels) -> None:
    """Weights that are text are refused, also where the text could be read as numbers."""
    for text in ("a", "1"):
        with raises(TypeError, "sample_weight", doing=f"fit with weights {text!r}"):
            fitted(estimator, X, y, sample_weight=[text] * len(X))


@needs("sample_weight")
def check_weights_are_routed(estimator: Any) -> None:
    """Weights reach ``fit`` through cross-validation by scikit-learn's metadata routing."""
    X = [[["p"], ["q"]]] * 6
    y = [["A", "A"]] + [["B", "B"]] * 2 + [["A", "A"]] * 3
    weight = np.array([9.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    with config_context(enable_metadata_routing=True):
        model = fresh(estimator).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=False)
        scores = cross_val_score(model, X, y, cv=2, params={"sample_weight": weight})
    # Without weights the first fold would teach B, and score 0 on the second.
    np.testing.assert_allclose(scores, [1 / 3, 1.0])

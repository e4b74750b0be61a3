"""Checks that bad input raises an error that says where and why."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp

from crfkit.testing._data import (
    Labels,
    Tokens,
    as_arrays,
    as_packed,
    call_each,
    fitted,
    fresh,
    make_data,
    raises,
)

BAD_VALUES = (np.nan, np.inf, -np.inf)


def check_other_number_of_sequences_raises(estimator: Any, X: Tokens, y: Labels) -> None:
    """X and y of different numbers of sequences are refused, naming both numbers."""
    for labels in (y[:-2], y + y[:1]):
        with raises(ValueError, str(len(X)), str(len(labels)), doing="fit(X, fewer or more y)"):
            fresh(estimator).fit(X, labels)


def check_other_lengths_raise(estimator: Any, X: Tokens, y: Labels) -> None:
    """A sequence whose numbers of tokens and labels differ is refused by its number."""
    for labels in (y[2][:-1], [*y[2], "N"]):
        with raises(ValueError, "sequence 2", str(len(labels)), doing="fit with another length"):
            fresh(estimator).fit(X, [*y[:2], labels, *y[3:]])


def check_lengths_are_checked_after_fit(model: Any, X: Tokens, y: Labels) -> None:
    """Methods that compare X with y refuse what does not match."""
    for name, call in call_each(model, X, [*y[:2], y[2][:-1], *y[3:]]):
        if name in ("score", "sequence_log_proba"):
            with raises(ValueError, "sequence 2", doing=f"{name} with another length"):
                call()


def check_bad_values_in_dicts_raise(estimator: Any) -> None:
    """A NaN or infinite value is refused with its sequence, position and feature."""
    for value in BAD_VALUES:
        X, y = make_data()
        X[2][1]["size"] = value
        for doing, call in _fit_and_predict(estimator, X, y):
            with raises(ValueError, "sequence 2", "position 1", "size", str(value), doing=doing):
                call()


def check_bad_values_in_matrices_raise(estimator: Any) -> None:
    """A NaN or infinite value in an array, or in a sparse matrix, is refused with its place."""
    for value, convert in product(BAD_VALUES, (np.copy, sp.csr_array)):
        X, y = make_data()
        arrays = as_arrays(X)
        good = list(map(convert, arrays))
        arrays[2][1, 3] = value
        for doing, call in _fit_and_predict(estimator, list(map(convert, arrays)), y, good):
            with raises(ValueError, "sequence 2", "position 1", "feature 3", doing=doing):
                call()


def _fit_and_predict(
    estimator: Any, X: Any, y: Any, good: Any = None
) -> list[tuple[str, Callable[[], Any]]]:
    """Return calls that get X: fit, and the methods of a model fitted on good data."""
    model = fitted(estimator, good, y) if good is not None else fitted(estimator)
    return [("fit", lambda: fresh(estimator).fit(X, y)), *call_each(model, X, y)]


def check_values_that_are_no_numbers_raise(estimator: Any, X: Tokens, y: Labels) -> None:
    """Complex numbers, and text in arrays, are refused and not converted silently."""
    for dtype in (complex, str):
        arrays = [array.astype(dtype) for array in as_arrays(X)]
        with raises((TypeError, ValueError), "sequence 0", doing=f"fit on arrays of {dtype}"):
            fresh(estimator).fit(arrays, y)


def check_none_values_raise(estimator: Any, X: Tokens, y: Labels) -> None:
    """A feature without a value is refused with its sequence, position and name."""
    X[2][1]["word"] = None
    with raises(TypeError, "sequence 2", "position 1", "word", "None", doing="fit with None"):
        fresh(estimator).fit(X, y)


def check_no_training_data_raise(estimator: Any, X: Tokens) -> None:
    """No sequences cannot be learned from."""
    for form in (X[:0], as_packed(X)[:0]):
        with raises(ValueError, "no sequences", doing="fit without sequences"):
            fresh(estimator).fit(form, [])


def check_empty_training_sequence_raises(estimator: Any, X: Tokens, y: Labels) -> None:
    """A training sequence of no tokens is refused by its number."""
    with raises(ValueError, "sequence 1", "no tokens", doing="fit with an empty sequence"):
        fresh(estimator).fit([X[0], [], X[1]], [y[0], [], y[1]])


def check_strings_as_sequences_raise(estimator: Any, model: Any, X: Tokens, y: Labels) -> None:
    """A string is not taken for a sequence of characters."""
    calls: tuple[Callable[[], Any], ...] = (
        lambda: fresh(estimator).fit("abc", y),
        lambda: fresh(estimator).fit(["abc"], [["A", "B", "C"]]),
        lambda: fresh(estimator).fit(X, "DNV"),
        lambda: fresh(estimator).fit(X[1:2], ["DNV"]),
        lambda: model.predict("abc"),
        lambda: model.predict(["abc"]),
        lambda: model.score(X[1:2], ["DNV"]),
    )
    for call in calls:
        with raises(TypeError, "sequence", doing="a string as sequences"):
            call()


def check_strings_as_tokens_raise(estimator: Any, y: Labels) -> None:
    """A token that is a string is refused with its place: it has no attributes."""
    with raises(TypeError, "sequence 0", "position 0", "'the'", doing="fit on strings as tokens"):
        fresh(estimator).fit([["the", "dog", "runs"]], y[1:2])


def check_one_sequence_raises(estimator: Any, X: Tokens, y: Labels) -> None:
    """A single sequence where a list of sequences is meant is refused."""
    with raises(TypeError, "list of sequences", doing="fit on one sequence"):
        fresh(estimator).fit(X[0], y[0])
    with raises(TypeError, "list of sequences", doing="predict on one sequence"):
        fitted(estimator).predict(X[0])
    for doing, array in (("2-D", as_arrays(X)[0]), ("1-D", np.ones(3))):
        with raises((TypeError, ValueError), "sequence 0", doing=f"fit on one {doing} array"):
            fresh(estimator).fit(array, y)


def check_labels_that_are_none_raise(estimator: Any, X: Tokens, y: Labels) -> None:
    """A label that is None, NaN or not hashable is refused with its sequence and position."""
    for label, part in ((None, "None"), (np.nan, "nan"), (["V"], "hashable")):
        kind = TypeError if part == "hashable" else ValueError
        with raises(kind, "sequence 1", "position 2", part, doing=f"fit with the label {label}"):
            fresh(estimator).fit(X, [y[0], [*y[1][:2], label], *y[2:]])


def check_other_number_of_features_raises(estimator: Any, X: Tokens, y: Labels) -> None:
    """Another number of features than in training is refused, naming both numbers."""
    arrays = as_arrays(X)
    model = fitted(estimator, arrays, y)
    ours = arrays[0].shape[1]
    wider = [np.hstack([array, array[:, :1]]) for array in arrays]
    for form in (wider, [sp.csr_array(array) for array in wider]):
        for name, call in call_each(model, form, y):
            with raises(ValueError, str(ours), str(ours + 1), doing=f"{name} of wider arrays"):
                call()


def check_unequal_columns_raise(estimator: Any, X: Tokens, y: Labels) -> None:
    """Training arrays of different numbers of columns are refused with the sequence."""
    arrays = as_arrays(X)
    arrays[2] = arrays[2][:, :-1]
    with raises(ValueError, "sequence 2", str(arrays[0].shape[1]), doing="fit, unequal columns"):
        fresh(estimator).fit(arrays, y)


def check_mixed_forms_raise(estimator: Any, X: Tokens, y: Labels) -> None:
    """Arrays among dicts, and dicts among arrays, are refused with the sequence."""
    arrays = as_arrays(X)
    for mixed in ([*X[:2], arrays[2], *X[3:]], [*arrays[:2], X[2], *arrays[3:]]):
        with raises(TypeError, "sequence 2", doing="fit on dicts and arrays"):
            fresh(estimator).fit(mixed, y)


def check_dicts_to_a_model_of_arrays_raise(estimator: Any, X: Tokens, y: Labels) -> None:
    """A model without a vocabulary refuses tokens that need one."""
    model = fitted(estimator, as_arrays(X), y)
    for form in (X, [(token for token in sequence) for sequence in X]):
        with raises(
            TypeError, "vocabulary", "matrices", doing="predict dicts by a model of arrays"
        ):
            model.predict(form)

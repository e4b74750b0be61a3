"""Checks of the forms in which sequences, labels and weights may be given, and may not."""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from itertools import product
from operator import methodcaller
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import config_context
from sklearn.model_selection import cross_val_score

from crfkit.data import LabelSequences, PackedSequences
from crfkit.data.labels import object_array
from crfkit.testing._data import (
    REPEATS,
    ROUNDING,
    Check,
    Labels,
    Tokens,
    as_arrays,
    as_packed,
    as_sparse,
    as_strings,
    assert_same_predictions,
    call_each,
    fitted,
    fresh,
    make_data,
    needs,
    raises,
    read_only,
    relabel,
)


def _check_form(
    estimator: Any,
    convert: Callable[[Any], Any],
    convert_labels: Callable[[Any], Any] = list,
    *,
    equal: bool = False,
) -> None:
    """Sequences and labels in another form give the model of the lists of dicts."""
    X, y = make_data(equal=equal)
    model = fitted(estimator, convert(X), convert_labels(y))
    assert_same_predictions(fitted(estimator, X, y), model, X, convert(X))


def check_strings_and_packed_as_dicts(estimator: Any) -> None:
    """Lists and sets of attribute strings, and packed sequences, give the model of the dicts."""
    for convert in (as_strings, _as_sets, as_packed):
        _check_form(estimator, convert)


def _as_sets(X: Tokens) -> list[list[set[str]]]:
    return [list(map(set, sequence)) for sequence in as_strings(X)]


def check_sparse_matrices_as_packed(estimator: Any, X: Tokens, y: Labels) -> None:
    """One sparse matrix a sequence gives the model of the packed sequences."""
    model = fitted(estimator, as_sparse(X), y)
    assert_same_predictions(fitted(estimator, as_packed(X), y), model, as_packed(X), as_sparse(X))


def _check_matrices(
    estimator: Any, form: Callable[[Any], list[Any]], *converts: Callable[[Any], Any]
) -> None:
    """Matrices that are stored in other ways give the same model."""
    X, y = make_data()
    matrices = form(X)
    model = fitted(estimator, matrices, y)
    for convert in converts:
        others = list(map(convert, matrices))
        assert_same_predictions(model, fitted(estimator, others, y), matrices, others)


def check_sparse_formats(estimator: Any) -> None:
    """Sparse arrays and matrices of other formats are read as CSR arrays."""
    _check_matrices(estimator, as_sparse, sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_array)


def check_arrays_as_packed(estimator: Any, X: Tokens, y: Labels) -> None:
    """One dense array a sequence gives the model of the same values stored sparsely."""
    model = fitted(estimator, as_arrays(X), y)
    assert_same_predictions(fitted(estimator, as_sparse(X), y), model, as_arrays(X), atol=ROUNDING)


def check_three_dimensional_array(estimator: Any) -> None:
    """An array of shape (S, T, D) is read as S arrays of shape (T, D)."""
    X, y = make_data(equal=True)
    block = np.stack(as_arrays(X))
    model = fitted(estimator, as_arrays(X), y)
    assert_same_predictions(model, fitted(estimator, block, y), as_arrays(X), block)


def check_one_model_predicts_all_forms(model: Any, X: Tokens) -> None:
    """A model of dicts predicts strings and packed sequences of its attributes alike."""
    for form in (as_strings(X), as_packed(X), as_sparse(X)):
        assert_same_predictions(model, model, X, form)


def check_generators(estimator: Any, X: Tokens, y: Labels) -> None:
    """Generators of sequences, or also of their tokens, are read as lists, in prediction too."""
    for inner in (list, lambda sequence: (each for each in sequence)):
        model = fitted(estimator, (inner(s) for s in X), (inner(s) for s in y))
        assert_same_predictions(fitted(estimator), model, X)
        assert model.predict(inner(s) for s in X) == model.predict(X)
        assert model.score((inner(s) for s in X), (inner(s) for s in y)) == model.score(X, y)


def check_containers(estimator: Any) -> None:
    """Tuples, and arrays of objects, are read as lists, also where the lengths are equal."""
    for equal, convert in product((False, True), (_as_tuples, object_array)):
        _check_form(estimator, convert, convert, equal=equal)


def _as_tuples(sequences: Iterable[Any]) -> tuple[tuple[Any, ...], ...]:
    return tuple(map(tuple, sequences))


def check_object_arrays_of_tokens(estimator: Any) -> None:
    """A sequence may be an array of tokens, which is no matrix."""
    convert = partial(np.array, dtype=object)
    _check_form(estimator, convert, convert, equal=True)


def check_label_containers(estimator: Any, model: Any, X: Tokens, y: Labels) -> None:
    """Labels may be lists, tuples, arrays, arrays of objects or what ``predict`` returned."""
    arrays = [np.array(labels) for labels in y]
    for labels in (arrays, object_array(y), object_array(arrays), LabelSequences(y)):
        assert_same_predictions(model, fitted(estimator, X, labels), X)
        assert model.score(X, labels) == model.score(X, y)


def check_two_dimensional_labels(estimator: Any) -> None:
    """Labels of sequences of equal length may be a 2-D array."""
    _check_form(estimator, list, np.array, equal=True)


def check_read_only_input(estimator: Any, X: Tokens, y: Labels) -> None:
    """Read-only arrays, as joblib's memory maps, are accepted in every form."""
    forms = (as_packed(X), PackedSequences.from_matrices(as_arrays(X)), as_sparse(X), as_arrays(X))
    for form in forms:
        model = fitted(estimator, form, y)
        other = fitted(estimator, read_only(form), read_only(y))
        assert_same_predictions(model, other, form, read_only(form))


def check_types_and_layouts_of_arrays(estimator: Any) -> None:
    """Arrays of other types, in Fortran order, strided or reversed give the same model."""
    _check_matrices(
        estimator,
        as_arrays,
        *(methodcaller("astype", kind) for kind in ("f4", "i8", "i1", "u2", bool)),
        np.asfortranarray,
        lambda array: np.repeat(array, 2, axis=1)[:, ::2],
        lambda array: array[::-1].copy()[::-1],
    )


def check_feature_names(estimator: Any, X: Tokens, y: Labels) -> None:
    """``n_features_in_`` counts the attributes, ``feature_names_in_`` names them if known."""
    names = as_packed(X).feature_names
    assert names is not None
    for form in (X, as_packed(X)):
        model = fitted(estimator, form, y)
        assert model.n_features_in_ == len(names)
        assert list(model.feature_names_in_) == list(names)
    unnamed = fitted(estimator, as_arrays(X), y)
    assert unnamed.n_features_in_ == len(names) and not hasattr(unnamed, "feature_names_in_")


def check_other_feature_names_raise(estimator: Any, X: Tokens, y: Labels) -> None:
    """Packed sequences whose features have other names, or another order, are refused."""
    packed = as_packed(X)
    assert packed.feature_names is not None
    turned = PackedSequences.from_flat(
        packed.to_csr()[:, ::-1], packed.lengths, list(packed.feature_names[::-1])
    )
    with raises(ValueError, "name", doing="predict with the features in another order"):
        fitted(estimator, packed, y).predict(turned)


def check_labels_bool(estimator: Any, X: Tokens, y: Labels) -> None:
    """Labels may be booleans and come back as such."""
    flags = [[label == "N" for label in labels] for labels in y]
    predicted = fitted(estimator, X, flags).predict(X)
    assert {type(label) for labels in predicted for label in labels} == {bool}


_Color = enum.Enum("_Color", ["RED", "GREEN", "BLUE"])
_LABELS: dict[str, tuple[str, tuple[Hashable, ...]]] = {
    "str": (
        "strings beyond ASCII, of several code points, and empty",
        ("", "名詞", "🏃\u200d♀\ufe0f"),
    ),
    "int": ("integers, negative ones too, and come back as Python integers", (-5, 0, 7)),
    "float": ("floats", (-0.5, 0.0, 1e300)),
    "bytes": ("bytes", (b"d", b"\0", b"\xff")),
    "tuple": ("tuples, also of different lengths", (("a", 1), ("a", 2), ("b",))),
    "enum": ("members of an enumeration, which cannot be sorted", tuple(_Color)),
    "mixed": ("of types that cannot be compared with each other", ("D", 2, ("v", None))),
}


def _labels_of(kind: str, what: str, labels: tuple[Hashable, ...]) -> Check:
    """Return a check that labels come back as they were, and their kind makes no difference."""
    names = dict(zip("DNV", labels, strict=True))

    def check(estimator: Any) -> None:
        X, y = make_data()
        model = fitted(estimator, X, relabel(y, names))
        assert set(model.classes_.tolist()) == set(labels)
        predicted = model.predict(X)
        assert predicted == relabel(fitted(estimator).predict(X), names), "the kind matters"
        kinds = {type(label) for row in predicted for label in row}
        assert kinds <= set(map(type, labels)), f"labels came back as {kinds}"

    check.__name__, check.__doc__ = f"check_labels_{kind}", f"Labels may be {what}."
    return check


LABEL_CHECKS = tuple(_labels_of(kind, *case) for kind, case in _LABELS.items())


def check_labels_numpy(estimator: Any, X: Tokens, y: Labels) -> None:
    """NumPy's strings and numbers are the same labels as Python's and come back as those."""
    scalars = [[np.str_(label) for label in labels] for labels in y]
    model = fitted(estimator, X, scalars)
    assert_same_predictions(fitted(estimator), model, X)
    codes = relabel(y, {"D": 0, "N": 1, "V": 2})
    predicted = fitted(estimator, X, [np.array(row) for row in codes]).predict(X)
    for labels in (*model.predict(X), *predicted):
        assert all(type(label) in (str, int) for label in labels)


def check_classes(estimator: Any, X: Tokens, y: Labels) -> None:
    """``classes_`` is a 1-D array of the labels, sorted whatever their order in the data."""
    for form in (y, y[::-1]):
        classes = fitted(estimator, X if form is y else X[::-1], form).classes_
        assert isinstance(classes, np.ndarray) and classes.ndim == 1
        assert classes.tolist() == ["D", "N", "V"]


@needs("sample_weight")
def check_weights_of_one(estimator: Any, model: Any, X: Tokens, y: Labels) -> None:
    """Weights of 1, for sequences or tokens, are as good as none."""
    per_token = [np.ones(len(labels)) for labels in y]
    for weight in (np.ones(len(X)), per_token):
        assert_same_predictions(model, fitted(estimator, X, y, sample_weight=weight), X)


@needs("sample_weight")
def check_weight_containers(estimator: Any, X: Tokens, y: Labels) -> None:
    """Weights may be in any container, of any type of numbers, and those of all tokens."""
    weight = np.arange(1.0, len(X) + 1)
    per_token = [np.full(len(labels), w) for labels, w in zip(y, weight, strict=True)]
    model = fitted(estimator, X, y, sample_weight=weight)
    np.testing.assert_array_equal(weight, np.arange(1.0, len(X) + 1), "fit changed the weights")
    numbers = (weight.astype(int), weight.astype(np.float32))
    for other in (list(weight), tuple(weight), *numbers, per_token):
        assert_same_predictions(model, fitted(estimator, X, y, sample_weight=other), X)


@needs("sample_weight")
def check_weights_are_used(estimator: Any) -> None:
    """Of two labelings of the same sequence the heavier one is learned."""
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
    assert_same_predictions(plain, weighted, X, atol=ROUNDING)


@needs("sample_weight", "predict_proba", REPEATS)
def check_weight_zero_leaves_out(estimator: Any, X: Tokens, y: Labels) -> None:
    """A sequence of weight 0 is as good as left out, where others have its features too."""
    weight = [1.0] * len(X) + [0.0] * 2
    weighted = fitted(estimator, X + X[:2], y + y[:2], sample_weight=weight)
    assert_same_predictions(fitted(estimator), weighted, X, atol=ROUNDING)


@needs("sample_weight")
def check_bad_weights_raise(estimator: Any, X: Tokens, y: Labels) -> None:
    """Weights of the wrong number, negative, NaN, infinite, all 0 or that are text are refused."""
    n = len(X)
    cases: tuple[tuple[list[Any], tuple[str, ...]], ...] = (
        ([1.0] * (n - 1), (str(n), str(n - 1), "sample_weight")),
        ([1.0, -1.0] + [1.0] * (n - 2), ("sequence 1", "-1")),
        ([np.nan] + [1.0] * (n - 1), ("sequence 0", "nan")),
        ([1.0] * (n - 1) + [np.inf], (f"sequence {n - 1}", "inf")),
        ([0.0] * n, ("weight", "0")),
        (["a"] * n, ("sample_weight",)),
        (["1"] * n, ("sample_weight",)),  # also where text could be read as numbers
    )
    for weight, parts in cases:
        kind = TypeError if isinstance(weight[0], str) else ValueError
        with raises(kind, *parts, doing=f"fit with sample_weight={weight}"):
            fitted(estimator, X, y, sample_weight=weight)


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

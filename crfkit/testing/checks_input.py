"""Checks of the forms in which sequences and labels may be given."""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import scipy.sparse as sp

from crfkit.data import LabelSequences, PackedSequences
from crfkit.testing._data import (
    as_arrays,
    as_objects,
    as_packed,
    as_sparse,
    as_strings,
    assert_close_predictions,
    assert_same_predictions,
    fitted,
    make_data,
    raises,
    read_only,
    relabel,
)

Check = Callable[[Any], None]


def check_strings_as_dicts(estimator: Any) -> None:
    """Lists of attribute strings give the model of the dicts with these attributes."""
    X, y = make_data()
    model = fitted(estimator, as_strings(X), y)
    assert_same_predictions(fitted(estimator), model, X, as_strings(X))


def check_sets_as_dicts(estimator: Any) -> None:
    """Sets of attribute strings give the model of the dicts with these attributes."""
    X, y = make_data()
    sets = [[set(token) for token in sequence] for sequence in as_strings(X)]
    assert_same_predictions(fitted(estimator), fitted(estimator, sets, y), X, sets)


def check_packed_as_dicts(estimator: Any) -> None:
    """Packed sequences give the model of the dicts they were made from."""
    X, y = make_data()
    model = fitted(estimator, as_packed(X), y)
    assert_same_predictions(fitted(estimator), model, X, as_packed(X))


def check_sparse_matrices_as_packed(estimator: Any) -> None:
    """One sparse matrix a sequence gives the model of the packed sequences."""
    X, y = make_data()
    model = fitted(estimator, as_sparse(X), y)
    assert_same_predictions(fitted(estimator, as_packed(X), y), model, as_packed(X), as_sparse(X))


def check_sparse_formats(estimator: Any) -> None:
    """Sparse arrays and matrices of other formats are read as CSR arrays."""
    X, y = make_data()
    rows = as_sparse(X)
    model = fitted(estimator, rows, y)
    for convert in (sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_array):
        others = [convert(matrix) for matrix in rows]
        assert_same_predictions(model, fitted(estimator, others, y), rows, others)


def check_arrays_as_packed(estimator: Any) -> None:
    """One dense array a sequence gives the model of the same values stored sparsely."""
    X, y = make_data()
    model = fitted(estimator, as_arrays(X), y)
    assert_close_predictions(fitted(estimator, as_sparse(X), y), model, as_arrays(X))


def check_three_dimensional_array(estimator: Any) -> None:
    """An array of shape (S, T, D) is read as S arrays of shape (T, D)."""
    X, y = make_data(equal=True)
    block = np.stack(as_arrays(X))
    model = fitted(estimator, as_arrays(X), y)
    assert_same_predictions(model, fitted(estimator, block, y), as_arrays(X), block)


def check_one_model_predicts_all_forms(estimator: Any) -> None:
    """A model of dicts predicts strings and packed sequences of its attributes alike."""
    X, _ = make_data()
    model = fitted(estimator)
    for form in (as_strings(X), as_packed(X), as_sparse(X)):
        assert_same_predictions(model, model, X, form)


def check_generators(estimator: Any) -> None:
    """Generators of sequences give the model of the lists, in ``fit`` and in prediction."""
    X, y = make_data()
    model = fitted(estimator, (s for s in X), (s for s in y))
    assert_same_predictions(fitted(estimator), model, X)
    assert model.predict(s for s in X) == model.predict(X)
    assert model.score((s for s in X), (s for s in y)) == model.score(X, y)


def check_generators_of_tokens(estimator: Any) -> None:
    """Sequences that are themselves generators are read as lists."""
    X, y = make_data()
    model = fitted(estimator, ((t for t in s) for s in X), ((k for k in s) for s in y))
    assert_same_predictions(fitted(estimator), model, X)
    assert model.predict((t for t in s) for s in X) == model.predict(X)


def check_tuples(estimator: Any) -> None:
    """Tuples are read as lists, on both levels."""
    X, y = make_data()
    packed = tuple(tuple(sequence) for sequence in X)
    model = fitted(estimator, packed, tuple(tuple(labels) for labels in y))
    assert_same_predictions(fitted(estimator), model, X, packed)


def check_object_arrays(estimator: Any) -> None:
    """Arrays of objects are read as lists, also where the lengths are equal."""
    for equal in (False, True):
        X, y = make_data(equal=equal)
        model = fitted(estimator, as_objects(X), as_objects(y))
        assert_same_predictions(fitted(estimator, X, y), model, X, as_objects(X))


def check_object_arrays_of_tokens(estimator: Any) -> None:
    """A sequence may be an array of tokens, which is no matrix."""
    X, y = make_data(equal=True)
    rows = np.array(X, dtype=object)
    model = fitted(estimator, rows, np.array(y, dtype=object))
    assert_same_predictions(fitted(estimator, X, y), model, X, rows)


def check_label_containers(estimator: Any) -> None:
    """Labels may be lists, tuples, arrays, arrays of objects or what ``predict`` returned."""
    X, y = make_data()
    model = fitted(estimator)
    arrays = [np.array(labels) for labels in y]
    for labels in (arrays, as_objects(y), as_objects(arrays), LabelSequences(y)):
        assert_same_predictions(model, fitted(estimator, X, labels), X)
        assert model.score(X, labels) == model.score(X, y)


def check_two_dimensional_labels(estimator: Any) -> None:
    """Labels of sequences of equal length may be a 2-D array."""
    X, y = make_data(equal=True)
    assert_same_predictions(fitted(estimator, X, y), fitted(estimator, X, np.array(y)), X)


def check_read_only_input(estimator: Any) -> None:
    """Read-only arrays, as joblib's memory maps, are accepted in every form."""
    X, y = make_data()
    forms = (as_packed(X), PackedSequences.from_matrices(as_arrays(X)), as_sparse(X), as_arrays(X))
    for form in forms:
        model = fitted(estimator, form, y)
        other = fitted(estimator, read_only(form), read_only(y))
        assert_same_predictions(model, other, form, read_only(form))


def check_dtypes(estimator: Any) -> None:
    """Arrays of float32, integers and booleans give the model of float64."""
    X, y = make_data()
    arrays = as_arrays(X)
    model = fitted(estimator, arrays, y)
    for dtype in (np.float32, np.int64, np.int8, np.uint16, bool):
        others = [array.astype(dtype) for array in arrays]
        assert_same_predictions(model, fitted(estimator, others, y), arrays, others)


def check_memory_layouts(estimator: Any) -> None:
    """Arrays in Fortran order, strided or reversed give the model of the contiguous ones."""
    X, y = make_data()
    arrays = as_arrays(X)
    model = fitted(estimator, arrays, y)
    layouts: tuple[Callable[[Any], Any], ...] = (
        np.asfortranarray,
        lambda array: np.repeat(array, 2, axis=1)[:, ::2],
        lambda array: array[::-1].copy()[::-1],
    )
    for layout in layouts:
        others = [layout(array) for array in arrays]
        assert_same_predictions(model, fitted(estimator, others, y), arrays, others)


def check_feature_names(estimator: Any) -> None:
    """``n_features_in_`` counts the attributes, ``feature_names_in_`` names them if known."""
    X, y = make_data()
    names = as_packed(X).feature_names
    assert names is not None
    for form in (X, as_packed(X)):
        model = fitted(estimator, form, y)
        assert model.n_features_in_ == len(names)
        assert list(model.feature_names_in_) == list(names)
    unnamed = fitted(estimator, as_arrays(X), y)
    assert unnamed.n_features_in_ == len(names) and not hasattr(unnamed, "feature_names_in_")


def check_other_feature_names_raise(estimator: Any) -> None:
    """Packed sequences whose features have other names, or another order, are refused."""
    X, y = make_data()
    packed = as_packed(X)
    assert packed.feature_names is not None
    turned = PackedSequences.from_flat(
        packed.to_csr()[:, ::-1], packed.lengths, list(packed.feature_names[::-1])
    )
    with raises(ValueError, "name", doing="predict with the features in another order"):
        fitted(estimator, packed, y).predict(turned)


def _check_labels(estimator: Any, names: dict[str, Hashable]) -> None:
    """Labels come back as they were, and their kind does not change the model."""
    X, y = make_data()
    renamed = relabel(y, names)
    model = fitted(estimator, X, renamed)
    assert set(model.classes_.tolist()) == set(names.values())
    predicted = model.predict(X)
    assert predicted == relabel(fitted(estimator).predict(X), names), "the kind of label matters"
    kinds = {type(label) for labels in predicted for label in labels}
    assert kinds <= {type(label) for label in names.values()}, f"labels came back as {kinds}"


def check_labels_str(estimator: Any) -> None:
    """Labels may be strings beyond ASCII, of several code points, and empty."""
    _check_labels(estimator, {"D": "", "N": "名詞", "V": "🏃\u200d♀\ufe0f"})


def check_labels_int(estimator: Any) -> None:
    """Labels may be integers, negative ones too, and come back as Python integers."""
    _check_labels(estimator, {"D": -5, "N": 0, "V": 7})


def check_labels_float(estimator: Any) -> None:
    """Labels may be floats."""
    _check_labels(estimator, {"D": -0.5, "N": 0.0, "V": 1e300})


def check_labels_bool(estimator: Any) -> None:
    """Labels may be booleans and come back as such."""
    X, y = make_data()
    flags = [[label == "N" for label in labels] for labels in y]
    predicted = fitted(estimator, X, flags).predict(X)
    assert {type(label) for labels in predicted for label in labels} == {bool}


def check_labels_bytes(estimator: Any) -> None:
    """Labels may be bytes."""
    _check_labels(estimator, {"D": b"d", "N": b"\0", "V": b"\xff"})


def check_labels_tuple(estimator: Any) -> None:
    """Labels may be tuples, also of different lengths."""
    _check_labels(estimator, {"D": ("a", 1), "N": ("a", 2), "V": ("b",)})


class _Color(enum.Enum):
    RED = 1
    GREEN = 2
    BLUE = 3


def check_labels_enum(estimator: Any) -> None:
    """Labels may be members of an enumeration, which cannot be sorted."""
    _check_labels(estimator, {"D": _Color.RED, "N": _Color.GREEN, "V": _Color.BLUE})


def check_labels_mixed(estimator: Any) -> None:
    """Labels may be of types that cannot be compared with each other."""
    _check_labels(estimator, {"D": "D", "N": 2, "V": ("v", None)})


def check_labels_numpy(estimator: Any) -> None:
    """NumPy's strings and numbers are the same labels as Python's and come back as those."""
    X, y = make_data()
    scalars = [[np.str_(label) for label in labels] for labels in y]
    model = fitted(estimator, X, scalars)
    assert_same_predictions(fitted(estimator), model, X)
    codes = relabel(y, {"D": 0, "N": 1, "V": 2})
    predicted = fitted(estimator, X, [np.array(row) for row in codes]).predict(X)
    for labels in (*model.predict(X), *predicted):
        assert all(type(label) in (str, int) for label in labels)


def check_classes(estimator: Any) -> None:
    """``classes_`` is a 1-D array of the labels, sorted whatever their order in the data."""
    X, y = make_data()
    for form in (y, y[::-1]):
        classes = fitted(estimator, X if form is y else X[::-1], form).classes_
        assert isinstance(classes, np.ndarray) and classes.ndim == 1
        assert classes.tolist() == ["D", "N", "V"]


INPUT_CHECKS: tuple[Check, ...] = (
    check_strings_as_dicts,
    check_sets_as_dicts,
    check_packed_as_dicts,
    check_sparse_matrices_as_packed,
    check_sparse_formats,
    check_arrays_as_packed,
    check_three_dimensional_array,
    check_one_model_predicts_all_forms,
    check_generators,
    check_generators_of_tokens,
    check_tuples,
    check_object_arrays,
    check_object_arrays_of_tokens,
    check_label_containers,
    check_two_dimensional_labels,
    check_read_only_input,
    check_dtypes,
    check_memory_layouts,
    check_feature_names,
    check_other_feature_names_raise,
    check_labels_str,
    check_labels_int,
    check_labels_float,
    check_labels_bool,
    check_labels_bytes,
    check_labels_tuple,
    check_labels_enum,
    check_labels_mixed,
    check_labels_numpy,
    check_classes,
)

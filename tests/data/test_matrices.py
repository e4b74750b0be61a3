"""Matrices that would read or write outside their arrays, and those that only look odd."""

import numpy as np
import pytest
import scipy.sparse as sp

from crfkit import CRFClassifier, PackedSequences, SequenceVectorizer, TemplateFeatures
from crfkit.features import SymbolVectorizer


def with_column(kind, column):
    """Return an identity with its last entry in another column (row, of one by columns)."""
    matrix = sp.eye_array(3).asformat(kind)
    places = matrix.coords[1] if kind == "coo" else matrix.indices
    places[-1] = column
    return matrix


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo"])
@pytest.mark.parametrize("column", [-5, -1, 3, 99, 10**7])
def test_an_entry_outside_the_shape_is_an_error(kind, column):
    side = "row" if kind == "csc" else "column"
    with pytest.raises(ValueError, match=f"the sparse block is a damaged.* {side} {column}, but"):
        PackedSequences.from_flat(with_column(kind, column), [3])


def test_a_model_names_the_sequence_of_an_entry_outside_the_shape():
    X, y = [sp.eye_array(3, format="csr")] * 2, [["A", "B", "A"]] * 2
    model = CRFClassifier().fit(X, y)
    damaged = [X[0], with_column("csr", 99)]
    for call in (model.predict, model.predict_proba, lambda X: CRFClassifier().fit(X, y)):
        with pytest.raises(ValueError, match="sequence 1 of X is a damaged sparse matrix"):
            call(damaged)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo"])
@pytest.mark.parametrize(
    "reader", [SequenceVectorizer(), TemplateFeatures(["w"], columns=["w"]), SymbolVectorizer()]
)
def test_no_matrix_is_read_as_tokens_which_would_not_look_at_bounds(reader, kind):
    with pytest.raises(TypeError, match="sequence 1 of X is a sparse matrix, where tokens are"):
        reader.fit_transform([["a"], with_column(kind, 10**7)])


def test_a_matrix_that_is_a_dict_too_is_a_sequence():
    X = [sp.eye_array(3, format="dok"), sp.eye_array(3, format="csr")]
    proba = CRFClassifier().fit(X, [["A", "B", "A"]] * 2).predict_proba(X)
    np.testing.assert_array_equal(proba[0], proba[1])


@pytest.mark.parametrize(
    ("pack", "what"),
    [(PackedSequences.from_flat, "lengths"), (PackedSequences.from_groups, "groups")],
)
def test_masked_lengths_and_groups_are_refused(pack, what):
    numbers = np.ma.masked_equal([1, 1, 2], 2)
    with pytest.raises(ValueError, match=f"{what} has masked values"):
        pack(np.eye(4)[: 4 if what == "lengths" else 3], numbers)


def test_a_list_of_rows_is_that_of_each():
    random = np.random.default_rng(0)
    blocks = [(random.random((size, 4)) < 0.4) * random.random((size, 4)) for size in (3, 0, 1, 5)]
    for kind in (sp.csr_array, sp.csr_matrix):
        packed = PackedSequences.from_matrices(map(kind, blocks))
        np.testing.assert_array_equal(packed.lengths, [3, 0, 1, 5])
        np.testing.assert_array_equal(packed.to_csr().toarray(), np.vstack(blocks))
        assert packed == PackedSequences.from_matrices([sp.csc_array(block) for block in blocks])


@pytest.mark.parametrize("pointers", [[0, 2, 1, 3], [1, 1, 2, 3], [0, 1, 2, 4], [0, 1, 2, 2]])
def test_a_list_of_rows_names_the_one_with_wrong_pointers(pointers):
    good, bad = sp.eye_array(3, format="csr"), sp.eye_array(3, format="csr")
    bad.indptr = np.array(pointers, np.int32)
    if pointers[-1] < 3:  # entries that no row has are left out, as SciPy does
        packed = PackedSequences.from_matrices([good, bad, good])
        assert packed.to_csr().nnz == 8
        return
    with pytest.raises(ValueError, match="sequence 1 of X is a damaged sparse matrix"):
        PackedSequences.from_matrices([good, bad, good])


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
@pytest.mark.parametrize(
    "pointers", [[0, 2, 1, 3], [1, 1, 2, 3], [0, 1, 2, 4], [0, 1, 3], [0, -1, 2, 3], [0, 0, 0, 1e9]]
)
def test_pointers_that_do_not_rise_through_the_entries_are_an_error(kind, pointers):
    matrix = sp.eye_array(3).asformat(kind)
    matrix.indptr = np.array(pointers, np.int32)
    with pytest.raises(ValueError, match="damaged sparse matrix: its indptr must rise from 0"):
        PackedSequences.from_flat(matrix, [3])


def test_places_that_are_not_whole_are_an_error():
    for name in ("indices", "indptr"):
        matrix = sp.eye_array(3, format="csr")
        setattr(matrix, name, getattr(matrix, name).astype(float))
        with pytest.raises(ValueError, match="damaged sparse matrix"):
            PackedSequences.from_flat(matrix, [3])


def test_fewer_values_than_columns_are_an_error():
    matrix = sp.eye_array(3, format="csr")
    matrix.data = matrix.data[:2]
    with pytest.raises(ValueError, match="damaged sparse matrix"):
        PackedSequences.from_flat(matrix, [3])


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_entries_in_any_order_count_as_their_sum(index_type):
    indices, pointers = np.array([2, 0, 2, 1, 1], index_type), np.array([0, 3, 3, 5], index_type)
    values = np.array([1.0, 2.0, 3.0, 4.0, -4.0])
    matrix = sp.csr_array((values, indices, pointers), shape=(3, 3))
    matrix.indices, matrix.indptr = indices, pointers  # not converted to the smaller type
    packed = PackedSequences.from_flat(matrix, [3])
    np.testing.assert_array_equal(packed.to_csr().toarray(), [[2, 0, 4], [0, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(matrix.indices, [2, 0, 2, 1, 1])  # of the user, and stays so


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("number", [bool, np.int8, np.uint8])
def test_entries_of_one_place_are_added_up_as_floats(kind, number):
    values, rows, columns = np.array([1, 1, 100, 100]).astype(number), [0, 0, 1, 1], [1, 1, 2, 2]
    matrix = sp.coo_array((values, (rows, columns)), shape=(3, 3))
    if kind != "coo":
        places = {"csr": (columns, [0, 2, 4, 4]), "csc": (rows, [0, 0, 2, 4])}[kind]
        matrix = {"csr": sp.csr_array, "csc": sp.csc_array}[kind]((values, *places), shape=(3, 3))
    packed = PackedSequences.from_matrices([matrix])
    most = 2 if number is bool else 200
    np.testing.assert_array_equal(packed.to_csr().toarray(), [[0, 2, 0], [0, 0, most], [0] * 3])


def test_a_matrix_that_was_in_order_once_is_looked_at_again():
    matrix = sp.csr_array((np.ones(3), [0, 1, 2], [0, 2, 3, 3]), shape=(3, 3))
    assert matrix.has_canonical_format  # remembered by SciPy
    matrix.indices[0] = 1
    packed = PackedSequences.from_flat(matrix, [3])
    assert packed.to_csr().toarray()[0].tolist() == [0.0, 2.0, 0.0]
    assert np.all(np.diff(packed.indptr) == [1, 1, 0])


def test_room_behind_the_entries_is_not_read():
    matrix = sp.csr_array((np.array([1.0, np.nan]), [0, 99], [0, 1, 1, 1]), shape=(3, 3))
    packed = PackedSequences.from_flat(matrix, [3])
    assert packed.to_csr().toarray().sum() == 1.0


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_named_in_any_format(kind, bad):
    values = np.eye(3)
    values[1, 1] = bad
    with pytest.raises(ValueError, match="sequence 1, position 0, feature 1: the value is"):
        PackedSequences.from_flat(sp.csr_array(values).asformat(kind), [1, 2])

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from crfkit import PackedSequences
from crfkit.data import Forest, PackedSegments, sequences_from_frame


@pytest.fixture(params=["sparse", "dense", "both", "ones"])
def packed(request, rng):
    x = rng.normal(size=(9, 4)) * (rng.random((9, 4)) < 0.5)
    x[0] = 0.0
    blocks = {
        "sparse": {"sparse": sp.csr_array(x)},
        "dense": {"dense": x},
        "both": {"sparse": sp.csr_array(x), "dense": rng.normal(size=(9, 2))},
        "ones": {"sparse": sp.csr_array((x != 0).astype(float))},
    }
    return PackedSequences(**blocks[request.param], offsets=[0, 3, 3, 4, 9])


def rows(packed):
    return [np.asarray(m.todense()) if sp.issparse(m) else m for m in packed]


def assert_rows_equal(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(rows(found), expected, strict=True):
        np.testing.assert_array_equal(a, b)


KEYS = [
    slice(None), slice(1, 3), slice(None, None, -1), slice(2, 2), [3, 0, 0], np.array([1, 2]),
    np.array([], dtype=int), [], [True, False, False, True], np.array([-1, -2]),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indexing_is_that_of_an_array_of_sequences(packed, key):
    expected = rows(packed)
    index = np.arange(4)[key if not isinstance(key, list) or key else slice(0, 0)]
    chosen = packed[key]
    assert isinstance(chosen, PackedSequences)
    assert_rows_equal(chosen, [expected[i] for i in index])
    assert chosen.n_features == packed.n_features


def test_an_integer_gives_one_sequence_as_a_matrix(packed):
    expected = rows(packed)
    for i in (0, -1, np.int64(2)):
        one = packed[i]
        one = one.todense() if sp.issparse(one) else one
        np.testing.assert_array_equal(np.asarray(one), expected[i])
    with pytest.raises(IndexError):
        packed[4]
    with pytest.raises(IndexError):
        packed[[True, False]]


def test_a_matrix_that_would_lose_attributes_is_not_given(packed):
    segments = PackedSegments(packed[[3]], packed.offsets, [0, 4], [2, 6], [0, 1])
    for whole, lost in (
        (packed.with_transitions(packed), "transitions"),
        (packed.with_segments(segments), "segments"),
        (packed.with_transitions(packed).with_segments(segments), "transitions and segments"),
    ):
        told = rf"lose the attributes of {lost}\. X\[\[3\]\] is a container of sequence 3"
        for key in (3, -1, np.int64(3)):
            with pytest.raises(TypeError, match=told):
                whole[key]
        with pytest.raises(TypeError, match=rf"lose the attributes of {lost}\. X\[\[0\]\]"):
            list(whole)
        one = whole[[3]]
        assert (one.transitions is None, one.segments is None) == (
            whole.transitions is None, whole.segments is None
        )  # fmt: skip
        assert_rows_equal(whole.with_transitions(None).with_segments(None), rows(packed))


def test_matrices_of_single_sequences_pack_to_the_same(packed):
    assert PackedSequences.from_matrices(list(packed)) == packed


@given(st.lists(st.integers(0, 5), max_size=6), st.data())
def test_slices_of_slices_agree(lengths, data):
    x = np.arange(2.0 * sum(lengths)).reshape(-1, 2)
    packed = PackedSequences.from_flat(sp.csr_array(x), lengths)
    index = st.lists(st.integers(0, max(len(lengths) - 1, 0)), max_size=5 if lengths else 0)
    first = data.draw(index)
    second = data.draw(st.lists(st.integers(0, max(len(first) - 1, 0)), max_size=5 if first else 0))
    assert packed[first][second] == packed[np.array(first, int)[np.array(second, int)]]


def test_pickles_and_copies_are_equal(packed):
    for again in (pickle.loads(pickle.dumps(packed)), copy.deepcopy(packed)):
        assert again == packed
        assert again is not packed


def test_shape_and_lengths(packed):
    assert packed.shape == (4,)
    assert packed.lengths.tolist() == [3, 0, 1, 5]
    assert packed.n_tokens == 9
    assert packed.to_csr().shape == (9, packed.n_features)


def test_repr_tells_sequences_tokens_attributes_and_bytes(packed):
    text = repr(packed)
    assert f"4 sequences, 9 tokens, {packed.n_features} attributes, {packed.nbytes:,} bytes" in text


def test_ones_are_not_stored(rng):
    ones = PackedSequences(sp.eye_array(5, format="csr"), offsets=[0, 5])
    assert ones.values is None
    np.testing.assert_array_equal(ones.sparse.todense(), np.eye(5))


def test_read_only_and_odd_layouts_are_taken(rng, packed):
    x = rng.normal(size=(6, 4))
    expected = PackedSequences(dense=x, offsets=[0, 6])
    frozen = x.copy()
    frozen.flags.writeable = False
    for form in (frozen, np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2]):
        made = PackedSequences(dense=form, offsets=np.array([0, 6]))
        assert made == expected
        assert made.dense.flags.c_contiguous
    matrix = sp.csr_array(x)
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.flags.writeable = False
    assert (PackedSequences(matrix, offsets=[0, 6]).to_csr() != sp.csr_array(x)).nnz == 0


def test_other_number_types_become_float64(rng):
    x = rng.integers(0, 5, size=(4, 3))
    for kind in (np.int8, np.float32, bool):
        made = PackedSequences(dense=x.astype(kind), offsets=[0, 4])
        np.testing.assert_array_equal(made.dense, x.astype(kind).astype(float))


def test_duplicate_and_explicit_zero_entries_are_cleaned():
    matrix = sp.coo_array(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    packed = PackedSequences(matrix, offsets=[0, 2])
    assert packed.indices.tolist() == [1]
    assert packed.values.tolist() == [3.0]


def test_groups_are_runs_of_equal_values():
    packed = PackedSequences.from_groups(np.eye(4), ["a", "a", "b", "c"])
    assert packed.lengths.tolist() == [2, 1, 1]
    with pytest.raises(ValueError, match="row 3: group 'a' comes back"):
        PackedSequences.from_groups(np.eye(4), ["a", "a", "b", "a"])
    assert len(PackedSequences.from_groups(np.zeros((0, 2)), [])) == 0


def test_frames_with_numbers_and_flags():
    df = pd.DataFrame({"doc": [1, 1, 2], "size": [0.5, 1.5, 2.5], "caps": [True, False, True]})
    packed = PackedSequences.from_frame(df, by="doc")
    assert packed.feature_names.tolist() == ["size", "caps"]
    np.testing.assert_array_equal(packed.dense, [[0.5, 1], [1.5, 0], [2.5, 1]])
    assert packed.lengths.tolist() == [2, 1]
    assert PackedSequences.from_frame(df, "doc", ["caps"]).n_features == 1
    with pytest.raises(ValueError, match="no column 'page'"):
        PackedSequences.from_frame(df, by="page")
    with pytest.raises(TypeError, match="column 'word'.*SequenceVectorizer"):
        PackedSequences.from_frame(df.assign(word="x"), by="doc")


def test_frames_as_sequences_of_dicts():
    df = pd.DataFrame({"doc": [1, 1, 2], "w": ["a", "b", "c"], "n": [1, 2, 3]})
    assert sequences_from_frame(df, by="doc", columns=["w"]) == [[{"w": "a"}, {"w": "b"}],
                                                                 [{"w": "c"}]]  # fmt: skip
    assert sequences_from_frame(df, by="doc")[1] == [{"w": "c", "n": 3}]


@pytest.mark.parametrize(
    ("blocks", "offsets", "message"),
    [
        ({}, [0], "needs a sparse block, a dense block, or both"),
        ({"dense": np.eye(3)}, [0, 2], "3 rows, but the offsets end at token 2"),
        ({"dense": np.eye(3)}, [1, 3], "starts with 0"),
        ({"dense": np.eye(3)}, [0, 4, 3], "never falls"),
        ({"dense": np.array([[1.0], [np.nan]])}, [0, 1, 2], "sequence 1, position 0, feature 0"),
        ({"sparse": sp.csr_array([[1.0, 0], [0, np.inf]])}, [0, 2],
         "sequence 0, position 1, feature 1: the value is inf"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_an_error(blocks, offsets, message):
    with pytest.raises(ValueError, match=message):
        PackedSequences(**blocks, offsets=offsets)


def test_missing_groups_and_frames_without_features_are_errors():
    with pytest.raises(ValueError, match="row 1: the group is missing"):
        PackedSequences.from_groups(np.eye(4), [1, np.nan, np.nan, 2])
    with pytest.raises(ValueError, match="no columns but 'doc'"):
        PackedSequences.from_frame(pd.DataFrame({"doc": [1, 2]}), by="doc")
    twice = pd.DataFrame([[1, 2, 3]], columns=["doc", "a", "a"])
    with pytest.raises(ValueError, match="columns of the same name"):
        PackedSequences.from_frame(twice, by="doc")


def test_a_dense_block_in_the_right_form_is_not_copied(rng):
    x = rng.normal(size=(4, 2))
    x.flags.writeable = False
    assert np.shares_memory(PackedSequences(dense=x, offsets=[0, 4]).dense, x)


@pytest.mark.parametrize(
    "copied",
    [lambda x: x, lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy, lambda x: x[[1, 0]]],
    ids=["itself", "pickle", "copy", "chosen"],
)
def test_arrays_are_checked_once_and_cannot_be_changed_afterwards(copied):
    """Kernels do not look at bounds."""
    own = np.eye(3)
    rows = PackedSequences.from_flat(np.eye(4), [4])
    packed = PackedSequences(
        sp.csr_array(2.0 * np.eye(3)), own, offsets=[0, 1, 3],
        transitions=PackedSequences.from_flat(sp.csr_array(np.eye(3)), [1, 2]),
        segments=PackedSegments(rows, [0, 1, 3], [1], [3], [0]),
        topology=Forest([-1, 1 - 2, 0], [0, 1, 3]),
    )  # fmt: skip
    packed = copied(packed)
    parts = packed, packed.transitions, packed.segments, packed.segments.rows, packed.topology
    arrays = [array for part in parts for array in vars(part).values() if hasattr(array, "dtype")]
    assert len(arrays) >= 15
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 99
    own[0, 0] = 5.0  # the array of the user stays what it was

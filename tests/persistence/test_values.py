import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from crfkit import LabelSequences, PackedSequences
from crfkit.persistence import dumps, loads, register
from crfkit.solvers import LBFGS
from tests.sampling import examples

TEXT = st.text(st.characters(codec=None), max_size=8)  # surrogates included
DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="="),
    hnp.floating_dtypes(endianness="=", sizes=(16, 32, 64)),
)
ARRAYS = hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
HASHABLE = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), TEXT, st.binary(max_size=4),
        st.integers(-(2**70), 2**70), TEXT.map(np.str_), st.floats(width=32).map(np.float32),
        st.dates().map(np.datetime64), st.integers(0, 255).map(np.uint8),
    ),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
VALUES = st.recursive(
    HASHABLE | ARRAYS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.sets(HASHABLE, max_size=4),
        st.dictionaries(HASHABLE, inner, max_size=4),
        st.lists(inner, max_size=4).map(lambda x: np.fromiter(x, object, len(x)).reshape(-1, 1)),
    ),
    max_leaves=12,
)


def same(ours, theirs):
    """Whether two values are of the same types throughout and equal, NaN included."""
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, np.ndarray):
        if ours.dtype == object:
            return ours.shape == theirs.shape and same(
                ours.ravel().tolist(), theirs.ravel().tolist()
            )
        return (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape) and (
            ours.tobytes() == theirs.tobytes()
        )
    if isinstance(ours, dict):
        return same(list(ours), list(theirs)) and same(list(ours.values()), list(theirs.values()))
    if isinstance(ours, (list, tuple)):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, (set, frozenset)):
        return len(ours) == len(theirs) and all(any(same(x, y) for y in theirs) for x in ours)
    if isinstance(ours, np.generic):
        return ours.dtype == theirs.dtype and ours.tobytes() == theirs.tobytes()
    if isinstance(ours, float) and math.isnan(ours):
        return math.isnan(theirs)
    return ours == theirs and repr(ours) == repr(theirs)


@examples(60)
@given(VALUES)
def test_values_come_back_as_they_were(value):
    assert same(value, loads(dumps(value)))


@given(st.lists(TEXT, min_size=14, max_size=18), st.sampled_from([list, tuple, set, frozenset]))
def test_long_lists_of_strings_come_back_as_they_were(texts, kind):
    value = kind(texts)
    assert same(value, loads(dumps(value)))


@given(
    st.lists(st.integers(-(2**66), 2**66), min_size=14, max_size=18)
    | st.lists(st.integers(-(2**33), 2**33), min_size=16, max_size=18)
    | st.lists(st.floats(), min_size=14, max_size=18)
)
def test_long_lists_of_numbers_come_back_as_they_were(numbers):
    assert same(numbers, loads(dumps(numbers)))
    mapping = {str(n): number for n, number in enumerate(numbers)}
    assert same(mapping, loads(dumps(mapping)))


def test_a_surrogate_pair_in_halves_stays_in_halves():
    halves = ["\ud83d\ude00", "\ud83d", "\ude00"]
    assert loads(dumps(halves)) == halves
    assert loads(dumps(halves * 8)) == halves * 8


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
def test_sparse_matrices_come_back_as_they_were(kind, rng):
    matrix = kind(np.where(rng.random((5, 7)) < 0.4, rng.normal(size=(5, 7)), 0))
    again = loads(dumps(matrix))
    assert type(again) is kind and again.shape == (5, 7)
    for name in ("data", "indices", "indptr"):
        assert same(getattr(again, name), getattr(matrix, name))


def test_room_that_a_sparse_matrix_does_not_use_is_not_stored():
    matrix = sp.csr_array(np.eye(2))
    matrix.data, matrix.indices = np.arange(4.0), np.array([0, 1, 0, 0], np.int32)
    again = loads(dumps(matrix))
    assert len(again.data) == len(again.indices) == 2 and (again != matrix).nnz == 0
    assert len(matrix.data) == 4


def test_arrays_of_any_layout_keep_their_elements(rng):
    table = rng.normal(size=(4, 6))
    for array in (table.T, table[::2, ::-1], table.astype(">f8"), np.asfortranarray(table)):
        np.testing.assert_array_equal(loads(dumps(array)), array)


def test_what_is_shared_stays_shared_and_is_stored_once():
    names, weights, inner = [f"name {n}" for n in range(1000)], np.arange(1000.0), {"a": 1}
    value = {"x": [names, weights, inner], "y": (names, weights, inner), "z": LBFGS()}
    value["again"] = value["z"]
    again = loads(dumps(value))
    assert all(a is b for a, b in zip(again["x"], again["y"], strict=True))
    assert again["z"] is again["again"]
    assert len(dumps(value)) < len(dumps([names, weights])) + 1000


def test_equal_lists_of_strings_share_their_text_but_not_themselves():
    names = [f"name {n}" for n in range(1000)]
    value = [list(names) for _ in range(40)]
    again = loads(dumps(value))
    assert again == value and again[0] is not again[1]
    assert len(dumps(value)) < 4 * len(dumps(names))


def test_equal_values_make_equal_files():
    def make():
        return {"set": {"b", "a", 3}, "names": [str(n) for n in range(20)], "tol": LBFGS()}

    assert dumps(make()) == dumps(make())


def test_containers_of_sequences_come_back_as_they_were(rng):
    labels = LabelSequences([["A", 1], [], [("B", 2)]])
    again = loads(dumps(labels))
    assert type(again) is LabelSequences and again == labels
    data = PackedSequences.from_flat(rng.normal(size=(6, 3)), [2, 0, 4])
    steps = PackedSequences.from_flat(sp.csr_array(np.eye(6)), [2, 0, 4])
    again = loads(dumps(data.with_transitions(steps)))
    assert again == data.with_transitions(steps) and again.names is None


def test_a_cycle_is_named():
    inner = [1]
    inner.append({"back": inner})
    with pytest.raises(ValueError, match="attribute tol, item 1, item 'back' contains itself"):
        dumps(LBFGS(tol=inner))


def test_values_may_be_deep_but_not_bottomless():
    value = []
    for _ in range(60):
        value = [value]
    assert loads(dumps(value)) == value
    for _ in range(2000):
        value = [value]
    with pytest.raises(ValueError, match="nested deeper than 64"):
        dumps(value)


def test_shared_values_are_not_nested_deeper_in_the_end_than_can_be_read():
    """What is stored where it is shallow may be used where it is deep."""
    shallow = value = []
    for _ in range(40):
        value = [value]
    shallow = deep = value
    for _ in range(40):
        deep = [deep]
    with pytest.raises(ValueError, match="nested deeper than 64"):
        dumps([shallow, deep])


class Unknown:
    pass


class Pairs(list):
    pass


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (LBFGS(memory=Unknown()), "LBFGS, attribute memory: a .*Unknown cannot be saved"),
        ([1, {"a": (0, Unknown())}], "list, item 1, item 'a', item 1: a .*Unknown"),
        ({Unknown(): 1}, "dict, key 0: a .*Unknown"),
        (Unknown(), "the object: a .*Unknown.*decorate its class"),
        (sp.eye_array(3, format="coo"), "tocsr"),
        (np.zeros(2, "c16"), "an array of dtype complex128"),
        (np.array(["text"]), "an array of dtype <U4"),
        (np.zeros(2, np.longdouble), "an array of dtype"),
        (3 + 4j, "a builtins.complex"),
        (range(3), "a builtins.range"),
    ],
)
def test_what_cannot_be_saved_is_named_with_its_place(value, message):
    with pytest.raises(TypeError, match=message):
        dumps(value)


def test_attributes_of_a_list_are_not_dropped():
    pairs = register(name="test.Pairs")(Pairs)([1, 2])
    assert loads(dumps(pairs)) == pairs
    pairs.note = "kept?"
    with pytest.raises(TypeError, match="Pairs cannot be saved; it is a list with attributes"):
        dumps(pairs)


def test_a_name_belongs_to_one_class():
    register(name="test.taken")(Unknown)
    register(name="test.taken")(Unknown)
    with pytest.raises(ValueError, match="'test.taken' is taken by .*Unknown"):
        register(name="test.taken")(LBFGS)


def test_states_that_are_no_attributes_are_refused():
    @register(name="test.Slots")
    class Slots:
        __slots__ = ("a",)

    item = Slots()
    item.a = 1
    with pytest.raises(TypeError, match="Slots must return a dict of attributes, not tuple"):
        dumps(item)

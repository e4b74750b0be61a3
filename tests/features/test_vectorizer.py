import copy
import enum
import itertools
import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from crfkit import PackedSequences, SequenceVectorizer
from crfkit.features.attributes import expand
from crfkit.persistence import dumps, loads
from tests.sampling import examples

# python-crfsuite cuts names at a NUL character, as C strings end there; crfkit does not.
names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4)
values = st.recursive(
    names | st.booleans() | st.integers(-3, 3) | st.floats(-1e3, 1e3) | st.just(np.float64(2.5)),
    lambda inner: st.lists(names, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
tokens = st.dictionaries(names, values, max_size=4) | st.lists(names, max_size=4) | st.sets(names)


@given(tokens)
@examples(100)
def test_attributes_are_those_of_python_crfsuite(token):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    theirs = pycrfsuite.ItemSequence([token]).items()[0]
    ours = list(expand(token))
    assert dict(ours) == pytest.approx(theirs)


@given(st.lists(st.lists(tokens, max_size=3), max_size=3))
@examples(60)
def test_packed_values_are_the_sums_of_the_attributes(X):
    vectorizer = SequenceVectorizer()
    packed = vectorizer.fit_transform(X)
    expected = []
    for sequence in X:
        expected.append([])
        for token in sequence:
            sums = {}
            for name, value in expand(token):
                sums[name] = sums.get(name, 0.0) + value
            expected[-1].append({name: value for name, value in sums.items() if value})
    found = vectorizer.inverse_transform(packed)
    assert found == [[pytest.approx(token) for token in sequence] for sequence in expected]
    assert vectorizer.transform(X) == packed


def test_the_documented_rules_hold():
    token = {
        "w": "dog", "caps": True, "digit": False, "size": 2.5, "n": 3, "set": {"a"},
        "list": ["b", "c"], "outer": {"inner": {"w": "x", "v": 2}, "flag": True},
    }  # fmt: skip
    assert dict(expand(token)) == {
        "w:dog": 1, "caps": 1, "digit": 0, "size": 2.5, "n": 3, "set:a": 1, "list:b": 1,
        "list:c": 1, "outer:inner:w:x": 1, "outer:inner:v": 2, "outer:flag": 1,
    }  # fmt: skip
    assert dict(expand({"d": np.int64(4)})) == {"d": 4.0}


def test_columns_are_the_sorted_names_whatever_the_order_of_the_input():
    first = SequenceVectorizer().fit_transform([[{"b": "1", "a": "2"}, ["z", "c"]]])
    second = SequenceVectorizer().fit_transform([[{"a": "2", "b": "1"}, {"c", "z"}]])
    assert first.feature_names.tolist() == ["a:2", "b:1", "c", "z"]
    np.testing.assert_array_equal(first.indices, second.indices)


def test_generators_are_read_once_and_give_the_same():
    X = [[["a", "b"], ["c"]], [["a"]]]
    packed = SequenceVectorizer().fit_transform(iter(s) for s in X)
    assert packed == SequenceVectorizer().fit_transform(X)


def test_unseen_attributes_are_left_out():
    vectorizer = SequenceVectorizer().fit([[["a", "b"]]])
    packed = vectorizer.transform([[["b", "new"], ["new"]], [[]]])
    assert vectorizer.inverse_transform(packed) == [[{"b": 1.0}, {}], [{}]]


def test_rare_attributes_are_left_out():
    X = [[["a", "b"], ["a", "c"]], [["c", "a"]]]
    vectorizer = SequenceVectorizer(min_freq=2)
    packed = vectorizer.fit_transform(X)
    assert vectorizer.get_feature_names_out().tolist() == ["a", "c"]
    assert vectorizer.inverse_transform(packed)[0] == [{"a": 1.0}, {"a": 1.0, "c": 1.0}]
    assert vectorizer.transform(X) == packed


def test_an_attribute_that_is_always_zero_has_a_column_but_no_entry():
    packed = SequenceVectorizer().fit_transform([[{"x": False, "y": 0.0, "z": 2}]])
    assert packed.n_features == 3
    assert len(packed.indices) == 1


def test_indicators_take_at_most_150_bytes_a_token_at_19_attributes():
    X = [[{f"f{i}": str(t * i % 7) for i in range(19)} for t in range(50)] for _ in range(20)]
    packed = SequenceVectorizer().fit_transform(X)
    assert packed.nbytes / packed.n_tokens <= 150


def test_pickles_and_clones_keep_the_vocabulary_once():
    vectorizer = SequenceVectorizer(min_freq=1).fit([[["a"], {"n": 2.5}]])
    for again in (pickle.loads(pickle.dumps(vectorizer)), copy.deepcopy(vectorizer)):
        assert again.vocabulary_ == vectorizer.vocabulary_
        assert again.transform([[["a"]]]) == vectorizer.transform([[["a"]]])
        assert again.get_feature_names_out().tolist() == ["a", "n"]
    assert clone(vectorizer).min_freq == 1
    with pytest.raises(NotFittedError):
        clone(vectorizer).transform([[["a"]]])


def test_set_output_does_nothing():
    vectorizer = SequenceVectorizer()
    assert vectorizer.set_output(transform="pandas") is vectorizer
    assert isinstance(vectorizer.fit_transform([[["a"]]]), PackedSequences)


@pytest.mark.parametrize(
    ("token", "kind", "message"),
    [
        ("dog", TypeError, "the string 'dog'"),
        (3, TypeError, "the token is a int"),
        (None, TypeError, "the token is a NoneType"),
        ({"w": None}, TypeError, "feature 'w' has the value None"),
        ({"w": float("nan")}, ValueError, "feature 'w' has the value nan"),
        ({"w": -np.inf}, ValueError, "feature 'w' has the value -inf"),
        ({"w": object}, TypeError, "feature 'w' has the value <class 'object'>"),
        ({"w": [1, 2]}, TypeError, "the attribute 1 in feature 'w' is not a string"),
        ({"w": {"x": None}}, TypeError, "feature 'w:x' has the value None"),
        ({"w": {"x": {1: 2}}}, TypeError, "the attribute 1 in feature 'w:x' is not a string"),
        ({1: "x"}, TypeError, "the attribute 1 is not a string"),
        ({1: True}, TypeError, "the attribute 1 is not a string"),
        (["a", 2], TypeError, "the attribute 2 is not a string"),
        ([["a"]], TypeError, "not a string|unhashable"),
    ],
)
def test_errors_name_the_place_the_feature_and_the_value(token, kind, message):
    X = [[["a"]], [["a"], ["b"], token]]
    with pytest.raises(kind, match=f"sequence 1, position 2: .*({message})"):
        SequenceVectorizer().fit(X)
    with pytest.raises(kind, match=f"sequence 1, position 2: .*({message})"):
        SequenceVectorizer().fit([[["a"]]]).transform(X)


@pytest.mark.parametrize("X", ["dog", ["dog"], {"a": 1}, [{"a": 1}], 3, [3], None])
def test_what_only_looks_like_sequences_is_an_error(X):
    with pytest.raises(TypeError, match="X"):
        SequenceVectorizer().fit(X)


def test_inverse_transform_refuses_other_columns():
    vectorizer = SequenceVectorizer().fit([[["a"]]])
    with pytest.raises(ValueError, match="3 attributes.*has 1"):
        vectorizer.inverse_transform(PackedSequences(dense=np.eye(3), offsets=[0, 3]))


@pytest.mark.parametrize(
    "token",
    [
        {"w": ["a", "b"]}, {"w": {"a"}}, {"w": {"x": 2}}, {"w": np.str_("dog")}, {"w": ()},
        {"w": "x", "n": 0, "flag": False, "list": []}, {"w": True, "m": np.float32(1)}, ["a"],
        set(),
    ],
    ids=str,
)  # fmt: skip
def test_the_vocabulary_has_the_attributes_of_the_rules_and_no_others(token):
    vectorizer = SequenceVectorizer().fit([[token]])
    assert set(vectorizer.vocabulary_) == {name for name, _ in expand(token)}


@pytest.mark.parametrize("value", [b"12", np.array([1.0]), 1j, 10**400])
def test_values_without_a_rule_are_refused_alike_in_fit_and_transform(value):
    for vectorize in (SequenceVectorizer().fit, SequenceVectorizer().fit([[["w"]]]).transform):
        with pytest.raises((TypeError, ValueError), match="sequence 0, position 0: feature 'w'"):
            vectorize([[{"w": value}]])


class Tag(enum.StrEnum):
    NOUN = "n"


class Loud(str):
    """A string that prints as something else."""

    def __str__(self):
        return "loud"

    __format__ = __repr__ = lambda self, *_: "loud"


@pytest.mark.parametrize("string", [Tag.NOUN, Loud("n"), np.str_("n")])
@pytest.mark.parametrize(
    "form",
    [
        lambda s: [s],
        lambda s: {s},
        lambda s: {s: "x"},
        lambda s: {s: True},
        lambda s: {"w": s},
        lambda s: {"w": [s]},
        lambda s: {"w": {s: s}},
    ],
)
def test_a_subclass_of_str_is_the_string_it_holds(form, string):
    plain = SequenceVectorizer().fit([[form("n")]])
    vectorizer = SequenceVectorizer().fit([[form(string)]])
    assert vectorizer.vocabulary_ == plain.vocabulary_
    assert set(map(type, vectorizer.vocabulary_)) == {str}
    for fitted in (plain, vectorizer, loads(dumps(vectorizer))):
        assert fitted.transform([[form(string)]]) == fitted.transform([[form("n")]])
        assert len(fitted.transform([[form(string)]]).indices) == 1


def test_keys_that_never_come_again_take_no_room():
    """A server may see any number of keys that its model does not have."""

    def strange():
        return ([{f"k{s}-{t}": {"x": "y"}} for t in range(500)] for s in range(20))

    compiled, vectorizer = (SequenceVectorizer().fit([[{"w": "a"}]]) for _ in range(2))
    compiled.transform(strange())  # what is compiled for it takes memory, too, once
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        vectorizer.transform(strange())
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 2.5e6
    assert vectorizer.transform([[{"w": "a"}]]).indices.tolist() == [0]


def test_threads_may_transform_at_once():
    X = [[{"w": f"{s * t % 97}", "n": {"t": str(t), f"k{s}": "v"}} for t in range(9)]
         for s in range(150)]  # fmt: skip
    fitted = SequenceVectorizer().fit(X)
    expected = fitted.transform(X)
    again = pickle.loads(pickle.dumps(fitted))
    with ThreadPoolExecutor(6) as pool:
        for packed in pool.map(again.transform, [X] * 12):
            assert packed == expected


def test_a_dict_that_contains_itself_is_named():
    token = {"w": "a"}
    token["self"] = token
    with pytest.raises(ValueError, match="sequence 0, position 1: .* nested too deeply"):
        SequenceVectorizer().fit([[{"w": "a"}, token]])


CHANGING = [
    [{"w": "a", "n": "x"}, {"w": "b", "n": "y"}],
    [{"w": ["a", "c"], "n": {"x": "y", "z": {"q": True}}}, {"w": "b", "n": ("u", "v")}],
    [{"n": 2.5, "w": {"a"}}, {"w": True, "n": False}, {}],
    [{"w": 3, "n": np.float32(0.5)}, {"w": {"x": 0.25, "y": ["p"]}, "n": {"x": ["y"]}}],
    [{"w": "a", "n": -1}, ["w:a", "n"], {"other": "o"}],
]


@pytest.mark.parametrize("order", list(itertools.permutations(range(len(CHANGING))))[::17])
def test_what_stands_under_a_key_may_change_from_token_to_token(order):
    X = [CHANGING[s] for s in order]
    fitted = SequenceVectorizer().fit(X)
    expected = [[{} for _ in sequence] for sequence in X]
    for tokens, sequence in zip(expected, X, strict=True):
        for found, token in zip(tokens, sequence, strict=True):
            for name, value in expand(token):
                found[name] = found.get(name, 0.0) + value
            for name in [name for name, value in found.items() if not value]:
                del found[name]
    for packed in (fitted.transform(X), SequenceVectorizer().fit_transform(X)):
        assert fitted.inverse_transform(packed) == expected
    for sequence, found in zip(X, expected, strict=True):
        assert fitted.inverse_transform(fitted.transform([sequence])) == [found]


def test_very_many_different_lists_of_keys_are_read_too():
    X = [[{f"k{s}": "v", f"k{t}": True, "w": str(t)} for t in range(9)] for s in range(300)]
    packed = SequenceVectorizer().fit_transform(X)
    assert packed.names.tolist() == sorted({name for s in X for t in s for name, _ in expand(t)})
    assert len(packed.indices) == sum(len(token) for sequence in X for token in sequence)


@pytest.mark.parametrize("place", [(0, 0), (211, 1), (299, 2)])
@pytest.mark.parametrize("wrong", [{"w": None}, {"w": float("nan")}, ["w", 3], 5])
def test_one_token_among_many_short_sequences_is_named(place, wrong):
    X = [[{"w": str(t), "n": {"x": s % 7}} for t in range(s % 3 + 1)] for s in range(300)]
    X[place[0]] = [["w:0"], {"w": {"1"}}, {"w": ("2", "3")}]
    packed = SequenceVectorizer().fit_transform(X)
    ones = [SequenceVectorizer.from_vocabulary(packed.names).transform([x]) for x in X]
    assert np.concatenate([one.indices for one in ones]).tolist() == packed.indices.tolist()
    X[place[0]][place[1]] = wrong
    message = f"sequence {place[0]}, position {place[1]}: "
    for sequences in (X, iter(X)):
        with pytest.raises((TypeError, ValueError), match=message):
            SequenceVectorizer().fit(sequences)


def test_a_generator_may_use_its_dict_again():
    def sequences():
        token = {}
        for s in range(40):
            token["w"] = str(s)
            yield [token]

    assert len(SequenceVectorizer().fit_transform(sequences()).names) == 40


def test_dicts_of_any_keys_are_read_as_their_attributes():
    rng = np.random.default_rng(0)

    def nested(t):
        keys = rng.permutation(list("pqrs"))[: rng.integers(1, 4)]
        inner = {str(key): [str(t), True, False, 1.5, {"deep": "x"}, ["i", "j"]][rng.integers(6)]
                 for key in keys}  # fmt: skip
        return {"n": inner if t % 4 else "plain", str(rng.integers(3)): str(t % 2)}

    data = [[nested(t) for t in range(rng.integers(1, 9))] for _ in range(80)]
    vectorizer = SequenceVectorizer()
    packed = vectorizer.fit_transform(data)
    names = packed.feature_names
    for sequence, rows in zip(data, packed, strict=True):
        for token, row in zip(sequence, rows, strict=True):
            expected = {}
            for name, value in expand(token):
                expected[name] = expected.get(name, 0.0) + value
            found = dict(zip(names[row.indices], row.data, strict=True))
            assert found == {name: value for name, value in expected.items() if value}
    assert all(vectorizer.transform([s])[0].nnz == r.nnz for s, r in zip(data, packed, strict=True))

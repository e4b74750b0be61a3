import copy
import gc
import json
import pickle
from contextlib import suppress
from enum import Enum
from itertools import product

import numpy as np
import pytest

import crfkit
from crfkit import UNLABELED
from crfkit._parallel import without_collection
from crfkit.data import LabelSequences, labels
from crfkit.data.labels import UNKNOWN, LabelStream
from crfkit.data.targets import Targets

Color = Enum("Color", "RED BLUE")


@pytest.mark.parametrize(
    "rows", [[["a", "b"], ["c"]], [["a"], ["b"]], [], [[]], [[(1, 2)], [(3, 4)]]]
)
def test_an_array_of_label_sequences_always_has_one_dimension(rows):
    labels = LabelSequences(rows)
    array = np.asarray(labels)
    assert array.shape == (len(rows),)
    assert array.tolist() == rows


def test_label_sequences_are_lists():
    labels = LabelSequences([["a"], ["b", "c"]])
    assert labels == [["a"], ["b", "c"]]
    assert json.loads(json.dumps(labels)) == labels
    assert pickle.loads(pickle.dumps(labels)) == labels
    assert labels[1] == ["b", "c"]
    for key in (slice(1, None), [1], np.array([False, True])):
        assert labels[key] == [["b", "c"]]
        assert isinstance(labels[key], LabelSequences)


@pytest.mark.parametrize(
    "labels",
    [["b", "a", "b"], [2, 1, 2], [True, False, True], [(1, "x"), (0, "y"), (0, "y")], [b"x", b"y"],
     [Color.RED, Color.BLUE], ["名", "é", "😀"], [1, "one", (1,)], [np.str_("x"), "x", np.int64(3)],
     [("a",), ("b",)]],
    ids=str,
)  # fmt: skip
def test_any_hashable_labels_survive_the_round_trip(labels):
    stream = LabelStream([labels, labels[:1]])
    classes = stream.classes()
    codes = stream.codes_for(classes)
    back = LabelSequences.from_codes(codes, classes, stream.offsets)
    assert back == [labels, labels[:1]]
    assert not any(isinstance(label, np.generic) for row in back for label in row)


def test_classes_are_sorted_where_they_can_be():
    assert LabelStream([["b", "a", "c"]]).classes().tolist() == ["a", "b", "c"]
    assert LabelStream([[2, "b", 1]]).classes().tolist() == [2, "b", 1]


@pytest.mark.parametrize(
    "y", [[np.array(["a", "b"])], np.array([["a", "b"]]), (("a", "b"),), iter([iter(["a", "b"])])]
)
def test_arrays_tuples_and_generators_are_read_alike(y):
    stream = LabelStream(y)
    assert list(stream.index) == ["a", "b"]
    assert stream.offsets.tolist() == [0, 2]


def test_labels_that_are_not_known_get_their_own_code():
    codes = LabelStream([["a", "new"]]).codes_for(["b", "a"])
    assert codes.tolist() == [1, UNKNOWN]


@pytest.mark.parametrize(
    ("y", "kind", "message"),
    [
        ("BIO", TypeError, "y must be a list of sequences"),
        (["BIO"], TypeError, "sequence 0 of y is the string 'BIO'"),
        ([["a"], 3], TypeError, "sequence 1 of y is a single int"),
        (None, TypeError, "y must be a list of sequences, not NoneType"),
        ([["a"], ["a", None]], ValueError, "sequence 1, position 1: the label is None"),
        ([[float("nan")]], ValueError, "sequence 0, position 0: the label is nan"),
        ([["a", ["b"]]], TypeError, r"sequence 0, position 1: the label \['b'\] is not hashable"),
        ([np.zeros((2, 2))], TypeError, "array of 2 dimensions"),
        ([["a"], ["a", set()]], ValueError, "sequence 1, position 1: the set of labels is empty"),
        ([["a", {"a", None}]], ValueError, "sequence 0, position 1: the label is None"),
        ([[{"a", UNLABELED}]], TypeError, "position 0: .* has a member that is no label"),
        ([["a", {"a", "b"}]], ValueError, "position 1: the label is frozenset.* one known label"),
        ([["a", UNLABELED]], ValueError, "position 1: the label is UNLABELED, .* one known label"),
    ],
)
def test_errors_name_the_place_and_the_label(y, kind, message):
    with pytest.raises(kind, match=message):
        LabelStream(y)


def test_labels_that_cannot_be_compared_keep_their_order():
    assert LabelStream([[3, 1, 2, "a", 0]]).classes().tolist() == [3, 1, 2, "a", 0]


def test_dates_stay_dates():
    days = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[ns]")
    for form in (days, list(days)):
        assert list(LabelStream([form]).index) == list(days)


def test_sums_and_copies_of_label_sequences_are_label_sequences():
    labels = LabelSequences([["a"]])
    for again in (labels + [["b"]], labels.copy()):
        assert isinstance(again, LabelSequences)


@pytest.mark.parametrize("y", [{("a",)}, [{"a", "b"}], [frozenset("ab")]])
def test_sets_have_no_order_and_are_refused(y):
    with pytest.raises(TypeError, match="set, which has no order"):
        LabelStream(y)


@pytest.mark.parametrize("kind", [np.int64, np.uint8, "U3", bool])
def test_long_arrays_of_labels_are_read_as_lists_are(monkeypatch, kind, rng):
    monkeypatch.setattr(labels, "MANY", 7)
    y = [rng.integers(0, 9, size=size).astype(kind) for size in (30, 3, 0, 8, 7)]
    arrays, lists = LabelStream(y), LabelStream([row.tolist() for row in y])
    assert list(arrays.index.items()) == list(lists.index.items())
    assert [type(label) for label in arrays.index] == [type(label) for label in lists.index]
    np.testing.assert_array_equal(arrays.codes, lists.codes)
    np.testing.assert_array_equal(arrays.offsets, lists.offsets)
    assert arrays.codes.dtype == np.int32


def test_unlabeled_is_one_object_that_stays_itself():
    assert repr(UNLABELED) == "UNLABELED" and crfkit.UNLABELED is UNLABELED
    for again in (pickle.loads(pickle.dumps(UNLABELED)), copy.copy(UNLABELED)):
        assert again is UNLABELED
    assert copy.deepcopy([[UNLABELED]]) == [[UNLABELED]]
    assert UNLABELED != "UNLABELED" and len({UNLABELED, "UNLABELED", None}) == 3


def test_labels_may_be_known_in_part():
    y = [["b", UNLABELED, {"c", "a"}], [{"b"}, frozenset(["a", "c"]), {"a", "b", "c"}]]
    stream = LabelStream(y, partial=True)
    classes = stream.classes()
    assert classes.tolist() == ["a", "b", "c"]
    assert stream.codes_for(classes).tolist() == [1, 0, 0, 1, 0, 0]
    b, some, every = [False, True, False], [True, False, True], [True] * 3
    allowed = stream.allowed_for(classes)
    assert allowed.tolist() == [b, every, some, b, some, every]
    assert stream.labels() == [["b", UNLABELED, {"a", "c"}], ["b", {"a", "c"}, {"a", "b", "c"}]]
    assert LabelStream([["a", {"b"}]]).allowed_for(["a", "b"]) is None
    assert stream.place_of("c") == "sequence 0, position 2"
    targets = Targets.of_allowed(allowed)
    assert targets.known.tolist() == [True, False, True, True, True, False]
    assert Targets.of_allowed(allowed[[0, 3]]).allowed is None


def test_the_collector_pauses_while_many_lists_are_made_and_goes_on_if_it_did_before():
    for enabled, n_lists in product((True, False), (1, 10_000)):
        (gc.enable if enabled else gc.disable)()
        try:
            with suppress(KeyError), without_collection(n_lists):
                assert gc.isenabled() == (enabled and n_lists == 1)
                raise KeyError
            assert gc.isenabled() == enabled
        finally:
            gc.enable()

"""Labels that are distributions, and weights of tokens by their labels."""

import pickle

import numpy as np
import pytest
from sklearn.model_selection import train_test_split
from sklearn.utils.class_weight import compute_sample_weight

from crfkit import UNLABELED, SoftLabels, token_weights

ROWS = [[[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]], [[1.0, 0.0, 0.0]], [], [[0.0, 0.25, 0.75]] * 3]
LABELS = ["A", "B", "C"]


@pytest.fixture
def soft():
    return SoftLabels(ROWS, LABELS)


def test_the_most_probable_labels_are_the_first_of_equal_ones(soft):
    assert soft.argmax() == [["A", "C"], ["A"], [], ["C"] * 3]


def test_dicts_and_arrays_are_the_same(soft):
    dicts = [[dict(zip(LABELS, row, strict=True)) for row in rows] for rows in ROWS]
    assert SoftLabels.from_dicts(dicts) == soft
    short = [[{k: p for k, p in d.items() if p} for d in rows] for rows in dicts]
    assert SoftLabels.from_dicts(short, LABELS) == soft
    with pytest.raises(ValueError, match="sequence 0, position 1: the label 'C' is none of the"):
        SoftLabels.from_dicts(dicts, ["A", "B"])
    with pytest.raises(TypeError, match=r"sequence 0, position 0: 'A' is no dict"):
        SoftLabels.from_dicts([["A"]])


def test_votes_are_shares_of_annotators():
    first, second = [["A", "B", "C"]], [["A", "C", UNLABELED]]
    found = SoftLabels.from_votes([first, second, [[{"A", "B"}, "C", "B"]]])
    expected = [[2.5, 0.5, 0.0], [0.0, 1.0, 2.0], [0.0, 1.5, 1.5]]
    np.testing.assert_allclose(found[0], np.array(expected) / 3.0)
    weighted = SoftLabels.from_votes([first, second], weights=[3, 1])
    np.testing.assert_allclose(weighted[0][1], [0.0, 0.75, 0.25])
    assert SoftLabels.from_votes([first]) == SoftLabels.from_labels(first)
    with pytest.raises(ValueError, match="sequence 0, position 2: nobody has voted"):
        SoftLabels.from_votes([second])
    with pytest.raises(ValueError, match="annotation 1 has 2 items"):
        SoftLabels.from_votes([first, [["A", "B"]]])
    with pytest.raises(ValueError, match="a number for each of the 2 annotators"):
        SoftLabels.from_votes([first, second], weights=[1])
    with pytest.raises(ValueError, match="sequence 0, position 2: the label 'C' is none of the"):
        SoftLabels.from_labels(first, ["A", "B"])
    with pytest.raises(ValueError, match="sequence 0, position 0: the label 'C' is none of the"):
        SoftLabels.from_votes([[[{"A", "C"}]]], ["A", "B"])
    assert SoftLabels.from_votes([[[{"A", "B"}, "A"]]])[0].tolist() == [[0.5, 0.5], [1.0, 0.0]]
    assert SoftLabels.from_votes([[["A", UNLABELED]], [["A", "A"]]])[0].tolist() == [[1.0], [1.0]]
    assert SoftLabels.from_votes([[["A", UNLABELED]], [[UNLABELED, "A"]]])[0].sum() == 2.0


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [[[0.5, 0.5, 0.0]], [[1, 0, 0], [0.5, 0.4, 0]]],
            "sequence 1, position 1: .* add up to 0.9",
        ),
        ([[[1.5, -0.5, 0.0]]], "sequence 0, position 0: -0.5 is no probability"),
        ([[[1.0, 0.0, 0.0], [np.nan, 0.5, 0.5]]], "sequence 0, position 1: nan is no probability"),
        ([[[0.5, 0.5]]], r"sequence 0: .* shape \(1, 2\), not \(T, 3\), for 3 classes"),
        ([[0.5, 0.5, 0.0]], r"sequence 0: .* shape \(3,\)"),
        ([[["a", "b", "c"]]], "sequence 0: the probabilities are no array"),
    ],
    ids=["sum", "negative", "nan", "width", "one row", "strings"],
)
def test_what_is_no_distribution_is_refused_with_its_place(rows, message):
    with pytest.raises((ValueError, TypeError), match=message):
        SoftLabels(rows, LABELS)


def test_classes_are_distinct_and_rounding_is_mended():
    with pytest.raises(ValueError, match="has a label twice"):
        SoftLabels([[[0.5, 0.5]]], ["A", "A"])
    single = np.float32([[1 / 3] * 3])
    np.testing.assert_array_equal(SoftLabels([single], LABELS)[0].sum(), 1.0)


def test_it_is_indexed_as_an_array_of_sequences(soft):
    assert len(soft) == soft.shape[0] == 4
    np.testing.assert_array_equal(soft[-1], ROWS[-1])
    assert soft[1:3] == SoftLabels(ROWS[1:3], LABELS)
    for key in ([3, 0], np.array([3, 0]), (np.array([3, 0]), ...)):
        assert soft[key] == SoftLabels([ROWS[3], ROWS[0]], LABELS)
    assert soft[np.array([True, False, False, True])] == soft[[0, 3]]
    assert len(soft[[]]) == 0
    with pytest.raises(IndexError, match="a mask"):
        soft[np.array([True])]
    with pytest.raises(IndexError):
        soft[4]
    assert [len(rows) for rows in soft] == [2, 1, 0, 3]
    parts = train_test_split(list(range(4)), soft, test_size=0.5, random_state=0)
    assert parts[2] == soft[parts[0]] and isinstance(parts[3], SoftLabels)
    assert pickle.loads(pickle.dumps(soft)) == soft
    assert np.asarray(soft).shape == (4,)


def test_parts_are_joined_mixed_and_pruned(soft):
    other = SoftLabels.from_labels([["D"]])
    both = soft + other
    assert both.classes.tolist() == ["A", "B", "C", "D"]
    np.testing.assert_array_equal(both[0][:, :3], ROWS[0])
    assert both.argmax()[-1] == ["D"]
    mixed = soft.mixed(SoftLabels.from_labels(soft.argmax()), 0.5)
    np.testing.assert_allclose(mixed[0], [[0.75, 0.25, 0.0], [0.05, 0.1, 0.85]])
    np.testing.assert_allclose(soft.pruned(0.2)[0], [[0.5, 0.5, 0.0], [0.0, 2 / 9, 7 / 9]])
    np.testing.assert_array_equal(soft.pruned(0.9)[0], [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    with pytest.raises(ValueError, match="share=2.0 must be between 0 and 1"):
        soft.mixed(soft, 2.0)


Y = [["O", "O", "B", "I"], ["O", "B"], ["O"]]
FLAT = [label for labels in Y for label in labels]


@pytest.mark.parametrize("given", ["balanced", {"B": 3.0, "O": 0.5}, None])
def test_weights_of_tokens_are_those_of_scikit_learn(given):
    found = token_weights(Y, given)
    assert [len(weights) for weights in found] == [4, 2, 1]
    np.testing.assert_allclose(np.concatenate(found), compute_sample_weight(given, FLAT))
    np.testing.assert_allclose(
        np.concatenate(token_weights(SoftLabels.from_labels(Y), given)), np.concatenate(found)
    )


def test_tokens_without_a_label_weigh_nothing():
    y = [["A", UNLABELED, "B"], [{"A", "B"}, "A", {"A", "C"}]]
    found = token_weights(y, {"A": 1.0, "B": 4.0, "C": 2.0})
    np.testing.assert_allclose(np.concatenate(found), [1.0, 0.0, 4.0, 2.5, 1.0, 1.5])
    balanced = np.concatenate(token_weights([["A", UNLABELED, "B", "A"]]))
    np.testing.assert_allclose(balanced, [0.75, 0.0, 1.5, 0.75])
    assert np.concatenate(token_weights([["A", UNLABELED], [UNLABELED]])).tolist() == [1, 0, 0]
    assert token_weights([[UNLABELED]])[0].tolist() == [0.0]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"X": 1.0}, ValueError, "has the label 'X', which y does not have"),
        ({"B": -1.0}, ValueError, r"class_weight\['B'\]=-1.0"),
        ("even", TypeError, "class_weight='even' must be 'balanced', a dict or None"),
    ],
)
def test_weights_that_cannot_be_are_refused(given, error, message):
    with pytest.raises(error, match=message):
        token_weights(Y, given)

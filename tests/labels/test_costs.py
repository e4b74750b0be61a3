"""What wrong labels cost."""

import numpy as np
import pytest

from crfkit.labels.costs import AdditiveCost, ZeroOneCost, hamming, make_cost

CLASSES = np.array(["a", "b", "c"], object)
LABELS, PREDICTED = np.array([0, 1, 2, 0], np.int32), np.array([0, 2, 1, 1], np.int32)
OFFSETS = np.array([0, 1, 1, 4])


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        ("hamming", [0, 0, 3]),
        ("zero_one", [0, 0, 1]),
        ({"b": 2.5, "c": 0.0}, [0, 0, 3.5]),
        ([[0, 4, 1], [1, 0, 2], [0, 3, 0]], [0, 0, 9]),
    ],
)
def test_totals_add_up_what_each_wrong_label_costs(cost, expected):
    assert make_cost(cost, CLASSES).total(LABELS, PREDICTED, OFFSETS).tolist() == expected


def test_what_is_added_to_scores_is_the_cost_of_each_label():
    table = [[0, 4, 1], [1, 0, 2], [0, 3, 0]]
    added = make_cost(table, CLASSES).added(LABELS)
    assert added.tolist() == [table[k] for k in LABELS]
    assert make_cost("hamming", CLASSES).counts_errors
    assert not make_cost({"a": 2}, CLASSES).counts_errors


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ("square", "cost='square'"),
        ({"a": -1}, "cost\\['a'\\]"),
        ([[0, 1], [1, 0]], "cost has the shape \\(2, 2\\), but there are 3 labels"),
        ([[0, 1, 1], [1, 0.5, 1], [1, 1, 0]], "cost\\[1, 1\\]=0.5"),
        ([[0, 1, -1], [1, 0, 1], [1, 1, 0]], "cost\\[0, 2\\]=-1 \\(the true label first"),
        (float, "must be 'hamming', 'zero_one', a dict"),
    ],
)
def test_costs_that_cannot_be_used_are_refused(cost, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make_cost(cost, CLASSES)


def test_a_cost_of_a_label_that_does_not_occur_has_no_effect():
    with pytest.warns(UserWarning, match="cost names the label 'd', which does not occur in y"):
        cost = make_cost({"d": 4.0, "b": 2.0}, CLASSES)
    assert cost.table.tolist() == [[0, 1, 1], [2, 0, 2], [1, 1, 0]]


def test_a_cost_of_some_labels_is_that_of_all_for_them():
    table = [[0, 4, 1], [1, 0, 2], [0, 3, 0]]
    part = make_cost(table, CLASSES).of_labels(np.array([0, 2]))
    assert part.table.tolist() == [[0, 1], [0, 0]]
    zero_one = make_cost("zero_one", CLASSES)
    assert zero_one.of_labels(np.array([0])) is zero_one


@pytest.mark.parametrize("table", [np.ones((2, 2)), -np.eye(2)[::-1], np.full((2, 2), np.nan)])
def test_costs_that_are_none_are_refused_however_they_come(table):
    with pytest.raises(ValueError, match="costs must be finite numbers of at least 0"):
        AdditiveCost(table)


def test_costs_of_segments_tell_labels_and_beginnings_apart():
    table = np.array([[0, 4, 1], [1, 0, 2], [0, 3, 0]], float)
    found = AdditiveCost(table).of_segments().table
    worst = [4, 2, 3]
    for true, predicted in np.ndindex(6, 6):
        same = true % 3 == predicted % 3 and true != predicted
        expected = worst[true % 3] if same else table[true % 3, predicted % 3]
        assert found[true, predicted] == expected


@pytest.mark.parametrize("n_labels", [1, 2, 5])
def test_the_hamming_loss_of_segments_counts_wrong_codes(n_labels):
    cost = hamming(n_labels).of_segments()
    np.testing.assert_array_equal(cost.table, hamming(2 * n_labels).table)
    assert cost.counts_errors


def test_whether_all_is_right_is_the_same_question_for_segments():
    cost = ZeroOneCost()
    assert cost.of_segments() is cost

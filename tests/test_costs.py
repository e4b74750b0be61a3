"""What wrong labels cost."""

import numpy as np
import pytest

from crfkit.costs import make_cost

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
        ({"d": 1}, "cost names the label 'd', which does not occur in y"),
        ({"a": -1}, "cost\\['a'\\]"),
        ([[0, 1], [1, 0]], "cost has the shape \\(2, 2\\), but there are 3 labels"),
        ([[0, 1, 1], [1, 0.5, 1], [1, 1, 0]], "cost\\[1, 1\\]=0.5"),
        ([[0, 1, -1], [1, 0, 1], [1, 1, 0]], "cost\\[0, 2\\]=-1 \\(true 'a', predicted 'c'\\)"),
        (float, "must be 'hamming', 'zero_one', a dict"),
    ],
)
def test_costs_that_cannot_be_used_are_refused(cost, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make_cost(cost, CLASSES)

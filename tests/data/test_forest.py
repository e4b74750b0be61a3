"""Forests over the tokens of sequences."""

import numpy as np
import pytest

from crfkit.data import Forest, PackedSequences
from crfkit.persistence import ModelFileError, dumps, loads


def test_parents_come_before_their_children_in_the_order():
    forest = Forest.from_lists([[2, None, 1, 2], [], [None, None]])
    assert forest.order.tolist() == [1, 2, 0, 3, 0, 1]
    assert forest.before.tolist() == [2, -1, 1, 2, -1, -1]
    assert forest.first_tokens.tolist() == [1, 4, 5]
    assert forest.last_tokens.tolist() == [0, 3, 4, 5]


def test_a_path_of_100_000_tokens_is_ordered():
    n = 100_000
    parent = np.arange(1, n + 1)
    parent[-1] = -1
    assert Forest(parent, [0, n]).order.tolist() == list(range(n - 1, -1, -1))


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ([[None], [None, 2]], "sequence 1, position 1: the parent is 2; .* of the 2 tokens"),
        ([[None, -2]], "sequence 0, position 1: the parent is -2"),
        ([[None, 1]], "sequence 0, position 1: the parent is itself"),
        ([[None, 2, 3, 1]], "sequence 0, position 1: its parents go round in a circle"),
        ([[1, 0]], "sequence 0, position 0: its parents go round in a circle"),
        ([[None, "0"]], "sequence 0, position 1: the parent is '0'; give the position of a token"),
    ],
    ids=["too large", "too small", "itself", "circle", "both", "text"],
)
def test_what_is_no_forest_is_refused(parents, message):
    with pytest.raises(ValueError, match=message):
        Forest.from_lists(parents)


def test_a_forest_of_other_sequences_is_refused():
    data = PackedSequences(dense=np.ones((3, 1)), offsets=[0, 2, 3])
    with pytest.raises(ValueError, match="sequence 0: X has 2 tokens, but the forest has 1 items"):
        data.with_topology(Forest.from_lists([[None], [None, 0]]))
    with pytest.raises(ValueError, match="X has 2 sequences, but the forest has 1"):
        data.with_topology(Forest.from_lists([[None, 0, 1]]))
    with pytest.raises(ValueError, match="1 parents for 2 tokens"):
        Forest([-1], [0, 2])


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("parent", np.array([-1.0, 0.0]), "the parent of a forest is no array of int64"),
        ("order", np.array([1, 0]), "the order of the tokens is not that of their parents"),
        ("offsets", np.array([1, 2]), "offsets must be .* that starts with 0 and never falls"),
        ("offsets", np.zeros(0, np.int64), "offsets must be .* that starts with 0 and never falls"),
    ],
    ids=["type", "order", "start", "none"],
)
def test_a_damaged_forest_is_not_read(name, array, message):
    forest = Forest.from_lists([[None, 0]])
    setattr(forest, name, array)
    data = dumps(forest)
    with pytest.raises(ModelFileError, match=message):
        loads(data)

"""Builders of graphs."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import mutual_info_score

from crfkit.graphs import (
    chow_liu,
    complete,
    grid,
    multilabel_graphs,
    multilabel_indicators,
    multilabel_labels,
)
from crfkit.graphs.build import mutual_information


@pytest.mark.parametrize("neighbors", [4, 8])
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (3, 1), (3, 4)])
def test_a_grid_joins_the_pixels_that_are_next_to_each_other(shape, neighbors):
    pixels = list(np.ndindex(shape))
    far = 1 if neighbors == 4 else 2
    near = {
        (a, b)
        for a, b in combinations(range(len(pixels)), 2)
        if sum(steps := [abs(p - q) for p, q in zip(pixels[a], pixels[b], strict=True)]) <= far
        and max(steps) == 1
    }
    edges, directions = grid(*shape, neighbors)
    assert len(edges) == len(near) and {tuple(sorted(edge)) for edge in edges.tolist()} == near
    assert directions.shape == (len(edges), neighbors // 2) and (directions.sum(axis=1) == 1).all()
    for (a, b), row in zip(edges.tolist(), directions.tolist(), strict=True):
        step = pixels[b][0] - pixels[a][0], pixels[b][1] - pixels[a][1]
        assert step == [(0, 1), (1, 0), (1, 1), (1, -1)][row.index(1.0)]


def test_the_tree_has_the_largest_information_of_all_trees():
    rng = np.random.default_rng(0)
    for _ in range(5):
        Y = rng.integers(3, size=(30, 4))
        Y[:, 3] = Y[:, rng.integers(3)] ^ (rng.random(30) < 0.2)
        information = mutual_information(Y)
        for a, b in np.ndindex(4, 4):
            np.testing.assert_allclose(information[a, b], mutual_info_score(Y[:, a], Y[:, b]))
        trees = [t for t in combinations(complete(4).tolist(), 3) if spans(t)]
        best = max(sum(information[a, b] for a, b in tree) for tree in trees)
        np.testing.assert_allclose(sum(information[a, b] for a, b in chow_liu(Y)), best)
    assert chow_liu(np.ones((2, 3))).tolist() == [[0, 1], [0, 2]]
    assert chow_liu(np.ones((2, 1))).shape == chow_liu(np.ones((2, 0))).shape == (0, 2)


def spans(edges):
    tree = list(range(4))
    for a, b in edges:
        tree = [tree[a] if t == tree[b] else t for t in tree]
    return len(set(tree)) == 1


def test_each_label_is_a_node_with_columns_of_its_own():
    X, Y = np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([[1, 0, 1], [0, 0, 1]])
    data = multilabel_graphs(X, chow_liu(Y), labels=["a", "b", "c"])
    rows = data.to_dicts()
    for example, row in zip(X, rows, strict=True):
        for label, found in zip("abc", row, strict=True):
            expected = {f"0|{label}": example[0], f"1|{label}": example[1], f"bias|{label}": 1.0}
            assert found == {name: value for name, value in expected.items() if value}
    assert data.transitions.n_features == 2 and data.topology.edge_offsets.tolist() == [0, 2, 4]
    labels = multilabel_labels(Y)
    assert [len(own) for own in labels] == data.lengths.tolist()
    np.testing.assert_array_equal(multilabel_indicators(labels), Y)


def test_errors_say_what_is_wrong():
    with pytest.raises(ValueError, match="height=0 must be at least 1"):
        grid(0, 2)
    with pytest.raises(ValueError, match="neighbors='6' is not known"):
        grid(2, 2, 6)
    with pytest.raises(ValueError, match=r"Y has the shape \(3,\)"):
        chow_liu([1, 2, 3])
    with pytest.raises(ValueError, match=r"edge 1 is \[0, 2\], but there are 2 labels"):
        multilabel_graphs(np.ones((1, 1)), [[0, 1], [0, 2]], ["a", "b"])
    with pytest.raises(ValueError, match="Y must be a table of 0 and 1"):
        multilabel_labels([[0, 2]])


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_damaged_matrices_are_refused(kind):
    matrix = sp.eye_array(3).asformat(kind)
    places = matrix.coords[1] if kind == "coo" else matrix.indices
    places[-1] = 10**7
    for call in (lambda: multilabel_graphs(matrix, [[0, 1]]), lambda: multilabel_labels(matrix)):
        with pytest.raises(ValueError, match="is a damaged sparse matrix"):
            call()

"""The edges of graphs that are often asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from crfkit._params import check_option, check_whole
from crfkit._types import FloatArray, IntArray
from crfkit.data import LabelSequences, PackedSequences
from crfkit.data.edges import Edges
from crfkit.data.frames import shared_columns
from crfkit.data.validation import check_sparse, numeric_array

# The steps of a grid, down and to the right: along rows, along columns, and both diagonals.
_STEPS = (0, 1), (1, 0), (1, 1), (1, -1)


class Grid(NamedTuple):
    """The edges of an image, and where each leads."""

    edges: IntArray  # (E, 2) pixels, numbered row by row
    directions: FloatArray  # (E, 2) or (E, 4): 1 in the column of the direction of the edge


def grid(height: int, width: int, neighbors: int = 4) -> Grid:
    """Return the edges of the pixels of an image, which are numbered row by row.

    Parameters
    ----------
    height, width : int
        Size of the image, at least 1.
    neighbors : {4, 8}, default=4
        Whether pixels have four neighbors, or the four diagonal ones too.

    Returns
    -------
    edges : ndarray of shape (E, 2)
        First those to the right, then those down, then those down to the right and to the left.
    directions : ndarray of shape (E, 2) or (E, 4)
        The direction of each edge, one column for each: attributes of edges, with which a model
        has other weights for each direction.

    Raises
    ------
    ValueError, TypeError
        If a size is no whole number from 1 on, or the neighbors are not 4 or 8.

    Examples
    --------
    >>> from crfkit.graphs import grid
    >>> edges, directions = grid(2, 2)
    >>> edges.tolist(), directions.tolist()
    ([[0, 1], [2, 3], [0, 2], [1, 3]], [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    """
    check_whole("height", height, 1)
    check_whole("width", width, 1)
    check_option("neighbors", str(neighbors), ("4", "8"))
    pixels = np.arange(height * width).reshape(height, width)
    steps = _STEPS[: int(neighbors) // 2]
    parts = [_pairs(pixels, down, right) for down, right in steps]
    return Grid(np.concatenate(parts), np.repeat(np.eye(len(steps)), list(map(len, parts)), axis=0))


def _pairs(pixels: IntArray, down: int, right: int) -> IntArray:
    """Return the pairs of pixels that are a step apart, shape (n, 2)."""
    height, width = pixels.shape
    source = pixels[: height - down, max(0, -right) : width - max(0, right)]
    target = pixels[down:, max(0, right) : width - max(0, -right)]
    return np.column_stack([source.ravel(), target.ravel()])


def complete(n: int) -> IntArray:
    """Return all pairs of n nodes, shape (n (n - 1) / 2, 2).

    Examples
    --------
    >>> from crfkit.graphs import complete
    >>> complete(3).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    check_whole("n", n)
    return np.column_stack(np.triu_indices(n, 1)).astype(np.int64)


def chow_liu(Y: ArrayLike) -> IntArray:
    """Return the tree of the largest likelihood for discrete variables (Chow and Liu 1968).

    The maximum spanning tree of their mutual information. Of equal trees, the one whose edges come
    first; variables that tell nothing of each other are connected too.

    Parameters
    ----------
    Y : array-like of shape (n, V)
        A value of each variable in each of n examples, such as indicators of labels.

    Returns
    -------
    ndarray of shape (V - 1, 2)
        The edges, in rising order.

    Raises
    ------
    ValueError
        If Y has not two dimensions, or no example.

    Examples
    --------
    >>> from crfkit.graphs import chow_liu
    >>> chow_liu([[0, 0, 1], [0, 0, 0], [1, 1, 1], [1, 1, 0], [0, 0, 1]]).tolist()
    [[0, 1], [0, 2]]
    """
    table = np.asarray(Y)
    if table.ndim != 2 or not len(table):
        raise ValueError(
            f"Y has the shape {table.shape}; give one row for each example, at least one, and one "
            "column for each variable."
        )
    information = mutual_information(table)
    pairs = complete(table.shape[1])
    order = np.argsort(-information[pairs[:, 0], pairs[:, 1]], kind="stable")
    chosen, tree = list[list[int]](), np.arange(table.shape[1])
    for source, target in pairs[order].tolist():
        if tree[source] != tree[target]:
            tree[tree == tree[target]] = tree[source]
            chosen.append([source, target])
    return np.array(sorted(chosen), np.int64).reshape(-1, 2)


def mutual_information(table: IntArray) -> FloatArray:
    """Return the mutual information of each pair of columns, in nats, shape (V, V)."""
    parts = [(column[:, None] == np.unique(column)).astype(float) for column in table.T]
    starts = np.cumsum([0, *(part.shape[1] for part in parts)])[:-1]
    values = np.hstack([np.zeros((len(table), 0)), *parts])
    joint = values.T @ values / len(table)
    single = np.diagonal(joint)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = joint * np.log(joint / np.outer(single, single))
    terms[joint == 0.0] = 0.0
    rows = np.add.reduceat(terms, starts, axis=0) if len(starts) else terms
    found: FloatArray = np.add.reduceat(rows, starts, axis=1) if len(starts) else rows
    return found.round(14)  # so that equal ones are equal


def multilabel_graphs(
    X: Any, edges: ArrayLike, labels: Sequence[str] | None = None
) -> PackedSequences:
    """Return examples of multi-label classification as graphs, one node for each label.

    A node is 1 or 0, whether its example has the label: see :func:`multilabel_labels`. Each label
    has weights of its own, and a bias, and so has each edge (Ghamrawi and McCallum 2005).

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n, D)
        The features of n examples.
    edges : array-like of shape (E, 2)
        The pairs of labels that are connected, by their numbers: those of :func:`chow_liu`, or of
        :func:`complete`; none at all for independent labels.
    labels : sequence of V str, optional
        Names of the labels; their numbers, if not given, up to the last one of an edge.

    Returns
    -------
    PackedSequences
        n graphs of V nodes with ``(D + 1) V`` attributes, for :class:`crfkit.GraphCRF`.

    Raises
    ------
    ValueError
        If X is no table, there are no labels, or an edge has a label that there is not.

    Examples
    --------
    >>> from crfkit.graphs import multilabel_graphs
    >>> graphs = multilabel_graphs([[0.5], [2.0]], [[0, 1]], labels=["sea", "sky"])
    >>> graphs.feature_names.tolist()
    ['0|sea', '0|sky', 'bias|sea', 'bias|sky']
    >>> graphs.transitions.feature_names.tolist(), len(graphs)
    (['sea, sky'], 2)
    """
    pairs = np.asarray(edges, np.int64).reshape(-1, 2)
    if labels is None:
        labels = [str(v) for v in range(int(pairs.max(initial=-1)) + 1)]
    size, columns = len(labels), shared_columns([X])
    rows = check_sparse(X, "X") if sp.issparse(X) else numeric_array(X, "X")
    if size == 0 or rows.ndim != 2:
        raise ValueError(
            f"X has the shape {rows.shape}, and there are {size} labels: give a row for each "
            "example, and the names of all labels."
        )
    if (pairs < 0).any() or (pairs >= size).any():
        place = int(np.argmax(((pairs < 0) | (pairs >= size)).any(axis=1)))
        raise ValueError(
            f"edge {place} is {pairs[place].tolist()}, but there are {size} labels, from 0."
        )
    count = rows.shape[0]
    names = [*(map(str, range(rows.shape[1])) if columns is None else columns), "bias"]
    biased = sp.hstack([sp.csr_array(rows), sp.csr_array(np.ones((count, 1)))], format="csr")
    nodes, steps = np.arange(count + 1) * size, np.arange(count + 1) * len(pairs)
    source, target = np.tile(pairs, (count, 1)).T
    pair_names = [f"{labels[a]}, {labels[b]}" for a, b in pairs.tolist()]
    each = sp.kron(np.ones((count, 1)), sp.eye_array(len(pairs)), format="csr")
    return PackedSequences(
        sp.kron(biased, sp.eye_array(size), format="csr"),
        offsets=nodes,
        feature_names=[f"{name}|{label}" for name in names for label in labels],
        topology=Edges(source, target, nodes, steps),
        transitions=PackedSequences(each, offsets=steps, feature_names=pair_names),
    )


def multilabel_labels(Y: Any) -> LabelSequences:
    """Return indicators of labels, shape (n, V), as labels 0 and 1 of the nodes of n graphs.

    :func:`multilabel_indicators` is the way back. ValueError if Y is no table of 0 and 1.

    Examples
    --------
    >>> from crfkit.graphs import multilabel_labels
    >>> multilabel_labels([[True, False], [False, False]])
    [[1, 0], [0, 0]]
    """
    table = np.asarray(check_sparse(Y, "Y").toarray() if sp.issparse(Y) else Y)
    if table.ndim != 2 or not np.isin(table, (0, 1)).all():
        raise ValueError(
            "Y must be a table of 0 and 1, with a row for each example and a column for each "
            "label: sklearn.preprocessing.MultiLabelBinarizer makes one of lists of labels."
        )
    return LabelSequences(table.astype(np.int64).tolist())


def multilabel_indicators(labels: Sequence[Sequence[Any]]) -> IntArray:
    """Return labels 0 and 1 of the nodes of n graphs as indicators of labels, shape (n, V).

    Examples
    --------
    >>> from crfkit.graphs import multilabel_indicators
    >>> multilabel_indicators([[1, 0], [0, 0]]).tolist()
    [[1, 0], [0, 0]]
    """
    return np.array([list(own) for own in labels], np.int64)

"""What losses with a cost share."""

from __future__ import annotations

from typing import Any

from crfkit._types import CodeArray, FloatArray, Potentials
from crfkit.labels.costs import Cost, ZeroOneCost, hamming


def find_cost(cost: Any, n_labels: int) -> Cost:
    """Return the cost of a loss, which may be the name of one that is the same for all labels.

    Raises
    ------
    TypeError, ValueError
        If it is neither such a name nor a cost.
    """
    if isinstance(cost, str) and cost in ("hamming", "zero_one"):
        return hamming(n_labels) if cost == "hamming" else ZeroOneCost()
    if isinstance(cost, type) or not callable(getattr(cost, "total", None)):
        raise TypeError(
            f"cost={cost!r:.80} must be 'hamming', 'zero_one' or a cost made of labels by "
            "crfkit.labels.costs.make_cost."
        )
    table = getattr(cost, "table", None)
    if table is not None and len(table) != n_labels:
        raise ValueError(f"the cost is one of {len(table)} labels, but there are {n_labels}.")
    found: Cost = cost
    return found


def added_cost(cost: Cost, labels: CodeArray) -> FloatArray:
    """Return what a cost adds to the scores of the labels, shape (N, K), given the true ones.

    Raises
    ------
    ValueError
        If the cost is not a sum over tokens.
    """
    added = getattr(cost, "added", None)
    if added is None:
        raise ValueError(
            f"the cost {type(cost).__name__} is no sum over tokens, which this loss adds to the "
            "scores. Use cost='hamming' or a matrix, or loss='hinge'."
        )
    result: FloatArray = added(labels)
    return result


def with_cost(scores: Potentials, labels: CodeArray, cost: Cost) -> Potentials:
    """Return scores to which the cost of each label is added; ValueError as `added_cost`."""
    return scores.plus_unary(added_cost(cost, labels))

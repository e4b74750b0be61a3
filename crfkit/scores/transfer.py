"""Weights of an older model as the start of a newer one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from crfkit._types import FloatArray
from crfkit.scores.linear import LinearScores


class NamedWeights(NamedTuple):
    """Weights of a linear model with the names of their attributes and labels.

    Attributes
    ----------
    classes : ndarray of shape (K,)
        Labels.
    names : ndarray of shape (D,) or None
        Names of the attributes, if they have any.
    state : csr_array of shape (D, K)
        State weights.
    pair : ndarray of shape (K, K)
        Step weights.
    start, end : ndarray of shape (K,)
        Boundary weights.
    """

    classes: NDArray[np.object_]
    names: NDArray[np.object_] | None
    state: sp.csr_array
    pair: FloatArray
    start: FloatArray
    end: FloatArray


def carry_over(
    old: NamedWeights,
    model: LinearScores,
    classes: NDArray[np.object_],
    names: NDArray[np.object_] | None,
) -> FloatArray:
    """Return parameters of a model with the weights of an older one, 0 where that has none.

    Attributes and labels are matched by name; attributes without names by their number.

    Parameters
    ----------
    old : NamedWeights
        The older weights.
    model : LinearScores
        Which weights the newer model has.
    classes : ndarray of shape (K,)
        Its labels.
    names : ndarray of shape (D,) or None
        Names of its attributes.

    Raises
    ------
    ValueError
        If the attributes have no names and another number than before.
    """
    parameters = np.zeros(model.n_parameters)
    labels = _match(classes, old.classes)
    if names is not None and old.names is not None:
        attributes = _match(names, old.names)
    elif model.n_features == old.state.shape[0]:
        attributes = np.arange(model.n_features)
    else:
        raise ValueError(
            f"warm_start: X has {model.n_features} features without names, the last fit had "
            f"{old.state.shape[0]}. Name the features, keep their number, or set warm_start=False."
        )
    state, steps, start, end = model.split(parameters)
    rows = np.repeat(attributes, np.diff(model.state_ptr))
    state[:] = _pick(old.state, rows, labels[model.state_labels])
    pair = sp.csr_array(old.pair)
    steps[:] = _pick(pair, labels[model.step_from], labels[model.step_to])
    if model.boundaries:
        known = labels >= 0
        start[known] = old.start[labels[known]]
        end[known] = old.end[labels[known]]
    return parameters


def _match(new: NDArray[np.object_], old: NDArray[np.object_]) -> NDArray[np.int64]:
    """Return the place of each new name among the old ones, -1 if it is not there."""
    places = {name: place for place, name in enumerate(old)}
    return np.array([places.get(name, -1) for name in new], dtype=np.int64)


def _pick(matrix: sp.csr_array, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> FloatArray:
    """Return entries of a sparse matrix, 0 where a row or column is -1."""
    found = (rows >= 0) & (columns >= 0)
    values = np.zeros(len(rows))
    if found.any():
        picked = matrix[rows[found], columns[found]]
        values[found] = np.ravel(picked.toarray() if sp.issparse(picked) else picked)
    return values

"""Weights of an older model as the start of a newer one."""

from __future__ import annotations

from itertools import repeat
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.data.names import Names, name_array
from crfkit.potentials.attributes import AttributeWeights
from crfkit.potentials.linear_chain import LinearChainModel
from crfkit.potentials.transitions import InputDependentTransitions


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
    transition_names : ndarray of shape (D2,) or None
        Names of the attributes of transitions, if they have any.
    transitions : csr_array of shape (D2, K * K) or None
        Weights of the attributes of transitions.
    """

    classes: NDArray[np.object_]
    names: Names | None
    state: sp.csr_array
    pair: FloatArray
    start: FloatArray
    end: FloatArray
    transition_names: Names | None
    transitions: sp.csr_array | None


def transfer_weights(
    old: NamedWeights,
    model: LinearChainModel,
    classes: NDArray[np.object_],
    names: Names | None,
    transition_names: Names | None,
) -> FloatArray:
    """Return parameters of a model with the weights of an older one, 0 where that has none.

    Attributes and labels are matched by name; attributes without names by their number.

    Parameters
    ----------
    old : NamedWeights
        The older weights.
    model : LinearChainModel
        Which weights the newer model has.
    classes : ndarray of shape (K,)
        Its labels.
    names, transition_names : ndarray, LazyNames or None
        Names of its attributes, and of its attributes of transitions.

    Raises
    ------
    ValueError
        If the attributes have no names and another number than before.
    """
    parameters = np.zeros(model.n_parameters)
    labels = _match(classes, old.classes)
    state, transitions, start, end, triples = model.split(parameters)
    state[:] = _carry(old.state, _attributes(names, old.names, model.state, old.state),
                      labels, model.state)  # fmt: skip
    pair = sp.csr_array(old.pair)
    transitions[:] = _pick(pair, labels[model.transition_from], labels[model.transition_to])
    if model.boundaries:
        known = labels >= 0
        start[known] = _finite(old.start[labels[known]])
        end[known] = _finite(old.end[labels[known]])
    if isinstance(model.transitions, InputDependentTransitions) and old.transitions is not None:
        places = model.transitions.weights
        rows = _attributes(transition_names, old.transition_names, places, old.transitions)
        before, after = labels[:, None], labels[None, :]
        moves = np.where((before >= 0) & (after >= 0), before * len(old.classes) + after, -1)
        triples[:] = _carry(old.transitions, rows, moves.ravel(), places)
    return parameters


def extend(model: LinearChainModel, others: list[NamedWeights]) -> LinearChainModel:
    """Return a model that also has the weights that are not 0 in older ones.

    Parameters
    ----------
    model : LinearChainModel
        The newer model.
    others : list of NamedWeights
        With the same labels in the same order, and the same attributes in the same columns, but
        for newer ones behind them.
    """
    transitions = model.transitions
    if isinstance(transitions, InputDependentTransitions):
        old = [weights.transitions for weights in others if weights.transitions is not None]
        transitions = InputDependentTransitions(_join(transitions.weights, old))
    k = model.n_labels
    moves = np.zeros((k, k), np.bool_)
    moves[model.transition_from, model.transition_to] = True
    for weights in others:
        moves |= weights.pair != 0.0
    source, target = np.nonzero(moves)
    return LinearChainModel(
        _join(model.state, [weights.state for weights in others]),
        source,
        target,
        boundaries=model.boundaries,
        transitions=transitions if isinstance(transitions, InputDependentTransitions) else None,
    )


def _join(model: AttributeWeights, others: list[sp.csr_array]) -> AttributeWeights:
    """Return the pairs of a model and of the entries of matrices that may have fewer rows."""
    shape = (model.n_features, model.n_columns)
    joined = _ones(model.columns, model.ptr, shape)
    for matrix in others:
        missing = shape[0] - matrix.shape[0]
        ptr = np.append(matrix.indptr, np.repeat(matrix.indptr[-1:], missing))
        joined = joined + _ones(matrix.indices, ptr, shape)
    joined.sort_indices()
    return AttributeWeights(
        joined.indptr, joined.indices, n_columns=shape[1], n_sparse=model.n_sparse
    )


def _ones(columns: CodeArray, ptr: IntArray, shape: tuple[int, int]) -> sp.csr_array:
    return sp.csr_array((np.ones(len(columns)), columns, ptr), shape)


def _attributes(
    names: Names | None, old_names: Names | None, model: AttributeWeights, old: sp.csr_array
) -> NDArray[np.int64]:
    """Return the place of each attribute among the old ones, -1 if it is not there."""
    if names is not None and old_names is not None:
        return _match(name_array(names), name_array(old_names))
    if model.n_features == old.shape[0]:
        return np.arange(model.n_features)
    raise ValueError(
        f"warm_start: X has {model.n_features} features without names, the last fit had "
        f"{old.shape[0]}. Name the features, keep their number, or set warm_start=False."
    )


def _carry(
    old: sp.csr_array,
    attributes: NDArray[np.int64],
    columns: NDArray[np.int64],
    model: AttributeWeights,
) -> FloatArray:
    """Return the old weight of each pair of a model."""
    rows = np.repeat(attributes, np.diff(model.ptr))
    return _pick(old, rows, columns[model.columns])


def _match(new: NDArray[np.object_], old: NDArray[np.object_]) -> NDArray[np.int64]:
    """Return the place of each new name among the old ones, -1 if it is not there."""
    if new is old:
        return np.arange(len(new))
    places = dict(zip(old.tolist(), range(len(old)), strict=True))
    found = map(places.get, new.tolist(), repeat(-1))
    return np.fromiter(found, np.int64, len(new))


def _pick(matrix: sp.csr_array, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> FloatArray:
    """Return entries of a sparse matrix, 0 where a row or column is -1 or the entry not finite.

    A label or step that was forbidden by hand (``-inf``) is learned from 0 again.
    """
    found = (rows >= 0) & (columns >= 0)
    values = np.zeros(len(rows))
    if found.any():
        picked = matrix[rows[found], columns[found]]
        values[found] = np.ravel(picked.toarray() if sp.issparse(picked) else picked)
    return _finite(values)


def _finite(values: FloatArray) -> FloatArray:
    """Return the values, 0 for one that is not finite."""
    return np.where(np.isfinite(values), values, 0.0)

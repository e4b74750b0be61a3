"""Weights of an older model as the start of a newer one."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfkit._types import FloatArray, IntArray
from crfkit.data.names import Names, name_array
from crfkit.potentials.blocks import LABELS, ONE, PAIRS
from crfkit.potentials.linear import LinearModel


class NamedWeights(NamedTuple):
    """Fitted weights with the names of their attributes and labels.

    Attributes
    ----------
    classes : ndarray of shape (K,)
        Labels.
    names : dict
        Names of the attributes of tokens, transitions and segments, None where they have none.
    fitted : dict
        Fitted attributes.
    """

    classes: NDArray[np.object_]
    names: Mapping[str, Names | None]
    fitted: Mapping[str, Any]


def transfer_weights(
    old: NamedWeights,
    model: LinearModel,
    classes: NDArray[np.object_],
    names: Mapping[str, Names | None],
) -> FloatArray:
    """Return parameters of a model with the weights of an older one, 0 where that has none.

    Attributes and labels are matched by name; attributes without names by their number.

    Parameters
    ----------
    old : NamedWeights
        The older weights.
    model : LinearModel
        Which weights the newer model has.
    classes : ndarray of shape (K,)
        Its labels.
    names : dict
        Names of its attributes of tokens, transitions and segments.

    Raises
    ------
    ValueError
        If there are other numbers of attributes without names.
    """
    labels = _match(classes, old.classes)
    before, after = labels[:, None], labels[None, :]
    known = (before >= 0) & (after >= 0)
    places: dict[str, IntArray] = {
        ONE: np.zeros(1, np.int64),
        LABELS: labels,
        PAIRS: np.where(known, before * len(old.classes) + after, -1).ravel(),
    }
    found = []
    for block in model.blocks:
        matrix, rows = block.stacked(old.fitted), block.rows
        if matrix is not None and rows not in places:
            size = block.pattern.shape[0]
            places[rows] = _attributes(names.get(rows), old.names.get(rows), size, matrix.shape[0])
        found.append(block.carried(matrix, places))
    return np.concatenate(found)


def extend(model: LinearModel, others: list[Mapping[str, Any]]) -> LinearModel:
    """Return a model that also has the weights that are not 0 in older ones.

    Parameters
    ----------
    model : LinearModel
        The newer model.
    others : list of dict
        Fitted attributes, with the same labels in the same order, and the same attributes in the
        same columns, but for newer ones behind them.
    """
    return type(model)([block.extended(others) for block in model.blocks])


def _attributes(names: Names | None, old: Names | None, size: int, old_size: int) -> IntArray:
    """Return the place of each attribute among the old ones, -1 if it is not there."""
    if names is not None and old is not None:
        return _match(name_array(names), name_array(old))
    if size == old_size:
        return np.arange(size)
    raise ValueError(
        f"warm_start: X has {size} features without names, the last fit had {old_size}. "
        "Name the features, keep their number, or set warm_start=False."
    )


def _match(new: NDArray[np.object_], old: NDArray[np.object_]) -> IntArray:
    """Return the place of each new name among the old ones, -1 if it is not there."""
    if new is old:
        return np.arange(len(new))
    places = dict(zip(old.tolist(), range(len(old)), strict=True))
    found = map(places.get, new.tolist(), repeat(-1))
    return np.fromiter(found, np.int64, len(new))

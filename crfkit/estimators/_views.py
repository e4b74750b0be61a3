"""Fitted weights as mappings from names, and what else can be read off a fitted model."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from crfkit._types import FloatArray, ObjectArray
from crfkit.data.names import name_array
from crfkit.labels.segments import longest
from crfkit.potentials.blocks import LABELS, NAMES_OF, PAIRS, TOKENS


class WeightView(Mapping[tuple[Hashable, Hashable], float]):
    """``{(row, column): weight}`` of a sparse matrix, (R, C), with named rows and columns.

    A view: no dict is built, the names are looked up when asked for. Weights that are 0 are not
    part of it.
    """

    def __init__(self, matrix: sp.csr_array, rows: Sequence[Any], columns: Sequence[Any]) -> None:
        self._matrix = matrix
        self._rows, self._columns = rows, columns
        self._row_index: dict[Any, int] | None = None

    def __len__(self) -> int:
        return int(np.count_nonzero(self._matrix.data))

    def __iter__(self) -> Iterator[tuple[Hashable, Hashable]]:
        matrix = self._matrix
        for row, (begin, end) in enumerate(itertools.pairwise(matrix.indptr)):
            for entry in range(begin, end):
                if matrix.data[entry] != 0.0:
                    yield self._rows[row], self._columns[matrix.indices[entry]]

    def __getitem__(self, key: tuple[Hashable, Hashable]) -> float:
        if self._row_index is None:
            self._row_index = {name: row for row, name in enumerate(self._rows)}
            self._column_index = {name: column for column, name in enumerate(self._columns)}
        try:
            row, column = self._row_index[key[0]], self._column_index[key[1]]
        except (KeyError, TypeError, IndexError):
            raise KeyError(key) from None
        weight = float(self._matrix[row, column])
        if weight == 0.0:
            raise KeyError(key)
        return weight

    def top(self, count: int = 10) -> list[tuple[tuple[Hashable, Hashable], float]]:
        """Return the weights of the largest size, largest first, `count` at most."""
        matrix = self._matrix
        order = np.argsort(-np.abs(matrix.data), kind="stable")[:count]
        rows = np.searchsorted(matrix.indptr, order, side="right") - 1
        entries = zip(rows, matrix.indices[order], matrix.data[order].tolist(), strict=True)
        return [((self._rows[r], self._columns[c]), w) for r, c, w in entries if w != 0.0]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}: {weight:.4g}" for name, weight in self.top(3))
        return f"<{len(self):,} weights, largest {{{shown}}}>"


def weight_view(attribute: str, what: str, rows: str = TOKENS, columns: str = LABELS) -> property:
    """Return a property: the mapping view of fitted weights with named rows and columns."""

    def view(self: Any) -> WeightView:
        _check_has(self, attribute)
        weights, labels = vars(self)[attribute], self.classes_
        named = list(itertools.product(labels, repeat=2)) if columns == PAIRS else labels
        if weights is None:
            return WeightView(sp.csr_array((0, len(named))), [], named)
        names: Any = labels if rows == LABELS else vars(self).get(NAMES_OF[rows])
        names = range(weights.shape[0]) if names is None else name_array(names)
        return WeightView(sp.csr_array(weights), names, named)

    return property(view, doc=f"Mapping view ``{{{what}: weight}}`` of the weights that are not 0.")


def names_of_attributes(kind: str, shape: str) -> property:
    """Return a property: the names of the attributes of tokens, of transitions or of segments."""

    def names(self: Any) -> ObjectArray:
        found = vars(self).get(NAMES_OF[kind])
        if found is None:
            raise AttributeError("the model is not fitted, or on features without names")
        return name_array(found)

    return property(names, doc=f"Names of the attributes of {kind}, {shape}, where there are any.")


def max_lengths(self: Any) -> dict[Hashable, int]:
    """Return the longest length of the segments of each label."""
    _check_has(self, "length_scores_")
    lengths = longest(self.length_scores_).tolist()
    return dict(zip(self.classes_.tolist(), lengths, strict=True))


def length_distribution(self: Any) -> FloatArray:
    """Return how long segments were if nothing but the weights of lengths counted.

    What the data say of lengths is also in the weights of tokens, which add up over a segment:
    `expected_lengths` of :class:`crfkit.SemiMarkovCRF` tells how long segments are. Columns of the
    array, (L, K), are ``exp(length_scores_)`` of a label, divided by its sum.
    """
    _check_has(self, "length_scores_")
    shares: FloatArray = softmax(self.length_scores_, axis=0)
    return shares


def _check_has(estimator: Any, attribute: str) -> None:
    """Raise AttributeError if an estimator is not fitted, or has no such fitted attribute."""
    check_is_fitted(estimator)
    if attribute in vars(estimator):
        return
    if attribute == "coef_":
        raise AttributeError("a model with a kernel has no weights of attributes")
    raise _no_segments(estimator)


def _no_segments(estimator: Any) -> AttributeError:
    return AttributeError(
        f"{type(estimator).__name__} has labels of tokens, not of segments: fit one with "
        "structure=Segments(...)."
    )


def _learns_segments(estimator: Any) -> bool:
    """Return whether an estimator has the labels of segments; raise AttributeError if not."""
    if estimator.__sklearn_is_fitted__():
        _check_has(estimator, "length_scores_")
    elif isinstance(estimator.structure, str):
        raise _no_segments(estimator)
    return True


# Makes a method one that is there where the parameter `structure` is Segments.
if_segments = available_if(_learns_segments)

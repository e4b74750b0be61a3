"""Values and their products as attributes of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crfkit._types import FloatArray, ObjectArray
from crfkit.data import PackedSequences
from crfkit.data.labels import object_array
from crfkit.data.names import name_array
from crfkit.features.vectorizer import SequenceTransformer


@dataclass(kw_only=True, eq=False, repr=False)
class QuadraticFeatures(SequenceTransformer):
    """Add all products of two values of a token, squares too, to dense matrices.

    With them a linear model can say what normal distributions with a covariance for each label say
    of labels: quadratic discriminant analysis, in a chain.

    Attributes
    ----------
    n_features_in_ : int
        How many columns D the matrices have; there are ``D + D (D + 1) / 2`` attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from crfkit.features import QuadraticFeatures
    >>> QuadraticFeatures().fit_transform([np.array([[2.0, 3.0]])]).dense.tolist()
    [[2.0, 3.0, 4.0, 6.0, 9.0]]
    """

    def _fit(self, X: Any, y: Any) -> PackedSequences:
        data = _packed(X, None)
        self.n_features_in_ = data.n_features
        self._names = None if data.names is None else list(name_array(data.names))
        return self._transform(data)

    def _transform(self, X: Any) -> PackedSequences:
        data = _packed(X, self.n_features_in_)
        if data.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {data.n_features} columns, but {type(self).__name__} was fitted to "
                f"{self.n_features_in_}."
            )
        values: FloatArray = np.zeros((0, data.n_features)) if data.dense is None else data.dense
        rows, columns = np.triu_indices(data.n_features)
        dense = np.hstack([values, values[:, rows] * values[:, columns]])
        return PackedSequences(None, dense, offsets=data.offsets, feature_names=self._token_names())

    def _token_names(self) -> ObjectArray:
        names = self._names or [f"x{number}" for number in range(self.n_features_in_)]
        rows, columns = np.triu_indices(len(names))
        pairs = zip(rows.tolist(), columns.tolist(), strict=True)
        return object_array([*names, *(f"{names[i]} {names[j]}" for i, j in pairs)])


def _packed(X: Any, n_features: int | None) -> PackedSequences:
    """Return dense matrices as packed sequences."""
    data: PackedSequences = X
    if not isinstance(X, PackedSequences):
        data = PackedSequences.from_matrices(X, n_features)
    if data.n_sparse:
        raise ValueError("products of values are made of dense matrices, but X is sparse.")
    return data

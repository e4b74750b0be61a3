"""The Hessian of an objective as a matrix, where its weights are few."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from crfkit._types import BoolArray, FloatArray
from crfkit.compiler.jit import frozen
from crfkit.data import PackedSequences
from crfkit.kernels.chain.covariances import TokenFeatures
from crfkit.potentials import LinearModel


class FeatureBasis(NamedTuple):
    """Features whose covariances tell those of all weights.

    Where an attribute has weights for all labels, that of the last one is left out: the indicators
    of the labels add up to 1, so its covariances are minus the sums of the others. All transitions
    are there, also those without a weight.
    """

    features: TokenFeatures
    combine: sp.csr_array  # (P, B + K K) the weights as sums of features

    @classmethod
    def of(cls, model: LinearModel, data: PackedSequences) -> FeatureBasis:
        """Return the features of a chain whose transitions share a table."""
        state, size = model.state, model.n_columns
        counts = np.diff(state.ptr)
        is_full = counts == size
        row = np.repeat(np.arange(len(counts)), counts)
        chosen = ~(is_full[row] & (state.columns == size - 1))
        values, stride = data.value_array()
        features = TokenFeatures(
            frozen(data.indptr.astype(np.int64)), frozen(data.indices.view(np.uint32)),
            frozen(values), stride, frozen(np.append(0, np.cumsum(counts - is_full))),
            frozen(state.columns[chosen].astype(np.uint32)),
        )  # fmt: skip
        return cls(features, _combination(model, chosen))

    def directions(self, start: FloatArray) -> sp.csr_array:
        """Return the directions that a search from `start` needs, see `Objective.directions`."""
        if np.diff(self.combine.indptr).max(initial=0) == 1:
            found = self.combine.T.tocsr()
            found = found[np.diff(found.indptr) > 0]
            if np.array_equal(found.T @ (found @ start / np.diff(found.indptr)), start):
                return found
        return sp.eye_array(len(start), format="csr")


def _combination(model: LinearModel, chosen: BoolArray) -> sp.csr_array:
    """Return weights as sums of features: the `chosen` weights of attributes, all transitions."""
    size, places, left = model.n_columns, np.cumsum(chosen) - 1, np.flatnonzero(~chosen)
    n_state, n_chosen = len(chosen), int(np.count_nonzero(chosen))
    steps = n_chosen + model.transition_from.astype(np.int64) * size + model.transition_to
    others = places[left, None] - np.arange(size - 1)
    rows = [np.flatnonzero(chosen), np.repeat(left, size - 1), n_state + np.arange(len(steps))]
    columns = np.concatenate([places[chosen], others.ravel(), steps])
    values = np.concatenate([np.ones(n_chosen), -np.ones(others.size), np.ones(len(steps))])
    shape = n_state + len(steps), n_chosen + size * size
    return sp.csr_array((values, (np.concatenate(rows), columns)), shape)

"""Preconditioner and per-batch Lipschitz estimates of stochastic average gradient."""

from __future__ import annotations

import math

import numpy as np

from crfkit._types import FloatArray, IntArray, Random
from crfkit.compiler.jit import frozen
from crfkit.kernels.design.gather import scatter_dense
from crfkit.objective.stochastic import StochasticObjective

# What happens to all estimates of a smoothness when the objective rose in a pass.
RISE = 1.25
# Powers of the share of the largest curvature that steps are divided by, and the least share.
POWER, LEAST_SHARE = 0.5, 1e-4
# Tokens that the metric is made of at most; with more dense features it has no principal axes.
METRIC_TOKENS, MOST_FEATURES = 1 << 14, 512


class Preconditioner:
    """How far steps go along dense features, and between labels, compared with sparse features.

    The sum of the squares of the data along a direction tells how large a curvature can be there.
    Steps along the principal axes of dense features are longer the smaller it is, by its square
    root: that lies between gradients and the method of Newton. The weight of a transition has the
    number of such transitions for it. Where no feature is dense, all steps are alike.
    """

    always: slice  # the parameters of dense features and transitions; empty without dense ones
    features: FloatArray  # (F, F) the positive definite metric of dense features, or (F, 1)
    transitions: FloatArray  # (P2,) that of transitions
    most: float  # the largest number that it multiplies with
    # The share of the largest constant that the mean is taken for at least. With a metric, tests
    # see less of the curvature, since gradients do not point to the largest one.
    caution: float

    def __init__(self, batches: StochasticObjective) -> None:
        model = self._model = batches.model
        state, n_steps = model.state, len(model.transition_from)
        first, last = int(state.ptr[state.n_sparse]), state.n_parameters
        self._cut = last - first
        dense = None if batches.source.dense is None else batches.data.dense
        if dense is None:
            self.always = slice(last, last)
            self.features, self.transitions, self.most = np.zeros((0, 0)), np.ones(n_steps), 1.0
            self.caution = 0.0
            return
        self.caution = 1.0
        self.always = slice(first, last + n_steps)
        counts = _step_counts(batches)
        largest = float(np.abs(dense).max(initial=0.0)) or 1.0
        squares, axes = _axes(frozen(dense[:METRIC_TOKENS] / largest))
        largest *= math.sqrt(max(len(dense) / METRIC_TOKENS, 1.0))
        top = max(math.sqrt(max(squares.max(initial=0.0), 0.0)) * largest,
                  math.sqrt(counts.max(initial=1)))  # fmt: skip
        lengths = _lengths(squares * (largest / top) ** 2)
        self.features = frozen(lengths[:, None] if axes is None else (axes * lengths) @ axes.T)
        self.transitions = _lengths(counts / top / top)
        self.most = float(max(lengths.max(initial=1.0), self.transitions.max(initial=1.0)))

    def __call__(self, gradient: FloatArray) -> FloatArray:
        """Return the metric times a gradient, for the parameters at `always`, shape (n,)."""
        if self.always.start == self.always.stop:
            return gradient
        cut, state = self._cut, self._model.state
        table = state.dense_table(gradient[:cut])
        diagonal = self.features.shape[1] == 1
        dense = state.take_dense(self.features * table if diagonal else self.features @ table)
        return np.concatenate([dense, self.transitions * gradient[cut:]])


def _axes(dense: FloatArray) -> tuple[FloatArray, FloatArray | None]:
    """Return sums of squares along principal axes of dense features, and these if not too many."""
    n_features = dense.shape[1]
    if n_features > MOST_FEATURES:
        return np.square(dense).sum(axis=0), None
    products = np.zeros((1, n_features, n_features))
    scatter_dense(dense, 0, 0, n_features, dense, products)
    squares, axes = np.linalg.eigh(products[0])
    return squares, axes


def _step_counts(batches: StochasticObjective) -> FloatArray:
    """Return how often each transition that has a weight occurs."""
    labels, offsets, model = batches.states.astype(np.int64), batches.offsets, batches.model
    if model.n_codes > model.n_labels:  # of segments, whose first tokens have the larger codes
        first = np.flatnonzero(labels >= model.n_labels)
        labels, offsets = labels[first] - model.n_labels, np.searchsorted(first, offsets)
    later = np.delete(np.arange(len(labels)), offsets[:-1][np.diff(offsets) > 0])
    pairs = labels[later - 1] * model.n_labels + labels[later]
    counts = np.bincount(pairs, minlength=model.n_labels**2)
    found: FloatArray = counts[
        model.transition_from * np.int64(model.n_labels) + model.transition_to
    ]
    return found


def _lengths(shares: FloatArray) -> FloatArray:
    """Return how far to go, given shares of the largest curvature."""
    return np.maximum(shares, LEAST_SHARE) ** -POWER


class LipschitzEstimates:
    """Estimates of the Lipschitz constant ``L_b`` of the gradient of the loss of each batch, (B,).

    An estimate is good where ``loss(w - M g / L) <= loss(w) - g . M g / (2 L)`` for the metric M.
    It is tested now and then, more rarely the longer it has been good: `wait` updates on, `pause`
    between tests. It is 0 before the first one.
    """

    def __init__(self, batches: StochasticObjective) -> None:
        count = len(batches)
        self.estimates = np.zeros(count)
        self.wait, self.pause = np.zeros(count, np.int64), np.zeros(count, np.int64)

    def raise_all(self) -> None:
        """Make steps shorter: a test sees the curvature along one direction, not the largest."""
        self.estimates *= RISE

    def draw(self, random: Random) -> IntArray:
        """Return as many batches as there are, half in proportion to L; each once at first."""
        count = len(self.estimates)
        if not count or not self.estimates.all():
            return random.permutation(count)
        order = np.empty(count, np.int64)
        ends = np.cumsum(self.estimates)
        drawn = random.random_sample(count - count // 2) * ends[-1]
        order[::2] = np.minimum(np.searchsorted(ends, drawn, side="right"), count - 1)
        order[1::2] = random.permutation(count)[: count // 2]
        return order

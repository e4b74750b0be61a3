"""How far steps of stochastic average gradient go: their metric, and the smoothness of losses."""

from __future__ import annotations

import math

import numpy as np

from crfkit._types import FloatArray, IdArray, IntArray, Potentials, Random
from crfkit.compiler.jit import frozen
from crfkit.kernels.design.gather import scatter_dense
from crfkit.kernels.solvers.sag import LEAST_CHANGE, LESS, LONGEST_PAUSE, MORE, MOST_TESTS
from crfkit.kernels.solvers.vector import vector_dot
from crfkit.objective.stochastic import StochasticObjective

# What happens to all estimates of a smoothness when the objective rose in a pass.
RISE = 1.25
# Powers of the share of the largest curvature that steps are divided by, and the least share.
POWER, LEAST_SHARE = 0.5, 1e-4
# Tokens that the metric is made of at most; with more dense features it has no principal axes.
METRIC_TOKENS, MOST_FEATURES = 1 << 14, 512


class Metric:
    """How far steps go along dense features, and between labels, compared with sparse features.

    The sum of the squares of the data along a direction tells how large a curvature can be there.
    Steps along the principal axes of dense features are longer the smaller it is, by its square
    root: that lies between gradients and the method of Newton. The weight of a step from label to
    label has the number of such steps for it. Where no feature is dense, all steps are alike.

    Parameters
    ----------
    batches : StochasticObjective
        The data.

    Attributes
    ----------
    always : slice
        The parameters of dense features and steps, which each batch touches; empty where no
        feature is dense.
    features : ndarray of shape (F, F) or (F, 1)
        The metric of dense features: symmetric, positive definite; or its diagonal alone.
    steps : ndarray of shape (P2,)
        That of steps.
    most : float
        The largest number that it multiplies with.
    caution : float
        The share of the largest smoothness that the mean is taken for at least. With a metric,
        tests see less of the curvature, since gradients do not point to the largest one.
    """

    def __init__(self, batches: StochasticObjective) -> None:
        model = self._model = batches.model
        state, n_steps = model.state, len(model.transition_from)
        first, last = int(state.ptr[state.n_sparse]), state.n_parameters
        self._cut = last - first
        dense = batches.data.dense
        if dense is None:
            self.always = slice(last, last)
            self.features, self.steps, self.most = np.zeros((0, 0)), np.ones(n_steps), 1.0
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
        self.steps = _lengths(counts / top / top)
        self.most = float(max(lengths.max(initial=1.0), self.steps.max(initial=1.0)))

    def __call__(self, gradient: FloatArray) -> FloatArray:
        """Return the metric times a gradient, for the parameters at `always`, shape (n,)."""
        if self.always.start == self.always.stop:
            return gradient
        cut, state = self._cut, self._model.state
        table = state.dense_table(gradient[:cut])
        diagonal = self.features.shape[1] == 1
        dense = state.take_dense(self.features * table if diagonal else self.features @ table)
        return np.concatenate([dense, self.steps * gradient[cut:]])


def _axes(dense: FloatArray) -> tuple[FloatArray, FloatArray | None]:
    """Return the sums of squares along the principal axes of dense features, and the axes.

    None where each feature stands for itself: there are too many for more.
    """
    n_features = dense.shape[1]
    if n_features > MOST_FEATURES:
        return np.square(dense).sum(axis=0), None
    products = np.zeros((1, n_features, n_features))
    scatter_dense(dense, 0, 0, n_features, dense, products)
    squares, axes = np.linalg.eigh(products[0])
    return squares, axes


def _step_counts(batches: StochasticObjective) -> FloatArray:
    """Return how often each step from label to label that has a weight occurs."""
    labels, offsets, model = batches.all_labels.astype(np.int64), batches.offsets, batches.model
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
    lengths: FloatArray = np.maximum(shares, LEAST_SHARE) ** -POWER
    return lengths


class LipschitzEstimates:
    """Estimates of the Lipschitz constant ``L_b`` of the gradient of the loss of each batch.

    An estimate is good where ``loss(w - M g / L) <= loss(w) - g . M g / (2 L)`` for the metric M.
    It is tested now and then, more rarely the longer it has been good.

    Parameters
    ----------
    batches : StochasticObjective
        The data.
    metric : Metric
        What steps are multiplied with.
    """

    def __init__(self, batches: StochasticObjective, metric: Metric) -> None:
        self.batches, self._metric = batches, metric
        count = len(batches)
        self.estimates = np.zeros(count)
        self.guess = batches.mean_square or 1.0
        self.wait, self.pause = np.zeros(count, np.int64), np.zeros(count, np.int64)

    def is_due(self, index: int) -> bool:
        """Whether the batch that is now visited shall be tested."""
        if self.estimates[index] == 0.0:
            self.estimates[index] = self.guess / LESS
            return True
        self.wait[index] -= 1
        return bool(self.wait[index] < 0)

    def test(self, index: int, scores: Potentials, value: float, whole: FloatArray,
             places: IdArray) -> None:  # fmt: skip
        """Find a good estimate, given the gradient of the batch at its places."""
        vector, always = np.zeros(self.batches.n_parameters), self._metric.always
        vector[places] = whole
        vector[always] = self._metric(vector[always])
        square, estimate = inner(whole, vector[places]), LESS * float(self.estimates[index])
        if not square > LEAST_CHANGE * abs(value) * estimate:
            return
        along = self.batches.scores(self.batches.bind(vector), index)
        tests = 0
        while tests < MOST_TESTS:
            both = zip(scores.arrays(), along.arrays(), strict=True)
            moved = scores.with_arrays(*(array - change / estimate for array, change in both))
            tests += 1
            if self.batches.value_and_residual(moved, index)[0] <= value - 0.5 * square / estimate:
                break
            estimate *= MORE
        self.estimates[index] = estimate
        good = tests == 1
        self.pause[index] = min(2 * max(self.pause[index], 1), LONGEST_PAUSE) if good else 1
        self.wait[index] = self.pause[index]

    def raise_all(self) -> None:
        """Make steps shorter: a test sees the curvature along one direction, not the largest."""
        self.estimates *= RISE

    def guess_from(self, index: int) -> None:
        """Let the estimate of a batch be the first guess for others, if it was tested."""
        if self.pause[index]:
            self.guess = 0.5 * float(self.estimates[index])

    def step(self, decay: float) -> float:
        """Return the length of a step: ``1/2 (1 / (max L + decay) + 1 / (mean L + decay))``."""
        most = float(self.estimates.max())
        mean = float(self.estimates.sum() / np.count_nonzero(self.estimates))
        mean = max(mean, self._metric.caution * most)
        length = 0.5 / (most + decay) + 0.5 / (mean + decay)
        return min(length, 0.5 / decay) if decay else length

    def draw(self, random: Random) -> IntArray:
        """Return as many batches as there are, half at random, half in proportion to L.

        Each of them once, before all have an estimate.
        """
        count = len(self.estimates)
        if not count or not self.estimates.all():
            return random.permutation(count)
        order = np.empty(count, np.int64)
        ends = np.cumsum(self.estimates)
        drawn = random.random_sample(count - count // 2) * ends[-1]
        order[::2] = np.minimum(np.searchsorted(ends, drawn, side="right"), count - 1)
        order[1::2] = random.permutation(count)[: count // 2]
        return order


def inner(a: FloatArray, b: FloatArray) -> float:
    """Return the sum of products, added up by this thread alone."""
    return vector_dot(frozen(a.reshape(-1)), frozen(b.reshape(-1)))

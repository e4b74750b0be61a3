"""Steps of the dual of a margin, for any structure and any cost."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from crfkit._types import CodeArray, Counts, FloatArray, IntArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.vector import vector_dot
from crfkit.losses import HingeLoss
from crfkit.losses._costs import find_cost
from crfkit.objective.stochastic import StochasticObjective
from crfkit.oracles.partition import aligned

# A visit ends where the part of the batch in the gap is this share of what it was.
ENOUGH = 0.1


class Vertex(NamedTuple):
    """A labelling of a batch as a point of the dual.

    Its value at some scores is ``level + sum_s factor_s (score(labels_s) - score(true labels_s))``,
    where scores are sums of weights.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        Label codes.
    factor : ndarray of shape (S,)
        The weight of each sequence, times its cost where the slack is rescaled.
    level : float
        The cost, weighted, and what the structure adds to the difference of the scores.
    """

    labels: CodeArray
    factor: FloatArray
    level: float


class _Look(NamedTuple):
    """What a visit finds.

    Attributes
    ----------
    gap : float
        The part of the batch in the gap.
    slope : float
        The rise of the dual along the direction, were it linear.
    longest : float
        The longest step.
    gradient : ndarray of shape (n,)
        How the direction, pulled back, changes the parameters that the batch touches.
    found : Vertex
        The labelling that violates its margin most.
    away : int
        The corner that a step takes from; -1 where it takes from all.
    """

    gap: float
    slope: float
    longest: float
    gradient: FloatArray
    found: Vertex
    away: int


class MarginSteps:
    """Shares of labellings of all batches, and the parameters they amount to, that steps move.

    The dual of ``sum_i weight_i xi_i + c2 |w|^2`` is ``sum_i a_i . level_i - c2 |w(a)|^2``, where
    ``a_i`` are shares, of sum 1, of the labellings of sequence i, and ``-2 c2 w(a)`` is the sum of
    ``a_i(y) factor_i(y) (f(x_i, y) - f(x_i, y_i))``. Costs and factors are those of `Vertex`.

    Parameters
    ----------
    batches : StochasticObjective
        The data, and a loss with the method ``worst``.
    pairwise : bool
        Whether a step moves the share of one labelling to another, or some of all shares to one.
    most : int
        Steps in a visit. It ends earlier where the part of the batch in the gap is `ENOUGH` of what
        it was.

    Attributes
    ----------
    w : ndarray of shape (L,)
        The parameters, each at some place; elsewhere there are zeros.
    levels : ndarray of shape (B,)
        The expected cost of each batch.
    gaps : ndarray of shape (B,)
        The part of each batch in the gap, as it was at its last visit; 0 before that.
    """

    def __init__(self, batches: StochasticObjective, pairwise: bool, most: int = 1) -> None:
        self.batches, self.pairwise, self.most = batches, pairwise, most
        self.c2 = batches.penalty.l2
        self.levels, self.gaps = np.zeros(len(batches)), np.zeros(len(batches))
        self.loss = cast(HingeLoss, batches.loss)
        self.cost = find_cost(self.loss.cost, batches.model.n_codes)
        self.w = aligned(self._size())

    def _size(self) -> int:
        return self.batches.n_parameters

    @property
    def lower_bound(self) -> float:
        """The dual: no parameters have a smaller objective."""
        w = frozen(self.w)
        return float(self.levels.sum()) - self.c2 * vector_dot(w, w)

    def collect(self, flat: FloatArray) -> FloatArray:
        """Return the parameters, shape (P,), in a vector of shape (L,): a new array."""
        return flat.copy()

    def advance(self, order: IntArray) -> None:
        """Make a step of each of some batches, one after the other."""
        raise NotImplementedError

    def value(self, parameters: FloatArray) -> float:
        """Return the objective at some parameters."""
        return self.batches.value(parameters)


class GeneralMarginSteps(MarginSteps):
    """Steps for any structure and any cost."""

    def __init__(self, batches: StochasticObjective, pairwise: bool, most: int = 1) -> None:
        super().__init__(batches, pairwise, most)
        self.weights = [batches.sequence_weight(i) for i in range(len(batches))]
        self.corners = [[self._true(i)] for i in range(len(batches))]
        self.shares = [[1.0] for _ in range(len(batches))]

    def _true(self, index: int) -> Vertex:
        return Vertex(self.batches.labels(index), np.zeros(len(self.weights[index])), 0.0)

    def advance(self, order: IntArray) -> None:
        """Make a step of each of some batches, one after the other."""
        for index in order.tolist():
            self.batches.visits += 1
            first = self._step(index)
            for _ in range(self.most - 1):
                if not self.gaps[index] > ENOUGH * first:
                    break
                self._step(index)

    def _step(self, index: int) -> float:
        """Make a step of a batch, if one raises the dual; returns its part of the gap before."""
        look = self._look(self.batches.bind(self.w), index)
        self.gaps[index] = max(look.gap, 0.0)
        if look.slope > 0.0:
            self._move(index, look)
        return float(self.gaps[index])

    def _look(self, bound: Any, index: int) -> _Look:
        """Return the direction of a step at some parameters."""
        scores, labels = self.batches.scores(bound, index), self.batches.labels(index)
        structure = self.batches.structure
        with self.batches.original_sequence_numbers():
            worst = self.loss.worst(structure, scores, labels)[0]
        known, shares = self.corners[index], self.shares[index]
        found = self._corner(index, worst, scores)
        values = self._values(scores, labels, [*known, found])
        values, best = values[:-1], float(values[-1])
        gap = best - float(np.dot(shares, values))
        away = int(np.argmin(values)) if self.pairwise else -1
        taken = {away: 1.0} if self.pairwise else dict(enumerate(shares))
        residual = structure.zeros(scores)
        self._add(index, scores, found, 1.0, residual)
        for place, share in taken.items():
            self._add(index, scores, known[place], -share, residual)
        gradient = self.batches.gradient(index, residual)
        slope, longest = (best - float(values[away]), shares[away]) if self.pairwise else (gap, 1.0)
        return _Look(gap, slope, longest, gradient, found, away)

    def _values(self, scores: Potentials, labels: CodeArray, corners: list[Vertex]) -> FloatArray:
        """Return the values of labellings of a batch: all are scored at once."""
        paths = [labels, *(corner.labels for corner in corners)]
        every = scores.take(np.tile(np.arange(len(scores.offsets) - 1), len(paths)))
        found = self.batches.plain.score(every, np.concatenate(paths)).reshape(len(paths), -1)
        factors = np.array([corner.factor for corner in corners])
        levels = np.array([corner.level for corner in corners])
        values: FloatArray = levels + np.sum(factors * (found[1:] - found[0]), axis=1)
        return values

    def _corner(self, index: int, worst: CodeArray, scores: Potentials) -> Vertex:
        """Return the corner of a labelling."""
        weight, labels = self.weights[index], self.batches.labels(index)
        cost = self.cost.total(labels, worst, scores.offsets)
        factor = weight * cost if self.loss.rescaling == "slack" else weight
        added, before = (
            self.batches.structure.offset_score(scores, path) for path in (worst, labels)
        )
        return Vertex(worst, factor, float(np.sum(weight * cost + factor * (added - before))))

    def _add(
        self, index: int, scores: Potentials, corner: Vertex, share: float, out: Counts
    ) -> None:
        """Add a share of a corner to counts."""
        add_counts = self.batches.structure.add_counts
        add_counts(scores, corner.labels, share * corner.factor, out)
        add_counts(scores, self.batches.labels(index), -share * corner.factor, out)

    def _move(self, index: int, look: _Look) -> None:
        """Go to the highest point along a direction."""
        square = float(np.dot(look.gradient, look.gradient))
        length = look.longest
        if look.slope * 2.0 * self.c2 < length * square:
            length = look.slope * 2.0 * self.c2 / square
        self.w[self.batches.places(index)] -= length / (2.0 * self.c2) * look.gradient
        known, shares = self.corners[index], self.shares[index]
        if look.away < 0:
            self.levels[index] += length * (look.found.level - self.levels[index])
            shares[:] = [share * (1.0 - length) for share in shares]
        else:
            self.levels[index] += length * (look.found.level - known[look.away].level)
            shares[look.away] -= length
        place = self._place(index, look.found)
        shares[place] += length
        kept = [i for i, share in enumerate(shares) if share > 0.0]
        self.corners[index] = [known[i] for i in kept]
        self.shares[index] = [shares[i] for i in kept]

    def _place(self, index: int, corner: Vertex) -> int:
        """Return which corner of a batch it is; one that is not known is added with no share."""
        known = self.corners[index]
        for place, other in enumerate(known):
            if np.array_equal(other.labels, corner.labels):
                return place
        known.append(corner)
        self.shares[index].append(0.0)
        return len(known) - 1

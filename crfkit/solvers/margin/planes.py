"""The dual of a margin where searches cost much: what they find is kept as planes."""

from __future__ import annotations

import numpy as np

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.kernels.solvers.frank_wolfe import FrankWolfeOptions
from crfkit.kernels.solvers.planes import Descent, Planes, plane_steps
from crfkit.kernels.solvers.vector import vector_dot
from crfkit.labels.costs import find_cost
from crfkit.objective.penalties import within_bounds
from crfkit.objective.stochastic import StochasticObjective
from crfkit.solvers.margin.dual_state import MarginState
from crfkit.structures import Capability

# Tokens whose worst labelings are looked for at once, from the same parameters, at most; and in how
# many parts, at least, the data are cut for it.
TOKENS_AT_ONCE, LEAST_PARTS = 512, 32
# After each search, steps over the planes of so many other batches follow, of the largest gaps.
SWEPT = 8
# A plane without a share is forgotten after so many searches.
FORGET = 20


class PlaneState(MarginState):
    """Shares of labelings of all batches, each kept as a plane below the loss of its sequence.

    The worst labelings of some batches are looked for at once, from the same parameters. Steps of
    one batch after the other follow, over all planes that were found so far, as these need no
    search (Shah, Kolmogorov and Lampert 2015). Parameters that may not be negative are those of the
    sum of planes, or 0 (`w` is the sum): the dual is ``sum_i a_i . level_i - c2 |w(a)|^2`` with
    them, and what a step raises it by is found by a search along the line.
    """

    def __init__(
        self, batches: StochasticObjective, options: FrankWolfeOptions, *, together: bool = True
    ) -> None:
        parts = max(batches.n_tokens // LEAST_PARTS, 1)
        tokens = min(TOKENS_AT_ONCE, parts) if together else 1
        super().__init__(batches.regrouped(tokens), options.c2)
        self._options, self._singles = options, batches
        self._swept = SWEPT if together else 0
        self._cost = find_cost(self.loss.cost, batches.model.n_codes)
        chunks = [chunk.tokens for chunk in batches.chunks]
        weight = [float(batches.sequence_weight(i).max()) for i in range(len(batches))]
        # Of each batch, the places in `_kept` of the sequences that are learned from.
        group = np.searchsorted(self.offsets, [one.start for one in chunks], side="right") - 1
        self._members: list[list[int]] = [[] for _ in self.gaps]
        for index, part in enumerate(chunks):
            if part.start < part.stop and weight[index] > 0.0:
                self._members[group[index]].append(index)
        paths = [batches.labels(index).tobytes() for index in range(len(batches))]
        self._weight, self._kept = weight, [_Kept(path) for path in paths]
        self._gaps, self._levels = [0.0] * len(paths), [0.0] * len(paths)  # of sequences
        # Potentials of sequences, all of which share one array of scores, and their parameters.
        self._parts, self._zeros = dict[int, tuple[Potentials, IdArray]](), np.zeros(0)
        size, bounds = batches.n_parameters, batches.nonnegative
        nonnegative = np.zeros(size, bool) if bounds is None else bounds
        self._descent = Descent(
            self.w, frozen(nonnegative), np.empty(0), np.zeros(size), np.empty(0, np.uint32),
            np.empty(0),
        )  # fmt: skip

    def unpack(self, flat: FloatArray) -> FloatArray:
        """Return the parameters of a sum of planes: a new array."""
        return within_bounds(flat, self.batches.nonnegative)

    def dual(self, level: float, flat: FloatArray) -> float:
        """Return the dual, given the expected level and the sum of planes."""
        w = frozen(self.unpack(flat))
        return level - self.c2 * vector_dot(w, w)

    def value_and_bound(self, parameters: FloatArray) -> tuple[float, float]:
        """Return the objective at some parameters, and what it does not exceed."""
        self._singles.n_computed += len(self._singles)
        batches, bounded = self.batches, Capability.BOUNDED_SEARCH
        if bounded not in batches.structure.capabilities or self.loss.rescaling != "margin":
            value = batches.value(parameters)
            return value, value
        bound, total = batches.bind(parameters), np.full(2, batches.penalty_at(parameters))
        for group in range(len(batches)):
            scores, weight = batches.scores(bound, group), batches.sequence_weight(group)
            with batches.original_sequence_numbers():
                total += self.loss.value_and_bound(
                    batches.structure, scores, batches.labels(group), weight
                )
        return float(total[0]), float(total[1])

    def advance(self, order: IntArray) -> None:
        """Look for the worst labelings of some batches, and update these."""
        for group in order.tolist():
            self._singles.n_computed += len(self._members[group])
            if self._members[group]:
                self._search(group)
                self._update(group)
            for other in np.argsort(-self.gaps, kind="stable")[: self._swept].tolist():
                self._update(other, again=True)

    def _search(self, group: int) -> None:
        """Look for the worst labelings of a batch."""
        batches, w = self.batches, self.unpack(self.w)
        bound, structure = batches.bind(w), batches.structure
        scores, labels = batches.scores(bound, group), batches.labels(group)
        with batches.original_sequence_numbers():
            worst, value = self.loss.worst(structure, scores, labels)
        if not np.isfinite(value).all():
            self._raise(w, group)
        cost = self._cost.total(labels, worst, scores.offsets)
        factor = cost if self.loss.rescaling == "slack" else np.ones_like(cost)
        added = structure.offset_score(scores, worst) - structure.offset_score(scores, labels)
        level, first = cost + factor * added, int(self.offsets[group])
        ends = scores.offsets[1:] + first
        for index in self._members[group]:
            tokens = self._singles.chunks[index].tokens
            s = int(np.searchsorted(ends, tokens.stop))
            path, kept = worst[tokens.start - first : tokens.stop - first], self._kept[index]
            if not kept.is_known(path.tobytes()):
                plane = self._plane(bound, index, path, float(factor[s]))
                kept.add(path.tobytes(), plane, self._weight[index] * float(level[s]))

    def _plane(
        self, bound: object, index: int, path: CodeArray, factor: float
    ) -> tuple[IdArray, FloatArray]:
        """Return how the value of a labeling changes with the parameters: places and changes."""
        batches, structure = self._singles, self._singles.structure
        if index not in self._parts:
            self._parts[index] = self._parts_of(bound, index)
        (scores, places), labels = self._parts[index], batches.labels(index)
        out, size = structure.zeros(scores), len(scores.offsets) - 1
        weight = np.full(size, factor * self._weight[index])
        structure.add_counts(scores, path, weight, out)
        structure.add_counts(scores, labels, -weight, out)
        changes = batches.gradient(index, out)
        moved = np.flatnonzero(changes)
        return places[moved], changes[moved]

    def _parts_of(self, bound: object, index: int) -> tuple[Potentials, IdArray]:
        """Return potentials that say what the parts of a sequence are, and its parameters."""
        scores, zeros = self._singles.scores(bound, index), list[FloatArray]()
        for array in scores.arrays():
            if array.size > len(self._zeros):
                self._zeros = frozen(np.zeros(array.size))
            zeros.append(self._zeros[: array.size].reshape(array.shape))
        return scores.with_arrays(*zeros), self._singles.places(index)

    def _update(self, group: int, again: bool = False) -> None:
        """Make steps over the planes of each sequence of a batch.

        If it is done again, of those alone whose parts in the gap are no less than the mean.
        """
        members, gaps = self._members[group], self._gaps
        least = self.gaps[group] / max(len(members), 1) * (1.0 - 1e-9) if again else -1.0
        for index in members:
            if gaps[index] >= least:
                planes = self._kept[index].planes()
                self._make_room(len(planes.levels), len(planes.changes))
                gaps[index] = plane_steps(planes, self._options, self._descent)
                self._levels[index] = float(np.dot(planes.levels, planes.shares))
        self.gaps[group] = sum(gaps[index] for index in members)
        self.levels[group] = sum(self._levels[index] for index in members)

    def _make_room(self, planes: int, changes: int) -> None:
        descent = self._descent
        if planes > len(descent.values) or changes > len(descent.changes):
            self._descent = descent._replace(
                values=np.empty(2 * planes),
                places=np.empty(2 * changes, np.uint32), changes=np.empty(2 * changes),
            )  # fmt: skip


class _Kept:
    """The planes of a batch; the first is that of the true labels, which is 0."""

    def __init__(self, path: bytes) -> None:
        none = np.empty(0, np.uint32), np.empty(0)
        self._paths, self._listed, self._unused = [path], [none], np.zeros(1, np.int64)
        self._levels, self._shares = np.zeros(1), np.ones(1)
        self._planes: Planes | None = None

    def is_known(self, path: bytes) -> bool:
        """Whether a labeling has a plane."""
        return path in self._paths

    def add(self, path: bytes, plane: tuple[IdArray, FloatArray], level: float) -> None:
        """Add the plane of a labeling; one that is of no use any more is forgotten."""
        self._unused += 1
        self._unused[self._shares > 0.0] = 0
        self._unused[0] = 0
        if int(self._unused.max()) > FORGET:
            self._take(np.flatnonzero(self._unused <= FORGET))
        self._paths.append(path)
        self._listed.append(plane)
        self._unused = np.concatenate([self._unused, [0]])
        self._levels = np.concatenate([self._levels, [level]])
        self._shares = np.concatenate([self._shares, [0.0]])
        self._planes = None

    def _take(self, kept: IntArray) -> None:
        """Forget all others."""
        self._paths = [self._paths[c] for c in kept.tolist()]
        self._listed = [self._listed[c] for c in kept.tolist()]
        self._unused, self._levels = self._unused[kept], self._levels[kept]
        self._shares = self._shares[kept]

    def planes(self) -> Planes:
        """Return all as a kernel reads them; it writes the shares."""
        if self._planes is None:
            places, changes = map(np.concatenate, zip(*self._listed, strict=True))
            ptr = np.cumsum([0, *(len(one) for one, _ in self._listed)])
            self._planes = Planes(
                frozen(ptr), frozen(places), frozen(changes), frozen(self._levels), self._shares
            )
        return self._planes

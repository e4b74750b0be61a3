"""Problems of structures without a compiled oracle: the same kernels run over them in Python.

They are what `crfkit.compiler.dispatch.interpreted` kernels read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from crfkit._types import CodeArray, Counts, FloatArray, IntArray, Potentials
from crfkit.compiler.dispatch import implements
from crfkit.kernels.oracle import (
    FOUND,
    INFINITE,
    ActiveSet,
    Examples,
    Labeling,
    add_direction,
    apply_direction,
    best,
    gather,
    level,
    list_difference,
    path_score,
    refresh,
)
from crfkit.labels.costs import Cost
from crfkit.losses import HingeLoss
from crfkit.objective.stochastic import StochasticObjective
from crfkit.oracles.label_order import LabelOrder


@dataclass(eq=False)
class StructureProblem:
    """A structure and a linear potentials model, sequence by sequence."""

    batches: StochasticObjective
    offsets: IntArray  # (S + 1,) where sequences start
    batch: IntArray  # (S,) each sequence that is not empty has one of its own


@dataclass(eq=False)
class OnlineStructureProblem(StructureProblem):
    """A problem of online learning; its fields are those of an `OnlineProblem`."""

    order: LabelOrder
    cost: Any  # an AdditiveCost, or what forbids labels
    search: Any
    labels: CodeArray  # (N,) the true ones, as far as the cost and the search need them

    def true_labels(self, s: int) -> CodeArray:
        """Return the true labels of a sequence."""
        return self.labels[self.offsets[s] : self.offsets[s + 1]]


@dataclass(eq=False)
class MarginStructureProblem(StructureProblem):
    """A problem of max-margin learning; the vertices are scored all at once."""

    loss: HingeLoss
    cost: Cost
    active: ActiveSet

    def loss_of(self, s: int, rise: float, labels: CodeArray) -> float:
        """Return the loss of labels, given how much they score above the true ones."""
        cost = self.total_cost(s, labels)
        return cost + rise * (cost if self.loss.rescaling == "slack" else 1.0)

    def factor(self, s: int, labels: CodeArray) -> float:
        """Return what features are multiplied with in the loss of labels."""
        return self.total_cost(s, labels) if self.loss.rescaling == "slack" else 1.0

    def total_cost(self, s: int, labels: CodeArray) -> float:
        """Return the cost of labels of a sequence."""
        gold = self.batches.labels(self.batch[s])
        return float(self.cost.total(gold, labels, np.array([0, len(gold)]))[0])


class StructureWorkspace:
    """Weights `flat`, shape (P,), and what is known of one sequence of up to `longest` tokens."""

    bound: Any
    scores: Potentials
    positions: Any  # (n,) weights
    changes: FloatArray  # (n,) how they differ between two labelings
    top: float  # the loss of the worst labeling
    values: FloatArray  # those of all vertices
    stop: int  # how many tokens are learned from

    def __init__(self, flat: FloatArray, longest: int) -> None:
        self.flat, self.path = flat, np.zeros(longest, np.int32)  # the labeling that was found
        self.paths = self.path[None]


BOTH = OnlineStructureProblem, MarginStructureProblem


@implements(refresh, *BOTH)
def _refresh(problem: StructureProblem, workspace: StructureWorkspace) -> None:
    workspace.bound = problem.batches.bind(workspace.flat)


@implements(gather, *BOTH)
def _gather(problem: StructureProblem, s: int, workspace: StructureWorkspace) -> None:
    workspace.scores = problem.batches.scores(workspace.bound, problem.batch[s])
    workspace.stop = len(workspace.scores.unary)


def _codes(labeling: Labeling, length: int) -> CodeArray:
    codes = labeling.codes[labeling.row, labeling.shift : labeling.shift + length]
    return codes.astype(np.int32)


@implements(best, OnlineStructureProblem)
def _predict(
    problem: OnlineStructureProblem, s: int, examples: Examples, workspace: StructureWorkspace
) -> tuple[float, int]:
    """Predict labels; of a search that lost the true ones, some first labels."""
    batches, scores, order = problem.batches, workspace.scores, problem.order
    if not np.isfinite(scores.unary).all():
        return math.nan, INFINITE
    labels = problem.true_labels(s)
    path = workspace.path[: len(labels)]
    seen = scores if problem.cost is None else scores.plus_unary(problem.cost.added(labels))
    with batches.original_sequence_numbers():
        if problem.search is None:
            seen = batches.structure.with_offset(seen)
            path[:] = order.predict(lambda ordered: batches.plain.argmax(ordered)[0], seen)
        else:
            ranks = order.rank[labels].astype(np.int32)
            found, workspace.stop = problem.search.violation(order.scores(seen), ranks)
            path[:] = labels
            path[: workspace.stop] = order.order[found][: workspace.stop]
    found = Labeling(workspace.paths, 0, 0)
    return _score(problem, s, found, examples, workspace), FOUND


@implements(path_score, OnlineStructureProblem)
def _score(
    problem: OnlineStructureProblem, s: int, labeling: Labeling, examples: Examples,
    workspace: StructureWorkspace,
) -> float:  # fmt: skip
    stop, labels = workspace.stop, problem.true_labels(s)
    codes = _codes(labeling, stop)
    score = float(problem.batches.structure.score(_first(workspace), codes)[0])
    if problem.cost is None:
        return score
    return score + float(problem.cost.total(labels[:stop], codes, np.array([0, stop]))[0])


def _first(workspace: StructureWorkspace) -> Potentials:
    """Return the scores of the tokens to learn from."""
    scores, stop = workspace.scores, workspace.stop
    if stop == len(scores.unary):
        return scores
    return scores.take_tokens(np.arange(stop), np.array([0, stop]))


@implements(list_difference, *BOTH)
def _list_difference(
    problem: StructureProblem, s: int, one: Labeling, other: Labeling, workspace: StructureWorkspace
) -> int:
    batches, index, stop = problem.batches, problem.batch[s], workspace.stop
    structure, weight = batches.structure, np.ones(1)
    out, first = structure.zeros(workspace.scores), _first(workspace)
    of_first = Counts(out.unary[:stop], out.pair)
    structure.add_counts(first, _codes(one, stop), weight, of_first)
    structure.add_counts(first, _codes(other, stop), -weight, of_first)
    workspace.positions = np.array(batches.places(index))
    workspace.changes = batches.gradient(index, out)
    return len(workspace.changes)


@implements(best, MarginStructureProblem)
def _find_worst(
    problem: MarginStructureProblem, s: int, examples: Examples, workspace: StructureWorkspace
) -> tuple[float, int]:
    """Find the labeling of the largest loss; all vertices are scored with it."""
    batches, index, active = problem.batches, problem.batch[s], problem.active
    scores, labels = workspace.scores, batches.labels(index)
    with batches.original_sequence_numbers():
        worst = problem.loss.worst(batches.structure, scores, labels)[0]
    workspace.path[: len(labels)] = worst
    begin, end = problem.offsets[s], problem.offsets[s + 1]
    vertices = active.vertices[: active.counts[s], begin:end].astype(np.int32)
    paths = [labels, worst, *vertices]
    every = scores.take(np.tile(np.arange(len(scores.offsets) - 1), len(paths)))
    found = batches.structure.score(every, np.concatenate(paths)).reshape(len(paths), -1)
    rises = (found[1:] - found[0]).sum(axis=1)
    values = [problem.loss_of(s, *pair) for pair in zip(rises.tolist(), paths[1:], strict=True)]
    workspace.values = np.array(values[1:])
    workspace.top = top = values[0]
    return top, FOUND if abs(top) < math.inf else INFINITE


@implements(path_score, MarginStructureProblem)
def _vertex_value(
    problem: MarginStructureProblem, s: int, labeling: Labeling, examples: Examples,
    workspace: StructureWorkspace,
) -> float:  # fmt: skip
    """Return the loss of a vertex, scored with the worst labeling; 0 for the true labels."""
    if labeling.codes is workspace.paths:
        return workspace.top
    if labeling.codes is not problem.active.vertices:
        return 0.0
    return float(workspace.values[labeling.row])


@implements(level, MarginStructureProblem)
def _level(
    problem: MarginStructureProblem, s: int, labeling: Labeling, examples: Examples,
    workspace: StructureWorkspace,
) -> float:  # fmt: skip
    structure, labels = problem.batches.structure, problem.batches.labels(problem.batch[s])
    codes = _codes(labeling, len(labels))
    added = float(structure.offset_score(workspace.scores, codes).sum())
    before = float(structure.offset_score(workspace.scores, labels).sum())
    return problem.total_cost(s, codes) + problem.factor(s, codes) * (added - before)


@implements(add_direction, MarginStructureProblem)
def _add_direction(
    problem: MarginStructureProblem, s: int, active: ActiveSet, first: int, last: int,
    shares: FloatArray, workspace: StructureWorkspace,
) -> float:  # fmt: skip
    batches, index = problem.batches, problem.batch[s]
    scores, labels = workspace.scores, batches.labels(index)
    out, size = batches.structure.zeros(scores), len(scores.offsets) - 1

    def add(codes: CodeArray, share: float) -> None:
        weight = np.full(size, share * problem.factor(s, codes))
        batches.structure.add_counts(scores, codes, weight, out)
        batches.structure.add_counts(scores, labels, -weight, out)

    add(workspace.path[: len(labels)].copy(), float(shares[first:last].sum()))
    for c in range(first, last):
        add(_codes(Labeling(active.vertices, c, int(problem.offsets[s])), len(labels)), -shares[c])
    workspace.positions = batches.places(index)
    workspace.changes = batches.gradient(index, out)
    return float(np.dot(workspace.changes, workspace.changes))


@implements(apply_direction, MarginStructureProblem)
def _apply_direction(
    problem: MarginStructureProblem, s: int, active: ActiveSet, first: int, last: int,
    factor: float, workspace: StructureWorkspace,
) -> None:  # fmt: skip
    workspace.flat[workspace.positions] += factor * workspace.changes
    _refresh(problem, workspace)

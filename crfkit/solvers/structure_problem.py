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
    Examples,
    Labeling,
    best,
    gather,
    list_difference,
    path_score,
    refresh,
)
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


@implements(refresh, OnlineStructureProblem)
def _refresh(problem: StructureProblem, workspace: StructureWorkspace) -> None:
    workspace.bound = problem.batches.bind(workspace.flat)


@implements(gather, OnlineStructureProblem)
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


@implements(list_difference, OnlineStructureProblem)
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

"""What compiled solvers ask of a structure: parts, each with a body for each class of problems.

A problem is a NamedTuple of arrays: a model and its data, with `offsets`, where the sequences start
and the end, (S + 1,). A workspace belongs to one thread; it has the weights too, as the vector
`flat`, (L,), and views of it, and room for the labeling that is found: `path`, (Q,), and the same
array as `paths`, (1, Q), for ``Q`` tokens of the longest sequence. All parts are about one sequence
``s``, which has at least one token.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray, LabelArray
from crfkit.compiler.dispatch import dispatched
from crfkit.compiler.jit import part

# What came of a search; other numbers are positions that no labeling gets past.
FOUND, INFINITE = -1, -2


class Labeling(NamedTuple):
    """Labels of a sequence: those in a row of a table, from a column on."""

    codes: CodeArray | LabelArray  # (R, N)
    row: int
    shift: int


class Examples(NamedTuple):
    """What is to be learned."""

    weight: FloatArray  # (S,) of each sequence
    labels: CodeArray  # (1, N) the true ones
    cost: FloatArray  # (C, W) of each label (column) where another is true (row), or (0, W)


class ActiveSet(NamedTuple):
    """Vertices of the marginal polytope of each sequence that have a share, and room for more."""

    vertices: LabelArray  # (M, N) their labels
    alphas: FloatArray  # (M, S) the share of each
    counts: IntArray  # (S,) how many each sequence has


@part
def total_cost(problem: Any, s: int, labeling: Labeling, examples: Examples) -> float:
    """``sum_t cost(true label_t, label_t)``."""
    begin, cost = problem.offsets[s], 0.0
    for row in range(problem.offsets[s + 1] - begin):
        label = examples.labels[0, begin + row]
        cost += examples.cost[label, labeling.codes[labeling.row, labeling.shift + row]]
    return cost


@dispatched
def refresh(problem: Any, workspace: Any) -> None:
    """Compute what all sequences share, after weights have changed."""
    raise NotImplementedError


@dispatched
def gather(problem: Any, s: int, workspace: Any) -> None:
    """Compute the potentials of a sequence."""
    raise NotImplementedError


@dispatched
def best(problem: Any, s: int, examples: Examples, workspace: Any) -> tuple[float, int]:
    """Find the labeling of the largest score, to which costs are added if there are any.

    Given the potentials, which may be changed. Returns the score, and `FOUND`, `INFINITE` (some
    score is not finite) or a position.
    """
    raise NotImplementedError


@dispatched
def path_score(
    problem: Any, s: int, labeling: Labeling, examples: Examples, workspace: Any
) -> float:
    """Return the score of a labeling, plus costs, as `best` has it; not before `best`."""
    raise NotImplementedError


@dispatched
def level(problem: Any, s: int, labeling: Labeling, examples: Examples, workspace: Any) -> float:
    """Return the cost of a labeling, and how much more it scores by what are no weights."""
    raise NotImplementedError


@dispatched
def list_difference(problem: Any, s: int, one: Labeling, other: Labeling, workspace: Any) -> int:
    """List `positions` and `changes` of weights, labeling minus other; returns how many."""
    raise NotImplementedError


@dispatched
def add_direction(
    problem: Any,
    s: int,
    active: ActiveSet,
    first: int,
    last: int,
    shares: FloatArray,
    workspace: Any,
) -> float:
    """``d = sum_c shares_c (f(path) - f(vertex_c))`` for ``first <= c < last``; returns its square.

    It is kept as a vector that is 0 elsewhere, for `apply_direction`.
    """
    raise NotImplementedError


@dispatched
def apply_direction(
    problem: Any, s: int, active: ActiveSet, first: int, last: int, factor: float, workspace: Any
) -> None:
    """``w += factor d``; the vector of `add_direction` is 0 then."""
    raise NotImplementedError

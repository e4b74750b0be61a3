"""The best labeling that rules allow: exactly while that is cheap, else with a bound."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crfkit._types import BoolArray, CodeArray, FloatArray, IntArray, Potentials
from crfkit.constraints.automata import copied_codes
from crfkit.constraints.incumbent import tolerance
from crfkit.constraints.joint import JointAutomata
from crfkit.data.packed import ranges
from crfkit.structures import NoPathError, Structure

# How a labeling was found: it keeps the rules by itself; by automata of those that it would break;
# by relaxation of some of these; by integer programming.
METHODS = ("viterbi", "product", "relaxation", "integer program")
VITERBI, PRODUCT, RELAXATION, INTEGER = range(4)


class Found(NamedTuple):
    """Labelings, and bounds of the scores of all others that the rules allow."""

    codes: CodeArray  # (N,)
    value: FloatArray  # (S,) their scores
    bound: FloatArray  # (S,) no labeling has a larger score
    method: IntArray  # (S,) which of `METHODS`

    @property
    def is_optimal(self) -> BoolArray:
        """Whether each labeling is proved to be a best one, shape (S,)."""
        optimal: BoolArray = self.bound - self.value <= tolerance(self.value)
        return optimal


def search(structure: Structure[Any], scores: Potentials, automata: JointAutomata) -> Found:
    """Return the best labelings that all automata accept.

    At first the best of all labelings are looked at. Those that break no rule are done; others are
    searched for once more among the labelings that the automata accept which rejected them, and so
    on (Tromble and Eisner 2006): few rules matter to a sequence. Where the product of these is too
    large, :func:`crfkit.constraints.hard.search_hard` takes over.
    """
    check_empty(scores, automata)
    codes, value = structure.argmax(scores)
    method = np.zeros(len(value), np.int64)
    found, active = Found(codes, value, value, method), automata.rejecting(codes, scores.offsets)
    todo = np.flatnonzero(active.any(axis=1))
    if len(todo):
        found = Found(codes, value.copy(), value.copy(), method)
        _search_lazily(structure, scores, automata, found, todo, active)
    return found


def best_with_bounds(structure: Structure[Any], potentials: Potentials) -> Found:
    """Return the best labelings of a structure, which may be one under rules, and bounds."""
    from crfkit.constraints.product import Product

    if isinstance(structure, Product):
        return structure.find(potentials)
    codes, value = structure.argmax(potentials)
    return Found(codes, value, value, np.zeros(len(value), np.int64))


def check_empty(scores: Potentials, automata: JointAutomata) -> None:
    """Raise NoPathError if a sequence is empty, and an automaton does not accept that."""
    empty = np.flatnonzero(scores.offsets[:-1] == scores.offsets[1:])
    if len(empty) and not automata.accept_empty:
        raise NoPathError(scores.first + int(empty[0]), 0)


def _search_lazily(
    structure: Structure[Any],
    scores: Potentials,
    automata: JointAutomata,
    found: Found,
    todo: IntArray,
    active: BoolArray,
) -> None:
    """Search for some sequences, given the automata that have to be looked at, (S, A)."""
    hard = []
    while len(todo):
        rows, group = np.unique(active[todo], axis=0, return_inverse=True)
        broken = []
        for number, row in enumerate(rows):
            which, chosen = tuple(np.flatnonzero(row).tolist()), todo[group.reshape(-1) == number]
            if automata.fits(which, scores):
                rejected = _search_product(structure, scores, automata, found, which, chosen)
                active[chosen] |= rejected
                broken.append(chosen[rejected.any(axis=1)])
            else:
                hard.append(chosen)
        todo = np.concatenate([np.zeros(0, np.int64), *broken])
    for s in np.sort(np.concatenate([np.zeros(0, np.int64), *hard])).tolist():
        from crfkit.constraints.hard import search_hard  # takes its time to import

        which = tuple(np.flatnonzero(active[s]).tolist())
        codes, best, relaxed = search_hard(structure, scores.one(s), automata, which)
        found.codes[scores.offsets[s] : scores.offsets[s + 1]] = codes
        found.value[s], found.bound[s] = best.value, best.bound
        found.method[s] = RELAXATION if relaxed else INTEGER


def _search_product(
    structure: Structure[Any],
    scores: Potentials,
    automata: JointAutomata,
    found: Found,
    which: tuple[int, ...],
    chosen: IntArray,
) -> BoolArray:
    """Search among what some automata accept; returns which ones reject what is found, (n, A)."""
    copies, part = automata.copies(which, scores, best=True), scores.take(chosen)
    try:
        labels, value = structure.argmax_of_copies(part, copies)
    except NoPathError as error:
        s = int(chosen[error.sequence])
        raise type(error)(scores.first + s, error.position) from error
    codes = copied_codes(copies, part)[labels]
    found.codes[ranges(scores.offsets[chosen], np.diff(part.offsets))] = codes
    found.value[chosen] = found.bound[chosen] = value
    found.method[chosen] = PRODUCT
    return automata.rejecting(codes, part.offsets)

"""The best labeling where the product of the automata that matter is too large."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._types import CodeArray, Potentials
from crfkit.constraints.beam import Beam
from crfkit.constraints.incumbent import Incumbent
from crfkit.constraints.integer import solve
from crfkit.constraints.joint import JointAutomata
from crfkit.constraints.relaxation import Relaxation
from crfkit.structures import NoPathError, Structure


def search_hard(
    structure: Structure[Any], one: Potentials, automata: JointAutomata, active: tuple[int, ...]
) -> tuple[CodeArray, Incumbent, bool]:
    """Return the best labeling of the only sequence, its score and bound, and how it was found.

    The last is whether relaxation was enough.

    `active` are the automata that rejected labelings. Groups of them whose products are small are
    relaxed. Where that leaves a gap, an integer program finds the best of the labelings whose
    parts may have a score above the best known one.
    """
    best = Incumbent(structure, one, automata)
    found = Beam(structure.lattice(one), automata).search(len(one.unary))
    if found is not None:
        best.offer(found)
    best.limit(float(structure.argmax(one)[1][0]))
    relaxation = _relax(structure, one, automata, set(active), best)
    if best.codes is not None and best.is_optimal:
        return best.codes, best, True
    solve(structure, one, automata, best, [] if relaxation is None else relaxation.shares)
    if best.codes is None:
        if best.bound == -np.inf:
            raise NoPathError(one.first, len(one.unary) - 1)
        raise ValueError(
            f"sequence {one.first}: no labeling that keeps the rules was found within "
            f"time_limit={automata.budget.time_limit} seconds, or an integer program would be too "
            "large. Raise time_limit or max_states of Constraints, or leave rules out."
        )
    return best.codes, best, False


def _relax(
    structure: Structure[Any],
    one: Potentials,
    automata: JointAutomata,
    active: set[int],
    best: Incumbent,
) -> Relaxation | None:
    """Lower the bound as far as groups of automata do; None if there are no small ones."""
    while True:
        groups = _groups(automata, sorted(active), one)
        if not groups:
            return None
        relaxation = Relaxation(structure, one, automata, groups)
        more = {a for a in relaxation.tighten(best) if automata.fits((a,), one)} - active
        if not more:
            return relaxation
        active |= more


def _groups(automata: JointAutomata, active: list[int], one: Potentials) -> list[tuple[int, ...]]:
    """Return groups of automata whose products are small, each as large as it may be."""
    groups: list[tuple[int, ...]] = []
    for a in active:
        for place, group in enumerate(groups):
            if automata.fits((*group, a), one):
                groups[place] = (*group, a)
                break
        else:
            if automata.fits((a,), one):
                groups.append((a,))
    return groups

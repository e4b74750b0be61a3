"""Logarithms of sums over labelings, of which some sequences may have none."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._types import FloatArray, Potentials
from crfkit.structures.base import NoPathError, Structure


def log_sums(structure: Structure[Any], potentials: Potentials) -> FloatArray:
    """Return log Z of each sequence, shape (S,), ``-inf`` where it has no labeling."""
    possible = np.ones(len(potentials.offsets) - 1, bool)
    try:
        return _log_z(structure, potentials)
    except NoPathError as error:
        possible[np.array([error.sequence, *error.others]) - potentials.first] = False
    rest = potentials.take(np.flatnonzero(possible))
    try:
        sums = _log_z(structure, rest)
    except NoPathError:  # one by one, so that none is summed again for each of the others
        sums = np.array([_log_z_or_none(structure, one) for one in rest.each()])
    found = np.full(len(possible), -np.inf)
    found[possible] = sums
    return found


def _log_z(structure: Structure[Any], potentials: Potentials) -> FloatArray:
    weight = np.ones(len(potentials.offsets) - 1)
    return structure.log_partition(potentials, weight, structure.zeros(potentials))


def _log_z_or_none(structure: Structure[Any], one: Potentials) -> float:
    """Return log Z of the only sequence, ``-inf`` where it has no labeling."""
    try:
        return float(_log_z(structure, one)[0])
    except NoPathError:
        return -np.inf

"""Probabilities that labelings are among some."""

from __future__ import annotations

import numpy as np

from crfkit._types import BoolArray, FloatArray, Potentials
from crfkit.inference.base import expectations
from crfkit.structures import NoPathError, Structure


def log_probability(structure: Structure, potentials: Potentials, allowed: BoolArray) -> FloatArray:
    """Return the log-probability that all tokens have codes they may have, (N, C): shape (S,)."""
    log_z = expectations(structure, potentials)[1]
    return log_sums(structure, potentials.clamp(allowed)) - log_z


def log_sums(structure: Structure, potentials: Potentials) -> FloatArray:
    """Return log Z of each sequence, shape (S,), ``-inf`` where it has no labeling."""
    possible = np.ones(len(potentials.offsets) - 1, bool)
    try:
        return expectations(structure, potentials)[1]
    except NoPathError as error:
        possible[np.array([error.sequence, *error.others]) - potentials.first] = False
    rest = potentials.take(np.flatnonzero(possible))
    try:
        sums = expectations(structure, rest)[1]
    except NoPathError:  # one by one, so that none is summed again for each of the others
        sums = np.array([_log_sum_or_none(structure, one) for one in rest.each()])
    found = np.full(len(possible), -np.inf)
    found[possible] = sums
    return found


def _log_sum_or_none(structure: Structure, one: Potentials) -> float:
    """Return log Z of the only sequence, ``-inf`` where it has no labeling."""
    try:
        return float(expectations(structure, one)[1][0])
    except NoPathError:
        return -np.inf

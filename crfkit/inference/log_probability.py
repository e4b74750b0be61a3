"""Probabilities that labelings are among some."""

from __future__ import annotations

from crfkit._types import BoolArray, FloatArray, Potentials
from crfkit.inference.base import expectations
from crfkit.structures import Structure
from crfkit.structures.log_sums import log_sums


def log_probability(structure: Structure, potentials: Potentials, allowed: BoolArray) -> FloatArray:
    """Return the log-probability that all tokens have codes they may have, (N, C): shape (S,)."""
    log_z = expectations(structure, potentials)[1]
    return log_sums(structure, potentials.clamp(allowed)) - log_z

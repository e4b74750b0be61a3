"""Numbers that look random, the same for a graph whatever is beside it."""

from __future__ import annotations

import numpy as np

from crfkit._types import FloatArray, IntArray
from crfkit.kernels.graph.arrays import FactorTables


def uniforms(numbers: IntArray, seed: int, turn: int) -> FloatArray:
    """Return a number from 0 to 1 for each of some others (SplitMix64: Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        x = numbers.astype(np.uint64) + np.uint64((seed * 1_000_003 + turn) % 2**32 << 32)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    found: FloatArray = ((x ^ (x >> np.uint64(31))) >> np.uint64(11)).astype(float) * 2.0**-53
    return found


def of_states(graph: FactorTables, seed: int, turn: int) -> FloatArray:
    """Return a number from 0 to 1 for each state of the variables of all graphs."""
    first = graph.state_ptr[graph.variable_ptr]
    own = np.arange(graph.state_ptr[-1]) - np.repeat(first[:-1], np.diff(first))
    return uniforms(own, seed, turn)

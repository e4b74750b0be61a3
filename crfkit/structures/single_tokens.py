"""Chains of one token each: no recurrence is needed."""

from __future__ import annotations

import numpy as np

from crfkit._types import FloatArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.chain.single import single_sum
from crfkit.structures.base import raise_if_dead
from crfkit.structures.potentials import ChainPotentials, exp_unary


def are_single(potentials: ChainPotentials) -> bool:
    """Whether each sequence, of as many as there are tokens, is one token."""
    return bool(np.all(np.diff(potentials.offsets) == 1))


def sum_single(
    potentials: ChainPotentials, weight: FloatArray, marginals: FloatArray
) -> FloatArray:
    """Return log Z of sequences of one token, (N,), and write the weighted marginals, (N, K)."""
    node, shift = exp_unary(potentials)
    raise_if_dead(potentials, np.where(shift == -np.inf, potentials.offsets[:-1], -1))
    total = np.empty(len(node))
    single_sum(node, frozen(weight), marginals, total)
    log_z: FloatArray = np.log(total) + shift
    return log_z

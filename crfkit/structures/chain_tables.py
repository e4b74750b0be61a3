"""Potentials of a chain in the form that kernels read."""

from __future__ import annotations

import numpy as np

from crfkit._types import FloatArray, IdArray, IntArray, Potentials
from crfkit.compiler.jit import frozen
from crfkit.kernels.chain.arrays import ChainScores
from crfkit.kernels.chain.sum import chain_shift
from crfkit.structures.base import NoPathError
from crfkit.structures.potentials import ChainPotentials


def as_kernel_input(scores: ChainPotentials) -> ChainPotentials:
    """Return the potentials in arrays that kernels do not write to."""
    return scores._replace(
        unary=frozen(scores.unary), pair=frozen(scores.pair), offsets=frozen(scores.offsets),
        transition_index=frozen(scores.transition_index),
    )  # fmt: skip


def chain_arrays(scores: Potentials) -> ChainScores:
    """Return the arrays of the potentials, as kernels read them."""
    return ChainScores(
        frozen(scores.unary),
        frozen(scores.pair),
        frozen(scores.transition_index),
        frozen(scores.offsets),
    )


def exp_unary(scores: Potentials) -> tuple[FloatArray, FloatArray]:
    """Return ``exp(unary - shift)`` and the shift: the largest score of each token."""
    node, shift = np.empty_like(scores.unary), np.empty(len(scores.unary))
    chain_shift(frozen(scores.unary), node, shift)
    return frozen(np.exp(node, out=node)), frozen(shift)


def exp_pair(scores: ChainPotentials) -> tuple[FloatArray, FloatArray]:
    """Return ``exp(pair - shift)`` and the shift that makes the largest entry of each table 1."""
    starts = scores.offsets[:-1]
    starts = starts[starts < len(scores.unary)]
    return exp_tables(scores.pair, scores.transition_index, starts)


def exp_tables(
    pair: FloatArray, index: IdArray, without: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return ``exp(pair - shift)`` and the shift that makes the largest entry of each table 1.

    No transition leads into the tokens `without`, whatever their table says.
    """
    factor = pair.copy()
    if len(index) > 1:
        used = np.zeros(len(factor), bool)
        used[np.delete(index, without)] = True
        factor[~used] = 0.0
    shift = factor.max(axis=(1, 2), initial=-np.inf)
    shift[shift == -np.inf] = 0.0
    factor -= shift[:, None, None]
    return np.exp(factor, out=factor), shift


def raise_if_dead(scores: Potentials, status: IntArray) -> None:
    """Raise the error of the first sequence whose status is the token that no path gets past."""
    dead = np.flatnonzero(status >= 0)
    if len(dead):
        s = int(dead[0])
        raise NoPathError(scores.first + s, int(status[s] - scores.offsets[s]))

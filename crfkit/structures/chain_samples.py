"""Samples and entropies of chains."""

from __future__ import annotations

import numpy as np

from crfkit._types import BoolArray, CodeArray, FloatArray
from crfkit.kernels.chain.arrays import ChainExponentials, ChainScores, ChainWorkspace
from crfkit.kernels.chain.sample import chain_entropy, chain_sample
from crfkit.kernels.chain.sum import OK, UNDERFLOW
from crfkit.structures.base import NoPathError, Structure, longest, raise_if_dead
from crfkit.structures.potentials import (
    ChainPotentials,
    chain_arrays,
    chain_exponentials,
    table_losses,
)
from crfkit.structures.samples import are_small, as_uniforms
from crfkit.structures.tree import TreePotentials
from crfkit.structures.tree_posterior import LogTreePosterior

# Tokens whose forward vectors are kept for entropies: they stay in the nearest cache.
WINDOW = 64


def sample_chains(
    chain: Structure[ChainPotentials], potentials: ChainPotentials, uniforms: FloatArray
) -> CodeArray:
    """Return labelings of chains, shape (n, N), given the numbers that choose them."""
    numbers = as_uniforms(potentials, uniforms)
    scores, raised, work = _arrays(potentials, longest(potentials))
    labels: CodeArray = np.empty(numbers.shape, np.int32)
    status = np.empty(len(potentials.offsets) - 1, np.int64)
    chain_sample(scores, raised, numbers, work, labels, status)
    raise_if_dead(potentials, status)
    failed = status == UNDERFLOW
    if failed.any():
        tokens = np.repeat(failed, np.diff(potentials.offsets))
        labels[:, tokens] = _in_logs(chain, potentials, failed).sample(numbers[:, tokens])
    return labels


def chain_entropies(chain: Structure[ChainPotentials], potentials: ChainPotentials) -> FloatArray:
    """Return the entropies of chains, shape (S,)."""
    scores, raised, work = _arrays(potentials, WINDOW + 1)
    losses = table_losses(potentials.pair, raised.factor, raised.pair_shift)
    rooms = np.empty((4, potentials.n_labels))
    status = np.empty(len(potentials.offsets) - 1, np.int64)
    entropy = np.empty((2, len(status)))
    chain_entropy(scores, raised, losses, work, rooms, entropy, status)
    raise_if_dead(potentials, status)
    again = are_small(potentials, entropy, status == OK)
    if again.any():
        entropy[0, again] = _in_logs(chain, potentials, again).entropy()
    found: FloatArray = entropy[0]
    return found


def _arrays(
    potentials: ChainPotentials, rows: int
) -> tuple[ChainScores, ChainExponentials, ChainWorkspace]:
    """Return what the kernels read: scores and their exponentials; and rooms of so many tokens."""
    scores, size = chain_arrays(potentials), potentials.n_labels
    alpha, norm = np.empty((rows, size)), np.empty(len(scores.unary))
    work = ChainWorkspace(norm, np.empty((1, size)), alpha, np.empty((0, size)))
    return scores, chain_exponentials(scores), work


def _in_logs(
    chain: Structure[ChainPotentials], potentials: ChainPotentials, chosen: BoolArray
) -> LogTreePosterior:
    """Return what is known of some sequences, (S,), by sums of logarithms.

    As forests in which each token has the next one as its parent: labels are drawn in the same
    order, from the last one to the first.
    """
    some = potentials.take(np.flatnonzero(chosen))
    sizes = np.diff(some.offsets)
    order = np.concatenate([np.arange(n)[::-1] for n in sizes])
    parent = np.concatenate([np.append(np.arange(1, n), -1) for n in sizes])
    index = some.transition_index
    paths = some._replace(
        pair=some.pair.transpose(0, 2, 1),
        transition_index=index if len(index) == 1 else np.roll(index, -1),
    )
    try:
        return LogTreePosterior(TreePotentials(*paths, parent, order))
    except NoPathError:
        chain.argmax(potentials)  # raises, and tells where from the start
        raise

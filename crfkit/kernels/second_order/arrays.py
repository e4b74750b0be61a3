"""Groups of arrays that the kernels of second-order chains read and write, and their live labels.

Shapes: ``N`` tokens of ``S`` sequences, ``K`` labels, ``M`` groups of ``K + 1`` tables of pair
scores. A label is *live* at a token where its score is above ``-inf``; kernels look at no others.
Each sequence has a place more than it has tokens: the first one stands before them, and its only
label is ``K``. So token ``t`` of sequence ``s`` has the place ``t + s + 1``, and what it is like to
be first, or second, need not be told apart.

A *state* of a token is a live label ``i`` of the place before and one of its own, ``j``. States
stand row by row in flat arrays, those of ``i`` together.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel, part


class SecondOrderScores(NamedTuple):
    """Scores of the parts of second-order chains; ``-inf`` forbids a part. Read-only."""

    unary: FloatArray  # (N, K)
    # (M (K + 1), K, K) score of label j (axis 2) after i (axis 1) after h: in group m, row
    # m (K + 1) + h
    pair: FloatArray
    transition_index: IdArray  # (N,) or (1,) the group of tables that leads into each token
    offsets: IntArray  # (S + 1,) where the sequences start, and the end


class LiveLabels(NamedTuple):
    """The live labels of each place. Read-only."""

    ptr: IntArray  # (N + S + 1,) where those of each place are listed, and the end
    label: IdArray  # (n,) rising at each place


class Step(NamedTuple):
    """A token, the live labels ``j`` of it, ``i`` of the one before and ``h`` of that before."""

    t: int
    group: int  # the first of the tables that lead into it
    first_h: int  # where the labels are listed
    first_i: int
    first_j: int
    n_h: int  # how many there are
    n_i: int
    n_j: int
    old: int  # where the states of the token before start in a flat array
    new: int  # its own


@kernel
def find_live(
    unary: FloatArray,  # (N, K)
    offsets: IntArray,  # (S + 1,)
    ptr: IntArray,  # (N + S + 1,) out
    label: IdArray,  # (N K + S,) out: at most
    states: IntArray,  # (S,) out: how many states the tokens of each sequence have
) -> int:
    """List the labels of each place; returns how many states a token has at most."""
    size, place, count, most = unary.shape[1], 0, 0, 0
    for s in range(offsets.shape[0] - 1):
        ptr[place], label[count], states[s] = count, size, 0
        place += 1
        count += 1
        before = 1
        for t in range(offsets[s], offsets[s + 1]):
            ptr[place] = count
            place += 1
            start = count
            for k in range(size):
                if unary[t, k] > -math.inf:
                    label[count] = k
                    count += 1
            states[s] += before * (count - start)
            most = max(most, before * (count - start))
            before = count - start
    ptr[place] = count
    return most


@part
def group(scores: SecondOrderScores, t: int) -> int:
    """Return the first of the tables that lead into a token."""
    index = scores.transition_index
    which = index[t if index.shape[0] > 1 else 0]
    first: int = which * (scores.unary.shape[1] + 1)
    return first


@part
def step_into(scores: SecondOrderScores, live: LiveLabels, s: int, t: int,
              starts: IntArray) -> Step:  # fmt: skip
    """Return the step to a token of a sequence, given where the states of those before start.

    And write where those of the token after it do.
    """
    begin, p = scores.offsets[s], t + s + 1
    first_h, first_i, first_j = live.ptr[max(p - 2, 0)], live.ptr[p - 1], live.ptr[p]
    n_i, n_j = first_j - first_i, live.ptr[p + 1] - first_j
    if t == begin:
        starts[0] = 0
    starts[t - begin + 1] = starts[t - begin] + n_i * n_j
    old, new = starts[max(t - begin - 1, 0)], starts[t - begin]
    n_h = first_i - first_h
    return Step(t, group(scores, t), first_h, first_i, first_j, n_h, n_i, n_j, old, new)

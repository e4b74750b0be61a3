"""Potentials over copies of labels: what a label may follow then depends on more than a label."""

from __future__ import annotations

import numpy as np

from crfkit._types import BoolArray, CodeArray, Counts, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.kernels.chain.arrays import ChainScores
from crfkit.kernels.chain.copies import LabelCopies, chain_copies_max
from crfkit.structures.potentials import ChainPotentials, SegmentPotentials, restricted_tables

# A table of all pairs of so many copies is faster than lists of those that may follow each other;
# where tokens have their own tables, these may have so many cells.
FEW_COPIES, TABLE_CELLS = 200, 1 << 22


def allowed_steps(copies: LabelCopies) -> BoolArray:
    """Return whether a copy (axis 1) may follow another (axis 0), shape (P, P)."""
    size = len(copies.label)
    allowed = np.zeros((size, size), bool)
    allowed[copies.source, np.repeat(np.arange(size), np.diff(copies.begins))] = True
    return allowed


def make_copies(
    label: IntArray, source: IntArray, target: IntArray, first: BoolArray, last: BoolArray
) -> LabelCopies:
    """Return copies of labels, given pairs of which the second may follow the first: (n,)."""
    order = np.lexsort((source, target))
    begins = np.searchsorted(target[order], np.arange(len(label) + 1))
    places, befores = frozen(begins.astype(np.int64)), frozen(source[order].astype(np.int64))
    label = frozen(label.astype(np.int64))
    return LabelCopies(label, places, befores, frozen(first), frozen(last))


def best_copies(scores: ChainScores, copies: LabelCopies) -> tuple[CodeArray, FloatArray, IntArray]:
    """Return the best paths of copies of labels of a dense chain, scores, and the status of each.

    By lists of those that may follow each other: in time ``O(T n)``.
    """
    count = len(scores.offsets) - 1
    longest = int(np.diff(scores.offsets).max(initial=0))
    found: CodeArray = np.empty(len(scores.unary), np.int32)
    value, status = np.empty(count), np.empty(count, np.int64)
    best = np.empty((longest, len(copies.label)))
    chain_copies_max(scores, copies, best, found, value, status)
    return found, value, status


def copied_chain(potentials: ChainPotentials, copies: LabelCopies) -> ChainPotentials:
    """Return the potentials of a dense chain over copies of its labels."""
    used, index = used_tables(potentials.transition_index)
    unary = copied_unary(potentials.unary, potentials.offsets, copies)
    pair = potentials.pair[used[:, None, None], copies.label[:, None], copies.label]
    pair, _ = restricted_tables(pair, index, allowed_steps(copies))
    return potentials._replace(unary=unary, pair=pair, transition_index=index)


def copied_unary(unary: FloatArray, offsets: IntArray, copies: LabelCopies) -> FloatArray:
    """Return the scores of copies of labels at tokens."""
    starts, ends = _ends(offsets)
    scores = np.take(unary, copies.label, axis=1)  # in C order, as kernels write it
    scores[starts] += _forbidding(copies.first)
    scores[ends] += _forbidding(copies.last)
    return scores


def copied_segments(potentials: SegmentPotentials, copies: LabelCopies) -> SegmentPotentials:
    """Return the potentials of segments over copies of their labels."""
    size, count, rows = potentials.n_labels, len(copies.label), potentials.n_transitions
    starts, ends = _ends(potentials.offsets)
    unary = potentials.unary.reshape(-1, 4, size)[:, :, copies.label]
    unary[starts, 1] += _forbidding(copies.first)
    unary[ends, 2] += _forbidding(copies.last)
    used, index = used_tables(potentials.transition_index)
    tables = potentials.pair[:rows].reshape(-1, size, size)
    tables = tables[used[:, None, None], copies.label[:, None], copies.label]
    tables, _ = restricted_tables(tables, index, allowed_steps(copies))
    steps = tables.reshape(-1, count)
    pair = np.concatenate([steps, potentials.pair[rows:, copies.label]])
    unary = unary.reshape(-1, 4 * count)
    return potentials._replace(
        unary=unary, pair=pair, transition_index=index, n_transitions=len(steps)
    )


def add_copies_of_chain(index: IdArray, copies: LabelCopies, found: Counts, out: Counts) -> None:
    """Write weights of the parts of a chain over copies of labels as those of its parts.

    `index` are its tables of transitions.
    """
    (used, _), (present, begins) = used_tables(index), runs_of_copies(copies)
    out.unary[...] = 0.0
    out.unary[:, present] = np.add.reduceat(found.unary, begins, axis=1)
    out.pair[used[:, None, None], present[:, None], present] += _of_pairs(found.pair, begins)


def add_copies_of_segments(
    potentials: SegmentPotentials, copies: LabelCopies, found: Counts, out: Counts
) -> None:
    """Write weights of the parts of segments over copies of labels as those of their parts."""
    present, begins = runs_of_copies(copies)
    count, size, rows = len(copies.label), potentials.n_labels, potentials.n_transitions
    unary = np.zeros((len(out.unary), 4, size))
    unary[:, :, present] = np.add.reduceat(found.unary.reshape(-1, 4, count), begins, axis=2)
    out.unary[...] = unary.reshape(-1, 4 * size)
    used, _ = used_tables(potentials.transition_index)
    wide = len(used) * count
    tables = np.zeros((rows // size, size, size))
    steps = found.pair[:wide].reshape(-1, count, count)
    tables[used[:, None, None], present[:, None], present] = _of_pairs(steps, begins)
    out.pair[:rows] += tables.reshape(-1, size)
    out.pair[rows:, present] += np.add.reduceat(found.pair[wide:], begins, axis=1)


def used_tables(index: IdArray) -> tuple[IntArray, IdArray]:
    """Return the tables of transitions that tokens have, and which of these each has.

    A table over copies is large: no others are made.
    """
    if not len(index):
        return np.zeros(1, np.int64), index
    used, places = np.unique(index, return_inverse=True)
    return used.astype(np.int64), places.reshape(index.shape).astype(np.uint32)


def _of_pairs(tables: FloatArray, begins: IntArray) -> FloatArray:
    """Return weights of pairs of copies as those of pairs of labels."""
    of_rows: FloatArray = np.add.reduceat(tables, begins, axis=1)
    added: FloatArray = np.add.reduceat(of_rows, begins, axis=2)
    return added


def runs_of_copies(copies: LabelCopies) -> tuple[IntArray, IntArray]:
    """Return the labels that have copies, rising, and the first copy of each."""
    begins = np.flatnonzero(np.diff(copies.label, prepend=-1))
    return copies.label[begins], begins


def _ends(offsets: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first and the last tokens of sequences that are not empty."""
    filled = offsets[:-1] < offsets[1:]
    return offsets[:-1][filled], offsets[1:][filled] - 1


def _forbidding(allowed: BoolArray) -> FloatArray:
    """Return 0 where something is allowed, ``-inf`` elsewhere."""
    return np.where(allowed, 0.0, -np.inf)

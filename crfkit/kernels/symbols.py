"""Log-probabilities of symbols, of which few are listed, and counts of symbols and labels.

Shapes: ``N`` tokens of ``S`` sequences, ``K`` labels, ``D`` attributes, ``B`` blocks of attributes,
``H`` classes of words.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel


class ListedLogs(NamedTuple):
    """Log-probabilities of attributes in blocks, of which each has others that are all alike."""

    starts: IntArray  # (B + 1,) where the attributes of each block begin, and the end
    ptr: IntArray  # (D + 1,) where the listed ones of each attribute begin, and the end
    labels: CodeArray  # (n,) in order
    values: FloatArray  # (n,)
    floor: FloatArray  # (B, K) those that are not listed


@kernel
def add_listed(
    ptr: IntArray,
    indices: CodeArray,
    begin: int,
    end: int,
    table: ListedLogs,
    room: FloatArray,  # (K,)
    out: FloatArray,  # (end - begin, K) out, added to
) -> None:
    """``out[t, k] += sum_a log P(a | k)`` over the attributes of token ``begin + t``, in order.

    Few labels are listed: the others are added to whole rows, in which these are put afterwards.
    """
    n_labels = out.shape[1]
    for t in range(begin, end):
        row, block = t - begin, 0
        for n in range(ptr[t], ptr[t + 1]):
            attribute = indices[n]
            while attribute >= table.starts[block + 1]:
                block += 1
            first, last = table.ptr[attribute], table.ptr[attribute + 1]
            for p in range(first, last):
                room[p - first] = out[row, table.labels[p]] + table.values[p]
            for k in range(n_labels):
                out[row, k] += table.floor[block, k]
            for p in range(first, last):
                out[row, table.labels[p]] = room[p - first]


@kernel
def add_shares(
    ptr: IntArray,
    indices: CodeArray,
    begin: int,
    end: int,
    shares: FloatArray,  # (end - begin, K)
    out: FloatArray,  # (D, K) out, added to
) -> None:
    """``out[a, k] += shares[t, k]`` for each attribute ``a`` of token ``begin + t``."""
    for t in range(begin, end):
        for n in range(ptr[t], ptr[t + 1]):
            attribute = indices[n]
            for k in range(out.shape[1]):
                out[attribute, k] += shares[t - begin, k]


@kernel
def listed_find(
    rows: IntArray,  # (m,) attributes, rising
    labels: CodeArray,  # (m,)
    table: ListedLogs,
    out: FloatArray,  # (m,) out
) -> None:
    """``out[n] = log P(rows[n] | labels[n])``."""
    block = 0
    for n in range(rows.shape[0]):
        attribute = rows[n]
        while attribute >= table.starts[block + 1]:
            block += 1
        out[n] = table.floor[block, labels[n]]
        for p in range(table.ptr[attribute], table.ptr[attribute + 1]):
            if table.labels[p] == labels[n]:
                out[n] = table.values[p]


@kernel
def steps_count(
    codes: CodeArray,  # (N,)
    offsets: IntArray,  # (S + 1,)
    weights: FloatArray,  # (N,)
    start: FloatArray,  # (K,) out, added to
    steps: FloatArray,  # (K, K) out, added to
    end: FloatArray,  # (K,) out, added to
    triples: FloatArray,  # (K + 1, K, K) out, added to; (0, 0, 0) where they are not counted
) -> None:
    """Count first labels, labels next to each other, last labels, and three in a row.

    Row K of the last are the pairs that sequences begin with.
    """
    n_labels: int = start.shape[0]
    for s in range(offsets.shape[0] - 1):
        begin, stop = offsets[s], offsets[s + 1]
        if begin == stop:
            continue
        last, before = int(codes[begin]), n_labels
        start[last] += weights[begin]
        for t in range(begin + 1, stop):
            label = int(codes[t])
            steps[last, label] += weights[t]
            if triples.shape[0] > 0:
                triples[before, last, label] += weights[t]
            before, last = last, label
        end[last] += weights[stop - 1]


@kernel
def classes_abstract(
    order: IntArray,  # (H,) each behind its parent
    parent: IntArray,  # (H,) -1 of none
    kinds: IntArray,  # (m,) classes that have more counts, which parents do not get
    more: FloatArray,  # (m, K)
    prior: FloatArray,  # (K,)
    theta: float,
    table: FloatArray,  # (H, K) in and out: counts, of which parents get those of their parts
) -> None:
    """``P(k | class)``: its shares, and `theta` times those of its parent, or the prior ones."""
    n_labels: int = prior.shape[0]
    for n in range(order.shape[0] - 1, -1, -1):
        h = order[n]
        if parent[h] >= 0:
            for k in range(n_labels):
                table[parent[h], k] += table[h, k]
    for n in range(kinds.shape[0]):
        for k in range(n_labels):
            table[kinds[n], k] += more[n, k]
    for n in range(order.shape[0]):
        h, size = order[n], 0.0
        for k in range(n_labels):
            size += table[h, k]
        for k in range(n_labels):
            general = table[parent[h], k] if parent[h] >= 0 else prior[k]
            if size > 0.0:
                table[h, k] = (table[h, k] / size + theta * general) / (1.0 + theta)
            else:
                table[h, k] = general

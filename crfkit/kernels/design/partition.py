"""Making the lists of a design matrix: see `Design`.

Shapes: ``G`` groups, the batches or the tokens one by one, ``N`` tokens of all, ``D`` attributes,
``P`` weights, ``H`` rows.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray, PlaceArray, PtrArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import prefetch_at
from crfkit.kernels.design.tokens import BatchRows, Design

# What is known of an attribute is asked for so many entries before it is read, twice as many for
# where its weights are.
AHEAD = 12


class Attributes(NamedTuple):
    """The attributes of tokens, which may be read in another order than they stand in."""

    tokens: IdArray  # (N,) which is read
    indptr: IntArray  # (N + 1,)
    indices: IdArray  # (nnz,)
    values: FloatArray  # (nnz,) or (1,)
    stride: int  # 0 where all values are 1 and one is kept, else 1


class WeightPositions(NamedTuple):
    """Where the weights of attributes stand."""

    slots: IdArray  # (D,) row of the table, H where there is none
    ptr: PtrArray  # (D + 1,) where the weights of each attribute begin
    columns: IdArray  # (P,) their columns
    positions: IdArray  # (P,) where they stand in the vector
    width: int  # of a row of scores
    n_rows: int  # H


@part
def ask(n: int, features: Attributes, weights: WeightPositions) -> None:
    """Have what is known of attributes to come fetched."""
    indices, final = features.indices, features.indices.shape[0] - 1
    later = indices[min(n + 2 * AHEAD, final)]
    prefetch_at(weights.slots, later)
    prefetch_at(weights.ptr, later)
    soon = indices[min(n + AHEAD, final)]
    if weights.slots[soon] == weights.n_rows:
        prefetch_at(weights.positions, weights.ptr[soon])


@kernel
def entries_count(
    begin: int,  # tokens begin:end
    end: int,
    features: Attributes,
    weights: WeightPositions,
    row_counts: IntArray,  # (N,) out: entries in rows of each token
    cell_counts: IntArray,  # (N,) out: single weights of each token
) -> None:
    """Count what `entries_deal` lists."""
    indices, slots, ptr = features.indices, weights.slots, weights.ptr
    for t in range(begin, end):
        rows, cells, token = 0, 0, features.tokens[t]
        for n in range(features.indptr[token], features.indptr[token + 1]):
            ask(n, features, weights)
            if slots[indices[n]] < weights.n_rows:
                rows += 1
            else:
                cells += ptr[indices[n] + 1] - ptr[indices[n]]
        row_counts[t] = rows
        cell_counts[t] = cells


@kernel
def entries_deal(
    first: int,  # groups first:last
    last: int,
    heads: IntArray,  # (G + 1,) the first token of each group
    features: Attributes,
    weights: WeightPositions,
    out: Design,  # its pointers are read
) -> None:
    """List the rows and the single weights of some tokens, in the order of their attributes."""
    indices, slots, ptr, stride = features.indices, weights.slots, weights.ptr, out.stride
    for group in range(first, last):
        for t in range(heads[group], heads[group + 1]):
            k, m, before = out.row_ptr[t], out.cell_ptr[t], (t - heads[group]) * weights.width
            token = features.tokens[t]
            for n in range(features.indptr[token], features.indptr[token + 1]):
                ask(n, features, weights)
                attribute, value = indices[n], features.values[n * features.stride]
                if slots[attribute] < weights.n_rows:
                    out.rows[k] = slots[attribute]
                    out.row_values[k * stride] = value
                    k += 1
                    continue
                for p in range(ptr[attribute], ptr[attribute + 1]):
                    out.cells[m] = before + weights.columns[p]
                    out.positions[m] = weights.positions[p]
                    out.cell_values[m * stride] = value
                    m += 1


@kernel
def rows_count(
    first: int,  # batches first:last
    last: int,
    heads: IntArray,  # (B + 1,) the first token of each batch
    row_ptr: IntArray | CodeArray,  # (N + 1,)
    rows: PlaceArray,  # (n,)
    seen: IntArray,  # (H,) workspace: no batch in any place
    counts: IntArray,  # (B,) out: different rows of each batch
) -> None:
    """Count the rows that `rows_deal` lists."""
    for batch in range(first, last):
        for n in range(row_ptr[heads[batch]], row_ptr[heads[batch + 1]]):
            if seen[rows[n]] != batch:
                seen[rows[n]] = batch
                counts[batch] += 1


@kernel
def rows_deal(
    first: int,  # batches first:last
    last: int,
    counts: IntArray,  # (H,) workspace: zeros
    design: Design,
    out: BatchRows,  # its pointers are read
) -> None:
    """List the tokens of each row, for some batches."""
    row_ptr, rows = design.row_ptr, design.rows
    for batch in range(first, last):
        begin, end = out.heads[batch], out.heads[batch + 1]
        start, c = 0, out.ptr[batch]
        for n in range(row_ptr[begin], row_ptr[end]):
            counts[rows[n]] += 1
        for h in range(counts.shape[0]):
            if counts[h] > 0:
                out.rows[c], out.ends[c] = h, start + counts[h]
                start, counts[h] = start + counts[h], start
                c += 1
        for t in range(begin, end):
            for n in range(row_ptr[t], row_ptr[t + 1]):
                place = row_ptr[begin] + counts[rows[n]]
                counts[rows[n]] += 1
                out.tokens[place] = t - begin
                out.values[place * design.stride] = design.row_values[n * design.stride]
        for c in range(out.ptr[batch], out.ptr[batch + 1]):
            counts[out.rows[c]] = 0

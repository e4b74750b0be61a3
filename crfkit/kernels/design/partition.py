"""Making the lists of a design matrix batch by batch: see `BatchDesign`.

Shapes: ``B`` batches, ``N`` tokens of all, ``D`` attributes, ``P`` weights, ``H`` rows.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import FloatArray, IdArray, IntArray, PtrArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import prefetch_at
from crfkit.kernels.design.batch import BatchDesign

# What is known of an attribute is asked for so many entries before it is read, twice as many for
# where its weights are.
AHEAD = 12


class SparseFeatures(NamedTuple):
    """The attributes of tokens."""

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
def ask(n: int, features: SparseFeatures, weights: WeightPositions) -> None:
    """Have what is known of attributes to come fetched."""
    indices, final = features.indices, features.indices.shape[0] - 1
    later = indices[min(n + 2 * AHEAD, final)]
    prefetch_at(weights.slots, later)
    prefetch_at(weights.ptr, later)
    soon = indices[min(n + AHEAD, final)]
    if weights.slots[soon] == weights.n_rows:
        prefetch_at(weights.positions, weights.ptr[soon])


@kernel
def batches_count(
    first: int,  # batches first:last
    last: int,
    heads: IntArray,  # (B + 1,) the first token of each batch
    features: SparseFeatures,
    weights: WeightPositions,
    seen: IntArray,  # (H + 1,) workspace: no batch in any place
    row_counts: IntArray,  # (N,) out: entries in rows of each token
    column_counts: IntArray,  # (B,) out: different rows of each batch
    cell_counts: IntArray,  # (B,) out: cells of each batch
) -> None:
    """Count what `batches_deal` lists."""
    indices, slots, ptr, n_rows = features.indices, weights.slots, weights.ptr, weights.n_rows
    for batch in range(first, last):
        for t in range(heads[batch], heads[batch + 1]):
            for n in range(features.indptr[t], features.indptr[t + 1]):
                ask(n, features, weights)
                slot = slots[indices[n]]
                if slot == n_rows:
                    cell_counts[batch] += ptr[indices[n] + 1] - ptr[indices[n]]
                    continue
                row_counts[t] += 1
                if seen[slot] != batch:
                    seen[slot] = batch
                    column_counts[batch] += 1


@kernel
def batches_deal(
    first: int,  # batches first:last
    last: int,
    features: SparseFeatures,
    weights: WeightPositions,
    counts: IntArray,  # (H + 1,) workspace: zeros
    out: BatchDesign,  # its pointers are read
) -> None:
    """List the entries of some batches: token by token, row by row, and the cells."""
    stride = out.stride
    for batch in range(first, last):
        begin, end = out.heads[batch], out.heads[batch + 1]
        _by_token(batch, features, weights, counts, out)
        start, c = out.row_ptr[begin], out.batch_ptr[batch]
        for slot in range(counts.shape[0] - 1):
            if counts[slot] > 0:
                out.columns[c], out.col_ptr[c] = slot, start
                start += counts[slot]
                counts[slot] = out.col_ptr[c]
                c += 1
        for t in range(begin, end):
            for n in range(out.row_ptr[t], out.row_ptr[t + 1]):
                place = counts[out.rows[n]]
                counts[out.rows[n]] = place + 1
                out.tokens[place] = t - begin
                out.token_values[place * stride] = out.row_values[n * stride]
        for c in range(out.batch_ptr[batch], out.batch_ptr[batch + 1]):
            counts[out.columns[c]] = 0


@kernel
def _by_token(
    batch: int,
    features: SparseFeatures,
    weights: WeightPositions,
    counts: IntArray,  # (H + 1,) out, added to: entries of each row
    out: BatchDesign,
) -> None:
    """List the rows and cells of a batch in the order of its tokens."""
    indices, slots, ptr, stride = features.indices, weights.slots, weights.ptr, out.stride
    begin, m = out.heads[batch], out.cell_ptr[batch]
    for t in range(begin, out.heads[batch + 1]):
        k = out.row_ptr[t]
        for n in range(features.indptr[t], features.indptr[t + 1]):
            ask(n, features, weights)
            slot = slots[indices[n]]
            if slot < weights.n_rows:
                out.rows[k] = slot
                out.row_values[k * stride] = features.values[n * stride]
                counts[slot] += 1
                k += 1
                continue
            for p in range(ptr[indices[n]], ptr[indices[n] + 1]):
                out.cells[m] = (t - begin) * weights.width + weights.columns[p]
                out.positions[m] = weights.positions[p]
                out.cell_values[m * stride] = features.values[n * stride]
                m += 1

"""Entries of small batches, token by token and weight by weight.

Attributes with weights for many labels have rows of a table, all other weights are cells; both
stand in one vector of weights.

Shapes: ``B`` batches, ``N`` tokens of all, ``D`` attributes, ``P`` weights, ``H`` rows, ``K``
labels.
"""

from __future__ import annotations

from crfkit._types import FloatArray, IdArray, IntArray, PtrArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import prefetch_at

# What is known of an attribute is asked for so many entries before it is read, twice as many for
# where its weights are.
AHEAD = 12


@part
def _ask(n: int, final: int, indices: IdArray, slots: IdArray, no_slot: int, ptr: PtrArray,
         spots: IdArray) -> None:  # fmt: skip
    """Have what is known of attributes to come fetched."""
    later = indices[min(n + 2 * AHEAD, final)]
    prefetch_at(slots, later)
    prefetch_at(ptr, later)
    soon = indices[min(n + AHEAD, final)]
    if slots[soon] == no_slot:
        prefetch_at(spots, ptr[soon])


@kernel
def batches_count(
    first: int,  # batches first:last
    last: int,
    heads: IntArray,  # (B + 1,) the first token of each batch
    indptr: IntArray,  # (N + 1,)
    indices: IdArray,  # (nnz,) attributes
    slots: IdArray,  # (D,) row of the table, H where there is none
    ptr: PtrArray,  # (D + 1,)
    spots: IdArray,  # (P,) where each weight stands in the vector
    seen: IntArray,  # (H + 1,) workspace: no batch in any place
    row_counts: IntArray,  # (N,) out: entries in rows of each token
    column_counts: IntArray,  # (B,) out: different rows of each batch
    cell_counts: IntArray,  # (B,) out: cells of each batch
) -> None:
    """Count what `batches_deal` lists."""
    no_slot = seen.shape[0] - 1
    final = indices.shape[0] - 1
    for batch in range(first, last):
        for t in range(heads[batch], heads[batch + 1]):
            for n in range(indptr[t], indptr[t + 1]):
                _ask(n, final, indices, slots, no_slot, ptr, spots)
                slot = slots[indices[n]]
                if slot == no_slot:
                    cell_counts[batch] += ptr[indices[n] + 1] - ptr[indices[n]]
                    continue
                row_counts[t] += 1
                if seen[slot] != batch:
                    seen[slot] = batch
                    column_counts[batch] += 1


@kernel
def batches_deal(
    first: int,  # batches first:last, and the following: see batches_count
    last: int,
    heads: IntArray,  # (B + 1,)
    indptr: IntArray,  # (N + 1,)
    indices: IdArray,  # (nnz,)
    values: FloatArray,  # (nnz,) or (1,)
    step: int,
    slots: IdArray,  # (D,)
    ptr: PtrArray,  # (D + 1,)
    labels: IdArray,  # (P,)
    spots: IdArray,  # (P,)
    n_labels: int,
    row_ptr: IntArray,  # (N + 1,) where the entries in rows of each token start
    batch_ptr: IntArray,  # (B + 1,) where the rows of each batch start
    cell_ptr: IntArray,  # (B + 1,) where the cells of each batch start
    counts: IntArray,  # (H + 1,) workspace: zeros
    found: IdArray,  # (n,) out: rows of the table, token by token
    factor: FloatArray,  # (n,) or (1,) out: their values
    columns: IdArray,  # (C,) out: rows of the table that occur in each batch, rising
    col_ptr: IntArray,  # (C + 1,) out: where the entries of each start
    rows: IdArray,  # (n,) out: tokens of the batch, in order within a row of the table
    turned: FloatArray,  # (n,) or (1,) out: their values
    cells: IdArray,  # (m,) out: positions in the scores of the batch
    places: IdArray,  # (m,) out: places of weights in the vector
    weights: FloatArray,  # (m,) or (1,) out: their values
) -> None:
    """List the entries of some batches: token by token, row by row, and the cells."""
    for batch in range(first, last):
        begin, end = heads[batch], heads[batch + 1]
        _by_token(
            begin, end, indptr, indices, values, step, slots, ptr, labels, spots, n_labels,
            row_ptr, cell_ptr[batch], counts, found, factor, cells, places, weights,
        )  # fmt: skip
        start, c = row_ptr[begin], batch_ptr[batch]
        for slot in range(counts.shape[0] - 1):
            if counts[slot] > 0:
                columns[c], col_ptr[c] = slot, start
                start += counts[slot]
                counts[slot] = col_ptr[c]
                c += 1
        for t in range(begin, end):
            for n in range(row_ptr[t], row_ptr[t + 1]):
                place = counts[found[n]]
                counts[found[n]] = place + 1
                rows[place] = t - begin
                turned[place * step] = factor[n * step]
        for c in range(batch_ptr[batch], batch_ptr[batch + 1]):
            counts[columns[c]] = 0


@kernel
def _by_token(
    begin: int,  # tokens begin:end
    end: int,
    indptr: IntArray,
    indices: IdArray,
    values: FloatArray,
    step: int,
    slots: IdArray,
    ptr: PtrArray,
    labels: IdArray,
    spots: IdArray,
    n_labels: int,
    row_ptr: IntArray,
    m: int,  # the first cell
    counts: IntArray,  # (H + 1,) out, added to: entries of each row
    found: IdArray,
    factor: FloatArray,
    cells: IdArray,
    places: IdArray,
    weights: FloatArray,
) -> None:
    """List the rows and cells of a batch in the order of its tokens."""
    no_slot, final = counts.shape[0] - 1, indices.shape[0] - 1
    for t in range(begin, end):
        k = row_ptr[t]
        for n in range(indptr[t], indptr[t + 1]):
            _ask(n, final, indices, slots, no_slot, ptr, spots)
            slot = slots[indices[n]]
            if slot < no_slot:
                found[k] = slot
                factor[k * step] = values[n * step]
                counts[slot] += 1
                k += 1
                continue
            for p in range(ptr[indices[n]], ptr[indices[n] + 1]):
                cells[m] = (t - begin) * n_labels + labels[p]
                places[m] = spots[p]
                weights[m * step] = values[n * step]
                m += 1

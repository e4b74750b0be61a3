"""Entries of small batches in a form that several threads read at the same time.

A batch is worked on in ``SHARES`` parts of its tokens, and its weights are moved in ``SHARES``
shares. Attributes with weights for many labels have rows of a table, all other weights are cells;
both stand in one vector of weights.

Shapes: ``B`` batches, ``N`` tokens of all, ``D`` attributes, ``P`` weights, ``H`` rows, ``K``
labels.
"""

from __future__ import annotations

from crfkit._types import FloatArray, IdArray, IntArray, PtrArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import prefetch_at

# Also the number of threads that a batch can make use of.
SHARES = 4

# Neighboring weights are in one share, so that threads do not write to the same line of a cache.
_BLOCK_BITS = 4

# What is known of an attribute is asked for so many entries before it is read, twice as many for
# where its weights are.
AHEAD = 12


@kernel
def _share(place: int) -> int:
    """Return the share of a weight."""
    return (place >> _BLOCK_BITS) % SHARES


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
def shares_count(
    first: int,  # batches first:last
    last: int,
    part_tokens: IntArray,  # (SHARES B + 1,) where the tokens of each part of a batch start
    indptr: IntArray,  # (N + 1,)
    indices: IdArray,  # (nnz,) attributes
    slots: IdArray,  # (D,) row of the table, H where there is none
    ptr: PtrArray,  # (D + 1,)
    spots: IdArray,  # (P,) where each weight stands in the vector
    seen: IntArray,  # (H + 1,) workspace: no batch in any place
    row_counts: IntArray,  # (N,) out: entries in rows of each token
    column_counts: IntArray,  # (B,) out: different rows of each batch
    cell_counts: IntArray,  # (B SHARES SHARES,) out: cells of each part and share
) -> None:
    """Count what `shares_deal` deals."""
    no_slot = seen.shape[0] - 1
    final = indices.shape[0] - 1
    for batch in range(first, last):
        for item in range(batch * SHARES, (batch + 1) * SHARES):
            for t in range(part_tokens[item], part_tokens[item + 1]):
                for n in range(indptr[t], indptr[t + 1]):
                    _ask(n, final, indices, slots, no_slot, ptr, spots)
                    slot = slots[indices[n]]
                    if slot < no_slot:
                        row_counts[t] += 1
                        if seen[slot] != batch:
                            seen[slot] = batch
                            column_counts[batch] += 1
                        continue
                    for p in range(ptr[indices[n]], ptr[indices[n] + 1]):
                        cell_counts[item * SHARES + _share(spots[p])] += 1


@kernel
def shares_deal(
    first: int,  # batches first:last, and the following: see shares_count
    last: int,
    part_tokens: IntArray,  # (SHARES B + 1,)
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
    column_ptr: IntArray,  # (B + 1,) where the rows of each batch start
    cell_ptr: IntArray,  # (B SHARES SHARES + 1,) where the cells of each part and share start
    counts: IntArray,  # (H + 1,) workspace: zeros
    cursors: IntArray,  # (SHARES SHARES,) workspace
    found: IdArray,  # (n,) out: rows of the table, token by token
    factor: FloatArray,  # (n,) or (1,) out: their values
    columns: IdArray,  # (C,) out: rows of the table that occur in each batch, rising
    col_ptr: IntArray,  # (C + 1,) out: where the entries of each start
    share_ptr: IntArray,  # (B SHARES + 1,) out: where each share starts in `columns`
    rows: IdArray,  # (n,) out: tokens of the batch, in order within a row of the table
    turned: FloatArray,  # (n,) or (1,) out: their values
    cells: IdArray,  # (m,) out: positions in the scores of the batch
    places: IdArray,  # (m,) out: places of weights in the vector
    weights: FloatArray,  # (m,) or (1,) out: their values
) -> None:
    """List the entries of some batches: token by token, row by row, and the cells."""
    for batch in range(first, last):
        for i in range(SHARES * SHARES):
            cursors[i] = cell_ptr[batch * SHARES * SHARES + i]
        _by_token(
            batch, part_tokens, indptr, indices, values, step, slots, ptr, labels, spots, n_labels,
            row_ptr, counts, cursors, found, factor, cells, places, weights,
        )  # fmt: skip
        begin = part_tokens[batch * SHARES]
        end = part_tokens[(batch + 1) * SHARES]
        _starts(batch, row_ptr[begin], row_ptr[end], column_ptr, counts, columns, col_ptr,
                share_ptr)  # fmt: skip
        for t in range(begin, end):
            for n in range(row_ptr[t], row_ptr[t + 1]):
                place = counts[found[n]]
                counts[found[n]] = place + 1
                rows[place] = t - begin
                turned[place * step] = factor[n * step]
        for c in range(column_ptr[batch], column_ptr[batch + 1]):
            counts[columns[c]] = 0


@kernel
def _by_token(
    batch: int,
    part_tokens: IntArray,
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
    counts: IntArray,  # (H + 1,) out, added to: entries of each row
    cursors: IntArray,  # (SHARES SHARES,) where the next cell is written
    found: IdArray,
    factor: FloatArray,
    cells: IdArray,
    places: IdArray,
    weights: FloatArray,
) -> None:
    """List the rows and cells of a batch in the order of its tokens."""
    no_slot, final = counts.shape[0] - 1, indices.shape[0] - 1
    begin = part_tokens[batch * SHARES]
    for number in range(SHARES):
        item = batch * SHARES + number
        for t in range(part_tokens[item], part_tokens[item + 1]):
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
                    cursor = number * SHARES + _share(spots[p])
                    m = cursors[cursor]
                    cursors[cursor] = m + 1
                    cells[m] = (t - begin) * n_labels + labels[p]
                    places[m] = spots[p]
                    weights[m * step] = values[n * step]


@kernel
def _starts(
    batch: int,
    begin: int,  # the entries in rows of the batch
    end: int,
    column_ptr: IntArray,
    counts: IntArray,  # (H + 1,) in: entries of each row, out: where they start
    columns: IdArray,
    col_ptr: IntArray,
    share_ptr: IntArray,
) -> None:
    """Give each row of a batch room for its entries, and cut the rows into shares of like work."""
    c = column_ptr[batch]
    work = (end - begin) + (column_ptr[batch + 1] - c)
    start = begin
    share = 0
    done = 0
    for slot in range(counts.shape[0] - 1):
        if counts[slot] == 0:
            continue
        while share < SHARES and done >= share * work / SHARES:
            share_ptr[batch * SHARES + share] = c
            share += 1
        columns[c] = slot
        col_ptr[c] = start
        start += counts[slot]
        done += counts[slot] + 1
        counts[slot] = start - counts[slot]
        c += 1
    while share < SHARES:
        share_ptr[batch * SHARES + share] = c
        share += 1

"""Attributes that come only together with others: which, and rows of tables that stand for several.

Shapes: ``N`` tokens, ``D`` attributes, ``H`` rows of the table, ``L`` links from a row at most. Row
``b`` is folded into row ``a`` where each token with ``a`` has ``b``: then ``a`` is linked to ``b``.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel, part


class TokenRows(NamedTuple):
    """Attributes of tokens, each once, and the rows of the table that they have. Read-only."""

    indptr: IntArray  # (N + 1,)
    indices: IdArray  # (nnz,) attributes
    slots: IdArray  # (D,) row of each attribute, H for none


class SplitEntries(NamedTuple):
    """Entries of tokens that are left, by whether they have a row in the table."""

    row_ptr: IntArray  # (N + 1,) where those with rows begin
    slots: IdArray  # (nnz,) their rows
    tokens: IdArray  # (nnz,) their tokens
    others: IdArray  # (nnz,) the other attributes
    their_tokens: IdArray  # (nnz,) their tokens


@part
def _rows_of(tokens: TokenRows, t: int, n_rows: int, own: IdArray) -> int:
    """List the rows of a token; returns how many there are."""
    count = 0
    for n in range(tokens.indptr[t], tokens.indptr[t + 1]):
        slot = tokens.slots[tokens.indices[n]]
        if slot < n_rows:
            own[count] = slot
            count += 1
    return count


@kernel
def fold_find(
    tokens: TokenRows,
    first: int,  # number of the first token among those of all calls
    own: IdArray,  # workspace: the rows of a token
    stamp: IntArray,  # (H,) workspace: no token in any place
    uses: IntArray,  # (H,) out, added to: tokens with each row
    count: IntArray,  # (H,) out: number of links of each row
    links: IdArray,  # (H, L) out
) -> None:
    """Find the rows that all tokens with a row have, as long as there are few.

    Those of its first token, as far as all its further tokens have them.
    """
    for t in range(tokens.indptr.shape[0] - 1):
        size = _rows_of(tokens, t, stamp.shape[0], own)
        for n in range(size):
            stamp[own[n]] = first + t
        for n in range(size):
            a, left = own[n], 0
            if uses[a] == 0:
                for m in range(min(size, links.shape[1])):
                    if m != n:
                        links[a, left] = own[m]
                        left += 1
            else:
                for k in range(count[a]):
                    if stamp[links[a, k]] == first + t:
                        links[a, left] = links[a, k]
                        left += 1
            count[a] = left
            uses[a] += 1


@kernel
def fold_settle(
    tokens: TokenRows,
    first: int,
    uses: IntArray,  # (H,)
    own: IdArray,  # workspace
    stamp: IntArray,  # (H,) workspace: no token in any place
    owner: IdArray,  # (H,) workspace
    count: IntArray,  # (H,) in and out
    links: IdArray,  # (H, L) in and out
) -> None:
    """Keep one of the links that a token has to the same row: that of the most frequent row."""
    for t in range(tokens.indptr.shape[0] - 1):
        size, clash = _rows_of(tokens, t, stamp.shape[0], own), False
        for n in range(size):
            a = own[n]
            for k in range(count[a]):
                b = links[a, k]
                if stamp[b] != first + t:
                    stamp[b] = first + t
                    owner[b] = a
                    continue
                clash = True
                if uses[a] > uses[owner[b]]:
                    owner[b] = a
        if not clash:
            continue
        for n in range(size):
            a, left = own[n], 0
            for k in range(count[a]):
                if owner[links[a, k]] == a:
                    links[a, left] = links[a, k]
                    left += 1
            count[a] = left


@kernel
def fold_split(
    tokens: TokenRows,
    count: IntArray,  # (H,)
    links: IdArray,  # (H, L)
    taken: IntArray,  # (H,) workspace: no token in any place
    out: SplitEntries,  # out
) -> int:
    """List the entries that are left when rows with links stand for those they are linked to.

    These are rows to which no other row of the token is linked, and all attributes without a row.
    Returns how many of these there are.
    """
    n_left, n_others = 0, 0
    out.row_ptr[0] = 0
    for t in range(tokens.indptr.shape[0] - 1):
        first = n_left
        for n in range(tokens.indptr[t], tokens.indptr[t + 1]):
            slot = tokens.slots[tokens.indices[n]]
            if slot < taken.shape[0]:
                out.slots[n_left] = slot
                n_left += 1
            else:
                out.others[n_others], out.their_tokens[n_others] = tokens.indices[n], t
                n_others += 1
        for n in range(first, n_left):
            for k in range(count[out.slots[n]]):
                taken[links[out.slots[n], k]] = t
        size, n_left = n_left, first
        for n in range(first, size):
            if taken[out.slots[n]] != t:
                out.slots[n_left], out.tokens[n_left] = out.slots[n], t
                n_left += 1
        out.row_ptr[t + 1] = n_left
    return n_others


@kernel
def fold_rows(
    owners: IdArray,  # (n,)
    members: IdArray,  # (n,) rows that they are linked to
    table: FloatArray,  # (H, K) in and out
) -> None:
    """``table[owner] += table[member]``, link by link.

    Owners and members exchanged, and from the last link on, it is the adjoint.
    """
    for n in range(owners.shape[0]):
        for k in range(table.shape[1]):
            table[owners[n], k] += table[members[n], k]

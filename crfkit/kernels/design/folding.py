"""Attributes that come only together with others: which, and rows of tables that stand for several.

Shapes: ``N`` tokens, ``H`` rows of the table, ``L`` links from a row at most. Row ``b`` is folded
into row ``a`` where each token with ``a`` has ``b``: then ``a`` is linked to ``b``.
"""

from __future__ import annotations

from crfkit._types import FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel


@kernel
def fold_find(
    row_ptr: IntArray,  # (N + 1,)
    slots: IdArray,  # (nnz,) rows of the table, token by token
    first: int,  # number of the first token among those of all calls
    stamp: IntArray,  # (H,) workspace: no token in any place
    uses: IntArray,  # (H,) out, added to: tokens with each row
    count: IntArray,  # (H,) out: number of links of each row
    links: IdArray,  # (H, L) out
) -> None:
    """Find the rows that all tokens with a row have, as long as there are few.

    Those of its first token, as far as all its further tokens have them.
    """
    for t in range(row_ptr.shape[0] - 1):
        begin, end = row_ptr[t], row_ptr[t + 1]
        for n in range(begin, end):
            stamp[slots[n]] = first + t
        for n in range(begin, end):
            a, left = slots[n], 0
            if uses[a] == 0:
                for m in range(begin, min(end, begin + links.shape[1])):
                    if m != n:
                        links[a, left] = slots[m]
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
    row_ptr: IntArray,  # (N + 1,)
    slots: IdArray,  # (nnz,)
    first: int,
    uses: IntArray,  # (H,)
    stamp: IntArray,  # (H,) workspace: no token in any place
    owner: IdArray,  # (H,) workspace
    count: IntArray,  # (H,) in and out
    links: IdArray,  # (H, L) in and out
) -> None:
    """Keep one of the links that a token has to the same row: that of the most frequent row."""
    for t in range(row_ptr.shape[0] - 1):
        begin, end = row_ptr[t], row_ptr[t + 1]
        clash = False
        for n in range(begin, end):
            a = slots[n]
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
        for n in range(begin, end):
            a, left = slots[n], 0
            for k in range(count[a]):
                if owner[links[a, k]] == a:
                    links[a, left] = links[a, k]
                    left += 1
            count[a] = left


@kernel
def fold_keep(
    row_ptr: IntArray,  # (N + 1,)
    slots: IdArray,  # (nnz,)
    count: IntArray,  # (H,)
    links: IdArray,  # (H, L)
    place: IntArray,  # (H,) workspace
    kept: IdArray,  # (nnz,) out: 1 where no row of the token is linked to this one, else 0
) -> None:
    """Mark the entries that are left when rows with links stand for those they are linked to."""
    for t in range(row_ptr.shape[0] - 1):
        begin, end = row_ptr[t], row_ptr[t + 1]
        for n in range(begin, end):
            place[slots[n]] = n
            kept[n] = 1
        for n in range(begin, end):
            for k in range(count[slots[n]]):
                kept[place[links[slots[n], k]]] = 0


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

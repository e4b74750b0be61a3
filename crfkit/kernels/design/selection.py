"""Which pairs of attributes and columns occur often enough.

Shapes: ``N`` tokens, ``D`` attributes, ``P`` pairs. Tokens are visited column by column: the pairs
of an attribute then come in the order of their columns, and a number tells whether one is new.
"""

from __future__ import annotations

from crfkit._types import CodeArray, IdArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import prefetch, prefetch_at

# What is known of an attribute: its last column, plus 1, and in how many tokens of that it occurs.
COLUMN, USES = 0, 1
# Attributes are asked for so many tokens before they are read: two lines of a cache.
AHEAD, LINE = 8, 16


@part
def _ask(tokens: IntArray, i: int, indptr: IntArray, indices: IdArray, known: IdArray) -> None:
    """Have the attributes of tokens to come fetched, and what is known of those of the next."""
    final = tokens.shape[0] - 1
    begin = indptr[tokens[min(i + AHEAD, final)]]
    prefetch_at(indices, begin)
    prefetch_at(indices, begin + LINE)
    token = tokens[min(i + 1, final)]
    for n in range(indptr[token], indptr[token + 1]):
        prefetch(known, indices[n], 0)


@part
def _use(known: IdArray, a: int, column: int) -> int:
    """Note a use of a pair; returns how many it has now."""
    uses = known[a, USES] + 1 if known[a, COLUMN] == column + 1 else 1
    known[a, COLUMN] = column + 1
    known[a, USES] = uses
    return uses


@kernel
def seen_list(
    tokens: IntArray,  # (n,) by rising column
    columns: IntArray,  # (n,) of these tokens
    indptr: IntArray,  # (N + 1,)
    indices: IdArray,  # (nnz,) attributes
    least: int,  # a pair occurs in so many tokens, or does not count
    known: IdArray,  # (D, 2) workspace: zeros
    ends: IntArray,  # (D,) in: where the pairs of each attribute start, out: where they end
    found: CodeArray,  # (P,) out: their columns, rising; (0,) to count alone
) -> None:
    """List the columns in which each attribute occurs in at least `least` tokens."""
    for i in range(tokens.shape[0]):
        _ask(tokens, i, indptr, indices, known)
        for n in range(indptr[tokens[i]], indptr[tokens[i] + 1]):
            attribute = indices[n]
            if _use(known, attribute, columns[i]) == least:
                if found.shape[0] > 0:
                    found[ends[attribute]] = columns[i]
                ends[attribute] += 1

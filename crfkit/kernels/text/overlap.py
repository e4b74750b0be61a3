"""Entries that have the most in common with texts.

Shapes: ``n`` texts with ``V`` words together, and ``E`` entries with ``U``, of ``W`` words. Words
are numbered, those that fewest entries have first, and rise in each text and each entry. A text has
the weights ``x``, an entry ``y``; `rest` is the sum of the squares of these from a word on.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part


class Texts(NamedTuple):
    """Words of texts and their weights. Read-only."""

    ptr: IntArray  # (n + 1,) where the words of each text begin
    words: CodeArray  # (V,)
    weights: FloatArray  # (V,)
    rest: FloatArray  # (V,)
    most: FloatArray  # (V,) the largest score of an entry that has this word, but none before it
    sizes: FloatArray  # (n,)


class Entries(NamedTuple):
    """Words of entries and their weights, also by word: a place is one in `words`. Read-only."""

    starts: IntArray  # (E + 1,) where the words of each entry begin
    words: CodeArray  # (U,)
    heads: IntArray  # (W + 1,) where the places of each word begin
    places: IntArray  # (U,) where each word stands
    owners: CodeArray  # (U,) the entry of each place
    weights: FloatArray  # (U,)
    rests: FloatArray  # (U,) of each place
    sizes: FloatArray  # (U,) that of the entry of each place


@part
def _product(
    words: CodeArray, x: FloatArray, i: int, end: int,
    others: CodeArray, y: FloatArray, j: int, stop: int,
) -> float:  # fmt: skip
    """``sum x y`` over the words that ``words[i:end]`` and ``others[j:stop]`` share."""
    total = 0.0
    while i < end and j < stop:
        if words[i] == others[j]:
            total += x[i] * y[j]
            i, j = i + 1, j + 1
        elif words[i] < others[j]:
            i += 1
        else:
            j += 1
    return total


@kernel
def squares_left(
    ptr: IntArray,  # (n + 1,) where the words of each text begin
    x: FloatArray,  # (V,)
    out: FloatArray,  # (V,) out
) -> None:
    """``out[i] = sum_j x[j]^2`` over the words of a text from i on."""
    for t in range(ptr.shape[0] - 1):
        total = 0.0
        for i in range(ptr[t + 1] - 1, ptr[t] - 1, -1):
            total += x[i] * x[i]
            out[i] = total


@kernel
def overlap_nearest(
    texts: Texts,
    entries: Entries,
    shared: float,  # c
    least: float,
    seen: CodeArray,  # (E,) -1s, for work
    nearest: CodeArray,  # (n,) out
    products: FloatArray,  # (n,) out
) -> None:
    """``argmax_e s``, ``s = p / (a + b - c p)``, ``p = sum x y``; -1 where no entry is near.

    Near is what has a score above `least`; ``a`` and ``b`` are the sizes of text and entry. Each
    entry is looked at where its first word is met. From there on ``p^2`` is at most the product
    of both rests (Cauchy), and the search ends when ``most`` says so (prefix filtering: Chaudhuri,
    Ganti and Kaushik 2006; for the nearest, Xiao, Wang, Lin and Shang 2009).
    """
    ptr, words, rest, owners = texts.ptr, texts.words, texts.rest, entries.owners
    heads, places, starts = entries.heads, entries.places, entries.starts
    for t in range(ptr.shape[0] - 1):
        top = least
        nearest[t], products[t] = -1, 0.0
        for i in range(ptr[t], ptr[t + 1]):
            if texts.most[i] <= top:
                break
            for k in range(heads[words[i]], heads[words[i] + 1]):
                both = texts.sizes[t] + entries.sizes[k]
                # s <= top, where p is as large as it can be.
                largest = rest[i] * entries.rests[k]
                if largest * (1.0 + shared * top) ** 2 <= (top * both) ** 2:
                    continue
                if seen[owners[k]] == t:
                    continue
                seen[owners[k]] = t
                product = _product(
                    words, texts.weights, i, ptr[t + 1],
                    entries.words, entries.weights, places[k], starts[owners[k] + 1],
                )  # fmt: skip
                score = product / (both - shared * product)
                if score > top:
                    top = score
                    nearest[t], products[t] = owners[k], product

"""Cutting a data set into units of work, in the same way for any number of threads."""

from __future__ import annotations

import numpy as np

from crfkit._types import Chunk, IntArray

# Scores of a chunk (tokens x labels) at most: three such arrays fit the second-level cache.
CHUNK_CELLS = 90_000
# Pair scores of a chunk at most, where each token may have a table of its own: 32 MiB.
PAIR_CELLS = 1 << 22
# A sequence of more tokens has all threads to itself.
LONG_TOKENS = 1 << 17
# Scores of a block of chunks, the largest array that is kept: 14 MiB, where that holds so many
# chunks, at most 64 MiB. With short sequences these are 20 chunks, and their tables of transitions:
# an even number, so that threads end together.
FEW_CELLS, FEW_CHUNKS = 20 * CHUNK_CELLS + CHUNK_CELLS // 2, 8
BLOCK_CELLS = 1 << 23


def chunk_tokens(n_labels: int, *, own_transitions: bool) -> int:
    """Return the number of tokens of a chunk.

    At least K: what a chunk does once for all K x K pairs then does not dominate. Fewer, where
    transitions have pair scores of their own and their tables would grow large.
    """
    tokens = max(n_labels, CHUNK_CELLS // n_labels)
    return max(1, min(tokens, PAIR_CELLS // n_labels**2)) if own_transitions else tokens


def make_chunks(offsets: IntArray, tokens: int) -> list[Chunk]:
    """Cut sequences into chunks of about that many tokens; a sequence is never cut."""
    chunks, first = [], 0
    count = len(offsets) - 1
    while first < count:
        last = int(np.searchsorted(offsets, offsets[first] + tokens, side="right")) - 1
        last = min(max(last, first + 1), count)
        chunks.append(Chunk(first, offsets[first : last + 1]))
        first = last
    return chunks


def is_long(chunk: Chunk) -> bool:
    """Whether a chunk is one sequence that is long enough to be split over threads."""
    return int(chunk.offsets[-1] - chunk.offsets[0]) > LONG_TOKENS


def cut(tokens: slice, size: int) -> list[slice]:
    """Cut a run of tokens into pieces of `size` tokens; no tokens are one piece."""
    starts = range(tokens.start, max(tokens.stop, tokens.start + 1), size)
    return [slice(begin, min(begin + size, tokens.stop)) for begin in starts]


def make_blocks(chunks: list[Chunk], cells: list[int]) -> list[list[Chunk]]:
    """Group consecutive chunks of so many scores into blocks of at most `BLOCK_CELLS`.

    A chunk that is larger, or one long sequence, is a block of its own.
    """
    blocks: list[list[Chunk]] = []
    limit = min(BLOCK_CELLS, max(FEW_CELLS, FEW_CHUNKS * max(cells, default=0)))
    total = 0
    for chunk, size in zip(chunks, cells, strict=True):
        if not blocks or total + size > limit or is_long(chunk):
            blocks.append([])
            total = 0
        blocks[-1].append(chunk)
        total = BLOCK_CELLS if is_long(chunk) else total + size
    return blocks

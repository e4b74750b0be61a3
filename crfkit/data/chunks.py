"""Cutting a data set into units of work, in the same way for any number of threads."""

from __future__ import annotations

import numpy as np

from crfkit._types import Chunk, IntArray

# Scores of a chunk (tokens x labels) at most: three such arrays fit the second-level cache.
CHUNK_CELLS = 90_000
# Scores of a block of chunks at most, the largest array that is kept: 64 MiB.
BLOCK_CELLS = 1 << 23


def make_chunks(offsets: IntArray, n_labels: int) -> list[Chunk]:
    """Cut sequences into chunks of about `CHUNK_CELLS` scores; a sequence is never cut.

    At least K tokens: what a chunk does once for all K x K pairs then does not dominate.
    """
    tokens = max(n_labels, CHUNK_CELLS // n_labels)
    chunks, first = [], 0
    count = len(offsets) - 1
    while first < count:
        last = int(np.searchsorted(offsets, offsets[first] + tokens, side="right")) - 1
        last = min(max(last, first + 1), count)
        chunks.append(Chunk(first, offsets[first : last + 1]))
        first = last
    return chunks


def make_blocks(chunks: list[Chunk], n_labels: int) -> list[list[Chunk]]:
    """Group consecutive chunks into blocks of at most `BLOCK_CELLS` scores, or one chunk.

    Counted are the unary scores and one table of pairs for each chunk.
    """
    blocks: list[list[Chunk]] = []
    cells = 0
    for chunk in chunks:
        size = (chunk.tokens.stop - chunk.tokens.start + n_labels) * n_labels
        if not blocks or cells + size > BLOCK_CELLS:
            blocks.append([])
            cells = 0
        blocks[-1].append(chunk)
        cells += size
    return blocks

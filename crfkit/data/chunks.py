"""Cutting a data set into units of work, in the same way for any number of threads."""

from __future__ import annotations

import numpy as np

from crfkit._types import Chunk, IntArray

# Scores of a chunk (tokens x labels) at most: three such arrays fit the second-level cache.
CHUNK_CELLS = 90_000
# Scores of a block of chunks at most, the largest array that is kept: 64 MiB.
BLOCK_CELLS = 1 << 23


def make_chunks(offsets: IntArray, n_labels: int) -> list[Chunk]:
    """Cut sequences into chunks of about `CHUNK_CELLS` scores; a sequence is never cut."""
    tokens = max(1, CHUNK_CELLS // n_labels)
    chunks, first = [], 0
    count = len(offsets) - 1
    while first < count:
        last = int(np.searchsorted(offsets, offsets[first] + tokens, side="right")) - 1
        last = min(max(last, first + 1), count)
        chunks.append(Chunk(first, offsets[first : last + 1]))
        first = last
    return chunks


def make_blocks(chunks: list[Chunk], n_labels: int) -> list[list[Chunk]]:
    """Group consecutive chunks into blocks of at most `BLOCK_CELLS` scores, or one chunk."""
    blocks: list[list[Chunk]] = []
    limit = 0
    for chunk in chunks:
        if not blocks or int(chunk.offsets[-1]) > limit:
            blocks.append([])
            limit = int(chunk.offsets[0]) + BLOCK_CELLS // n_labels
        blocks[-1].append(chunk)
    return blocks

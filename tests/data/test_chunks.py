"""Cutting data into units of work."""

import numpy as np

from crfkit._types import Chunk
from crfkit.data.chunks import BLOCK_CELLS, FEW_CELLS, FEW_CHUNKS, make_blocks


def chunks_of(count):
    return [Chunk(i, np.array([10 * i, 10 * i + 10])) for i in range(count)]


def test_small_chunks_make_small_blocks():
    blocks = make_blocks(chunks_of(100), [90_000] * 100)
    assert [chunk.first for block in blocks for chunk in block] == list(range(100))
    sizes = [90_000 * len(block) for block in blocks]
    assert max(sizes) <= FEW_CELLS


def test_large_chunks_still_share_a_block():
    size = FEW_CELLS // 2
    blocks = make_blocks(chunks_of(20), [size] * 20)
    assert max(len(block) for block in blocks) == min(FEW_CHUNKS, BLOCK_CELLS // size)


def test_the_largest_chunks_are_blocks_of_their_own():
    assert [len(block) for block in make_blocks(chunks_of(3), [BLOCK_CELLS] * 3)] == [1, 1, 1]

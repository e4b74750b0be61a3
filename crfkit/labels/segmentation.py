"""Segmentations of sequences as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crfkit._types import CodeArray, IntArray

# Instead of a code: any; any that begins a segment; and `EITHER - k`, one of the label k.
ANY, BEGINS, EITHER = -1, -2, -3


class Segmentation(NamedTuple):
    """Segments: the first token of each, the one after its last, and its label, all (n,)."""

    start: IntArray
    stop: IntArray
    label: IntArray


def segmentation_of(codes: CodeArray, offsets: IntArray, n_labels: int) -> Segmentation:
    """Return the segments that codes stand for."""
    start = np.flatnonzero(codes >= n_labels)
    stop = np.append(start[1:], len(codes))[: len(start)]
    return Segmentation(start, stop, codes[start].astype(np.int64) - n_labels)

"""How messages name tokens."""

from __future__ import annotations

import numpy as np

from crfkit._types import IntArray


def token_place(offsets: IntArray, token: int) -> str:
    """Return how messages name a token: by its sequence, and its position in that.

    Parameters
    ----------
    offsets : ndarray of shape (S + 1,)
        Where the sequences start, and the end.
    token : int
        Its number through all sequences.
    """
    s = int(np.searchsorted(offsets, token, side="right")) - 1
    return f"sequence {s}, position {int(token) - int(offsets[s])}"
